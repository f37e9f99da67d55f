"""The vocabulary of an index: its terms that are words of a language.

It serves the correction of misspelled words, and the forms of a word: the terms that have its stem.

FTS5's table of terms walks through every place of each, half a second for 100,000 chunks. So it is read
where nothing waits to be indexed, or by a query: at once where there are few chunks, else by a thread of its
own. The terms are kept, 0.1 kB each. Of chunks that come later the texts are read.

It may name terms of chunks that are dead by now: whoever uses one asks the postings about it.
"""

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from heapq import nsmallest
from itertools import chain, takewhile

import structlog

from memd.errors import MemdError
from memd.index.reader import Reader
from memd.index.source_rows import searchable
from memd.languages import Language, stemmer
from memd.lru import LruCache
from memd.text import paired

log = structlog.get_logger()

MIN_LETTERS = 3  # of a word that has forms; those that are corrected are longer
MAX_LETTERS = 40  # arbitrary: what is longer is no word, as lines of base64
# By their bytes terms with a digit in front come before all letters, and from here on are those of scripts
# without spaces between words: more pairs of characters than there are words.
FIRST, BEYOND = "a", "\u3000"
READ_AT_ONCE = 2_000  # of a statement: 10 ms, 50 where they stand in most chunks
FEW_CHUNKS = 2_000  # whose terms a query reads by itself, at 6 µs a chunk
FEW_NEW_CHUNKS = 100  # whose texts a query reads by itself, at 0.1 ms each
# Of the chunks: while more are unread, all terms are read anew. As many words are rarely missed.
UNREAD_SHARE = 1 / 20

# A form begins as its stem does, but perhaps for the stem's last letter ("happi", "happy"); so much of it is
# looked up. What is longer by more is another word, with the stem in front: it would be stemmed for nothing.
FORM_START = 3
FORM_MORE = 8
FORMS_KEPT = 10_000  # words whose forms are known; 0.3 kB each

LAST_CHARACTER = "\U0010ffff"  # behind all that a term goes on with

READ_TERMS = "SELECT term, doc FROM temp.terms WHERE term > ? AND term < ? LIMIT ?"
LAST = "SELECT ifnull(max(id), 0) FROM chunks"
UNREAD = """
    SELECT chunks.id, path, context || text FROM chunks JOIN sources ON sources.id = source
    WHERE chunks.id > ? ORDER BY chunks.id LIMIT ?
"""


