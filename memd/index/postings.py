"""In which chunks does a term stand? Put together from a derived file and from FTS5, and kept.

Ids of chunks only grow, and what stands under one never changes. So what was read of a term once stays
true, and only chunks with higher ids are looked for later; which of all those chunks are live, a
generation's columns say.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from memd.index.columns import Columns, live_up_to
from memd.index.inverted import Inverted
from memd.index.posting_list import Part, Postings, joined, living, no_part

# Postings kept for the queries to come, 5 bytes each: 20 MB. Those of the file are not counted.
POSTINGS_KEPT = 4_000_000
TERM_SIZE = 100  # what a term costs besides, as postings: keys and records of some 500 bytes

Term = tuple[str, bool]  # and whether it is the beginning of all terms that are meant
Read = Callable[[Term, int], Part]  # (term, after) → its postings in chunks beyond that id

V = TypeVar("V")


class Kept(Generic[V]):
    """What is known of the terms that were asked for last; two readers may use it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects both fields
        self._kept: OrderedDict[tuple[Term, int], tuple[V, int]] = OrderedDict()
        self._size = 0

    def get(self, term: Term, after: int) -> V | None:
        """Return what is kept for a term beyond an id."""
        with self._lock:
            if (term, after) not in self._kept:
                return None
            self._kept.move_to_end((term, after))
            return self._kept[term, after][0]

    def put(self, term: Term, after: int, found: V, size: int) -> None:
        """Keep something of so many postings; when it is too much, what was not asked for longest goes."""
        with self._lock:
            _, old = self._kept.pop((term, after), (None, 0))
            self._kept[term, after] = (found, size + TERM_SIZE)
            self._size += size + TERM_SIZE - old
            while self._size > POSTINGS_KEPT and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1][1]


@dataclass(frozen=True, slots=True)
class Tail:
    """A term's postings from some id on, as far as they were read."""

    last: int  # highest id that was looked at
    part: Part


@dataclass(frozen=True, slots=True)
class TermPostings:
    """The postings of one generation. Never changes, but for what it keeps."""

    columns: Columns
    newest: int  # highest id that any chunk was ever given
    file: Inverted | None = None
    tails: Kept[Tail] = field(default_factory=Kept)  # of all generations since the words were made
    _found: Kept[Postings] = field(default_factory=Kept)  # of this one
    _whole: list[bool] = field(default_factory=list)  # see `_is_whole`

    def after(self, columns: Columns, newest: int) -> "TermPostings":
        """Return those of the next generation; what was read stays known."""
        return TermPostings(columns, newest, self.file, self.tails)

    def beside(self, file: Inverted | None) -> "TermPostings":
        """Return the same with another file."""
        return TermPostings(self.columns, self.newest, file, self.tails)

    def of(self, term: Term, read: Read) -> Postings:
        """Return a term's postings; *read* asks FTS5, in the same generation."""
        found = self._found.get(term, 0)
        if found is None:
            found, size = self._made(term, read)
            self._found.put(term, 0, found, size)
        return found

    def _made(self, term: Term, read: Read) -> tuple[Postings, int]:
        """Put a term's postings together; say how many of them are held in memory."""
        file = self.file
        stored = file.find(term) if file is not None else None
        if file is None or stored is None:
            tail = self._tail(term, 0, read)
            return Postings((tail,), living(tail, self.columns)), tail.size
        tail = self._tail(term, file.last, read)
        covered = stored.documents if self._is_whole(file) else living(stored.part, self.columns)
        found = Postings((stored.part, tail), covered + living(tail, self.columns))
        return found, tail.size

    def _tail(self, term: Term, after: int, read: Read) -> Part:
        """Return a term's postings beyond an id; what is known of them is not read again."""
        known = self.tails.get(term, after) or Tail(after, no_part())
        if known.last < self.newest:
            known = Tail(self.newest, joined(known.part, read(term, known.last)))
            self.tails.put(term, after, known, known.part.size)
        return known.part  # a later generation may have read further: to these columns that is dead

    def _is_whole(self, file: Inverted) -> bool:
        """Tell whether every chunk of the file is live: then its counts of documents are right as they are.

        All chunks up to its last id were in it when it was made, and none comes to them.
        """
        if not self._whole:
            self._whole.append(live_up_to(self.columns, file.last) == file.chunks)
        return self._whole[0]
