"""The model of a query: which notes it must find. As docs/searching.md says, without memd's code."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import partial

from memctl.stop_words import STOP_WORDS
from memd.text import clean, fold, is_spaceless, pairs_of, pieces_of

HUGE = 10_000  # characters, as long as a query may be
SUBSTRING = 3  # letters of a piece that is looked for inside of words


@dataclass(frozen=True, slots=True)
class Note:
    """A note as the model knows it."""

    path: str
    day: date
    tags: tuple[str, ...]
    parts: tuple[str, ...]  # words and spaceless runs, as they are compared

    @property
    def text(self) -> str:
        """All of it, as substrings are looked for."""
        return " ".join(self.parts)


@dataclass(slots=True)
class Understood:
    """A query as docs/searching.md explains it; read here once more, by other means than in memd."""

    words: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    first: date = date.min
    last: date = date.max


def understood(raw: str) -> Understood:
    """Read a query sign by sign."""
    text = clean(raw[:HUGE])
    query = Understood()
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        else:
            at = _read(query, text, at)
    if query.excluded and not query.words and not query.phrases:
        query.words, query.excluded = query.excluded, []
    query.phrases = [phrase for phrase in query.phrases if pieces_of(phrase)]
    query.excluded = [word for word in query.excluded if pieces_of(word)]
    return query


def _read(query: Understood, text: str, at: int) -> int:
    """Read the part that begins at an offset; return the offset of the next one."""
    begins = at == 0 or text[at - 1].isspace()
    minus = begins and text[at] == "-"
    if (close := _closing(text, at + minus)) is not None:
        (query.excluded if minus else query.phrases).append(text[at + minus + 1 : close])
        return close + 1
    stop = next((place for place in range(at, len(text)) if text[place].isspace()), len(text))
    key, colon, _ = text[at:stop].partition(":")
    if begins and colon and key in FILTERS and at + len(key) + 1 < stop:
        start = at + len(key) + 1
        if (close := _closing(text, start)) is not None:
            stop = close + 1
        if FILTERS[key](query, text[start:stop].strip('"')):
            return stop
    elif (
        minus
        and (text[at + 1 : at + 2].isalnum() or text[at + 1 : at + 2] == "_")
        and not is_flag(text[at + 1 : stop])
    ):
        query.excluded.append(text[at + 1 : stop])
        return stop
    query.words.append(text[at:stop].strip('"'))
    return stop


def is_flag(word: str) -> bool:
    """Return whether a word with a minus is a flag of a command: at most two letters, or a number."""
    name = word.rstrip(".,;:!?)")
    letters = name.rstrip("0123456789")
    return name.isascii() and len(letters) <= 2 and all(one.isalpha() for one in letters)


def _closing(text: str, at: int) -> int | None:
    """Return the offset at which the quotes opened at an offset end; None if they do not, or are empty."""
    close = text.find('"', at + 1) if text.startswith('"', at) else -1
    return close if close > at + 1 else None


def _narrowed(
    query: Understood, value: str, *, at_least: int | None = None, at_most: int | None = None
) -> bool:
    try:
        day = date.fromisoformat(value) + timedelta(at_least or at_most or 0)
    except (ValueError, OverflowError):
        return False
    if at_least is not None:
        query.first = max(query.first, day)
    else:
        query.last = min(query.last, day)
    return True


FILTERS: dict[str, Callable[[Understood, str], bool]] = {
    "path": lambda query, value: query.paths.append(value) is None,
    "tag": lambda query, value: query.tags.append(value) is None,
    "since": partial(_narrowed, at_least=0),
    "after": partial(_narrowed, at_least=1),
    "until": partial(_narrowed, at_most=0),
    "before": partial(_narrowed, at_most=-1),
}


def expected_of(known: list[Note], raw: str) -> set[str]:
    """Return which notes a query must find, by the words of docs/searching.md: an OR of words, narrowed."""
    query = understood(raw)
    asked = [*query.words, *query.phrases]
    # A phrase that no note holds is searched as its words.
    query.phrases = [one for one in query.phrases if any(_has_phrase(note, one) for note in known)]
    allowed = [note for note in known if _is_allowed(note, query)]
    is_narrowed = query.paths or query.tags or query.first > date.min or query.last < date.max
    if is_narrowed and not "".join(asked).strip():
        return {note.path for note in allowed}  # the newest are listed
    pieces = [fold(piece) for piece in pieces_of(" ".join(asked))]
    runs = [bare(piece) for piece in pieces if is_spaceless(piece)]
    wanted = set(map(bare, _content([piece for piece in pieces if not is_spaceless(piece)])))
    pairs = {pair for run in runs for pair in pairs_of(run) or [run]}
    found = {note.path for note in allowed if _has_some(note, wanted, pairs)}
    if found:
        # The Han characters of pairs that no note has count beside the other words.
        unknown = {pair for pair in pairs if not any(_has_some(note, set(), {pair}) for note in known)}
        characters = {one for pair in unknown if len(pair) > 1 for one in pair if is_han(one)}
        return found | {note.path for note in allowed if _has_some(note, set(), characters)}
    inside = [bare(piece) for piece in _content(pieces) if len(piece) >= SUBSTRING]
    return {note.path for note in allowed if any(piece in note.text for piece in inside)}


def is_han(letter: str) -> bool:
    """Return whether a letter is Chinese, or taken from it."""
    return unicodedata.name(letter, "").startswith("CJK")


def _content(words: list[str]) -> list[str]:
    return [word for word in words if word not in STOP_WORDS] or words


def bare(text: str) -> str:
    """Return a word as it is compared: as it is searched, without case and accents."""
    decomposed = unicodedata.normalize("NFD", fold(text))
    return unicodedata.normalize("NFC", "".join(one for one in decomposed if not "\u0300" <= one <= "\u0331"))


def _has_some(note: Note, words: set[str], pairs: set[str]) -> bool:
    if not words.isdisjoint(note.parts):
        return True
    return any(pair in part for part in note.parts if is_spaceless(part) for pair in pairs)


def _is_allowed(note: Note, query: Understood) -> bool:
    return (
        (not query.paths or any(_is_below(note.path, one.strip("/")) for one in query.paths))
        and all(_has_tag(note, tag.casefold().removeprefix("#").strip("/")) for tag in query.tags)
        and query.first <= note.day <= query.last
        and all(_has_phrase(note, phrase) for phrase in query.phrases)
        and not any(_has_phrase(note, word) for word in query.excluded)
    )


def _has_tag(note: Note, tag: str) -> bool:
    return any(one == tag or one.startswith(f"{tag}/") for one in note.tags)


def _is_below(path: str, pattern: str) -> bool:
    return path == pattern or path.startswith(pattern + "/") or fnmatchcase(path, pattern)


def _has_phrase(note: Note, phrase: str) -> bool:
    """Return whether the words of a phrase follow each other; at its ends, a longer run matches, too."""
    wanted = [bare(piece) for piece in pieces_of(phrase)]
    last = len(wanted) - 1
    for start in range(len(note.parts) - last):
        parts = note.parts[start : start + len(wanted)]
        if all(
            part == piece
            or (
                is_spaceless(piece)
                and piece in part
                and (at == 0 or part.startswith(piece))
                and (at == last or part.endswith(piece))
            )
            for at, (part, piece) in enumerate(zip(parts, wanted, strict=True))
        ):
            return True
    return False
