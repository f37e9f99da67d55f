"""What is called like the query: a note by its title, alias or file, a section by its heading.

A name that is typed is looked for, and the notes that speak of it, or mean something like it, come after it.
A number belongs to a name whole and in its place: "RFC 1071" is neither "RFC 107" nor "1071 RFCs".
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import PurePosixPath
from types import MappingProxyType

from memctl.stop_words import STOP_WORDS
from memd.index.links import WHO, key_of
from memd.index.reader import NUMBERED, StoredChunk
from memd.index.snapshot import View
from memd.index.source_rows import NAME_DAY
from memd.languages import Language
from memd.named_days import day_within, spellings
from memd.search import runs
from memd.search.explanation import Called, Term
from memd.search.keyword import phrase_expression
from memd.search.ranking import Candidate
from memd.search.spelling import is_one_edit
from memd.text import bare, holds_in_a_row, name_key, pieces_of, searched_text

# Added to the sort key: above what the words of a query add that only a few chunks have.
WHOLE, SECTION, NUMBER, PART = 4.0, 3.0, 2.0, 1.5
TYPED = 1.0  # shared among the words of the query; less than a name, as many chunks may have it
# A name within a longer query has at least this share of the idf of its words, and two words: a note called
# "Git" does not answer each question about Git.
NAME_SHARE = 0.5
HEADING_WORDS = 12  # of a query that may be a heading, or have a name with its signs: then texts are read
LEAST_TYPO = 2  # letters of a word whose edit may still be told from another word
MOST_WORDS = 24  # of a query that may hold a name; a longer one is a text
MOST_WITH_DAY = 50  # chunks that have the day asked for, in some spelling; arbitrary
_VERSION = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)(?!\d)")
_LEFT_OUT = re.compile("(?<=\\w)['\u2019-](?=[^\\W\\d_])")  # often: "whats new", "todo"
_V = re.compile(r"\bv(?=\d)")  # of a version
_ISSUE = re.compile(r"#(\d{1,4})")
_JOINED = re.compile(r"([^\W\d_]+)(\d+)")
_LETTER = re.compile(r"(?<![^\W_])([A-Za-z])(\+\+|#)(?!\w)")  # C++, C#: as a name none of them is "C"
_SPELLED = {"++": "plusplus", "#": "sharp"}
DIGITS = re.compile(r"\d{1,4}|\d+(?:\.\d+)+")

# A name as in code, whose signs the index does not know: `--pre`, `restart_policy`, `Get-Process`, `.NET`.
_SIGNED = re.compile(
    r"-{1,2}[A-Za-z]\w[\w-]*|[A-Za-z]\w*(?:[_.:/@]\w+)+|[A-Z][a-z]+-[A-Z]\w+"
    r"|[A-Za-z](?:\+\+|#)|\.[A-Z]\w+|\d?>{1,2}&?\w+"
)
_BEHIND = ".,;:!?()[]{}'\"`"
_BEFORE = _BEHIND[1:]
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)$|^(\S.*)\n(?:=+|-+)[ \t]*$", re.MULTILINE)
_JOINTS = ("", " ", "-", "_")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one source, as words."""

    whole: frozenset[Words]  # title, file name, and both without day and number
    title: Words  # without the signs beside its words
    stem: Words
    day: str  # in ISO form; "": the file's name begins with none
    around: frozenset[str]  # words of the title and the folders


@dataclass(frozen=True, slots=True)
class _Asked:
    words: Words
    numbers: tuple[tuple[str, str], ...]  # (word, number); ("", "118") of "#118"
    day: str  # that the query is, in ISO form; "": none
    idf: Mapping[str, float]
    each: frozenset[str]
    is_short: bool  # a word and its number are half of what it says

    def mass(self, words: Words) -> float:
        return sum(self.idf.get(word, 0.0) for word in set(words))

    @property
    def half(self) -> float:
        return NAME_SHARE * self.mass(self.words)

    def telling(self) -> set[str]:
        """Return words of which every name that the query may call has one: without them it lacks mass."""
        found, left, half = {number for _, number in self.numbers}, self.mass(self.words), self.half
        for word in sorted(self.each, key=lambda word: (-self.idf.get(word, 0.0), word)):
            found.add(word)
            left -= self.idf.get(word, 0.0)
            if left < half:
                break
        return found


