"""The filter keys of a query: one table defines how each is parsed, matched, explained and completed.

A new filter is one line in `FILTER_KEYS` and a function that makes a test of sources. The query parser, the
masks of both searches, `--explain` and `why` read the table. `python -m tools.generate` derives from it the
options of memctl's commands, the descriptions of the MCP tools and the completions of the Neovim plugin. A
key with `option` set is also a parameter of a request (`api/params.py`).

Thread-safe. Pure, except for the clock that limits the time of path patterns.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from memd.records import Source
from memd.search import dates, globs
from memd.text import caseless

if TYPE_CHECKING:
    from memd.index.snapshot import View
    from memd.search.fields import FieldTest

V = TypeVar("V")  # the type of a key's parsed value
Matches = Callable[[Source], bool]
DAY: Final = timedelta(days=1)
FIELD: Final = "field"
OF_PATHS: Final = ("path", "-path")  # filters that read nothing of a source but its path
# Words and phrases filter by the text, and have no key: name → why a note is excluded.
OF_WORDS: Final = {
    "phrase": "{value!r} does not stand in it",
    "excluded": "{value!r} stands in it, and is excluded",
}


@dataclass(frozen=True, slots=True)
class FilterKey(Generic[V]):
    """A filter key, which is typed before a colon."""

    key: str
    name: str  # of the resulting filter in an explanation: `after` results in `since`
    # Parses a text, given today's date (None: only ISO dates are accepted). After ValueError or OverflowError
    # the typed text counts as words.
    parse: Callable[[str, date | None], V]
    # Makes a test of the sources of a view; None: only checks the values. InvalidError: an unusable value.
    matcher: Callable[[Sequence[V], "View | None"], Matches]
    several: Literal["any", "all", "latest", "earliest"]  # which of several values apply
    told: str  # why a source is excluded, with {value} and {source}
    value: str  # the kind of value, as shown in help
    help: str  # which notes may answer
    option: bool = True  # also a parameter of a request: --KEY, and an argument of the MCP tools


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a source must meet to be in an answer."""

    name: str  # of the filter
    values: tuple[Any, ...]  # one match is enough

    @property
    def shown(self) -> str:
        """The values as text; dates in ISO format."""
        return ", ".join(map(str, self.values))

    def matcher(self, view: "View | None" = None) -> Matches:
        """Return a function that tests whether a source of *view* meets the condition.

        Without a view, no source has front matter.

        Raises:
            InvalidError: a value cannot be used.
        """
        return BY_NAME[self.name].matcher(self.values, view)


Filters = tuple[Condition, ...]  # all must be met; empty: no source is excluded


def matching(view: "View", filters: Filters) -> Iterator[Source]:
    """Yield the live sources that meet all filters.

    Raises:
        InvalidError: a value cannot be used, or patterns of paths take too long.
    """
    known = view.snapshot.sources
    fields = [test for condition in filters if condition.name == FIELD for test in condition.values]
    sources: Iterable[Source] = known.values()
    if fields:  # the index of fields is faster than a test of each source
        ids = _with_fields(view, fields)
        sources = (known[one] for one in sorted(ids) if one in known)
    tests = [condition.matcher(view) for condition in filters if condition.name != FIELD]
    return (source for source in globs.patient(sources) if all(test(source) for test in tests))


def unmatched(view: "View", filters: Filters) -> list[str]:
    """Return the filters that no live source meets; all as one text if only together they exclude each."""
    alone = [one for one in filters if next(matching(view, (one,)), None) is None]
    shown = [f"{BY_NAME[one.name].key}:{one.shown}" for one in alone or filters]
    if alone or not filters:
        return shown
    return [" ".join(shown)] if next(matching(view, filters), None) is None else []


def missed(view: "View", source: Source, filters: Filters) -> list[Condition]:
    """Return the conditions that a source does not meet."""
    return [condition for condition in filters if not condition.matcher(view)(source)]


def conditions(given: Mapping[str, Sequence[Any]]) -> Filters:
    """Return the conditions for values given together: name of a filter → its values."""
    grouped = []
    for name, values in given.items():
        groups = [tuple(values)] if BY_NAME[name].several == "any" else [(value,) for value in values]
        grouped += [Condition(name, group) for group in groups if group]
    return joined(grouped)


def joined(every: Iterable[Condition]) -> Filters:
    """Return the conditions in the order of the table, with only the narrowest of several days."""
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
    """Return why a filter excludes a source, or a chunk of it, from an answer."""
    saying = BY_NAME[name].told if name in BY_NAME else OF_WORDS[name]
    return saying.format(value=value, source=source)


