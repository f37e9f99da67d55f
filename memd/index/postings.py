"""Postings: the chunks in which a term occurs and how often, from the file of postings and from FTS5.

Chunk ids only grow, and the content of an id never changes. So postings that were read once stay valid for
later generations, which read only chunks with higher ids; the columns of a generation say which of them are
live. They are not valid for earlier generations: a chunk that is replaced leaves FTS5 while older views still
show it. The file has the older chunks of frequent terms; all else is read from FTS5 and cached.
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

COUNT_BITS = 24  # of a packed posting: more than the bytes of any source
MAX_COUNT = 255  # counts above do not affect ranking: a chunk has about as many words
# If a term occurs in this share of the ids, an array of counts per id is smaller than ids with counts (4 + 1
# bytes), and faster: 0.8 ns per id against 3.5 ns per posting.
DENSE_SHARE = 1 / 5


@dataclass(frozen=True, slots=True)
class Part:
    """The postings of a term in some of the chunks, possibly including dead ones."""

    ids: PostingIds | None  # ascending; None: counts has an entry for each id from 0 on
    counts: NDArray[np.uint8]  # capped

    @property
    def size(self) -> int:
        """The number of counts held."""
        return len(self.counts)


def no_part() -> Part:
    """Return the part of a term that does not occur."""
    return Part(np.zeros(0, np.int32), np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks in which a term occurs, and how often. The parts have no chunk in common."""

    parts: tuple[Part, ...]
    document_frequency: int  # number of live chunks in which it occurs


def part_of(packed: array[int]) -> Part:
    """Return the part for packed postings: id · 2 ** COUNT_BITS + count, by id.

    Raises:
        ValueError: they are not sorted, or have impossible ids.
    """
    numbers = np.array(packed, np.int64)  # a copy, since the caller reuses its array
    ids = numbers >> COUNT_BITS
    if len(ids) and not (ids[0] > 0 and ids[-1] < 1 << 31 and np.all(ids[1:] > ids[:-1])):
        raise ValueError("postings are not in the order of their ids")
    counts = np.minimum(numbers & (1 << COUNT_BITS) - 1, MAX_COUNT)
    return Part(ids.astype(np.int32), counts.astype(np.uint8))


def joined(first: Part, second: Part) -> Part:
    """Return two parts as one; all ids of *first* must be lower."""
    if not second.size:
        return first
    (ids, counts), (more_ids, more_counts) = listed(first), listed(second)
    return Part(np.concatenate([ids, more_ids]), np.concatenate([counts, more_counts]))


def up_to(part: Part, last: int) -> Part:
    """Return a part with the ids up to *last*."""
    ids, counts = listed(part)
    if not len(ids) or ids[-1] <= last:
        return part
    end = int(np.searchsorted(ids, last, side="right"))
    return Part(ids[:end], counts[:end])


def only(part: Part, kept: Mask) -> Part:
    """Return a part restricted to the ids in *kept*, which must cover all of its ids."""
    ids, counts = listed(part)
    chosen = kept[ids]
    return Part(ids[chosen], counts[chosen])


def united(some: Sequence[Postings], without: Postings, hidden: Mask | None, columns: Columns) -> Postings:
    """Return the postings of any of *some* terms, combined as one term.

    Args:
        some: the terms.
        without: postings of a term; chunks that contain it are excluded.
        hidden: further chunks to exclude.
        columns: of the generation; only live chunks are returned.
    """
    counts = np.zeros(len(columns.source), np.uint16)
    for part in (part for postings in some for part in postings.parts):
        ids, more = known(part, columns)
        counts[ids] += more  # cannot overflow: there are at most some hundred forms
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
    """Return the number of live chunks in which the term occurs according to a part."""
    live = columns.source
    if part.ids is None:
        size = min(len(live), part.size)
        return int(np.count_nonzero((part.counts[:size] > 0) & (live[:size] != DEAD)))
    return int(np.count_nonzero(live.take(known(part, columns)[0], mode="clip")))


def agree(one: Part, other: Part, columns: Columns) -> bool:
    """Return whether two parts are equal in all live chunks."""
    live = columns.source != DEAD
    (ids, counts), (other_ids, other_counts) = (
        listed(only(Part(*known(part, columns)), live)) for part in (one, other)
    )
    return np.array_equal(ids, other_ids) and np.array_equal(counts, other_counts)


def encoded(part: Part, size: int) -> tuple[bool, bytes]:
    """Return (whether it is dense, bytes) for a part with ids below *size*, the format of `decoded`."""
    ids, counts = listed(part)
    if len(ids) < size * DENSE_SHARE:
        return False, ids.tobytes() + counts.tobytes()
    every = np.zeros(size, np.uint8)
    every[ids] = counts
    return True, every.tobytes()


def decoded(stored: memoryview, documents: int, *, dense: bool) -> Part:
    """Return the part of *documents* chunks encoded in *stored*, without copying."""
    if dense:
        return Part(None, np.frombuffer(stored, np.uint8))
    ids = np.frombuffer(stored, np.int32, documents)
    return Part(ids, np.frombuffer(stored, np.uint8, documents, offset=4 * documents))