@lru_cache(1 << 14)
def words_of(text: str) -> Words:
    """Return the words of a name: versions whole, numbers apart from letters and without leading zeros.

    Without case, accents and the v of a version. The sign of a paragraph is none for the index, and a word
    here.
    """
    found: list[str] = []
    folded = _V.sub("", bare(searched_text(_spelled(text).replace("\u00a7", " paragraph "))))
    for number, part in enumerate(_VERSION.split(folded)):
        if number % 2:
            found.append(part)
            continue
        for piece in pieces_of(part):
            joined = _JOINED.fullmatch(piece)
            found += joined.groups() if joined else (piece,)
    return tuple(word.lstrip("0") or "0" if word.isdecimal() else word for word in found)


def _spelled(text: str) -> str:
    return _LETTER.sub(lambda name: name[1] + _SPELLED[name[2]], text)


@lru_cache(1 << 14)
def names_of(title: str, path: str) -> Names:
    """Return the names of a source."""
    place = PurePosixPath(path)
    stem = words_of(place.stem)
    day = NAME_DAY.match(place.stem)
    shown = words_of(place.stem[day.end() :]) if day else stem
    numberless = shown[1:] if shown[:1] and shown[0].isdecimal() else shown
    titled = words_of(title)
    said = tuple(word for word in titled if any(map(str.isalnum, word))) or titled
    whole = {
        titled,
        said,
        words_of(_LEFT_OUT.sub("", title)),
        stem,
        words_of(place.name),
        words_of(path),
        shown,
        numberless,
    }
    around = frozenset(titled).union(*map(words_of, place.parts[:-1]))
    return Names(frozenset(whole - {()}), said, stem, "-".join(day.group(1, 3, 4)) if day else "", around)


def numbered(text: str) -> Iterator[tuple[str, str]]:
    """Yield each (word, number) that a query has in a row."""
    if issue := _ISSUE.fullmatch(text.strip()):
        yield "", issue[1].lstrip("0")
    asked = words_of(text)
    for word, number in pairwise(asked):
        if not word.isdecimal() and word not in STOP_WORDS and DIGITS.fullmatch(number):
            yield word, number


def aliased(view: View, text: str, day: str = "") -> dict[int, bool]:
    """Return source → whether *text* is a name of it; else a day, or word and number, in it may be one.

    *day*: the day in ISO form that the text is.

    Neither arm may know them: no term is a part of the word that is the file's name.
    """
    asked = words_of(text)
    if not 0 < len(asked) <= MOST_WORDS:
        return {}

    def named(key: str) -> Iterator[int]:
        return (row[0] for row in view.reader.each(WHO, (key,)))

    found: dict[int, bool] = {}
    for word, number in numbered(text):
        for key in {f"{word}{joint}{one}" for joint in _JOINTS for one in (number, number.zfill(4))}:
            found |= dict.fromkeys(named(key), False)
        if number.isdecimal():
            widths = {number.zfill(width) for width in (1, 2, 3, 4)}
            found |= dict.fromkeys(view.reader.numbered(widths), False)
    days = [day.replace("-", joint) for joint in ("-", "_", ".", "")] if day else []
    for one in days:  # of names that go on behind it
        found |= dict.fromkeys((source for (source,) in view.reader.each(NUMBERED, (one, f"{one}~"))), False)
    for whole in filter(None, {key_of(text), name_key(_spelled(text)), *days}):
        found |= dict.fromkeys(named(whole), True)
    return {source: is_whole for source, is_whole in found.items() if source in view.snapshot.sources}


def firsts(view: View, sources: Iterable[int]) -> list[int]:
    """Return the first chunk of each source."""
    return [chunk.id for source in sources for chunk in view.reader.chunks_of(source, 1)]


def chunks_with_day(view: View, day: str, languages: Sequence[Language]) -> list[int]:
    """Return chunks that have a day, given in ISO form, in some spelling; none for ""."""
    if not day:
        return []
    forms = map(phrase_expression, spellings(day, languages))
    return view.matching("words", " OR ".join(forms))[:MOST_WITH_DAY]


