"""Days as people write them. Today is Sunday, 22 November 2026."""

import subprocess
import sys
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.search.dates import span
from memd.search.filters import Condition
from memd.search.query import parse

TODAY = date(2026, 11, 22)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-05-01", "2026-05-01", "2026-05-01"),
        ("20260501", "2026-05-01", "2026-05-01"),
        ("2026-05", "2026-05-01", "2026-05-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2026-5-1", "2026-05-01", "2026-05-01"),
        ("2026", "2026-01-01", "2026-12-31"),
        ("2026-W21", "2026-05-18", "2026-05-24"),
        ("1.5.2026", "2026-05-01", "2026-05-01"),
        ("today", "2026-11-22", "2026-11-22"),
        ("Yesterday", "2026-11-21", "2026-11-21"),
        ("tomorrow", "2026-11-23", "2026-11-23"),
        ("the day before yesterday", "2026-11-20", "2026-11-20"),
        ("7d", "2026-11-15", "2026-11-15"),
        ("2w", "2026-11-08", "2026-11-08"),
        ("3mo", "2026-08-22", "2026-08-22"),
        ("1y", "2025-11-22", "2025-11-22"),
        ("3 days ago", "2026-11-19", "2026-11-19"),
        ("two weeks ago", "2026-11-08", "2026-11-08"),
        ("last 7 days", "2026-11-15", "2026-11-15"),
        ("in 3 days", "2026-11-25", "2026-11-25"),
        ("this week", "2026-11-16", "2026-11-22"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("last-week", "2026-11-09", "2026-11-15"),
        ("past week", "2026-11-09", "2026-11-15"),
        ("next week", "2026-11-23", "2026-11-29"),
        ("this month", "2026-11-01", "2026-11-30"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("previous month", "2026-10-01", "2026-10-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("friday", "2026-11-20", "2026-11-20"),
        ("last monday", "2026-11-16", "2026-11-16"),
        ("may", "2026-05-01", "2026-05-31"),
        ("December", "2025-12-01", "2025-12-31"),
        ("May 2026", "2026-05-01", "2026-05-31"),
        ("may-2027", "2027-05-01", "2027-05-31"),
        ("1 May", "2026-05-01", "2026-05-01"),
        ("May 1st, 2026", "2026-05-01", "2026-05-01"),
    ],
)
def test_what_people_write_is_a_span_of_days(text, first, last):
    """Weeks last from Monday to Sunday; "2 weeks ago" is one day; a date without a year is in the past."""
    found = span(text, TODAY)
    assert (found.first.isoformat(), found.last.isoformat()) == (first, last)


@pytest.mark.parametrize(
    ("text", "today", "first"),
    [
        ("last week", "2026-01-01", "2025-12-22"),
        ("this week", "2026-01-01", "2025-12-29"),
        ("last month", "2026-03-31", "2026-02-01"),
        ("1mo", "2026-03-31", "2026-02-28"),
        ("last year", "2024-02-29", "2023-01-01"),
        ("yesterday", "2026-01-01", "2025-12-31"),
        ("monday", "2026-11-23", "2026-11-16"),
    ],
)
def test_spans_reach_over_the_ends_of_months_and_years(text, today, first):
    """A day that does not exist becomes the nearest earlier one."""
    assert span(text, date.fromisoformat(today)).first.isoformat() == first


@pytest.mark.parametrize(
    "text",
    ["", "3.11", "12", "a", "3m", "5pm", "v2", "one", "maybe", "ever", "2026-13", "2026-02-30", "0000-01",
     "99999999d", "01/05/2026", "the release of may or later, whenever that is", "märz", "\0", "1.2.3"],
)  # fmt: skip
def test_what_is_no_day_or_could_be_two_is_none(text):
    """A version, an hour, a day that does not exist, a date that two countries read differently."""
    with pytest.raises((ValueError, OverflowError)):
        span(text, TODAY)


@pytest.mark.parametrize(
    ("typed", "name", "day"),
    [
        ("since:2026-05", "since", "2026-05-01"),
        ("until:2026-05", "until", "2026-05-31"),
        ("after:2026-05", "since", "2026-06-01"),
        ("before:2026-05", "until", "2026-04-30"),
        ('until:"last week"', "until", "2026-11-15"),
        ("since:yesterday", "since", "2026-11-21"),
    ],
)
def test_each_filter_takes_the_end_of_a_span_that_it_means(typed, name, day):
    """That month included, or not; several words in quotes."""
    query = parse(f"heron {typed}", TODAY)
    assert query.text == "heron"
    assert query.filters == (Condition(name, (date.fromisoformat(day),)),)


def test_what_is_no_day_stays_words():
    query = parse("deprecated since:3.11 until:v2", TODAY)
    assert (query.filters, query.text) == ((), "deprecated since:3.11 until:v2")


def test_only_so_many_relative_days_are_read():
    """A page of them would take seconds; the others are words, and dates of ISO are always read."""
    raw = " ".join(f"since:{number}d" for number in range(1, 40))
    assert parse(raw, TODAY).text.split()[0] == "since:17d"
    assert parse(raw + " since:2026-12-01", TODAY).filters == (Condition("since", (date(2026, 12, 1),)),)


@given(st.text(alphabet="0123456789-./: abcdehikmnorstuwy", max_size=20))
def test_any_text_is_a_span_or_none(text):
    """No other error, and no span that ends before it begins."""
    try:
        found = span(text, TODAY)
    except (ValueError, OverflowError):
        return
    assert found.first <= found.last


def test_the_library_is_loaded_for_what_needs_it_alone():
    """An import does not load it, and neither do ISO dates, months, years or words."""
    script = """
import sys
from datetime import date
from memd.search.query import parse
parse("x since:2026-05-01 until:2026-05 after:2020 before:v2 since:ever", date(2026, 11, 22))
assert "dateparser" not in sys.modules
parse("x since:yesterday", date(2026, 11, 22))
assert "dateparser" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
