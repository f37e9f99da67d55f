"""The columns of an index: source, row and length of every chunk, in memory and in the database.

`Columns` are the part of a snapshot that scoring needs, as arrays indexed by the id of the chunk, with masks
over chunks and the best of their scores. Without numpy they only count: search.fallback reads the database
instead.

`ColumnTable` stores them, one blob per slice of ids: a start reads a few thousand blobs instead of a million
rows of `chunks` and `vectors`. A transaction that changes which chunks are live, or their rows in the active
matrix, updates each affected slice once, at its end. A slice with a wrong checksum is derived again. The
table is for the writing thread; methods that change it are called inside a transaction.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from zlib import compress, crc32, decompress

import structlog

from memd.errors import IndexDamagedError, NumpyMissingError
from memd.index.database import Database
from memd.index.source_rows import PEOPLE
from memd.index.vector_table import VectorTable

try:
    import numpy as np
except ImportError:  # then search.fallback answers, and the columns only count
    HAS_NUMPY = False
else:
    HAS_NUMPY = True
if TYPE_CHECKING:
    from numpy.typing import NDArray

log = structlog.get_logger()

DEAD = 0  # no source has the id 0
# Packed they take an eighth of a page, of which a save writes one, and a start with a million chunks unpacks
# 2,977 blobs, in 30 ms.
SLICE_IDS = 336
PARTS = 3  # per slice, one after the other: sources, rows, lengths
# The arrays have a place for every id ever used, so this many take 800 MB: either the id is corrupt, or the
# index should be rebuilt, which numbers chunks from 1 again.
MAX_CHUNK_ID = 1 << 26
GROUP = 64  # scores per group, of which only the best is compared first: 16,000 of a million
# Chunks of a source in the pool of an arm, as long as others match: with 300 sections of one file, eight
# notes that match nearly as well were outside of it. A file shows three places, each with its neighbours.
OF_SOURCE = 8
MAX_LENGTH = 1 << 24  # in terms: a source has at most 4 MiB

Ids: TypeAlias = "NDArray[np.int64]"
Scores: TypeAlias = "NDArray[np.float32]"
Mask: TypeAlias = "NDArray[np.bool_]"
Slice: TypeAlias = list[int]  # PARTS times SLICE_IDS values
LiveChunk = tuple[int, int, int, int]  # chunk, source, row or -1, length in terms
_VALUES = struct.Struct(f"<{PARTS * SLICE_IDS}i")
_EMPTY = [DEAD] * SLICE_IDS + [-1] * SLICE_IDS + [0] * SLICE_IDS


@dataclass(frozen=True, slots=True)
class Owners:
    """The live chunks of every row: one of them in an array, the others (equal texts) in a sorted list."""

    # By row: one of its chunks, 0 (no chunk's id) if it has none. int64, as numpy indexes with it.
    first: Ids
    used: Mask  # by row: whether it has a chunk
    more_rows: Ids  # rows of the other chunks, ascending
    more_ids: Ids

    @staticmethod
    def of(row: NDArray[np.int32], rows: int) -> Owners:
        """Invert *row* (per chunk, -1: none) for the first *rows* rows: 6 ms for a million."""
        ids = np.flatnonzero((row >= 0) & (row < rows))
        theirs = row[ids].astype(np.int64)
        first = np.zeros(rows, np.int64)
        first[theirs] = ids
        others = first[theirs] != ids
        order = np.argsort(theirs[others], kind="stable")
        return Owners(first, first > 0, theirs[others][order], ids[others][order])

    def allowed(self, mask: Mask) -> Mask:
        """Return which rows have a chunk under *mask*."""
        rows: Mask = mask[self.first]
        rows[self.more_rows[mask[self.more_ids]]] = True
        return rows

    def chunks(self, rows: Ids, mask: Mask) -> Ids:
        """Return the chunks of *rows* under *mask*, in any order."""
        starts = np.searchsorted(self.more_rows, rows)
        counts = np.searchsorted(self.more_rows, rows, side="right") - starts
        before = np.cumsum(counts) - counts
        places = np.repeat(starts - before, counts) + np.arange(counts.sum())
        ids = np.concatenate([self.first[rows], self.more_ids[places]])
        under: Ids = ids[mask[ids]]
        return under


@dataclass(frozen=True, slots=True)
class Columns:
    """The values that scoring needs of every chunk, indexed by chunk id."""

    source: NDArray[np.int32]  # the source's id; DEAD if the chunk does not exist (any more)
    row: NDArray[np.int32]  # row of the matrix; -1 while the chunk has no vector
    length: NDArray[np.int32]  # in terms
    count: int  # of live chunks
    total_length: int  # of live chunks, in terms
    _norms: dict[tuple[float, float], NDArray[np.float32]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _starts: list[NDArray[np.int64]] = field(default_factory=list, repr=False, compare=False)
    _owners: dict[int, Owners] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def empty() -> Columns:
        """Return the columns of an index without chunks."""
        nothing = np.zeros(0, np.int32)
        return Columns(nothing, nothing, nothing, 0, 0)

    @staticmethod
    def of(source: NDArray[np.int32], row: NDArray[np.int32], length: NDArray[np.int32]) -> Columns:
        """Return columns made of these arrays; dead chunks must have length 0."""
        return Columns(source, row, length, int(np.count_nonzero(source)), int(length.sum()))

    def changed(
        self,
        *,
        removed: Sequence[int],
        added: Sequence[tuple[int, int, int, int]],
        embedded: Sequence[tuple[int, int]],
    ) -> Columns:
        """Return a copy without *removed* ids, with *added* (id, source, row, length) and new (id, row)."""
        size = max((chunk[0] + 1 for chunk in added), default=0)
        grown = [_grown(column, size) for column in (self.source, self.row, self.length)]
        source, row, length = grown
        gone = np.asarray(removed, np.int64)
        lost = int(length[gone].sum())
        source[gone] = DEAD
        row[gone] = -1
        length[gone] = 0
        if added:
            table = np.asarray(added, np.int64)
            source[table[:, 0]], row[table[:, 0]], length[table[:, 0]] = table[:, 1], table[:, 2], table[:, 3]
            lost -= int(table[:, 3].sum())
        if embedded:
            table = np.asarray(embedded, np.int64)
            row[table[:, 0]] = table[:, 1]
        return Columns(source, row, length, self.count - len(gone) + len(added), self.total_length - lost)

    def without(self, sources: AbstractSet[int]) -> Columns:
        """Return a copy in which the chunks of some sources are dead."""
        if not sources:
            return self
        gone = mask_of(self, sources)
        source, row, length = self.source.copy(), self.row.copy(), self.length.copy()
        source[gone], row[gone], length[gone] = DEAD, -1, 0
        return Columns.of(source, row, length)

    def owners(self, rows: int) -> Owners:
        """Return the chunks of each of the first *rows* rows. Computed once per generation."""
        found = self._owners.get(rows)
        if found is None:
            found = self._owners[rows] = Owners.of(self.row, rows)
        return found

    def norms(self, k1: float, b: float) -> NDArray[np.float32]:
        """Return BM25's k1 (1 - b + b · length / average length) for each chunk; infinite for dead chunks.

        Computed once per generation. The infinite value makes a dead chunk score 0 for every term.
        """
        found = self._norms.get((k1, b))
        if found is None:
            average = max(self.total_length / max(self.count, 1), 1)
            found = self.length.astype(np.float32)
            found *= np.float32(k1 * b / average)
            found += np.float32(k1 * (1 - b))
            # Above 0, so that a chunk without words scores 0 / norm = 0 for a term that it lacks.
            np.maximum(found, np.finfo(np.float32).tiny, out=found)
            found[self.source == DEAD] = np.inf
            self._norms[k1, b] = found
        return found

    def starts(self) -> NDArray[np.int64]:
        """Return the first id of each source's chunks and of each run of dead chunks, then the size.

        Computed once per generation. The chunks of a source get consecutive ids, as one transaction inserts
        them.
        """
        if not self._starts:
            changes = np.flatnonzero(self.source[1:] != self.source[:-1]) + 1
            self._starts.append(np.concatenate([[0], changes, [len(self.source)]]))
        return self._starts[0]


class CountedColumns(Columns):
    """The columns without numpy: they only count, and search.fallback reads the database."""

    @staticmethod
    def counting(chunks: int) -> CountedColumns:
        """Return the columns of an index with so many live chunks."""
        return CountedColumns([], [], [], chunks, 0)  # type: ignore[arg-type]  # of which nothing is asked

    def changed(
        self,
        *,
        removed: Sequence[int],
        added: Sequence[tuple[int, int, int, int]],
        embedded: Sequence[tuple[int, int]],
    ) -> Columns:
        """Return the columns without *removed* and with *added*."""
        del embedded
        return replace(self, count=self.count - len(removed) + len(added))

    def without(self, sources: AbstractSet[int]) -> Columns:
        """Return the same."""
        del sources
        return self


def require_numpy(what: str) -> None:
    """Raise NumpyMissingError, naming the feature *what*, if numpy cannot be imported."""
    if not HAS_NUMPY:
        raise NumpyMissingError(f"{what} needs numpy, which cannot be imported: pip install numpy")


def only_living(ids: Sequence[int], columns: Columns) -> list[int]:
    """Return the *ids* of live chunks."""
    listed = np.asarray(ids, np.int64)
    known = (listed >= 0) & (listed < len(columns.source))
    live: Mask = columns.source[np.where(known, listed, 0)] != DEAD if len(columns.source) else known
    living: list[int] = listed[known & live].tolist()
    return living


def mask_of(columns: Columns, sources: Iterable[int] | None) -> Mask:
    """Return the mask of live chunks, of *sources* only unless that is None."""
    if sources is None:
        live: Mask = columns.source != DEAD
        return live
    passes = np.zeros(int(columns.source.max(initial=0)) + 1, np.bool_)  # by source: a lookup, no search
    wanted = np.fromiter(sources, np.int32)
    passes[wanted[wanted < len(passes)]] = True
    passes[DEAD] = False
    return passes[columns.source]


def mask_of_ids(ids: Iterable[int], size: int) -> Mask:
    """Return a mask of length *size* that is true at *ids*."""
    mask = np.zeros(size, np.bool_)
    mask[np.fromiter(ids, np.int64)] = True
    return mask


def restrict(mask: Mask, ids: Iterable[int], *, keep: bool) -> Mask:
    """Return *mask* restricted to *ids* (*keep*), or without them."""
    listed = np.zeros(len(mask), np.bool_)
    listed[np.fromiter(ids, np.int64)] = True
    narrowed: Mask = np.logical_and(mask, listed if keep else ~listed)
    return narrowed


def restrict_sources(mask: Mask, columns: Columns, ids: Iterable[int], *, keep: bool) -> Mask:
    """Return *mask* restricted to the sources that have one of the chunks *ids* (*keep*), or without them."""
    having = np.zeros(int(columns.source.max(initial=0)) + 1, np.bool_)
    having[columns.source[np.fromiter(ids, np.int64)]] = True
    having[DEAD] = False
    narrowed: Mask = mask & (having[columns.source] == keep)
    return narrowed


def mask_size(mask: Mask) -> int:
    """Return the number of chunks under *mask*."""
    return int(np.count_nonzero(mask))


def take(values: NDArray[Any], ids: Sequence[int] | Ids) -> list[Any]:
    """Return the values at *ids* as plain Python numbers."""
    taken: list[Any] = values[np.asarray(ids, np.int64)].tolist()
    return taken


def bits_set(words: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of bits set in each row."""
    is_counted = hasattr(np, "bitwise_count")  # since numpy 2
    bits = np.bitwise_count(words) if is_counted else np.unpackbits(words.view(np.uint8), axis=1)
    counts: NDArray[np.int64] = bits.sum(axis=1, dtype=np.int64)
    return counts


