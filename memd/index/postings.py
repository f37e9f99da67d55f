"""Postings: the chunks in which a term occurs and how often, from the table of postings and from FTS5.

Chunk ids only grow, and the content of an id never changes. So postings that were read once stay valid for
later generations, which read only chunks with higher ids; the columns of a generation say which of them are
live. They are not valid for earlier generations: a chunk that is replaced leaves FTS5 while older views still
show it. In a large index the table `postings` has the older chunks of frequent terms
(`memd.index.postings_table`); all else is read from FTS5. A row of it that is damaged is not used.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias
from zlib import crc32

import structlog

from memd.index.columns import DEAD, Columns, Mask
from memd.lru import LruCache

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

log = structlog.get_logger()

Term = tuple[str, bool]  # term, and whether it is a prefix
PostingIds: TypeAlias = "NDArray[np.int32]"

COUNT_BITS = 24  # of a packed posting: more than the bytes of any source
MAX_COUNT = 255  # counts above do not affect ranking: a chunk has about as many words
# If a term occurs in this share of the ids, an array of counts per id is smaller than ids with counts (4 + 1
# bytes), and faster: 0.8 ns per id against 3.5 ns per posting.
DENSE_SHARE = 1 / 5
BEGINNING = "*"  # suffix of the key of a prefix: no term contains it


@dataclass(frozen=True, slots=True)
class Part:
    """The postings of a term in some of the chunks, possibly including dead ones."""

    ids: PostingIds | None  # ascending; None: counts has an entry for each id from 0 on
    counts: NDArray[np.uint8]  # capped

    @property
    def size(self) -> int:
        """The number of counts held."""
        return len(self.counts)

    @property
    def size_bytes(self) -> int:
        """The memory that the arrays take."""
        return self.counts.nbytes + (self.ids.nbytes if self.ids is not None else 0)


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
    if not (first.size and second.size):
        return first if first.size else second
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

    Chunks that have the term *without*, and *hidden* and dead ones, are excluded.
    """
    counts = np.zeros(len(columns.source), np.uint16)
    for part in (part for postings in some for part in postings.parts):
        ids, more = known(part, columns)
        counts[ids] += more  # cannot overflow: there are at most some hundred forms
    for part in without.parts:
        counts[known(part, columns)[0]] = 0
    found = np.flatnonzero(counts)
    is_shown = columns.source[found] != DEAD
    if hidden is not None:
        is_shown &= ~hidden[found]
    ids = found[is_shown].astype(np.int32)
    capped = np.minimum(counts[ids], MAX_COUNT).astype(np.uint8)
    if len(ids) < DENSE_SHARE * len(counts):
        return Postings((Part(ids, capped),), len(ids))
    every = np.zeros(len(counts), np.uint8)
    every[ids] = capped
    return Postings((Part(None, every),), len(ids))


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


class StoredRow(NamedTuple):
    """A row of the table `postings`."""

    term: str  # key
    upto: int  # the row has all chunks up to this id
    ids: bytes | None  # little-endian int32; None: counts has an entry for each id from 0 to `upto`
    counts: bytes
    crc: int  # CRC-32 of all other values


class Stored(NamedTuple):
    """The postings in one row of the table."""

    upto: int
    part: Part


def key_of(term: Term) -> str:
    """Return the key of a term or prefix in the table."""
    text, is_beginning = term
    return text + BEGINNING if is_beginning else text


def row_of(term: Term, upto: int, part: Part) -> StoredRow:
    """Return the row for a term whose postings up to the id *upto* are *part*."""
    ids, counts = listed(part)
    listing: bytes | None = ids.astype("<i4").tobytes()
    if len(ids) >= DENSE_SHARE * (upto + 1):
        every = np.zeros(upto + 1, np.uint8)
        every[ids] = counts
        listing, counts = None, every
    row = StoredRow(key_of(term), upto, listing, counts.tobytes(), 0)
    return row._replace(crc=_checksum(row))


