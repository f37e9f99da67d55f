"""The query language: any text is a valid query. Pure.

Words are looked for, ``"a phrase"`` must stand in the chunk, ``-word`` must not, and ``path:``, ``tag:``,
``since:``, ``until:``, ``after:``, ``before:`` filter. As the words say, the day that is named belongs to
``since`` and ``until`` and not to ``after`` and ``before``. What does not fit that is words: there are no
syntax errors.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from memd import analysis

MAX_QUERY_CHARS = 10_000  # arbitrary; more than a page of text as a question
# A question's function words: they stand in most chunks of a large workspace, where their idf is next to
# 0 anyway; in a small one they would let "the paper" find "execute the pipeline". Kept when there is
# nothing else to look for, and inside phrases.
STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have he her his how i if in into
    is it its me my no not of on or our she should so such than that the their them then there these they this
    those to was we were what when where which who whom why will with would you your
    """.split()  # noqa: SIM905 - readable as words
)
_BEYOND = {"after": timedelta(days=1), "before": timedelta(days=-1)}  # from the day that is named
_TOKEN = re.compile(
    r"""(?P<minus>(?<!\S)-)?"(?P<phrase>[^"]+)"
      | (?<!\S)(?P<key>path|tag|since|after|until|before):(?P<value>"[^"]+"|\S+)
      | (?<!\S)-(?P<excluded>\w\S*)
      | (?P<text>\S+)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which sources may answer. Empty fields allow everything."""

    paths: tuple[str, ...] = ()  # globs or folders that were typed, any of them
    also_paths: tuple[str, ...] = ()  # those of the request, any of them
    tags: tuple[str, ...] = ()  # all of them, compared case folded
    since: date | None = None  # inclusive
    until: date | None = None  # inclusive


@dataclass(frozen=True, slots=True)
class Query:
    """A query, parsed."""

    text: str  # what the model reads: the words and phrases, without operators
    pieces: tuple[str, ...] = ()  # words and spaceless runs, in order, stop words included
    phrases: tuple[str, ...] = ()  # each must stand in a chunk
    excluded: tuple[str, ...] = ()  # none may
    filters: Filters = field(default_factory=Filters)


def parse(raw: str) -> Query:
    """Parse what was typed; never fails."""
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    filters = Filters()
    for token in _TOKEN.finditer(analysis.clean(raw[:MAX_QUERY_CHARS])):
        if token["key"] and (narrowed := _narrow(filters, token["key"], token["value"].strip('"'))):
            filters = narrowed
        elif token["phrase"]:
            (excluded if token["minus"] else phrases).append(token["phrase"])
        elif token["excluded"]:
            excluded.append(token["excluded"])
        else:
            words.append(token[0].strip('"'))
    if not (words or phrases) and excluded:  # nothing to look for: then the minus was not an operator
        words, excluded = excluded, []
    phrases = [phrase for phrase in phrases if analysis.pieces(phrase)]
    excluded = [word for word in excluded if analysis.pieces(word)]
    text = " ".join([*words, *phrases])
    return Query(text, tuple(analysis.pieces(text)), tuple(phrases), tuple(excluded), filters)


def content_words(pieces: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pieces that say what is looked for: all but stop words, or all where those are all."""
    kept = tuple(piece for piece in pieces if piece.casefold() not in STOP_WORDS)
    return kept or pieces


def _narrow(filters: Filters, key: str, value: str) -> Filters | None:
    """Return *filters* with one more, None where the value is none that the key can have."""
    if key == "path":
        return replace(filters, paths=(*filters.paths, value))
    if key == "tag":
        return replace(filters, tags=(*filters.tags, value))
    try:
        day = date.fromisoformat(value) + _BEYOND.get(key, timedelta())
    except (ValueError, OverflowError):  # the last day there is has no day after it
        return None
    if key in {"since", "after"}:
        return replace(filters, since=max(day, filters.since or date.min))
    return replace(filters, until=min(day, filters.until or date.max))


def restricted(
    query: Query,
    *,
    paths: Iterable[str] = (),
    tags: Iterable[str] = (),
    since: date | None = None,
    until: date | None = None,
) -> Query:
    """Return *query* with the filters of a request joined to those that were typed."""
    own = query.filters
    days_from = [day for day in (own.since, since) if day is not None]
    days_to = [day for day in (own.until, until) if day is not None]
    filters = Filters(
        paths=own.paths,
        also_paths=tuple(paths),
        tags=(*own.tags, *(tag for tag in tags if tag)),
        since=max(days_from, default=None),
        until=min(days_to, default=None),
    )
    return replace(query, filters=filters)