def called(
    view: View,
    text: str,
    terms: Sequence[Term],
    candidates: Sequence[Candidate],
    named: Mapping[int, bool],
    *,
    day: str = "",
    with_day: Sequence[int] = (),
    whole: Container[int] | None = None,
) -> Mapping[int, Called]:
    """Return chunk → the name by which a query calls it, for the best chunk of each source so called.

    Args:
        view: one moment of the index.
        text: of the query, without operators.
        terms: the query's words in the index.
        candidates: best first.
        named: what `aliased` found.
        day: the day in ISO form that the query is.
        with_day: chunks that have this day, in some spelling.
        whole: the candidates that have each word of the query, as the index splits it; None: unknown.
    """
    names, asked = view.snapshot.named, words_of(text)
    found = by_titles(text, terms, candidates, names, named, day=day)
    if not found and 1 < len(asked) <= HEADING_WORDS:
        found = _nearly(asked, terms, candidates, names)
    if not 0 < len(asked) <= HEADING_WORDS:
        return found
    ids = [one.id for one in candidates[: runs.FIRST]]
    signed = [
        word for typed in text.split() if _SIGNED.fullmatch(word := typed.lstrip(_BEFORE).rstrip(_BEHIND))
    ]
    # A heading that is the query has all of its words; those of plain letters alone are as in the index.
    if whole is not None and not signed and text.isascii() and not any(map(str.isdigit, text)):
        ids = [number for number in ids if number in whole]
    chunks = view.reader.chunks(list(dict.fromkeys([*ids, *with_day])))
    for number in _headed(chunks, text, day):
        if number not in found or found[number].added < SECTION:
            found[number] = Called(day or text, "heading", SECTION)
    # A day that as many chunks have as are looked at tells none of them from the others.
    for number in with_day if len(with_day) < MOST_WITH_DAY else ():
        found.setdefault(number, Called(day, "typed", TYPED * NAME_SHARE))
    idf = {term.text.casefold(): term.idf for term in terms} if signed else {}
    for number, word in _typed(chunks, signed):
        # By its words' share of the query, at most: C++ says little among notes about C++.
        share = sum(idf.get(piece, 0.0) for piece in pieces_of(word.casefold())) / (sum(idf.values()) or 1.0)
        found.setdefault(number, Called(word, "typed", TYPED * min(share, 1 / len(text.split()))))
    return found


def by_titles(
    text: str,
    terms: Iterable[Term],
    candidates: Iterable[Candidate],
    names: Callable[[int], tuple[str, str]],
    named: Mapping[int, bool] = MappingProxyType({}),
    *,
    day: str = "",
) -> dict[int, Called]:
    """Return chunk → the name of its source, as `called`; *names*: source → title and path."""
    asked = words_of(text)
    if not 0 < len(asked) <= MOST_WORDS:
        return {}
    idf = {term.text.casefold(): term.idf for term in terms}
    is_short = len([word for word in asked if word not in STOP_WORDS]) <= 2 / NAME_SHARE
    query = _Asked(asked, tuple(numbered(text)), day, idf, frozenset(asked), is_short)
    first, known = _sources_of(candidates, names)
    found: dict[int, Called] = {}
    may = first.keys() if day else _that_may_name(known, query.telling()) | named.keys()
    for number, chunk in first.items():
        if number not in may:
            continue
        title, path = known[number]
        how = _name(names_of(title, path), title, query)
        if number in named and named[number] and (how is None or how.added < WHOLE):
            how = Called(text, "whole", WHOLE)
        if how:
            found[chunk] = how
    return found


def _nearly(
    asked: Words,
    terms: Sequence[Term],
    candidates: Iterable[Candidate],
    names: Callable[[int], tuple[str, str]],
) -> dict[int, Called]:
    """Return the names of which one word is typed with one edit, and as it is typed in no note.

    Words of fewer than five letters are not corrected otherwise: most are words of some language.
    """
    in_notes = STOP_WORDS.union(term.text.casefold() for term in terms if term.document_frequency)
    lacking = [at for at, word in enumerate(asked) if word not in in_notes]
    if len(lacking) != 1 or len(asked[lacking[0]]) < LEAST_TYPO or not asked[lacking[0]].isalpha():
        return {}
    [at] = lacking
    first, known = _sources_of(candidates, names)
    found: dict[int, Called] = {}
    for number in _that_may_name(known, {*asked} - {asked[at], *STOP_WORDS}):
        title, path = known[number]
        for name in names_of(title, path).whole:
            rest = len(name) == len(asked) and (name[:at], name[at + 1 :]) == (asked[:at], asked[at + 1 :])
            if rest and is_one_edit(name[at], asked[at]):
                found[first[number]] = Called(title, "part", NUMBER)
    return found


def _sources_of(
    candidates: Iterable[Candidate], names: Callable[[int], tuple[str, str]]
) -> tuple[dict[int, int], dict[int, tuple[str, str]]]:
    """Return of each source its best chunk, and its title and path."""
    first: dict[int, int] = {}
    for one in candidates:
        first.setdefault(one.source, one.id)
    return first, {number: names(number) for number in first}


