"""What is called like the query: a note by its title, alias or file, a section by its heading.

A name that is typed is looked for, and the notes that speak of it, or mean something like it, come after it.
A number belongs to a name whole and in its place: "RFC 1071" is neither "RFC 107" nor "1071 RFCs".
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from types import MappingProxyType

from memctl.stop_words import STOP_WORDS
from memd.index.links import WHO, key_of
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.index.source_rows import NAME_DAY
from memd.records import Source
from memd.search import runs
from memd.search.explanation import Called, Term
from memd.search.ranking import Candidate
from memd.text import fold, pieces_of

# Added to the sort key: above what the words of a query add that only a few chunks have.
WHOLE, SECTION, NUMBER, PART = 4.0, 3.0, 2.0, 1.5
TYPED = 1.0  # shared among the words of the query; less than a name, as many chunks may have it
# A name within a longer query has at least this share of the idf of its words, and two words: a note called
# "Git" does not answer each question about Git.
NAME_SHARE = 0.5
HEADING_WORDS = 12  # of a query that may be a heading, or have a name with its signs: then texts are read
MOST_WORDS = 24  # of a query that may hold a name; a longer one is a text
_VERSION = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)(?!\d)")
_JOINED = re.compile(r"([^\W\d_]+)(\d+)")
_NUMBER = re.compile(r"\d{1,4}|\d+(?:\.\d+)+")

# A name as in code, whose signs the index does not know: `--pre`, `restart_policy`, `Get-Process`.
_SIGNED = re.compile(r"-{1,2}[A-Za-z]\w[\w-]*|[A-Za-z]\w*(?:[_.:/@]\w+)+|[A-Z][a-z]+-[A-Z]\w+")
_AROUND = ".,;:!?()[]{}'\"`"
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)$", re.MULTILINE)
_JOINTS = ("", " ", "-", "_")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one source, as words."""

    whole: frozenset[Words]  # title, file name, and both without day and number
    title: Words
    stem: Words
    around: frozenset[str]  # words of the title and the folders


@dataclass(frozen=True, slots=True)
class _Asked:
    words: Words
    numbers: tuple[tuple[str, str], ...]  # (word, number)
    idf: Mapping[str, float]
    each: frozenset[str]

    def mass(self, words: Words) -> float:
        return sum(self.idf.get(word, 0.0) for word in set(words))

    @property
    def half(self) -> float:
        return NAME_SHARE * self.mass(self.words)


@lru_cache(1 << 14)
def words_of(text: str) -> Words:
    """Return the words of a name: versions whole, numbers apart from letters and without leading zeros.

    The sign of a paragraph is none for the index, and a word here.
    """
    found: list[str] = []
    for number, part in enumerate(_VERSION.split(fold(text.replace("\u00a7", " paragraph ")))):
        if number % 2:
            found.append(part)
            continue
        for piece in pieces_of(part):
            joined = _JOINED.fullmatch(piece)
            found += joined.groups() if joined else (piece,)
    return tuple(word.lstrip("0") or "0" if word.isdecimal() else word for word in found)


@lru_cache(1 << 14)
def names_of(title: str, path: str) -> Names:
    """Return the names of a source."""
    place = PurePosixPath(path)
    stem = words_of(place.stem)
    day = NAME_DAY.match(place.stem)
    shown = words_of(place.stem[day.end() :]) if day else stem
    numberless = shown[1:] if shown[:1] and shown[0].isdecimal() else shown
    whole = {words_of(title), stem, words_of(place.name), words_of(path), shown, numberless}
    around = frozenset(words_of(title)).union(*map(words_of, place.parts[:-1]))
    return Names(frozenset(whole - {()}), words_of(title), stem, around)


def numbered(asked: Words) -> Iterator[tuple[str, str]]:
    """Yield each (word, number) that a query has in a row."""
    for word, number in pairwise(asked):
        if not word.isdecimal() and word not in STOP_WORDS and _NUMBER.fullmatch(number):
            yield word, number


def aliased(view: View, text: str, day: str = "") -> dict[int, bool]:
    """Return source → whether *text* is a name of it; else a word and number in the text may be one.

    *day*: the day in ISO form that the text is.

    Neither arm may know them: no term is a part of the word that is the file's name.
    """
    asked = words_of(text)
    if not 0 < len(asked) <= MOST_WORDS:
        return {}

    def named(key: str) -> Iterator[int]:
        return (source for source, _, _ in view.reader.each(WHO, (key,)))

    found: dict[int, bool] = {}
    for word, number in numbered(asked):
        for key in {f"{word}{joint}{one}" for joint in _JOINTS for one in (number, number.zfill(4))}:
            found |= dict.fromkeys(named(key), False)
        if number.isdecimal():
            widths = {number.zfill(width) for width in (1, 2, 3, 4)}
            found |= dict.fromkeys(view.reader.numbered(widths), False)
    for whole in filter(None, (key_of(text), day)):
        found |= dict.fromkeys(named(whole), True)
    return {source: is_whole for source, is_whole in found.items() if source in view.snapshot.sources}


