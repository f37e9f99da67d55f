"""Spelling correction: words of a query that no chunk has, and the terms that replace them.

A word is corrected only if neither the notes nor the model know it: no chunk contains it, and the model's
tokenizer cuts it into pieces. The nearest term of the vocabulary replaces it: within one edit, or two in a
long word; among equally near terms, the term in most chunks. An edit replaces, adds or removes a letter, or
swaps two adjacent letters. Text that may be intended is never corrected: identifiers (words with digits,
punctuation or capitals inside), quoted phrases, excluded words, scripts without spaces between words. Nothing
is corrected if half of the words or more stay unknown: then the query has another language or subject than
the notes. Measured by `benchmarks/typos.py`.

If the query is still being typed and no chunk has its last word, that word is replaced by the most frequent
term that begins with it: searching it inside the texts of 100,000 chunks would take longer than typing a
letter.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from memctl.stop_words import STOP_WORDS
from memd.index.snapshot import View
from memd.index.vocabulary import Vocabulary
from memd.records import Tokenizer
from memd.search.query import Query
from memd.text import is_spaceless, pieces_of, prepare

MIN_LETTERS = 5
# Two edits are tried for words with at least this many letters and pieces: correct words of other subjects
# often have two pieces. The limit on pieces costs almost nothing, and a third fewer of such words are
# changed.
LONG = 8
LONG_PIECES = 3
# Shorter words do not show the language, because the model knows "ich" and "une", too.
SAYING_LETTERS = 4
MAX_WORDS = 16  # looked up per query, at about 2 ms each: a pasted log has hundreds
NEAR_PATHS = 3  # suggested for a path that does not exist
NEAR_SCORE = 80.0  # of 100; names below it are different names
# How long a query waits for the vocabulary; reading it takes half a second at 100,000 chunks.
READ_S = 0.03

_LETTERS = re.compile(r"[^\W\d_]+")
# A word, perhaps with hyphens, between punctuation; a word with other characters may be a name.
_QUOTES = "\"'*\u2018\u2019\u201c\u201d\u00ab\u00bb"  # and asterisks, which Markdown puts around a word
_PLAIN = re.compile(
    rf"[(\[{{\u00a1\u00bf{_QUOTES}]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*[)\]}}.,;:!?\u2026{_QUOTES}]*"
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """The corrections of a query's words."""

    corrected: Mapping[str, str]  # word as typed → the term that replaces it
    is_complete: bool = True  # False: a word is unknown, and the vocabulary is still being read
    took_ms: float = 0.0


NOTHING_UNKNOWN = Spelling({})


def spelling(view: View, query: Query, tokenizer: Tokenizer, expired: Callable[[], bool]) -> Spelling:
    """Return the corrections of a query's words.

    After *expired* returned True, the remaining words stay unchanged.

    Raises:
        DeadlineError: the deadline passed while the vocabulary was read.
    """
    started = time.perf_counter()
    unknown: dict[str, tuple[str, int]] = {}  # word as typed → its term, and the number of edits to try
    strangers = count = 0  # unknown words that are too short to be corrected; words looked up
    for word in dict.fromkeys(plain_words(query)):
        count += 1
        terms = view.reader.terms(prepare(word))
        if len(terms) != 1 or view.postings(terms[0], prefix=False).document_frequency:
            continue
        pieces = len(tokenizer.spans(word))
        if pieces > 1 and len(word) >= MIN_LETTERS:
            unknown[word] = (terms[0], 2 if len(word) >= LONG and pieces >= LONG_PIECES else 1)
        elif pieces > 1 or len(word) < SAYING_LETTERS:
            strangers += 1
        if len(unknown) == MAX_WORDS:
            break
    begun = _begun(view, query.begun) if query.begun else None
    if not unknown and begun is None:
        return NOTHING_UNKNOWN
    is_complete = view.vocabulary.read(view.reader, view.snapshot.columns.count, READ_S)
    found = {}
    if begun is not None:
        completed = _most_frequent(view, view.vocabulary.beginning_with(begun))
        found = {query.begun: completed} if completed else {}
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
    """Return *query* with its words replaced by *terms* (word as typed → term); phrases stay unchanged."""
    if not terms:
        return query
    words = [
        _LETTERS.sub(lambda found: terms.get(found[0], found[0]), typed) if _PLAIN.fullmatch(typed) else typed
        for typed in query.words
    ]
    text = " ".join([*words, *query.phrases])
    return replace(query, text=text, pieces=tuple(pieces_of(text)), corrected=terms)


def near_paths(view: View, path: str) -> list[str]:
    """Return the paths of sources that are spelled similarly to *path*, nearest first."""
    paths = [source.path for source in view.snapshot.sources.values()]
    found = process.extract(path, paths, scorer=fuzz.WRatio, limit=NEAR_PATHS, score_cutoff=NEAR_SCORE)
    return [name for name, _, _ in found]


def plain_words(query: Query) -> Iterator[str]:
    """Yield the words of a query, as typed, except stop words and identifiers."""
    for typed in query.words:
        for word in _LETTERS.findall(typed) if _PLAIN.fullmatch(typed) else ():
            has_capitals = word[1:] != word[1:].lower()
            if not (word.casefold() in STOP_WORDS or has_capitals or is_spaceless(word)):
                yield word


def _begun(view: View, word: str) -> str | None:
    """Return the term of an unfinished word; None if some chunk has it or it is not a plain word."""
    if not _LETTERS.fullmatch(word) or is_spaceless(word):
        return None
    terms = view.reader.terms(prepare(word))
    if len(terms) != 1 or view.postings(terms[0], prefix=False).document_frequency:
        return None
    return terms[0]


def _nearest(view: View, term: str, edits: int) -> str | None:
    """Return the term in some chunk that is nearest to *term*, within *edits*."""
    # Try one edit first, which is usually enough: two take twice as long.
    ranked = (words_within(view.vocabulary, term, distance) for distance in range(1, edits + 1))
    return next(filter(None, (_most_frequent(view, some) for some in ranked)), None)


def _most_frequent(view: View, ranked: Iterable[str]) -> str | None:
    """Return the term in most of the view's chunks, of terms ranked by the vocabulary, which counts more."""
    most, best = 0, None
    for term in ranked:
        if view.vocabulary.document_frequency(term) < max(most, 1):
            break
        count = view.postings(term, prefix=False).document_frequency
        if count > most or (best is not None and count == most and term < best):
            most, best = count, term
    return best


def is_one_edit(one: str, other: str) -> bool:
    """Return whether one letter more, less or another, or two exchanged ones, make *other* of *one*."""
    return OSA.distance(one, other, score_cutoff=1) == 1


def words_within(vocabulary: Vocabulary, term: str, edits: int) -> list[str]:
    """Return the terms of a vocabulary that are within *edits* edits of *term*, the most frequent first."""
    near = process.extract(
        term, vocabulary.near(term, edits), scorer=OSA.distance, score_cutoff=edits, limit=None
    )
    return sorted(
        (word for word, _, _ in near), key=lambda word: (-vocabulary.document_frequency(word), word)
    )
