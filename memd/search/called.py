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

from memd.index.links import WHO, key_of
from memd.index.snapshot import View
from memd.index.source_rows import NAME_DAY
from memd.search import runs
from memd.search.explanation import Called, Term
from memd.search.query import STOP_WORDS
from memd.search.ranking import Candidate
from memd.text import fold, pieces_of

# Added to the sort key: above what the words of a query add that only a few chunks have.
WHOLE, SECTION, NUMBER, PART = 4.0, 3.0, 2.0, 1.5
# A name within a longer query has at least this share of the idf of its words, and two words: a note called
# "Git" does not answer each question about Git.
NAME_SHARE = 0.5
MOST_WORDS = 24  # of a query that may hold a name; a longer one is a text
_VERSION = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)(?!\d)")
_JOINED = re.compile(r"([^\W\d_]+)(\d+)")
_NUMBER = re.compile(r"\d{1,4}|\d+(?:\.\d+)+")

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

    def mass(self, words: Words) -> float:
        return sum(self.idf.get(word, 0.0) for word in set(words))

    @property
    def half(self) -> float:
        return NAME_SHARE * self.mass(self.words)


@lru_cache(1 << 14)
def words_of(text: str) -> Words:
    """Return the words of a name: versions whole, numbers apart from letters and without leading zeros."""
    found: list[str] = []
    for number, part in enumerate(_VERSION.split(fold(text))):
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


def aliased(view: View, text: str) -> list[int]:
    """Return the first chunks of the sources that *text*, or a word and number in it, may name.

    Neither arm may know them: no term is a part of the word that is the file's name.
    """
    asked = words_of(text)
    if not 0 < len(asked) <= MOST_WORDS:
        return []
    keys = {key_of(text)}
    for word, number in numbered(asked):
        keys |= {f"{word}{joint}{number.zfill(4)}" for joint in _JOINTS}
        keys |= {f"{word}{joint}{number}" for joint in _JOINTS}
    sources = {source for key in keys for source, _, _ in view.reader.each(WHO, (key,)) if key}
    for _, number in numbered(asked):
        if number.isdecimal():
            sources.update(view.reader.numbered({number.zfill(width) for width in (1, 2, 3, 4)}))
    firsts = (view.reader.chunks_of(source, 1) for source in sources if source in view.snapshot.sources)
    return [chunk.id for some in firsts for chunk in some]


def called(
    view: View, text: str, terms: Sequence[Term], candidates: Sequence[Candidate], named: Iterable[int]
) -> Mapping[int, Called]:
    """Return chunk → the name by which a query calls it, for the best chunk of each source so called.

    Args:
        view: one moment of the index.
        text: of the query, without operators.
        terms: the query's words in the index.
        candidates: best first.
        named: what `aliased` found.
    """
    asked = words_of(text)
    if not 0 < len(asked) <= MOST_WORDS:
        return {}
    query = _Asked(asked, tuple(numbered(asked)), {term.text.casefold(): term.idf for term in terms})
    sources = view.snapshot.sources
    same = {source for source, _, _ in view.reader.each(WHO, (key_of(text),))} if named else set()
    found: dict[int, Called] = {}
    seen: set[int] = set()
    for one in candidates:
        if one.source in seen:
            continue
        seen.add(one.source)
        source = sources[one.source]
        how = _name(names_of(source.title, source.path), source.title, query)
        if how is None and one.source in same:
            how = Called(text, "whole", WHOLE)
        if how:
            found[one.id] = how
    for number in _headed(view, candidates[: runs.FIRST], asked):
        if number not in found or found[number].added < SECTION:
            found[number] = Called(text, "heading", SECTION)
    return found


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
        is_shorter = 1 < len(one) < len(asked) and one[0] in asked
        if is_shorter and 0 < query.half <= query.mass(one) and _in_a_row(one, asked):
            return Called(title, "part", PART + len(one) / len(asked) / 2)
    return None


def _in_a_row(some: Words, words: Words) -> bool:
    return any(words[at : at + len(some)] == some for at in range(len(words) - len(some) + 1))


def _headed(view: View, candidates: Sequence[Candidate], asked: Words) -> list[int]:
    """Return the first chunk of each section whose heading is the query."""
    chunks = view.reader.headings([one.id for one in candidates])
    found: dict[tuple[int, str], int] = {}
    for one in candidates:
        heading = chunks.get(one.id, "")
        if heading and words_of(heading.rpartition(" > ")[2]) == asked:
            place = one.source, heading
            found[place] = min(one.id, found.get(place, one.id))
    return list(found.values())
