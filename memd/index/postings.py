"""Postings: in which chunks a term stands and how often, from the file of postings and from FTS5.

Ids of chunks only grow, and what stands under one never changes. So what was read of a term once stays true,
and only chunks with higher ids are looked for later; which of all those chunks are live, a generation's
columns say. The file has the older chunks of terms that are frequent; the rest is asked of FTS5 and kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from memd.index.columns import DEAD, Columns, Mask, live_up_to
from memd.lru import LruCache

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memd.index.postings_file import PostingsFile

PostingIds: TypeAlias = "NDArray[np.int32]"

COUNT_BITS = 24  # of a packed count: no source has so many bytes
MAX_COUNT = 255  # of a term in a chunk that makes a difference: a chunk has about as many words
# From this share of the ids on, a count for each id is smaller than ids with counts (4 + 1 bytes), and
# faster: 0.8 ns an id against 3.5 ns a posting.
DENSE_SHARE = 1 / 5


@dataclass(frozen=True, slots=True)
class Part:
    """Where a term stands among some of the chunks; dead ones may be among them."""

    ids: PostingIds | None  # ascending; None: there is a count for each id from 0 on
    counts: NDArray[np.uint8]  # capped

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return len(self.counts)


def no_part() -> Part:
    """Return the part of a term that stands nowhere."""
    return Part(np.zeros(0, np.int32), np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Postings:
    """In which chunks a term stands, and how often. No chunk is in two of the parts."""

    parts: tuple[Part, ...]
    document_frequency: int  # in how many live chunks it stands


def part_of(packed: array[int]) -> Part:
    """Return the part of packed postings: id · 2 ** COUNT_BITS + count, by id.

    Raises:
        ValueError: they are not in order, or no ids.
    """
    numbers = np.array(packed, np.int64)  # a copy: who fills it goes on with it
    ids = numbers >> COUNT_BITS
    if len(ids) and not (ids[0] > 0 and ids[-1] < 1 << 31 and np.all(ids[1:] > ids[:-1])):
        raise ValueError("postings are not in the order of their ids")
    counts = np.minimum(numbers & (1 << COUNT_BITS) - 1, MAX_COUNT)
    return Part(ids.astype(np.int32), counts.astype(np.uint8))


def joined(first: Part, second: Part) -> Part:
    """Return two parts as one; all ids of *first* are lower."""
    if not second.size:
        return first
    (ids, counts), (more_ids, more_counts) = listed(first), listed(second)
    return Part(np.concatenate([ids, more_ids]), np.concatenate([counts, more_counts]))


def up_to(part: Part, last: int) -> Part:
    """Return what of a part with ids is not beyond the id *last*."""
    ids, counts = listed(part)
    if not len(ids) or ids[-1] <= last:
        return part
    end = int(np.searchsorted(ids, last, side="right"))
    return Part(ids[:end], counts[:end])


def only(part: Part, kept: Mask) -> Part:
    """Return a part with those of its ids, each lower than the length of *kept*, that are in it."""
    ids, counts = listed(part)
    chosen = kept[ids]
    return Part(ids[chosen], counts[chosen])


def united(some: Sequence[Postings], without: Postings, hidden: Mask | None, columns: Columns) -> Postings:
    """Return where any of *some* terms stands, as one term.

    Args:
        some: the terms.
        without: a term; what stands in a chunk with it is left out.
        hidden: chunks that are left out, too.
        columns: of the generation; only live chunks are in what is returned.
    """
    counts = np.zeros(len(columns.source), np.uint16)
    for part in (part for postings in some for part in postings.parts):
        ids, more = known(part, columns)
        counts[ids] += more  # far from full: there are at most some hundred forms
    for part in without.parts:
        counts[known(part, columns)[0]] = 0
    counts[columns.source == DEAD] = 0
    if hidden is not None:
        counts[hidden] = 0
    ids = np.flatnonzero(counts).astype(np.int32)
    capped = np.minimum(counts, MAX_COUNT).astype(np.uint8)
    dense = len(ids) >= DENSE_SHARE * len(counts)
    return Postings((Part(None, capped) if dense else Part(ids, capped[ids]),), len(ids))


def living(part: Part, columns: Columns) -> int:
    """Return in how many live chunks a part says that its term stands."""
    live = columns.source
    if part.ids is None:
        size = min(len(live), part.size)
        return int(np.count_nonzero((part.counts[:size] > 0) & (live[:size] != DEAD)))
    return int(np.count_nonzero(live.take(known(part, columns)[0], mode="clip")))


def agree(one: Part, other: Part, columns: Columns) -> bool:
    """Tell whether two parts say the same of all live chunks."""
    live = columns.source != DEAD
    (ids, counts), (other_ids, other_counts) = (
        listed(only(Part(*known(part, columns)), live)) for part in (one, other)
    )
    return np.array_equal(ids, other_ids) and np.array_equal(counts, other_counts)


def encoded(part: Part, size: int) -> tuple[bool, bytes]:
    """Return (whether it is dense, bytes) of a part with ids below *size*, as `decoded` reads them."""
    ids, counts = listed(part)
    if len(ids) < size * DENSE_SHARE:
        return False, ids.tobytes() + counts.tobytes()
    every = np.zeros(size, np.uint8)
    every[ids] = counts
    return True, every.tobytes()


def decoded(stored: memoryview, documents: int, *, dense: bool) -> Part:
    """Return the part of that many *documents* that stands in *stored*; it is not copied."""
    if dense:
        return Part(None, np.frombuffer(stored, np.uint8))
    ids = np.frombuffer(stored, np.int32, documents)
    return Part(ids, np.frombuffer(stored, np.uint8, documents, offset=4 * documents))


def counted(counts: Mapping[int, int]) -> Postings:
    """Return postings from live chunk → how often the term stands there."""
    packed = array("q", (number << COUNT_BITS | counts[number] for number in sorted(counts)))
    return Postings((part_of(packed),), len(counts))


def listed(part: Part) -> tuple[PostingIds, NDArray[np.uint8]]:
    """Return a part's ids and counts, however it is held."""
    if part.ids is not None:
        return part.ids, part.counts
    ids = np.flatnonzero(part.counts).astype(np.int32)
    return ids, part.counts[ids]


