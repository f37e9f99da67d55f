"""Spelling correction: words of a query that no chunk has, and the terms that they are taken for.

A word is corrected only where neither the notes nor the model know it: it stands in no chunk, and the model's
tokenizer cuts it into pieces. Then the nearest term of the vocabulary takes its place: within one edit, or
two in a long word; of several at the same distance the one in most chunks. An edit is a letter that is
another, missing or too much, or two that are exchanged. Never corrected is what may be meant as it stands:
identifiers (what has digits, signs or capitals inside), what stands in quotes, excluded words, scripts
without spaces between words. Nothing is corrected where half of the words or more stay unknown: then the
query is of another language, or of another subject than the notes. Measured by `benchmarks/typos.py`.

Of a query that is still being typed the last word is taken for the most frequent term that begins with it,
where no chunk has it as it stands: looking for it inside the texts of 100,000 chunks would take longer than
somebody types a letter.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from memd.index.snapshot import View
from memd.languages import Language
from memd.records import Tokenizer
from memd.search.query import STOP_WORDS, Query
from memd.text import is_spaceless, pieces_of, prepare

MIN_LETTERS = 5
# From so many letters on two edits are looked for, where the model reads the word by so many pieces: right
# words of other subjects often have two. That costs next to nothing, and a third fewer of them are changed.
LONG = 8
LONG_PIECES = 3
# Shorter words that the model knows are of every language: "ich" and "une" are, too.
SAYING_LETTERS = 4
MAX_WORDS = 16  # of one query that are looked up, at some 2 ms each: a pasted log has hundreds
CANDIDATES = 8  # for the rest of a word: the first few may stand in dead chunks alone; arbitrary
NEAR_PATHS = 3  # that are suggested for one that is not there
NEAR_SCORE = 80.0  # of 100; below, they are other names
# How long a query waits for the vocabulary of a large index; that of 100,000 chunks is read in half a second.
READ_S = 0.03

_LETTERS = re.compile(r"[^\W\d_]+")
# A word between punctuation, or several with hyphens; what has other signs may be a name of something.
_QUOTES = "\"'*\u2018\u2019\u201c\u201d\u00ab\u00bb"  # and stars, which Markdown puts around a word
_PLAIN = re.compile(
    rf"[(\[{{\u00a1\u00bf{_QUOTES}]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*[)\]}}.,;:!?\u2026{_QUOTES}]*"
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """What was looked up of a query's words."""

    corrected: Mapping[str, str]  # word as it was typed → the term that it is taken for
    is_complete: bool = True  # False: no chunk has some word, and the vocabulary is still being read
    took_ms: float = 0.0
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as `Query` has them
    language: Language | None = None


NOTHING_UNKNOWN = Spelling({})


def spelling(view: View, query: Query, tokenizer: Tokenizer, expired: Callable[[], bool]) -> Spelling:
    """
    Return which words of a query are taken for others.

    Args:
        view: one moment of the index.
        query: what was typed.
        tokenizer: that of the model, or of the one that stands in for it.
        expired: whether the caller's deadline has passed; then the rest stays as it is.

    Raises:
        DeadlineError: it passed while the vocabulary was read.
    """
    started = time.perf_counter()
    unknown, strangers, count = _looked_up(view, query, tokenizer)
    begun = _begun(view, query.begun) if query.begun else None
    if not unknown and begun is None:
        return NOTHING_UNKNOWN
    is_complete = view.vocabulary.read(view.reader, view.snapshot.columns.count, READ_S)
    found = {}
    if begun is not None and (completed := _completed(view, begun)):
        found[query.begun] = completed
    nearest = {
        word: _nearest(view, term, edits)
        for word, (term, edits) in unknown.items()
        if word not in found and not expired()
    }
    corrections = {word: term for word, term in nearest.items() if term is not None}
    strangers += len(unknown.keys() - found.keys() - corrections.keys())
    took_ms = round((time.perf_counter() - started) * 1000, 3)
    return Spelling(found | corrections if 2 * strangers < count else found, is_complete, took_ms)


