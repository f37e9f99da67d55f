"""Days as people write them: `2026-05-01`, `2026-05`, `yesterday`, `7d`, `last week`, `1 May`.

The one place that reads them, for queries and for parameters. A text stands for a span, from its first day
to its last: `2026-05` is a month, `last week` goes from Monday to Sunday, `2 weeks ago` is a day. What has no
year lies in the past. English, and no order of day and month that depends on the country: 01/05/2026 is none.

dateparser does what ISO has no form for. It is loaded when the first such text comes, which takes a third of
a second and 20 MB: ask in no event loop. Pure, but for that.
"""

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Final

MAX_CHARS: Final = 32  # the longest that people write: "the day before yesterday"
_REMEMBERED: Final = 64  # texts with their day; a client asks the same again
_LOCK: Final = Lock()  # dateparser keeps which languages it saw
_DAY: Final = timedelta(days=1)
_CALENDAR: Final = (  # without a letter; 3.11 may be a version
    re.compile(r"(?P<year>\d{4})(?:[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?)?"),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"),
)
_WEEK: Final = re.compile(r"\d{4}-?W\d\d")
# One of them stands in each day that is written with letters; other words need no library to be none.
_KNOWN: Final = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun"
    r"|today|yesterday|tomorrow|days?|weeks?|months?|years?)"
)
_SHORT: Final = re.compile(r"(\d{1,4}) ?(d|w|mo|y)")
_UNITS: Final = {"d": "days", "w": "weeks", "mo": "months", "y": "years"}
_SAME: Final = ((re.compile(r"\b(?:previous|past)\b"), "last"), (re.compile(r"^(?:the )?last (?=\d)"), ""))
# So long ago, or in so long: a day, whatever the unit.
_COUNTED: Final = re.compile(r"\bago\b|^in\b|^\d{1,3} ?[a-z]+$")


@dataclass(frozen=True, slots=True)
class Span:
    """From a first day to a last one, both included."""

    first: date
    last: date


def span(text: str, today: date | None) -> Span:
    """Return the days that a text stands for.

    Args:
        text: what was typed.
        today: what relative ones count from; None: only an ISO date is one.

    Raises:
        ValueError: it stands for none.
        OverflowError: it lies beyond the days there are.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        if today is None:
            raise
        return _written(" ".join(text.split()), today)
    return Span(day, day + 6 * _DAY) if _WEEK.fullmatch(text) else Span(day, day)


@lru_cache(_REMEMBERED)
def _written(text: str, today: date) -> Span:
    for form in _CALENDAR:
        if found := form.fullmatch(text):
            return _of_calendar(**{name: int(number) for name, number in found.groupdict("0").items()})
    plain = _plain(text.casefold())
    if len(text) > MAX_CHARS or not text.isascii() or not _KNOWN.search(plain):
        raise ValueError(text)
    with _LOCK:
        said = _parser(today).get_date_data(plain)
    if said.date_obj is None or said.period == "time":
        raise ValueError(text)
    return _around(said.date_obj.date(), "day" if _COUNTED.search(plain) else said.period)


def _of_calendar(*, year: int, month: int, day: int) -> Span:
    """Return a day, or the month or year of which no more is said: then the rest is 0."""
    period = "day" if day else "month" if month else "year"
    return _around(date(year, month or 1, day or 1), period)


def _plain(text: str) -> str:
    """Return a text in the words that dateparser knows."""
    # A value in a query ends at a space: last-week is last week.
    text = re.sub(r"(?<=[a-z])[-_]|[-_](?=[a-z])", " ", text)
    for written, said in _SAME:
        text = written.sub(said, text)
    short = _SHORT.fullmatch(text)
    return f"{short[1]} {_UNITS[short[2]]}" if short else text


def _around(day: date, period: str) -> Span:
    """Return the week, month or year that a day is in, or the day itself."""
    if period == "week":
        monday = day - day.weekday() * _DAY
        return Span(monday, monday + 6 * _DAY)
    if period == "month":
        return Span(day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1]))
    if period == "year":
        return Span(date(day.year, 1, 1), date(day.year, 12, 31))
    return Span(day, day)


@cache
def _library() -> Any:
    from dateparser.date import DateDataParser  # noqa: PLC0415 - most queries have no such day

    return DateDataParser


def _parser(today: date) -> Any:
    settings = {
        "RELATIVE_BASE": datetime.combine(today, time(12)),  # no hour of a day is another day
        "PREFER_DATES_FROM": "past",
        "PARSERS": ["relative-time", "absolute-time"],  # no time stamps, no digits without marks
        "RETURN_TIME_AS_PERIOD": True,
    }
    return _library()(languages=["en"], settings=settings)
