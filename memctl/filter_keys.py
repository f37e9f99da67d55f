"""The filter keys of a query, as memd has them; written by tools/write_filter_keys.py."""

from typing import NamedTuple


class FilterKey(NamedTuple):
    """What can be typed in front of a colon."""

    key: str
    value: str  # the kind of its value, as a help page names it
    help: str
    option: bool  # also --KEY, and a parameter of a request
    several: str  # which of several values count: "any", "all", or of days one


FILTER_KEYS = (
    FilterKey(
        key="path",
        value="GLOB",
        help="only notes whose path matches, as daily/*.md",
        option=True,
        several="any",
    ),
    FilterKey(
        key="tag",
        value="TAG",
        help="only notes with this tag",
        option=True,
        several="all",
    ),
    FilterKey(
        key="since",
        value="DATE",
        help="only notes of this day or later, as 2026-05-01, yesterday, 7d or last-week",
        option=True,
        several="latest",
    ),
    FilterKey(
        key="until",
        value="DATE",
        help="only notes of this day or earlier, as 2026-05-31, or 2026-05: that month included",
        option=True,
        several="earliest",
    ),
    FilterKey(
        key="after",
        value="DATE",
        help="only notes of a later day",
        option=False,
        several="latest",
    ),
    FilterKey(
        key="before",
        value="DATE",
        help="only notes of an earlier day",
        option=False,
        several="earliest",
    ),
)
OPTIONS = tuple(one for one in FILTER_KEYS if one.option)
REPEATABLE = ("any", "all")
