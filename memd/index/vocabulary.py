"""The vocabulary of an index: its terms that are words of a language.

It is used to correct misspelled words, and to find the forms of a word: the terms with the same stem.

FTS5 computes its table of terms from all postings, half a second for 100,000 chunks. So it is read when
indexing is idle, or by a query: directly in a small index, otherwise in a background thread. The terms are
kept in memory, 0.1 kB each. For newer chunks the texts are read instead.

It may contain terms of dead chunks only: users check the postings of a term.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from heapq import heapify, heappop
from itertools import chain, takewhile
from typing import TYPE_CHECKING

import structlog

from memd.errors import MemdError
from memd.index.columns import bits_set
from memd.index.database import FRONT
from memd.index.reader import Reader
from memd.index.source_rows import NO_FRONT, searchable
from memd.languages import Language, stems
from memd.text import paired

with suppress(ImportError):  # then search.fallback answers, and no word is corrected
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

log = structlog.get_logger()

MIN_LETTERS = 3  # of a word with forms; corrected words are longer
MAX_LETTERS = 40  # arbitrary; longer terms are not words but e.g. lines of base64
# In byte order, terms that begin with a digit come before FIRST, and terms of spaceless scripts from BEYOND
# on: these are more pairs of characters than there are words.
FIRST, BEYOND = "a", "\u3000"
READ_AT_ONCE = 2_000  # rows per statement: 10 ms, 50 ms if the terms occur in most chunks
FEW_CHUNKS = 2_000  # up to this size a query reads all terms itself, at 6 µs per chunk
FEW_NEW_CHUNKS = 100  # up to this number a query reads the texts itself, at 0.1 ms each
# If more than this share of the chunks is unread, all terms are read again. Few words are missed below it.
UNREAD_SHARE = 1 / 20

# A form begins like its stem, except perhaps for the stem's last letter ("happi", "happy"); terms with this
# common beginning are examined. Much longer ones are other words, so they are not stemmed.
FORM_START = 3
FORM_MORE = 8

LAST_CHARACTER = "\U0010ffff"  # sorts after any character of a term

READ_TERMS = "SELECT term, doc FROM temp.terms WHERE term > ? AND term < ? LIMIT ?"
LAST = "SELECT ifnull(max(id), 0) FROM chunks"
UNREAD = f"""
    SELECT chunks.id, path, context || text, {FRONT}
    FROM whole_chunks AS chunks JOIN sources ON sources.id = source
    WHERE chunks.id > ? ORDER BY chunks.id LIMIT ?
