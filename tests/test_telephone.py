"""Which digits are a telephone number, and its forms in one piece."""

import pytest

from memd.telephone import numbers_in


@pytest.mark.parametrize(
    ("written", "forms"),
    [
        ("(030) 987 65 43", ["0309876543"]), ("030/9876543", ["0309876543"]),
        ("030 / 987-65-43", ["0309876543"]), ("01.23.45.67.89", ["0123456789"]),
        ("030\u00a0987\u202f65\u201143", ["0309876543"]), ("8 (495) 123-45-67", ["84951234567"]),
        ("555-123-4567", ["5551234567"]), ("912 345 678", ["912345678"]),
        ("+49 (0)30 987 65 43", ["49309876543", "0309876543", "309876543"]),
        ("0049 30 9876543", ["49309876543", "0309876543", "309876543"]),
        ("+1-555-123-4567", ["15551234567", "05551234567", "5551234567"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "around", ["{}", "Tel.: {}, mobile", "tel:{}.", "| *{}* |", "1. x\n{}\n2. y", "({})"]
)
def test_groups_are_one_number(written, forms, around):
    assert [list(found) for _, found in numbers_in(around.format(written))] == [forms]


@pytest.mark.parametrize(
    "text",
    [
        "0309876543", "2026-01-15 10:30", "01.02.2026 12", "06-12-2026 08:22", "192.168.100.200", "1 000 000",
        "0.123 0.456 0.789", "00:11:22", "(1995-2001)", "(2020) 2021", "978-3-16-148410-0", "a030 1234567",
        "030 1234567x", "030 987\n65 43", "0 1 2 3 4 5 6 7 8", "01 12 23 34 45 56 67 78 89 90",
    ],
)  # fmt: skip
def test_other_digits_are_none(text):
    assert numbers_in(text) == []


def test_two_numbers_are_two():
    assert [forms[0] for _, forms in numbers_in("030 9876543 / 040 1234567")] == ["0309876543", "0401234567"]