def known(part: Part, columns: Columns) -> tuple[PostingIds, NDArray[np.uint8]]:
    """Return ids and counts of what the columns have a place for: what is beyond is dead."""
    return listed(up_to(part, len(columns.source) - 1))


# Postings kept for the queries to come, 5 bytes each: 20 MB. Those of the file are not counted.
POSTINGS_KEPT = 4_000_000
MASKS_KEPT = 8  # a byte a chunk each; a query needs one
TERM_SIZE = 100  # what a term costs besides, as postings: keys and records of some 500 bytes

Term = tuple[str, bool]  # and whether it is the beginning of all terms that are meant
Read = Callable[[Term, int], Part]  # (term, after) → its postings in chunks beyond that id

V = TypeVar("V")


class Kept(Generic[V]):
    """What is known of the terms that were asked for last; two readers may use it at once."""

    def __init__(self) -> None:
        self._kept: LruCache[tuple[Term, int], V] = LruCache(POSTINGS_KEPT)

    def get(self, term: Term, after: int) -> V | None:
        """Return what is kept for a term beyond an id."""
        return self._kept.get((term, after))

    def put(self, term: Term, after: int, found: V, size: int) -> None:
        """Keep something of so many postings."""
        self._kept.put((term, after), found, size + TERM_SIZE)


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
    file: PostingsFile | None = None
    tails: Kept[Tail] = field(default_factory=Kept)  # of all generations since the words were made
    # Of this generation, what a search made of several terms: by whatever key it likes.
    unions: LruCache[Hashable, Postings] = field(default_factory=lambda: LruCache(POSTINGS_KEPT))
    masks: LruCache[Hashable, Mask | None] = field(default_factory=lambda: LruCache(MASKS_KEPT))
    _found: Kept[Postings] = field(default_factory=Kept)  # of this one
    _whole: list[bool] = field(default_factory=list)  # see `_is_whole`

    def after(self, columns: Columns, newest: int) -> TermPostings:
        """Return those of the next generation; what was read stays known."""
        return TermPostings(columns, newest, self.file, self.tails)

    def beside(self, file: PostingsFile | None) -> TermPostings:
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
        tail = self._tail(term, file.covered, read)
        covered = stored.documents if self._is_whole(file) else living(stored.part, self.columns)
        if not tail.size:  # mostly
            return Postings((stored.part,), covered), 0
        return Postings((stored.part, tail), covered + living(tail, self.columns)), tail.size

    def _tail(self, term: Term, after: int, read: Read) -> Part:
        """Return a term's postings beyond an id; what is known of them is not read again."""
        known = self.tails.get(term, after) or Tail(after, no_part())
        if known.last < self.newest:
            known = Tail(self.newest, joined(known.part, read(term, known.last)))
            self.tails.put(term, after, known, known.part.size)
        return known.part  # a later generation may have read further: to these columns that is dead

    def _is_whole(self, file: PostingsFile) -> bool:
        """Tell whether every chunk of the file is live: then its counts of documents are right as they are.

        All chunks up to its last id were in it when it was made, and none comes to them.
        """
        if not self._whole:
            self._whole.append(live_up_to(self.columns, file.covered) == file.chunks)
        return self._whole[0]