def counted(counts: Mapping[int, int]) -> Postings:
    """Return postings for {live chunk: count of the term}."""
    packed = array("q", (number << COUNT_BITS | counts[number] for number in sorted(counts)))
    return Postings((part_of(packed),), len(counts))


def listed(part: Part) -> tuple[PostingIds, NDArray[np.uint8]]:
    """Return the ids and counts of a part in either form."""
    if part.ids is not None:
        return part.ids, part.counts
    ids = np.flatnonzero(part.counts).astype(np.int32)
    return ids, part.counts[ids]


def known(part: Part, columns: Columns) -> tuple[PostingIds, NDArray[np.uint8]]:
    """Return the ids and counts that the columns cover; chunks beyond are dead."""
    return listed(up_to(part, len(columns.source) - 1))


# Postings cached for later queries, 5 bytes each: 20 MB. Those in the file are not counted.
POSTINGS_KEPT = 4_000_000
MASKS_KEPT = 8  # a byte per chunk each; a query needs one
TERM_SIZE = 100  # overhead per term in units of postings: keys and records of some 500 bytes

Term = tuple[str, bool]  # term, and whether it is a prefix
Read = Callable[[Term, int], Part]  # (term, after) → its postings in chunks with ids above

V = TypeVar("V")


class Kept(Generic[V]):
    """A cache of values per term; safe for two readers at once."""

    def __init__(self) -> None:
        self._kept: LruCache[tuple[Term, int], V] = LruCache(POSTINGS_KEPT)

    def get(self, term: Term, after: int) -> V | None:
        """Return the cached value of a term for ids above *after*."""
        return self._kept.get((term, after))

    def put(self, term: Term, after: int, found: V, size: int) -> None:
        """Cache a value that holds *size* postings."""
        self._kept.put((term, after), found, size + TERM_SIZE)


@dataclass(frozen=True, slots=True)
class Tail:
    """The postings of a term above some id, as far as they were read."""

    last: int  # highest id read
    part: Part
    generation: int  # the newest one that was read from


@dataclass(frozen=True, slots=True)
class TermPostings:
    """The postings of one generation. Immutable except for its caches."""

    columns: Columns
    newest: int  # highest chunk id ever used
    generation: int = 0
    file: PostingsFile | None = None
    tails: Kept[Tail] = field(default_factory=Kept)  # shared by generations
    # Of this generation: postings that searches combined of several terms, by keys of their choice.
    unions: LruCache[Hashable, Postings] = field(default_factory=lambda: LruCache(POSTINGS_KEPT))
    masks: LruCache[Hashable, Mask | None] = field(default_factory=lambda: LruCache(MASKS_KEPT))
    _found: Kept[Postings] = field(default_factory=Kept)  # of this generation
    _whole: list[bool] = field(default_factory=list)  # see `_is_whole`

    def after(self, columns: Columns, newest: int, generation: int) -> TermPostings:
        """Return the postings of the same or a later generation, which share the cache."""
        return TermPostings(columns, newest, generation, self.file, self.tails)

    def beside(self, file: PostingsFile | None) -> TermPostings:
        """Return the same postings with another file."""
        return TermPostings(self.columns, self.newest, self.generation, file, self.tails)

    def of(self, term: Term, read: Read) -> Postings:
        """Return the postings of a term; *read* gets them from FTS5, in the same generation."""
        found = self._found.get(term, 0)
        if found is None:
            found, size = self._made(term, read)
            self._found.put(term, 0, found, size)
        return found

    def _made(self, term: Term, read: Read) -> tuple[Postings, int]:
        """Combine the postings of a term; return them with the number held in memory."""
        file = self.file
        stored = file.find(term) if file is not None else None
        if file is None or stored is None:
            tail = self._tail(term, 0, read)
            return Postings((tail,), living(tail, self.columns)), tail.size
        tail = self._tail(term, file.covered, read)
        covered = stored.documents if self._is_whole(file) else living(stored.part, self.columns)
        if not tail.size:  # usual
            return Postings((stored.part,), covered), 0
        return Postings((stored.part, tail), covered + living(tail, self.columns)), tail.size

    def _tail(self, term: Term, after: int, read: Read) -> Part:
        """Return the postings of a term above *after*, reading only what is not cached."""
        known = self.tails.get(term, after)
        if known is not None and known.generation > self.generation:
            return read(term, after)
        if known is None or known.last < self.newest:
            part, last = (known.part, known.last) if known is not None else (no_part(), after)
            known = Tail(self.newest, joined(part, read(term, last)), self.generation)
            self.tails.put(term, after, known, known.part.size)
        return known.part

    def _is_whole(self, file: PostingsFile) -> bool:
        """Return whether every chunk of the file is live, so that its document counts are exact.

        It had all chunks up to its last id when it was made, and no new chunk gets such an id.
        """
        if not self._whole:
            self._whole.append(live_up_to(self.columns, file.covered) == file.chunks)
        return self._whole[0]