def _by_path(patterns: Sequence[str], _view: "View | None") -> Matches:
    matches = globs.matching(tuple(patterns))
    # macOS and archives store NFD, while people type NFC.
    return lambda source: matches(unicodedata.normalize("NFC", source.path))


def _by_field(tests: Sequence["FieldTest"], view: "View | None") -> Matches:
    ids = () if view is None else _with_fields(view, tests)
    return lambda source: source.id in ids


def _with_fields(view: "View", tests: Sequence["FieldTest"]) -> set[int]:
    """Return the sources that meet all conditions on the front matter."""
    from memd.search.fields import sources_with  # noqa: PLC0415 - most queries have none

    return set.intersection(*(set(sources_with(view, test)) for test in tests))


def _by_tag(tags: Sequence[str], _view: "View | None") -> Matches:
    wanted = {caseless(tag).removeprefix("#").strip("/") for tag in tags}
    within = tuple(f"{tag}/" for tag in wanted)

    def matches(source: Source) -> bool:
        # A nested tag also belongs to its parents: project/alpha to project.
        return any(f"{caseless(tag)}/".startswith(within) for tag in source.tags)

    return matches


def _from_day(days: Sequence[date], _view: "View | None") -> Matches:
    first = min(days)
    return lambda source: source.day >= first


def _to_day(days: Sequence[date], _view: "View | None") -> Matches:
    last = max(days)
    return lambda source: source.day <= last


def _not(
    matcher: Callable[[Sequence[V], "View | None"], Matches],
) -> Callable[[Sequence[V], "View | None"], Matches]:
    """Return a matcher for the sources that *matcher* excludes."""

    def negated(values: Sequence[V], view: "View | None") -> Matches:
        matches = matcher(values, view)
        return lambda source: not matches(source)

    return negated


def _as_it_is(text: str, _today: date | None) -> str:
    return text


def _field(text: str, today: date | None) -> "FieldTest":
    from memd.search.fields import parse  # noqa: PLC0415 - most queries have none

    return parse(text, today)


def _day(end: Literal["first", "last"], later: int = 0) -> Callable[[str, date | None], date]:
    """Return the parser of a span's first or last day, or of one so many days later."""

    def parsed(text: str, today: date | None) -> date:
        span = dates.span(text, today)
        return (span.first if end == "first" else span.last) + later * DAY  # OverflowError: after date.max

    return parsed


_EARLY = "it is of {source.day}, before {value}"
_LATE = "it is of {source.day}, after {value}"
_DATE = "DATE"
# One line per key, in the order of help and completion.
FILTER_KEYS: Final[tuple[FilterKey[Any], ...]] = (
    FilterKey("path", "path", _as_it_is, _by_path, "any", "its path does not match {value!r}", "GLOB",
              "only notes whose path matches, such as daily/*.md"),
    FilterKey("tag", "tag", _as_it_is, _by_tag, "all", "it does not have the tag {value!r}", "TAG",
              "only notes with this tag"),
    FilterKey(FIELD, FIELD, _field, _by_field, "all", "its front matter does not meet {value!r}", "KEY=VALUE",
              "only notes with this front matter: status=published, priority>=2, status!=draft or status"),
    FilterKey("since", "since", _day("first"), _from_day, "latest", _EARLY, _DATE,
              "only notes from this day or later: 2026-05-01, yesterday, 7d or last-week"),
    FilterKey("until", "until", _day("last"), _to_day, "earliest", _LATE, _DATE,
              "only notes from this day or earlier: 2026-05-31, or 2026-05 (that month included)"),
    FilterKey("after", "since", _day("last", 1), _from_day, "latest", _EARLY, _DATE,
              "only notes from a later day", option=False),
    FilterKey("before", "until", _day("first", -1), _to_day, "earliest", _LATE, _DATE,
              "only notes from an earlier day", option=False),
    FilterKey("-path", "-path", _as_it_is, _not(_by_path), "all", "its path matches {value!r}", "GLOB",
              "no notes whose path matches", option=False),
    FilterKey("-tag", "-tag", _as_it_is, _not(_by_tag), "all", "it has the tag {value!r}", "TAG",
              "no notes with this tag", option=False),
    FilterKey(f"-{FIELD}", f"-{FIELD}", _field, _not(_by_field), "all", "its front matter meets {value!r}",
              "KEY=VALUE", "no notes with this front matter", option=False),
)  # fmt: skip
BY_KEY: Final = {one.key: one for one in FILTER_KEYS}
BY_NAME: Final = {one.name: BY_KEY[one.name] for one in FILTER_KEYS}
