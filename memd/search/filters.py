"""The filter keys of a query: one table says how each is parsed, matched, told, offered and completed.

A new filter is one line in `FILTER_KEYS`, and the function that it matches by. The query parser, the masks of
both searches, `--explain` and `why` read the table. `python -m tools.generate` makes of it what memctl has:
the options of its commands, the descriptions of the MCP tools, the list that the Neovim plugin completes. A
key with `option` set is a parameter of a request, too (`api/params.py`).

Pure, but for the clock that limits how long patterns of paths may take. For any thread.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, Generic, Literal, TypeVar

from memd.records import Source
from memd.search import dates, globs

V = TypeVar("V")  # what the text behind a key is parsed to
Matches = Callable[[Source], bool]
DAY: Final = timedelta(days=1)
# Words and phrases filter chunks, not sources, and have no key: name → what is told of a chunk.
OF_WORDS: Final = {
    "phrase": "{value!r} does not stand in it",
    "excluded": "{value!r} stands in it, and is excluded",
}


@dataclass(frozen=True, slots=True)
class FilterKey(Generic[V]):
    """What can be typed in front of a colon."""

    key: str
    name: str  # of the filter that it makes, as an explanation has it: `after` makes a `since`
    # Of a text and the day it is (None: dates are ISO's alone). Raises ValueError or OverflowError: then what
    # was typed is words.
    parse: Callable[[str, date | None], V]
    matcher: Callable[[Sequence[V]], Matches]  # of one condition; InvalidError: a value cannot be used
    several: Literal["any", "all", "latest", "earliest"]  # which of several values count
    told: str  # of a source that it keeps out, with {value} and {source}
    value: str  # the kind of its value, as a help page names it
    help: str  # which notes may answer
    option: bool = True  # also a parameter of a request: --KEY, and an argument of the MCP tools
    completes: Literal["", "paths"] = ""  # what can be offered behind the colon


@dataclass(frozen=True, slots=True)
class Condition:
    """What a source must meet to answer."""

    name: str  # of the filter
    values: tuple[Any, ...]  # any of them will do

    @property
    def shown(self) -> str:
        """The values as people read them; a date is written as it is typed."""
        return ", ".join(map(str, self.values))

    def matcher(self) -> Matches:
        """Return what tells whether a source meets it.

        Raises:
            InvalidError: a value cannot be used.
        """
        return BY_NAME[self.name].matcher(self.values)


Filters = tuple[Condition, ...]  # all must be met; empty: every source may answer


def matching(sources: Iterable[Source], filters: Filters) -> Iterator[Source]:
    """Yield the sources that may answer.

    Raises:
        InvalidError: a value cannot be used, or patterns of paths take too long.
    """
    tests = [condition.matcher() for condition in filters]
    return (source for source in globs.patient(sources) if all(test(source) for test in tests))


def missed(source: Source, filters: Filters) -> list[Condition]:
    """Return the conditions that a source does not meet."""
    return [condition for condition in filters if not condition.matcher()(source)]


def conditions(given: Mapping[str, Sequence[Any]]) -> Filters:
    """Return what holds where all of these were given together: name of a filter → its values."""
    grouped = []
    for name, values in given.items():
        groups = [tuple(values)] if BY_NAME[name].several == "any" else [(value,) for value in values]
        grouped += [Condition(name, group) for group in groups if group]
    return joined(grouped)


def joined(every: Iterable[Condition]) -> Filters:
    """Return the same conditions in the order of the table, of days only the one that leaves fewest."""
    every = list(every)
    found: list[Condition] = []
    for name, key in BY_NAME.items():
        alike = [condition for condition in every if condition.name == name]
        if alike and key.several in {"latest", "earliest"}:
            narrowest = max if key.several == "latest" else min
            alike = [Condition(name, (narrowest(day for one in alike for day in one.values),))]
        found += alike
    return tuple(found)


def told(name: str, value: str, source: Source | None) -> str:
    """Return why a filter keeps a source, or a chunk of it, out of an answer."""
    saying = BY_NAME[name].told if name in BY_NAME else OF_WORDS[name]
    return saying.format(value=value, source=source)


def _by_path(patterns: Sequence[str]) -> Matches:
    matches = globs.matching(tuple(patterns))
    return lambda source: matches(_nfc(source.path))


def _by_tag(tags: Sequence[str]) -> Matches:
    wanted = {_nfc(tag).casefold().removeprefix("#").strip("/") for tag in tags}
    within = tuple(f"{tag}/" for tag in wanted)

    def matches(source: Source) -> bool:
        # A nested tag is also of those above it: project/alpha of project.
        return any(f"{_nfc(tag).casefold()}/".startswith(within) for tag in source.tags)

    return matches


def _from_day(days: Sequence[date]) -> Matches:
    first = min(days)
    return lambda source: source.day >= first


def _to_day(days: Sequence[date]) -> Matches:
    last = max(days)
    return lambda source: source.day <= last


def _as_it_is(text: str, _today: date | None) -> str:
    return text


def _since(text: str, today: date | None) -> date:
    return dates.span(text, today).first


def _until(text: str, today: date | None) -> date:
    return dates.span(text, today).last


def _after(text: str, today: date | None) -> date:
    return dates.span(text, today).last + DAY  # OverflowError: the last day there is has none


def _before(text: str, today: date | None) -> date:
    return dates.span(text, today).first - DAY


def _nfc(name: str) -> str:
    """Return one form of a name: macOS and archives store the other one than people type."""
    return unicodedata.normalize("NFC", name)


_EARLY = "it is of {source.day}, before {value}"
_LATE = "it is of {source.day}, after {value}"
_DATE = "DATE"
# One line a key, in the order in which they are offered and explained.
FILTER_KEYS: Final[tuple[FilterKey[Any], ...]] = (
    FilterKey("path", "path", _as_it_is, _by_path, "any", "its path does not match {value!r}", "GLOB",
              "only notes whose path matches, as daily/*.md", completes="paths"),
    FilterKey("tag", "tag", _as_it_is, _by_tag, "all", "it does not have the tag {value!r}", "TAG",
              "only notes with this tag"),
    FilterKey("since", "since", _since, _from_day, "latest", _EARLY, _DATE,
              "only notes of this day or later, as 2026-05-01, yesterday, 7d or last-week"),
    FilterKey("until", "until", _until, _to_day, "earliest", _LATE, _DATE,
              "only notes of this day or earlier, as 2026-05-31, or 2026-05: that month included"),
    FilterKey("after", "since", _after, _from_day, "latest", _EARLY, _DATE,
              "only notes of a later day", option=False),
    FilterKey("before", "until", _before, _to_day, "earliest", _LATE, _DATE,
              "only notes of an earlier day", option=False),
)  # fmt: skip
BY_KEY: Final = {one.key: one for one in FILTER_KEYS}
BY_NAME: Final = {one.name: BY_KEY[one.name] for one in FILTER_KEYS}
