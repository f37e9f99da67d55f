"""The query language: any text is a valid query. Pure.

Words are searched, ``"a phrase"`` must occur in the note, ``-word`` must not, and ``key:value`` with a key
of `FILTER_KEYS`, some of which begin with a minus, is a filter. Anything else counts as words: there are no
syntax errors. The flags of commands (``-i``, ``-rf``, ``-n10``, ``--name``) are words, too.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from memctl.stop_words import STOP_WORDS
from memd.languages import Language
from memd.search.filters import BY_KEY, Filters, conditions, joined
from memd.text import SIGN, clean, pieces_of

MAX_QUERY_CHARS = 10_000  # arbitrary; more than a page of text as a question
OPERATORS = frozenset({"AND", "OR", "NOT"})  # of other programs; words here
_BARE_KEYS = frozenset(f"{key}:" for key in BY_KEY)  # a key whose value is missing, or behind a space
# Factor of a word's weight in a chunk that has only other forms of the word. With .9 the keyword arm finds
# more, but hybrid search loses recall, because more chunks come close to the right one; with .6 French
# questions find fewer notes.
FORMS_SHARE = 0.7
_TOKEN = re.compile(
    rf"""(?P<minus>(?<!\S)-)?"(?P<phrase>[^"]+)"
      | (?<!\S)(?P<key>{"|".join(map(re.escape, BY_KEY))}):(?P<value>"[^"]+"|[^\s"]+="[^"]*"|\S+)
      | (?<!\S)-(?P<excluded>(?:\w|{SIGN})\S*)
      | (?P<text>\S+)""",
    re.VERBOSE,
)
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))  # as telephones and word processors write them
_MINUS = re.compile('(?<!\\S)[\u2212\u2013](?=[\\w"])')  # likewise
# The text after a flag's minus: at most two letters, then perhaps a number and punctuation.
_FLAG = re.compile(r"[A-Za-z]{0,2}[0-9]*[.,;:!?)]*")


@dataclass(frozen=True, slots=True)
class Query:
    """A query, parsed."""

    text: str  # the text that is embedded: words and phrases, without operators
    pieces: tuple[str, ...] = ()  # words and spaceless runs, in order, stop words included
    phrases: tuple[str, ...] = ()  # each must occur in the note
    excluded: tuple[str, ...] = ()  # none may occur in the note
    filters: Filters = ()
    words: tuple[str, ...] = ()  # as they were typed, in order, without operators and quotes
    begun: str = ""  # the last word, if it may be unfinished
    corrected: Mapping[str, str] = field(default_factory=dict)  # word as typed → the term it is corrected to
    # Term of a word → the terms of its other forms, if it has any.
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    language: Language | None = None  # of those forms
    only_excluded: bool = False  # it had nothing but what a minus excludes, which is searched instead
    as_words: tuple[str, ...] = ()  # what looks like an operator, as typed, and is searched as words


def parse(raw: str, today: date | None = None, excludes: Callable[[str], bool] = lambda _: True) -> Query:
    """Parse what was typed; never fails.

    Relative dates count from *today*; None: such text counts as words. *excludes* returns whether the minus
    of ``-word`` or ``-"a phrase"``, given as typed, is an operator; if not, the word or phrase is searched.
    It is not called for flags.
    """
    words: list[str] = []
    said: list[str] = []  # words and phrases as they stand
    phrases: list[str] = []
    excluded: list[str] = []
    given: dict[str, list[Any]] = {}  # name of a filter → its values
    as_words: list[str] = []
    for token in _TOKEN.finditer(_MINUS.sub("-", clean(raw[:MAX_QUERY_CHARS]).translate(_QUOTES))):
        if token["key"] and (value := _value(token["key"], token["value"].strip('"'), today)) is not None:
            given.setdefault(BY_KEY[token["key"]].name, []).append(value)
        elif token["phrase"]:
            is_excluded = token["minus"] and excludes(token[0])
            (excluded if is_excluded else phrases).append(token["phrase"])
            said += [] if is_excluded else [token["phrase"]]
        elif token["excluded"] and not _FLAG.fullmatch(token["excluded"]) and excludes(token[0]):
            excluded.append(token["excluded"])
        else:
            words.append(token[0].strip('"'))
            said.append(words[-1])
            if token["key"] or token[0] in OPERATORS or token[0] in _BARE_KEYS:
                as_words.append(token[0])
    if len(words) <= len(as_words) and not given:  # "NOT" alone is what is looked for
        as_words = [one for one in as_words if one not in OPERATORS]
    # With nothing to search for or to list, the minus was not an operator.
    only_excluded = bool(excluded) and not (words or phrases or given)
    if only_excluded:
        words, said, excluded = excluded, excluded, []
    phrases = [phrase for phrase in phrases if pieces_of(phrase)]
    excluded = [word for word in excluded if pieces_of(word)]
    text = " ".join(said)
    return Query(
        text,
        tuple(pieces_of(text)),
        tuple(phrases),
        tuple(excluded),
        conditions(given) if given else (),
        tuple(words),
        as_words=tuple(dict.fromkeys(as_words)),
        only_excluded=only_excluded,
    )


def unfinished(query: Query, raw: str) -> Query:
    """Return *query*, parsed from *raw*, with its last word marked as unfinished, if *raw* ends with it."""
    last = query.words[-1] if query.words else ""
    return replace(query, begun=last) if last and raw.endswith(last) else query


def content_words(pieces: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pieces without stop words, or all pieces if all are stop words."""
    kept = tuple(piece for piece in pieces if piece.casefold() not in STOP_WORDS)
    return kept or pieces


def _value(key: str, text: str, today: date | None) -> Any:
    """Parse the value typed after a key; None if it is not valid for the key."""
    try:
        return BY_KEY[key].parse(text, today)
    except (ValueError, OverflowError):
        return None


def restricted(query: Query, given: Mapping[str, Sequence[Any]]) -> Query:
    """Return *query* with the filters of a request added.

    *given*: name of a filter → its values; empty values are ignored.
    """
    given_values = {name: [value for value in values if value] for name, values in given.items()}
    return replace(query, filters=joined([*query.filters, *conditions(given_values)]))
