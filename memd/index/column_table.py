"""The table of columns: source, row and length of every live chunk, a blob for each slice of ids.

It says what `chunks` and `vectors` say, in the form in which a snapshot holds it: a start reads some
thousand blobs where it would read a million rows. A transaction that changes which chunks are live, or their
rows in the active matrix, changes each slice that it touches once, at its end. A slice that the disk has
changed is derived again. For the writing thread; what changes something is called inside a transaction.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias
from zlib import crc32

import structlog

from memd.errors import IndexDamagedError
from memd.index.columns import DEAD, HAS_NUMPY, Columns
from memd.index.vector_table import LiveChunk, VectorTable
from memd.index.writer import Store

with suppress(ImportError):  # then the columns only count
    import numpy as np

log = structlog.get_logger()

# As many ids as half a page has room for: a save writes one page more, a start with a million chunks
# reads 2,977 of them.
SLICE_IDS = 336
PARTS = 3  # of a slice, one behind the other: sources, rows, lengths
# There is a place for each id that was ever given. So many mean 800 MB: it is a flipped bit, or time to begin
# anew with low ones.
MAX_CHUNK_ID = 1 << 26
MAX_ROW = (1 << 31) - 1  # as it is stored
MAX_LENGTH = 1 << 24  # in terms: a source has at most 4 MiB

Slice: TypeAlias = list[int]  # PARTS times SLICE_IDS values
_VALUES = struct.Struct(f"<{PARTS * SLICE_IDS}i")
_EMPTY = [DEAD] * SLICE_IDS + [-1] * SLICE_IDS + [0] * SLICE_IDS


class MisplacedError(IndexDamagedError):
    """A chunk names a row that its matrix has not got."""


class StoredSlice(NamedTuple):
    """A row of the table."""

    slice: int  # of the ids from slice · SLICE_IDS on
    stored: bytes
    crc: int

    def is_sound(self) -> bool:
        """Tell whether it is what was written."""
        types = type(self.slice), type(self.stored), type(self.crc)
        return types == (int, bytes, int) and self.crc == _checksum(self.slice, self.stored)


def chunks_in(stored: StoredSlice) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield (id, (source, row, length)) of the live chunks of a slice; none where it is damaged."""
    if stored.is_sound():
        held = _VALUES.unpack(stored.stored)
        for place in range(SLICE_IDS):
            if held[place] != DEAD:
                yield stored.slice * SLICE_IDS + place, held[place::SLICE_IDS]


class ColumnTable:
    """The stored columns of one index."""

    def __init__(self, store: Store, ledger: VectorTable) -> None:
        self._store = store
        self._ledger = ledger

    def load(self, sources: Collection[int], rows: int) -> Columns:
        """Return the columns of what is committed.

        Args:
            sources: those that are live.
            rows: of the active matrix.

        Raises:
            MisplacedError: vectors have impossible rows.
            IndexDamagedError: chunks have impossible values.
        """
        try:
            return self._loaded(sources, rows)
        except IndexDamagedError:
            log.warning("columns_damaged")
            with self._store.transaction():
                self.refill()
                return self._loaded(sources, rows)

    def change(
        self, *, removed: Iterable[int], added: Iterable[LiveChunk], embedded: Mapping[int, int]
    ) -> None:
        """Note which chunks are not live any more, which are, and new rows (-1: none) of those that are."""
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
        """Write the row of every chunk anew: another matrix is active, or this one has lost its rows."""
        rows = self._ledger.rows_by_chunk(self._store.number("active"))
        for [number] in self._store.run("SELECT slice FROM columns ORDER BY slice"):
            held = self._slice(number)
            fresh = rows[number * SLICE_IDS : (number + 1) * SLICE_IDS]
            for place, row in enumerate(fresh):
                held[place + SLICE_IDS] = row if held[place] != DEAD else -1
            self._put(number, held)

    def refill(self) -> None:
        """Make the table anew from chunks and vectors."""
        self._store.run("DELETE FROM columns")
        newest = self._newest()
        if self._ledger.has_chunks_beyond(newest):
            raise _impossible(f"the newest has not the id {newest}")
        for number in range(newest // SLICE_IDS + 1):
            self._put(number, self._derived(number))
        self._store.count_generation_up()

    def _slice(self, number: int) -> Slice:
        """Return a slice as it is stored; one that is damaged is derived, with all changes that were made."""
        found = self._store.run("SELECT slice, stored, crc FROM columns WHERE slice = ?", (number,))
        if not found:
            return _EMPTY.copy()
        stored = StoredSlice(*found[0])
        if not stored.is_sound():
            log.warning("columns_damaged")
            return self._derived(number)
        return list(_VALUES.unpack(stored.stored))

    def _derived(self, number: int) -> Slice:
        """Return what a slice should be."""
        held = _EMPTY.copy()
        first = number * SLICE_IDS
        for chunk_id, *values in self._ledger.live_chunks(
            first, first + SLICE_IDS, self._store.number("active")
        ):
            if type(values[1]) is int and not -1 <= values[1] <= MAX_ROW:
                raise MisplacedError("chunks have impossible rows: memctl index --rebuild")
            held[chunk_id - first :: SLICE_IDS] = values
        return held

    def _put(self, number: int, held: Slice) -> None:
        if held == _EMPTY:
            self._store.run("DELETE FROM columns WHERE slice = ?", (number,))
            return
        try:
            stored = _VALUES.pack(*held)
        except struct.error as error:  # no numbers, or too large ones
            raise _impossible(error) from error
        self._store.run(
            "INSERT OR REPLACE INTO columns VALUES (?, ?, ?)", (number, stored, _checksum(number, stored))
        )

    def _loaded(self, sources: Collection[int], rows: int) -> Columns:
        every = [
            StoredSlice(*row)
            for row in self._store.run("SELECT slice, stored, crc FROM columns ORDER BY slice")
        ]
        newest = self._newest()
        numbers = [one.slice for one in every if one.is_sound()]
        if len(numbers) < len(every) or any(not 0 <= number <= newest // SLICE_IDS for number in numbers):
            raise _impossible(f"{len(every) - len(numbers)} slices of columns are damaged")
        blob = b"".join(one.stored for one in every)
        if not HAS_NUMPY:
            owners = [_VALUES.unpack(one.stored)[:SLICE_IDS] for one in every]
            return replace(Columns.empty(), count=sum(SLICE_IDS - one.count(DEAD) for one in owners))
        size = max(numbers, default=-1) + 1
        table = np.zeros((PARTS, size, SLICE_IDS), np.int32)
        table[1] = -1
        table[:, numbers] = np.frombuffer(blob, "<i4").reshape(-1, PARTS, SLICE_IDS).swapaxes(0, 1)
        source, row, length = table.reshape(PARTS, -1)
        columns = Columns.of(source, row, length)
        _expect_possible(columns, sources, newest, rows)
        return columns

    def _newest(self) -> int:
        newest = self._ledger.newest_chunk()
        if type(newest) is int and 0 <= newest <= MAX_CHUNK_ID:
            return newest
        raise _impossible(f"the newest has the id {newest!r:.20}")


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
    )
    if not is_possible:
        raise _impossible("of source or length")
    if row.min() < -1 or row.max() >= rows:
        raise MisplacedError("chunks have impossible rows: memctl index --rebuild")


def _impossible(what: object) -> IndexDamagedError:
    return IndexDamagedError(f"chunks have impossible values ({what}): memctl index --rebuild")


def _checksum(number: int, stored: bytes) -> int:
    """Return the CRC-32 of a slice, which also says which one it is."""
    return crc32(stored, number & 0xFFFFFFFF)