def _that_may_name(names: Mapping[int, tuple[str, str]], words: Iterable[str]) -> set[int]:
    """Return the sources whose names may have one of some words, without reading each of them.

    Reading them took a tenth of a search by words among 20,000 notes, whose names no cache holds.
    """
    words = list(words)
    if any(word.endswith(tuple(_SPELLED.values())) for word in words):  # C++, C#: no name has it so
        return set(names)
    texts = [f"{title}\n{path}".lower() for title, path in names.values()]
    for sign in "'-":
        texts = [f"{text}\n{text.replace(sign, '')}" if sign in text else text for text in texts]
    ends = list(accumulate(len(text) + 1 for text in texts))
    every, found = "\n".join(texts), {at for at, text in enumerate(texts) if not text.isascii()}
    for word in words:
        at = every.find(word)
        while at >= 0:
            found.add(place := bisect_right(ends, at))
            at = every.find(word, ends[place])
    sources = list(names)
    return {sources[place] for place in found}


def is_exact(text: str, found: Iterable[Called]) -> bool:
    """Return whether a whole query is the name of something."""
    return any(one.how in {"whole", "heading"} or words_of(one.name) == words_of(text) for one in found)


def _name(names: Names, title: str, query: _Asked) -> Called | None:
    """Return the name of a source by which a query calls it."""
    asked = query.words
    if asked in names.whole:
        return Called(title, "whole", WHOLE)
    for word, number in query.numbers:
        # A claim about "IL-10" among a dozen words is no call for the papers with IL-10 in their titles.
        is_in_it = query.is_short and any(
            (word, number) in pairwise(one) for one in (names.title, names.stem)
        )
        # "ADR 17" is 0017-….md in the folder adr or adrs.
        is_around = not word or not names.around.isdisjoint((word, f"{word}s"))
        if is_in_it or (number in names.stem[:1] and is_around):
            return Called(f"{word or '#'} {number}", "number", NUMBER)
    if query.day and query.day == names.day:
        return Called(query.day, "number", NUMBER)
    for one in (names.title, names.stem):
        is_shorter = 1 < len(one) < len(asked) and one[0] in query.each
        if is_shorter and 0 < query.half <= query.mass(one) and holds_in_a_row(asked, one):
            return Called(title, "part", PART + len(one) / len(asked) / 2)
    return None


def line_called(text: str, query: str, day: str = "") -> int | None:
    """Return the line, from 0, of the first heading in *text* that is the query, or has only *day*."""
    asked = words_of(query)
    # Most texts lack a word of the query; the words of a plain text stand in it as they are compared.
    if not day and text.isascii() and asked and max(asked, key=len) not in _spelled(text).lower():
        return None
    is_number = _is_number(asked, query)
    for heading in _HEADING.finditer(text):
        if _is_called(heading[1] or heading[2] or "", asked, day, is_number=is_number):
            return text.count("\n", 0, heading.start())
    return None


def _is_number(asked: Words, query: str) -> bool:
    return len(asked) == 2 and asked in numbered(query)  # noqa: PLR2004 - a word and its number


def _is_called(heading: str, asked: Words, day: str, *, is_number: bool) -> bool:
    words = words_of(heading)
    if words and (words[:2] if is_number else words) == asked:
        return True
    return bool(day) and day[:4] in heading and str(day_within(heading)) == day


def _headed(chunks: Mapping[int, StoredChunk], query: str, day: str) -> list[int]:
    """Return of each source the first chunk under a heading that is the query, or begins with its number.

    A heading with no other day than *day* is the query, too. Short sections share a chunk, whose stored
    heading is that of the first.
    """
    asked = words_of(query)
    is_number = _is_number(asked, query)
    found: dict[int, int] = {}
    for number, one in sorted(chunks.items()):
        last = one.heading.rpartition(" > ")[2]
        is_it = _is_called(last, asked, day, is_number=is_number)
        if is_it or line_called(one.text, query, day) is not None:
            found.setdefault(one.source, number)
    return list(found.values())


def _typed(chunks: Mapping[int, StoredChunk], signed: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the chunks that have a name of the query with its signs, as it was typed, and the name."""
    for word in signed:
        form = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE)
        for number, one in chunks.items():
            if form.search(f"{one.heading}\n{one.text}"):
                yield number, word