def stretches(columns: Columns, ids: Sequence[int] | Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each id, the first id and the end of the range of its source's chunks."""
    starts = columns.starts()
    after = np.searchsorted(starts, np.asarray(ids, np.int64), side="right")
    return starts[after - 1], starts[after]


def best(scores: Scores, mask: Mask, limit: int) -> Ids:
    """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
    least = lower_bound(scores, limit)
    ids = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    ids = ids[mask[ids]]
    if least > 0 and len(ids) < limit:  # too few of the ids above the bound are under the mask
        allowed = np.where(mask, scores, np.float32(0))
        least = lower_bound(allowed, limit)
        ids = np.flatnonzero(allowed >= least if least > 0 else allowed > 0)
    return best_of(ids, scores[ids], limit)


def best_of(ids: Ids, scores: Scores, limit: int) -> Ids:
    """Return those *ids* that have the *limit* highest *scores* above 0, best first, ties by id."""
    if len(ids) > limit:  # sorting 4,000 takes three times as long as finding the best 150
        chosen = scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]
        ids, scores = ids[chosen], scores[chosen]
    order = np.lexsort((ids, -scores))[:limit]
    found: Ids = ids[order][scores[order] > 0]
    return found


def spread(  # noqa: PLR0917 - of one arm
    find: Callable[[Mask], Ids],
    scores_at: Callable[[Ids], Scores],
    mask: Mask,
    columns: Columns,
    limit: int,
    most: int,
) -> Ids:
    """Return the ids of the *limit* best chunks, of each source at most *most* as long as others have any.

    *find* returns the *limit* best ids under a mask. `OF_SOURCE` counts, if that is more than *most*.
    """
    share = max(most, OF_SOURCE)
    first = found = find(mask)
    held: list[Ids] = []
    while len(found) == limit:  # otherwise nothing else is left that could come in
        sources = columns.source[found]
        crowded = [one for one, count in Counter(sources.tolist()).items() if count > share]
        full = [found[sources == one][:share] for one in crowded]
        if not full:
            break
        held += full
        mask = mask.copy()
        for start, end in zip(*stretches(columns, [int(some[0]) for some in full]), strict=True):
            mask[start:end] = False
        found = find(mask)
    if not held:
        return first
    ids = np.concatenate([*held, found])
    ids = best_of(ids, scores_at(ids), limit)
    ids = np.concatenate([ids, first[~np.isin(first, ids)][: limit - len(ids)]])
    return best_of(ids, scores_at(ids), limit)


def count_above(scores: Scores, mask: Mask, limit: float) -> int:
    """Return how many scores under *mask* are higher than *limit*."""
    return int(np.count_nonzero(mask & (scores > np.float32(limit))))


def lower_bound(scores: Scores, limit: int) -> np.float32:
    """Return a score that at least *limit* scores reach, and not many more; 0 if there are few scores.

    The result is the *limit*-th best of the groups' maxima: the maxima of a million scores take a twentieth
    of the time of a partition.
    """
    groups = len(scores) // GROUP
    if groups <= limit:
        return np.float32(0)
    best = np.maximum.reduce(scores[: groups * GROUP].reshape(GROUP, groups), axis=0)
    bound: np.float32 = np.partition(best, groups - limit)[groups - limit]
    return bound


class StoredSlice(NamedTuple):
    """A row of the table `columns`."""

    slice: int  # number: the slice has the ids from slice · SLICE_IDS on
    stored: bytes
    crc: int

    def is_sound(self) -> bool:
        """Return whether types and checksum are right."""
        types = type(self.slice), type(self.stored), type(self.crc)
        return types == (int, bytes, int) and self.crc == _checksum(self.slice, self.stored)

    def values(self) -> tuple[int, ...]:
        """Return what a sound one says."""
        return _VALUES.unpack(decompress(self.stored))


def chunks_in(stored: StoredSlice) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield (id, (source, row, length)) of the live chunks of a slice; nothing if it is damaged."""
    if stored.is_sound():
        held = stored.values()
        for place in range(SLICE_IDS):
            if held[place] != DEAD:
                yield stored.slice * SLICE_IDS + place, held[place::SLICE_IDS]


class ColumnTable:
    """The stored columns of one index."""

    def __init__(self, database: Database, vectors: VectorTable) -> None:
        self._database = database
        self._vectors = vectors

    def load(self, sources: Collection[int], rows: int) -> Columns:
        """Return the columns of the committed state; *rows*: how many the active matrix has.

        Raises:
            IndexDamagedError: chunks have impossible values.
        """
        try:
            return self._loaded(sources, rows)
        except IndexDamagedError:
            log.warning("columns_damaged")
            with self._database.transaction():
                self.refill()
                return self._loaded(sources, rows)

    def change(
        self, *, removed: Iterable[int], added: Iterable[LiveChunk], embedded: Mapping[int, int]
    ) -> None:
        """Record chunks that are no longer live, new live chunks, and new rows (-1: none) of live chunks."""
        changes: defaultdict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        for chunk_id in removed:
            changes[chunk_id // SLICE_IDS].append((chunk_id % SLICE_IDS, (DEAD, -1, 0)))
        for chunk_id, *values in added:
            changes[chunk_id // SLICE_IDS].append((chunk_id % SLICE_IDS, tuple(values)))
        for chunk_id, row in embedded.items():
            changes[chunk_id // SLICE_IDS].append((chunk_id % SLICE_IDS, (row,)))
        for number in sorted(changes):
            held = self._slice(number)
            for place, new in changes[number]:
                if len(new) == PARTS:
                    held[place::SLICE_IDS] = new
                elif held[place] != DEAD:
                    [held[place + SLICE_IDS]] = new
            self._put(number, held)

    def renumber(self) -> None:
        """Rewrite the row of every chunk, after the active matrix was replaced or lost its rows."""
        rows = self._vectors.rows_by_chunk(self._database.number("active"))
        for [number] in self._database.run("SELECT slice FROM columns ORDER BY slice"):
            held = self._slice(number)
            fresh = rows[number * SLICE_IDS : (number + 1) * SLICE_IDS]
            for place, row in enumerate(fresh):
                held[place + SLICE_IDS] = row if held[place] != DEAD else -1
            self._put(number, held)

    def refill(self) -> None:
        """Rebuild the table from chunks and vectors."""
        self._database.run("DELETE FROM columns")
        newest = self._newest()
        if self._database.run("SELECT 1 FROM chunks WHERE id > ? OR id <= 0 LIMIT 1", (newest,)):
            raise _impossible(f"the newest has not the id {newest}")
        for number in range(newest // SLICE_IDS + 1):
            self._put(number, self._derived(number))
        self._database.count_generation_up()

    def _slice(self, number: int) -> Slice:
        """Return the stored slice; a damaged one is derived again, including uncommitted changes."""
        found = self._database.run("SELECT slice, stored, crc FROM columns WHERE slice = ?", (number,))
        if not found:
            return _EMPTY.copy()
        stored = StoredSlice(*found[0])
        if not stored.is_sound():
            log.warning("columns_damaged")
            return self._derived(number)
        return list(stored.values())

    def _derived(self, number: int) -> Slice:
        """Derive a slice from chunks and vectors."""
        held = _EMPTY.copy()
        first = number * SLICE_IDS
        for chunk_id, *values in self._database.run(
            """
            SELECT id, source, row, length FROM placed
            WHERE id >= ? AND id < ? AND hidden_from != ?
                AND source NOT IN (SELECT id FROM sources WHERE gone_at IS NOT NULL)
            """,
            (first, first + SLICE_IDS, PEOPLE),
        ):
            held[chunk_id - first :: SLICE_IDS] = values
        return held

    def _put(self, number: int, held: Slice) -> None:
        if held == _EMPTY:
            self._database.run("DELETE FROM columns WHERE slice = ?", (number,))
            return
        try:
            stored = compress(_VALUES.pack(*held))
        except struct.error as error:  # not numbers, or too large
            raise _impossible(error) from error
        self._database.run(
            "INSERT OR REPLACE INTO columns VALUES (?, ?, ?)", (number, stored, _checksum(number, stored))
        )

    def _loaded(self, sources: Collection[int], rows: int) -> Columns:
        every = [
            StoredSlice(*row)
            for row in self._database.run("SELECT slice, stored, crc FROM columns ORDER BY slice")
        ]
        newest = self._newest()
        numbers = [one.slice for one in every if one.is_sound()]
        if len(numbers) < len(every) or any(not 0 <= number <= newest // SLICE_IDS for number in numbers):
            raise _impossible(f"{len(every) - len(numbers)} slices of columns are damaged")
        blob = b"".join(decompress(one.stored) for one in every)
        if not HAS_NUMPY:
            owners = [one.values()[:SLICE_IDS] for one in every]
            return CountedColumns.counting(sum(SLICE_IDS - one.count(DEAD) for one in owners))
        size = max(numbers, default=-1) + 1
        table = np.zeros((PARTS, size, SLICE_IDS), np.int32)
        table[1] = -1
        table[:, numbers] = np.frombuffer(blob, "<i4").reshape(-1, PARTS, SLICE_IDS).swapaxes(0, 1)
        source, row, length = table.reshape(PARTS, -1)
        columns = Columns.of(source, row, length)
        _expect_possible(columns, sources, newest, rows)
        return columns

    def _newest(self) -> int:
        newest = self._vectors.newest_chunk()
        if type(newest) is int and 0 <= newest <= MAX_CHUNK_ID:
            return newest
        raise _impossible(f"the newest has the id {newest!r:.20}")


def _grown(column: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    grown = np.zeros(max(size, len(column)), np.int32)
    grown[: len(column)] = column
    return grown


def _expect_possible(columns: Columns, sources: Collection[int], newest: int, rows: int) -> None:
    live = np.flatnonzero(columns.source)
    if not len(live):
        return
    known = np.zeros(max(sources, default=0) + 1, np.bool_)
    known[np.fromiter(sources, np.int64, len(sources))] = True
    owner, row, length = columns.source[live], columns.row[live], columns.length[live]
    is_possible = (
        live[0] > 0
        and live[-1] <= newest
        and owner.min() > 0
        and owner.max() < len(known)
        and known[owner].all()
        and length.min() >= 0
        and length.max() <= MAX_LENGTH
        and row.min() >= -1
        and row.max() < rows
    )
    if not is_possible:
        raise _impossible("of source, row or length")


def _impossible(what: object) -> IndexDamagedError:
    return IndexDamagedError(f"chunks have impossible values ({what}): memctl index --rebuild")


def _checksum(number: int, stored: bytes) -> int:
    """Return the CRC-32 of a slice; it covers the slice's number, too."""
    return crc32(stored, number & 0xFFFFFFFF)
