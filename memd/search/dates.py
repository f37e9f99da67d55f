"""Days as people write them: `2026-05-01`, `2026-05`, `yesterday`, `7d`, `last week`, `1 May`.

Queries and parameters both use this module. A text means a span from its first day to its last: `2026-05` is
a month, `last week` runs from Monday to Sunday, `2 weeks ago` is a day. A date without a year is in the past.
Only English is read, and no order of day and month that depends on the country: 01/05/2026 is not a date.

dateparser reads the forms that ISO does not define. It is loaded with the first such text, which takes
a third of a second and 20 MB: do not call it in an event loop. Apart from that, the module is pure.
"""

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Final

MAX_CHARS: Final = 32  # the longest that people write: "the day before yesterday"
_REMEMBERED: Final = 64  # texts with their spans; a client repeats its texts
_LOCK: Final = Lock()  # dateparser remembers which languages it has seen
_DAY: Final = timedelta(days=1)
_CALENDAR: Final = (  # without a letter; 3.11 may be a version
    re.compile(r"(?P<year>\d{4})(?:[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?)?"),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"),
)
_WEEK: Final = re.compile(r"\d{4}-?W\d\d")
# Every date written with letters contains one of these; other texts are rejected without loading dateparser.
_KNOWN: Final = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun"
    r"|today|yesterday|tomorrow|days?|weeks?|months?|years?)"
)
_SHORT: Final = re.compile(r"(\d{1,4}) ?(d|w|mo|y)")
_UNITS: Final = {"d": "days", "w": "weeks", "mo": "months", "y": "years"}
_SAME: Final = ((re.compile(r"\b(?:previous|past)\b"), "last"), (re.compile(r"^(?:the )?last (?=\d)"), ""))
# A distance from today is a single day, whatever its unit.
_COUNTED: Final = re.compile(r"\bago\b|^in\b|^\d{1,3} ?[a-z]+$")


@dataclass(frozen=True, slots=True)
class Span:
    """A range of days, both ends included."""

    first: date
    last: date


def span(text: str, today: date | None) -> Span:
    """Return the range of days that a text describes.

    Args:
        text: what was typed.
        today: the day that relative dates count from; None: only ISO dates are accepted.

    Raises:
        ValueError: the text is not a date.
        OverflowError: the date is outside the calendar's range.
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
        parsed = _parser(today).get_date_data(plain)
    if parsed.date_obj is None or parsed.period == "time":
        raise ValueError(text)
    return _around(parsed.date_obj.date(), "day" if _COUNTED.search(plain) else parsed.period)


def _of_calendar(*, year: int, month: int, day: int) -> Span:
    """Return the span of a day, or of a whole month or year if *day* or *month* is 0."""
    period = "day" if day else "month" if month else "year"
    return _around(date(year, month or 1, day or 1), period)


def _plain(text: str) -> str:
    """Rewrite a text in words that dateparser knows."""
    # A value in a query ends at a space, so people write last-week for last week.
    text = re.sub(r"(?<=[a-z])[-_]|[-_](?=[a-z])", " ", text)
    for written, known in _SAME:
        text = written.sub(known, text)
    short = _SHORT.fullmatch(text)
    return f"{short[1]} {_UNITS[short[2]]}" if short else text


def _around(day: date, period: str) -> Span:
    """Return the week, month or year that contains a day, or the day itself."""
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
    from dateparser.date import DateDataParser  # noqa: PLC0415 - most queries have no such date

    return DateDataParser


def _parser(today: date) -> Any:
    settings = {
        "RELATIVE_BASE": datetime.combine(today, time(12)),  # no hour of a day is another day
        "PREFER_DATES_FROM": "past",
        "PARSERS": ["relative-time", "absolute-time"],  # no time stamps, no digits without marks
        "RETURN_TIME_AS_PERIOD": True,
    }
    return _library()(languages=["en"], settings=settings)