def stored_in(row: StoredRow) -> Stored | None:
    """Return what a row contains, without copying; None if its checksum is wrong."""
    if row.crc != _checksum(row):
        log.warning("postings_damaged")  # the term may be a word of a note
        return None
    ids = None if row.ids is None else np.frombuffer(row.ids, "<i4")
    return Stored(row.upto, Part(ids, np.frombuffer(row.counts, np.uint8)))


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


def _checksum(row: StoredRow) -> int:
    facts = f"{row.term} {row.upto} {row.ids is None} {len(row.counts)}"
    return crc32(row.counts, crc32(row.ids or b"", crc32(facts.encode())))


KEPT_BYTES = 20_000_000  # of postings cached for later queries: the words of some hundred
MASKS_KEPT = 8  # a byte per chunk each; a query needs one
TERM_BYTES = 500  # overhead per term: keys and records
STORED = -1  # in the key of a cached value: it is from the table


class TermReader(Protocol):
    """Reads the postings of one state of the database."""

    def counted(self, term: Term, after: int = 0) -> Part:
        """Return the postings in chunks with ids above *after*, out of FTS5."""

    def stored(self, term: Term) -> Stored | None:
        """Return the postings in the table; None if there are none, or if they are damaged."""


@dataclass(frozen=True, slots=True)
class Cached:
    """The postings of a term in the table, or above some id in FTS5, as far as they were read."""

    last: int  # highest id read
    part: Part
    generation: int  # the newest one that was read from


@dataclass(frozen=True, slots=True)
class TermPostings:
    """The postings of one generation. Immutable except for its caches."""

    columns: Columns
    newest: int  # highest chunk id ever used
    generation: int
    # By the term and the id above which they are; shared by generations.
    cached: LruCache[tuple[Term, int], Cached] = field(default_factory=lambda: LruCache(KEPT_BYTES))
    # Of this generation: postings that searches combined of several terms, by keys of their choice.
    unions: LruCache[Hashable, Postings] = field(default_factory=lambda: LruCache(KEPT_BYTES))
    masks: LruCache[Hashable, Mask | None] = field(default_factory=lambda: LruCache(MASKS_KEPT))
    _found: LruCache[Term, Postings] = field(default_factory=lambda: LruCache(KEPT_BYTES))

    def after(self, columns: Columns, newest: int, generation: int) -> TermPostings:
        """Return the postings of the same or a later generation, which share the cache."""
        return TermPostings(columns, newest, generation, self.cached)

    def of(self, term: Term, reader: TermReader) -> Postings:
        """Return the postings of a term; *reader* is in a transaction of the same generation."""
        found = self._found.get(term)
        if found is None:
            older = self._stored(term, reader)
            newer = self._newer(term, older.last, reader)
            parts = (newer,) if not older.part.size else (older.part, newer) if newer.size else (older.part,)
            found = Postings(parts, sum(living(part, self.columns) for part in parts))
            self._found.put(term, found, TERM_BYTES + sum(part.size_bytes for part in parts))
        return found

    def _stored(self, term: Term, reader: TermReader) -> Cached:
        """Return what the table has of a term."""
        known = self.cached.get((term, STORED))
        if known is None or known.generation > self.generation:
            stored = reader.stored(term)
            if stored is None:
                return Cached(0, no_part(), self.generation)
            known = Cached(*stored, self.generation)
            self.cached.put((term, STORED), known, TERM_BYTES + known.part.size_bytes)
        return known

    def _newer(self, term: Term, after: int, reader: TermReader) -> Part:
        """Return the postings of a term above *after*, reading only what is not cached."""
        known = self.cached.get((term, after))
        if known is not None and known.generation > self.generation:
            return reader.counted(term, after)
        known = known or Cached(after, no_part(), self.generation)
        if known.last < self.newest:
            part = joined(known.part, reader.counted(term, known.last))
            known = Cached(self.newest, part, self.generation)
            self.cached.put((term, after), known, TERM_BYTES + part.size_bytes)
        return known.part