def corrected(query: Query, terms: Mapping[str, str]) -> Query:
    """Return *query* with words of it, as they were typed, taken for *terms*; phrases stay as they are."""
    if not terms:
        return query
    words = [
        _LETTERS.sub(lambda found: terms.get(found[0], found[0]), typed) if _PLAIN.fullmatch(typed) else typed
        for typed in query.words
    ]
    text = " ".join([*words, *query.phrases])
    return replace(query, text=text, pieces=tuple(pieces_of(text)), corrected=terms)


def near_paths(view: View, path: str) -> list[str]:
    """Return the paths of sources that are written nearly as *path*, the nearest first."""
    paths = [one.path for one in view.snapshot.sources.values()]
    found = process.extract(path, paths, scorer=fuzz.WRatio, limit=NEAR_PATHS, score_cutoff=NEAR_SCORE)
    return [one for one, _, _ in found]


def plain_words(query: Query) -> Iterator[str]:
    """Yield the words of a query, as they were typed, that are no stop words and no identifiers."""
    for typed in query.words:
        for word in _LETTERS.findall(typed) if _PLAIN.fullmatch(typed) else ():
            has_capitals = word[1:] != word[1:].lower()
            if not (word.casefold() in STOP_WORDS or has_capitals or is_spaceless(word)):
                yield word


def _looked_up(view: View, query: Query, tokenizer: Tokenizer) -> tuple[dict[str, tuple[str, int]], int, int]:
    """Return the words that nobody knows: as typed → its term, and how many edits away others may be.

    Then how many words nobody knows that are too short to be corrected, and how many words were looked up.
    """
    found: dict[str, tuple[str, int]] = {}
    strangers = count = 0
    for word in dict.fromkeys(plain_words(query)):
        count += 1
        terms = view.reader.terms(prepare(word))
        if len(terms) != 1 or view.postings(terms[0], prefix=False).document_frequency:
            continue
        pieces = len(tokenizer.spans(word))
        if pieces > 1 and len(word) >= MIN_LETTERS:
            found[word] = (terms[0], 2 if len(word) >= LONG and pieces >= LONG_PIECES else 1)
        elif pieces > 1 or len(word) < SAYING_LETTERS:
            strangers += 1
        if len(found) == MAX_WORDS:
            break
    return found, strangers, count


def _begun(view: View, word: str) -> str | None:
    """Return the term of a word that is being typed; None where some chunk has it, or it is no plain word."""
    if not _LETTERS.fullmatch(word) or is_spaceless(word):
        return None
    terms = view.reader.terms(prepare(word))
    if len(terms) != 1 or view.postings(terms[0], prefix=False).document_frequency:
        return None
    return terms[0]


def _completed(view: View, start: str) -> str | None:
    """Return the most frequent term that begins with *start* and that some chunk has."""
    candidates = view.vocabulary.beginning_with(start, CANDIDATES)
    return next((one for one in candidates if view.postings(one, prefix=False).document_frequency), None)


def _nearest(view: View, term: str, edits: int) -> str | None:
    """Return the term that some chunk has and that is the nearest to another."""
    # One edit first, which is most often enough: two take twice as long.
    found = (_at_distance(view, term, distance) for distance in range(1, edits + 1))
    return next(filter(None, found), None)


def _at_distance(view: View, term: str, edits: int) -> str | None:
    """Return the most frequent of the terms that some chunk has and that are so many edits away."""
    vocabulary = view.vocabulary
    near = process.extract(
        term,
        vocabulary.words(range(len(term) - edits, len(term) + edits + 1)),
        scorer=OSA.distance,
        score_cutoff=edits,
        limit=None,
    )
    ranked = sorted((one for one, _, _ in near), key=lambda one: (-vocabulary.document_frequency(one), one))
    return next((one for one in ranked if view.postings(one, prefix=False).document_frequency), None)