"""


class Vocabulary:
    """The vocabulary of one index. For any thread; `_lock` protects the cached data."""

    def __init__(self, apart: Callable[[Callable[[], bool]], AbstractContextManager[Reader]]) -> None:
        """Read nothing yet.

        *apart* opens a separate reader, which stops its statement when the given function returns True.
        """
        self._apart = apart
        self._lock = threading.Lock()
        self._words: dict[int, dict[str, int]] = {}  # length → term → document frequency
        # length → its terms, and the letters of each as bits
        self._letters: dict[int, tuple[list[str], NDArray[np.uint32]]] = {}
        self._ordered: list[str] | None = None  # all terms, sorted; made for the first completion
        self._last = 0  # highest chunk id read
        self._complete_at = -2  # the last generation of which all chunks were read
        self._thread: threading.Thread | None = None  # reads all terms
        self._closed = False

    def read(self, reader: Reader, chunks: int, timeout_s: float | None) -> bool:
        """Read unread chunks; return whether the vocabulary is complete. Raises DeadlineError.

        *reader* is in the transaction of the current query. The background thread is waited for up to
        *timeout_s*, and continues afterwards; None: no limit.
        """
        if self._complete_at == reader.generation:
            return True
        with self._lock:
            last = _number(reader, LAST)
            unread = last - self._last
            if unread > FEW_NEW_CHUNKS and chunks <= FEW_CHUNKS:
                self._words, self._last = _all(reader)
                self._ordered, self._letters = None, {}
            elif unread > FEW_NEW_CHUNKS + UNREAD_SHARE * chunks:
                # Start the background thread, unless it runs.
                if self._thread is None and not self._closed:
                    self._thread = threading.Thread(
                        target=self._read_apart, name="memd-vocabulary", daemon=True
                    )
                    self._thread.start()
            else:
                self._read_new(reader)
            thread = self._thread
        if thread is not None and self._last < last:
            thread.join(timeout_s)
        if self._last < last:
            return False
        self._complete_at = reader.generation
        return True

    def words(self) -> list[str]:
        """Return the terms, as far as they were read."""
        with self._lock:
            return list(chain.from_iterable(self._words.values()))

    def near(self, term: str, edits: int) -> list[str]:
        """Return the terms, as far as they were read, that may be within so many edits of *term*.

        By their lengths and by the set of their letters, of which an edit changes at most two: that leaves
        out nearly all words, in a tenth of the time that counting edits takes.
        """
        found: list[str] = []
        wanted = _letters_of([term])
        with self._lock:
            for length in range(len(term) - edits, len(term) + edits + 1):
                words = self._words.get(length, {})
                terms, letters = self._letters.get(length, ([], wanted[:0]))
                if len(terms) < len(words):  # terms are never removed
                    terms = list(words)
                    letters = _letters_of(terms)
                    self._letters[length] = terms, letters
                near = np.flatnonzero(bits_set((letters ^ wanted)[:, None]) <= 2 * edits)
                found += [terms[place] for place in near.tolist()]
        return found

    def beginning_with(self, start: str) -> Iterator[str]:
        """Yield the longer terms with this prefix, as far as they were read, the most frequent first."""
        with self._lock:
            found = [(-self._words[len(term)][term], term) for term in self._between(start) if term != start]
        heapify(found)
        while found:
            yield heappop(found)[1]

    def forms(self, word: str, language: Language) -> tuple[str, ...]:
        """Return the other terms with the stem of *word*, as far as they were read.

        Snowball removes suffixes, so forms have a common beginning: a few dozen terms are stemmed. In the few
        languages where it also removes prefixes, forms with another prefix are not found.
        """
        [wanted] = stems([word], language)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, wanted, strict=False)))
        start = word[: max(FORM_START, same - 1)]
        with self._lock:
            near = self._between(start)
        longest = len(wanted) + FORM_MORE
        others = [term for term in near if len(term) <= longest and term != word]
        each = zip(others, stems(others, language), strict=True)  # 0.6 µs each
        return tuple(term for term, stem in each if stem == wanted)

    def document_frequency(self, *terms: str) -> int:
        """Return the sum of the document frequencies of some terms, dead chunks included."""
        with self._lock:
            return sum(self._words.get(len(term), {}).get(term, 0) for term in terms)

    def close(self) -> None:
        """Stop the background thread and wait for it."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _between(self, start: str) -> list[str]:
        """Return all terms with this prefix, sorted. The caller holds the lock."""
        if self._ordered is None:
            self._ordered = sorted(chain.from_iterable(self._words.values()))
        first, end = (bisect_left(self._ordered, text) for text in (start, start + LAST_CHARACTER))
        return self._ordered[first:end]

    def _read_apart(self) -> None:
        try:
            with self._apart(lambda: self._closed) as reader:
                words, last = _all(reader)
            # Sorted here rather than by the first query that needs it: 60 ms for 100,000 chunks.
            ordered = sorted(chain.from_iterable(words.values()))
            with self._lock:
                self._words, self._last, self._ordered, self._letters = words, last, ordered, {}
                self._complete_at = -2
        except MemdError as error:  # it is closed, or the database cannot be read: queries will say so
            log.warning("vocabulary_not_read", kind=type(error).__name__)
        finally:
            with self._lock:
                self._thread = None

    def _read_new(self, reader: Reader) -> None:
        """Read the texts of the next unread chunks."""
        for number, path, read, front in list(reader.each(UNREAD, (self._last, FEW_NEW_CHUNKS))):
            text = paired(searchable(read, path, front or NO_FRONT))
            for term in set(reader.indexed_terms(text)):
                if _is_word(term):
                    frequencies = self._words.setdefault(len(term), {})
                    if term not in frequencies and self._ordered is not None:
                        insort(self._ordered, term)
                    frequencies[term] = frequencies.get(term, 0) + 1
            self._last = number


def _all(reader: Reader) -> tuple[dict[int, dict[str, int]], int]:
    """Return all words by length, and the highest chunk id covered."""
    words: dict[int, dict[str, int]] = {}
    last, term = _number(reader, LAST), FIRST
    while found := list(reader.each(READ_TERMS, (term, BEYOND, READ_AT_ONCE))):
        for text, frequency in found:
            if _is_word(text):
                words.setdefault(len(text), {})[text] = frequency
        term = found[-1][0]
    return words, last


def _letters_of(terms: Sequence[str]) -> NDArray[np.uint32]:
    """Return the letters of each of some terms of one length as bits, some of which several letters share."""
    codes = np.frombuffer("".join(terms).encode("utf-32-le"), np.uint32).reshape(len(terms), -1)
    letters: NDArray[np.uint32] = np.bitwise_or.reduce(np.left_shift(np.uint32(1), codes & 31), axis=1)
    return letters


def _is_word(term: str) -> bool:
    return MIN_LETTERS <= len(term) <= MAX_LETTERS and term.isalpha() and FIRST < term < BEYOND


def _number(reader: Reader, statement: str) -> int:
    [[found]] = reader.each(statement)
    return int(found)
