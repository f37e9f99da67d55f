"""Unicode scripts: which a text is written in, and what a model reads."""

import pytest

from memd import scripts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("breast cancer", True),
        ("TNF-α levels", True),
        ("体长有多大", False),
        ("42", True),
        ("Patagonia tuckeri 的体长", False),
    ],
)
def test_a_latin_model_reads_a_query_of_mostly_latin_letters(text, expected):
    """A query whose letters are mostly of another script is not embedded."""
    assert scripts.readable(text, frozenset({"Latin"})) is expected


def test_a_model_without_a_list_reads_everything():
    """None stands for every script."""
    assert scripts.readable("会議", None)