def firsts(view: View, sources: Iterable[int]) -> list[int]:
    """Return the first chunk of each source."""
    return [chunk.id for source in sources for chunk in view.reader.chunks_of(source, 1)]


def called(
    view: View, text: str, terms: Sequence[Term], candidates: Sequence[Candidate], named: Mapping[int, bool]
) -> Mapping[int, Called]:
    """Return chunk → the name by which a query calls it, for the best chunk of each source so called.

    Args:
        view: one moment of the index.
        text: of the query, without operators.
        terms: the query's words in the index.
        candidates: best first.
        named: what `aliased` found.
    """
    found = by_titles(text, terms, candidates, view.snapshot.sources, named)
    asked = words_of(text)
    if not 0 < len(asked) <= HEADING_WORDS:
        return found
    chunks = view.reader.chunks([one.id for one in candidates[: runs.FIRST]])
    for number in _headed(chunks, asked):
        if number not in found or found[number].added < SECTION:
            found[number] = Called(text, "heading", SECTION)
    for number, word in _typed(chunks, text):
        found.setdefault(number, Called(word, "typed", TYPED / len(text.split())))
    return found


def by_titles(
    text: str,
    terms: Iterable[Term],
    candidates: Iterable[Candidate],
    sources: Mapping[int, Source],
    named: Mapping[int, bool] = MappingProxyType({}),
) -> dict[int, Called]:
    """Return chunk → the name of its source, as `called`; this reads no index."""
    asked = words_of(text)
    if not 0 < len(asked) <= MOST_WORDS:
        return {}
    query = _Asked(
        asked, tuple(numbered(asked)), {term.text.casefold(): term.idf for term in terms}, frozenset(asked)
    )
    first: dict[int, int] = {}  # source → its best chunk
    for one in candidates:
        first.setdefault(one.source, one.id)
    found: dict[int, Called] = {}
    for number, chunk in first.items():
        source = sources[number]
        how = _name(names_of(source.title, source.path), source.title, query)
        if number in named and named[number] and (how is None or how.added < WHOLE):
            how = Called(text, "whole", WHOLE)
        if how:
            found[chunk] = how
    return found


def is_exact(text: str, found: Iterable[Called]) -> bool:
    """Return whether a whole query is the name of something."""
    return any(one.how in {"whole", "heading"} or words_of(one.name) == words_of(text) for one in found)


def _name(names: Names, title: str, query: _Asked) -> Called | None:
    """Return the name of a source by which a query calls it."""
    asked = query.words
    if asked in names.whole:
        return Called(title, "whole", WHOLE)
    for word, number in query.numbers:
        is_in_it = any((word, number) in pairwise(one) for one in (names.title, names.stem))
        # "ADR 17" is 0017-….md in the folder adr or adrs.
        if is_in_it or (number in names.stem[:1] and not names.around.isdisjoint((word, f"{word}s"))):
            return Called(f"{word} {number}", "number", NUMBER)
    for one in (names.title, names.stem):
        is_shorter = 1 < len(one) < len(asked) and one[0] in query.each
        if is_shorter and 0 < query.half <= query.mass(one) and _in_a_row(one, asked):
            return Called(title, "part", PART + len(one) / len(asked) / 2)
    return None


def _in_a_row(some: Words, words: Words) -> bool:
    return any(words[at : at + len(some)] == some for at in range(len(words) - len(some) + 1))


def _headed(chunks: Mapping[int, StoredChunk], asked: Words) -> list[int]:
    """Return of each source the first chunk under a heading that is the query, or begins with its number.

    Short sections share a chunk, whose stored heading is that of the first.
    """
    is_number = asked in set(numbered(asked))
    found: dict[int, int] = {}
    for number, one in sorted(chunks.items()):
        for heading in (one.heading.rpartition(" > ")[2], *_HEADING.findall(one.text)):
            words = words_of(heading)
            if words and (words[:2] if is_number else words) == asked:
                found.setdefault(one.source, number)
    return list(found.values())


def _typed(chunks: Mapping[int, StoredChunk], text: str) -> Iterator[tuple[int, str]]:
    """Yield the chunks that have a name of the query with its signs, as it was typed, and the name."""
    for typed in text.split():
        if _SIGNED.fullmatch(word := typed.strip(_AROUND)):
            form = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE)
            for number, one in chunks.items():
                if form.search(f"{one.heading}\n{one.text}"):
                    yield number, word
