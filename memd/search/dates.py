"""Days as people write them: `2026-05-01`, `2026-05`, `yesterday`, `7d`, `last week`, `Q3 2025`, `1 May`.

Queries and parameters both use this module. A text means a span from its first day to its last: `2026-05` is
a month, `last week` runs from Monday to Sunday, `2 weeks ago` is a day. A date without a year is in the past.
Only English is read, and no order of day and month that depends on the country: 01/05/2026 is not a date.
Pure and thread-safe.
"""

import calendar
import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final

from memd.named_days import COUNTS, Time, whole_time

MAX_CHARS: Final = 32  # the longest that people write: "the day before yesterday"
_REMEMBERED: Final = 64  # texts with their spans; a client repeats its texts
_DAY: Final = timedelta(days=1)
_CALENDAR: Final = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?")  # 3.11 may be a version
_WEEK: Final = re.compile(r"\d{4}-?W\d\d")
# A distance from today is a single day, whatever its unit.
_COUNTED: Final = re.compile(
    rf"(?:(?:last|past) |(in ))?(\d{{1,4}}|{'|'.join(one for one in COUNTS if ' ' not in one)}) ?"
    r"(d|w|y|mo|days?|weeks?|months?|quarters?|years?)(?: ago)?"
)
_DAYS: Final = {"d": 1, "w": 7}  # of a unit, by its first letter
_MONTHS: Final = {"m": 1, "q": 3, "y": 12}
_SHORT: Final = {f"{name}day"[:3]: f"{name}day" for name in "mon tues wednes thurs fri satur sun".split()} | {  # noqa: SIM905
    "tues": "tuesday", "thurs": "thursday"
}  # fmt: skip
# 1.5.26, 1 May 26, May 1, 26; behind a month alone with its apostrophe, as May 26 is a day.
_SHORT_YEAR: Final = re.compile(
    r"^(\d\d?\.\d\d?\.|\d\d?\.? [^\W\d]+\.? |[^\W\d]+\.? (?:\d\d?,? |(?=['\u2019])))['\u2019]?(\d\d)$"
)
_PIVOT: Final = "68"  # of 2068; 69 is 1969, as for POSIX
_AHEAD: Final = {"tomorrow": 1, "day after tomorrow": 2}


def span(text: str, today: date | None) -> Time:
    """Return the range of days that a text describes.

    Args:
        text: what was typed.
        today: the day that relative dates count from; None: only ISO dates are accepted.

    Raises:
        ValueError: the text is not a date.
        OverflowError: the date is outside the calendar's range.
    """
    try:
        day = datetime.fromisoformat(text).date()  # models write a time behind it, in whatever zone
    except ValueError:
        if today is None:
            raise
        return _written(" ".join(text.split()), today)
    return Time(day, day + 6 * _DAY) if _WEEK.fullmatch(text) else Time(day, day)


@lru_cache(_REMEMBERED)
def _written(text: str, today: date) -> Time:
    if found := _CALENDAR.fullmatch(text):
        year, month, day = map(int, found.groups("0"))
        first = date(year, month or 1, day or 1)
        last = calendar.monthrange(year, month or 12)[1]
        return Time(first, first if day else date(year, month or 12, last))
    if len(text) > MAX_CHARS:
        raise ValueError(text)
    # A value in a query ends at a space, so people write last-week for last week.
    plain = re.sub(r"(?<=[a-z])[-_]|[-_](?=[a-z]|\d{4}$)", " ", text.casefold()).removeprefix("the ")
    plain = re.sub(r"^(\d{4}) (\w+)$", r"\2 \1", " ".join(_SHORT.get(word, word) for word in plain.split()))
    if found := _COUNTED.fullmatch(plain):
        count = int(COUNTS.get(found[2]) or found[2]) * (1 if found[1] else -1)
        at = _moved(today, count, found[3][0])
        return Time(at, at)
    if plain in _AHEAD:
        at = today + _AHEAD[plain] * _DAY
        return Time(at, at)
    if plain.startswith("next "):
        if plain[5:] in _SHORT.values():
            return _written((_written(plain[5:], today).first + 7 * _DAY).isoformat(), today)
        return _written(f"this {plain[5:]}", _written(f"this {plain[5:]}", today).last + _DAY)
    plain = re.sub(r"^\w+, |(?<=day) (?:morning|afternoon|evening|night)$", "", plain)
    plain = _SHORT_YEAR.sub(lambda found: f"{found[1]}{19 + (found[2] <= _PIVOT)}{found[2]}", plain)
    return whole_time(plain, today)


def _moved(day: date, count: int, unit: str) -> date:
    """Return the day *count* units later; at most the last one of its month."""
    if unit in _DAYS:
        return day + count * _DAYS[unit] * _DAY
    year, month = divmod(day.year * 12 + day.month - 1 + count * _MONTHS[unit], 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