class Vocabulary:
    """The vocabulary of one index. For any thread; `_lock` protects all that is kept."""

    def __init__(self, apart: Callable[[Callable[[], bool]], AbstractContextManager[Reader]]) -> None:
        """Read nothing yet.

        Args:
            apart: hands out a reader that no query waits for, which ends what it runs once it is told to.
        """
        self._apart = apart
        self._lock = threading.Lock()
        self._words: dict[int, dict[str, int]] = {}  # letters → term → in how many chunks it stands
        self._ordered: list[str] | None = None  # all terms, once a word is to be completed
        # (language, word) → how many terms were looked through, and those that are its forms
        self._forms: LruCache[tuple[Language, str], tuple[int, tuple[str, ...]]] = LruCache(FORMS_KEPT)
        self._last = 0  # all chunks up to this id were read
        self._thread: threading.Thread | None = None  # that reads all terms
        self._closed = False

    def read(self, reader: Reader, chunks: int, timeout_s: float | None) -> bool:
        """Read what has not been read yet; tell whether that is all.

        Args:
            reader: of the query that asks, in its transaction.
            chunks: of the index.
            timeout_s: how long to wait where there is much, which goes on being read; None: to the end.

        Raises:
            DeadlineError: the query's deadline passed.
        """
        with self._lock:
            last = _number(reader, LAST)
            unread = last - self._last
            if unread > FEW_NEW_CHUNKS and chunks <= FEW_CHUNKS:
                self._words, self._last = _all(reader)
                self._ordered = None
                self._forms = LruCache(FORMS_KEPT)
            elif unread > FEW_NEW_CHUNKS + UNREAD_SHARE * chunks:
                self._start()
            else:
                self._read_new(reader)
            thread = self._thread
        if thread is not None and self._last < last:
            thread.join(timeout_s)
        return self._last >= last

    def words(self, letters: Iterable[int]) -> list[str]:
        """Return the terms of any of those numbers of letters, as far as they were read."""
        with self._lock:
            return list(chain.from_iterable(self._words.get(number, ()) for number in letters))

    def beginning_with(self, start: str, limit: int) -> list[str]:
        """Return the most frequent of the longer terms that begin so, as far as they were read."""
        with self._lock:
            found = [(-self._words[len(term)][term], term) for term in self._between(start) if term != start]
        return [term for _, term in nsmallest(limit, found)]

    def forms(self, word: str, language: Language) -> tuple[str, ...]:
        """Return the other terms that have the stem of *word*, as far as they were read.

        Snowball takes endings off, so they begin alike: some dozens are looked through, 20 µs each, once. In
        the few languages where it takes beginnings off, too, forms with another one are not found.
        """
        stem = stemmer(language)
        wanted = stem(word)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, wanted, strict=False)))
        start = word[: max(FORM_START, same - 1)]
        with self._lock:
            near, kept = self._between(start), self._forms
        known = kept.get((language, word))
        if known is None or known[0] != len(near):  # a term is never taken out
            longest = len(wanted) + FORM_MORE
            found = (term for term in near if len(term) <= longest and term != word and stem(term) == wanted)
            known = len(near), tuple(found)
            kept.put((language, word), known)
        return known[1]

    def document_frequency(self, *terms: str) -> int:
        """Return the sum over some terms of in how many chunks each stands, dead ones included."""
        with self._lock:
            return sum(self._words.get(len(term), {}).get(term, 0) for term in terms)

    def close(self) -> None:
        """End what is being read, and wait for that."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _between(self, start: str) -> list[str]:
        """Return all terms that begin so, in order. For who holds the lock."""
        if self._ordered is None:
            self._ordered = sorted(chain.from_iterable(self._words.values()))
        first, end = (bisect_left(self._ordered, one) for one in (start, start + LAST_CHARACTER))
        return self._ordered[first:end]

    def _start(self) -> None:
        """Read all terms in a thread, if none does."""
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._read_apart, name="memd-vocabulary", daemon=True)
            self._thread.start()

    def _read_apart(self) -> None:
        try:
            with self._apart(lambda: self._closed) as reader:
                words, last = _all(reader)
            # Here, and not by the query that is the first to complete a word: 60 ms for 100,000 chunks.
            ordered = sorted(chain.from_iterable(words.values()))
            with self._lock:
                self._words, self._last, self._ordered = words, last, ordered
                self._forms = LruCache(FORMS_KEPT)
        except MemdError as error:  # it is closed, or the database cannot be read: queries will say so
            log.warning("vocabulary_not_read", kind=type(error).__name__)
        finally:
            with self._lock:
                self._thread = None

    def _read_new(self, reader: Reader) -> None:
        """Read the texts of the next few chunks."""
        for number, path, read in list(reader.each(UNREAD, (self._last, FEW_NEW_CHUNKS))):
            text = paired(searchable(read, path, first=True))
            for term in set(reader.indexed_terms(text)):
                if _is_word(term):
                    frequencies = self._words.setdefault(len(term), {})
                    if term not in frequencies and self._ordered is not None:
                        insort(self._ordered, term)
                    frequencies[term] = frequencies.get(term, 0) + 1
            self._last = number


def _all(reader: Reader) -> tuple[dict[int, dict[str, int]], int]:
    """Return all words by their number of letters, and up to which chunk."""
    words: dict[int, dict[str, int]] = {}
    last, term = _number(reader, LAST), FIRST
    while found := list(reader.each(READ_TERMS, (term, BEYOND, READ_AT_ONCE))):
        for text, frequency in found:
            if _is_word(text):
                words.setdefault(len(text), {})[text] = frequency
        term = found[-1][0]
    return words, last


def _is_word(term: str) -> bool:
    return MIN_LETTERS <= len(term) <= MAX_LETTERS and term.isalpha() and FIRST < term < BEYOND


def _number(reader: Reader, statement: str) -> int:
    [[found]] = reader.each(statement)
    return int(found)
