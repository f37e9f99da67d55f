"""The matrix file: append-only float32 rows, memory-mapped read-only; cosines of its rows with a query.

Invariants: rows are durable before SQLite refers to them; a row is never overwritten; a mapped file is never
truncated (readers would get SIGBUS). So whenever the power fails, a row without a reference is garbage, and a
referenced row matches its CRC. Rows and query vectors have length 1, so a cosine is a dot product.
"""

from __future__ import annotations

import errno
import mmap
import zlib
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from memd import fsio
from memd.errors import MemdError, StorageError, storage_error
from memd.fsio import Failure
from memd.index.columns import Columns, Mask, Scores, best_of

with suppress(ImportError):  # then search.fallback answers, and no cosine is asked for
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOAT_BYTES = 4
# A file doubles up to steps of 8 MiB: few notes take little, and many a new mapping per 5,000 rows of 384
# dimensions.
LEAST_BYTES, CAPACITY_STEP_BYTES = 1024 * 1024, 8 * 1024 * 1024
SLAB_ROWS = 1_024  # gathered at once; 1.5 MB for 384 dimensions fit into a core's cache
# BLAS computes a product of so many values in the calling thread, divides a larger one among all cores, and
# waits for each: on a busy machine that took 10 ms for 4,000 rows instead of 0.5, with three times the
# processor time; on an idle one 0.07 instead of 0.16. So only long scans are divided.
ALONE_VALUES = 1_024 * 384
ALONE_ROWS = 16_384
_NO_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO})  # gone; a link, folder or pipe

Ids: TypeAlias = "NDArray[np.int64]"
Table: TypeAlias = "NDArray[np.float32]"  # (rows, dimensions)


@dataclass(frozen=True, slots=True)
class Rows:
    """A read-only view of the first *count* rows; stays valid while it is held."""

    buffer: mmap.mmap | bytes
    count: int
    dim: int
    # CRC-32 of each row, 0 while unknown; shared by all views of a matrix, and grows with it
    crcs: array[int] = field(repr=False, compare=False)

    def damaged(self, rows: Iterable[int]) -> list[int]:
        """Return the *rows* that differ from what was written, sorted; -1 (no row) is ignored."""
        size = self.dim * FLOAT_BYTES
        crcs, crc32 = self.crcs, zlib.crc32
        with memoryview(self.buffer) as block:  # 0.4 µs a row
            return sorted(
                row
                for row in set(rows)
                if row >= 0 and crc32(block[row * size : (row + 1) * size]) != crcs[row]
            )

    def vector(self, row: int) -> bytes:
        """Return the bytes of a row, which may be damaged; b"" if there is none."""
        size = self.dim * FLOAT_BYTES
        return bytes(self.buffer[row * size : (row + 1) * size]) if 0 <= row < self.count else b""

    def learn(self, crcs: Iterable[tuple[int, int]]) -> list[int]:
        """Record the checksums (row, CRC-32) that the database has. For any thread.

        Returns the rows that do not exist, or whose recorded checksum differs.
        """
        wrong = []
        for row, crc in crcs:
            if not (0 <= row < self.count and 0 <= crc < 1 << 32) or self.crcs[row] not in {0, crc}:
                wrong.append(row)
            else:
                self.crcs[row] = crc
        return wrong


def matrix_name(number: int) -> str:
    """Return the file name of a matrix."""
    return f"vectors.{number}.f32"


def no_crcs(rows: int) -> array[int]:
    """Return an array of unknown checksums for *rows* rows."""
    return array("I", bytes(4 * rows))


NO_ROWS = Rows(b"", 0, 0, no_crcs(0))


class Matrix:
    """One file of vectors. For the writing thread; the result of `rows` is for any thread."""

    def __init__(self, folder: Path, number: int, *, dim: int, failure: Failure, model_id: str = "") -> None:
        """Open the file of that number; `use` sets how many of its rows are in use.

        Raises:
            FileNotFoundError: it does not exist, or is not a regular file.
            StorageError: it cannot be opened.
        """
        self.path = folder / matrix_name(number)
        self.number = number
        self.model_id = model_id
        self.dim = dim
        self._row_bytes = dim * FLOAT_BYTES
        self.count = 0  # rows in use, including garbage
        self._crcs = no_crcs(0)  # 0: unknown. Readers use it while it grows
        self._failure = failure
        self._map: mmap.mmap | bytes = b""
        try:
            self._fd = fsio.open_existing(self.path)
        except OSError as error:
            if error.errno in _NO_FILE:
                raise FileNotFoundError(error.errno, "no file", str(self.path)) from error
            raise storage_error(str(self.path), error) from error

    @classmethod
    def create(cls, folder: Path, number: int, *, dim: int, failure: Failure, model_id: str = "") -> Matrix:
        """Create a new file; its name is durable on return.

        Raises:
            FileExistsError: the path exists; it is left unchanged.
        """
        path = folder / matrix_name(number)
        try:
            fsio.close(fsio.create(path))
        except FileExistsError:
            raise
        except OSError as error:
            raise storage_error(str(path), error) from error
        try:
            fsio.sync_folder(folder)
            return cls(folder, number, dim=dim, failure=failure, model_id=model_id)
        except OSError as error:
            fsio.remove_leftover(path)
            raise storage_error(str(path), error) from error
        except MemdError:
            fsio.remove_leftover(path)
            raise

    @property
    def room(self) -> int:
        """The number of rows that fit into the file's present size."""
        return fsio.size(self._fd) // self._row_bytes

    def use(self, rows: int) -> None:
        """Set the number of rows in use, at most `room`."""
        assert rows <= self.room
        self.count = rows
        self._know(())

    @property
    def rows(self) -> Rows:
        """The readable rows. The file is mapped again only when it has outgrown the mapping."""
        needed = self.count * self._row_bytes
        if len(self._map) < needed:
            self._map = mmap.mmap(self._fd, fsio.size(self._fd), prot=mmap.PROT_READ)
        return Rows(self._map, self.count, self.dim, self._crcs)

    def append(self, vectors: Sequence[bytes]) -> list[tuple[int, int]]:
        """Write rows and sync them; return (row, CRC-32) of each.

        Raises:
            NoSpaceError: the disk is full; nothing was added.
            StorageError: the device failed.
        """
        self._failure.check()
        start = self.count
        block = b"".join(vectors)
        if any(len(vector) != self._row_bytes for vector in vectors):
            raise StorageError(f"{self.path}: the length of a vector is not {self._row_bytes} bytes")
        try:
            needed = (start + len(vectors)) * self._row_bytes
            if needed > fsio.size(self._fd):
                step = min(CAPACITY_STEP_BYTES, max(LEAST_BYTES, 1 << (needed - 1).bit_length()))
                fsio.reserve(self._fd, -(-needed // step) * step)
            fsio.write_at(self._fd, block, start * self._row_bytes)
        except OSError as error:
            found = storage_error(str(self.path), error)
            raise (self._failure.keep(found) if isinstance(found, StorageError) else found) from error
        try:
            fsio.sync(self._fd)
        except OSError as error:  # also a full disk: dirty pages may be lost without another error
            raise self._failure.keep(StorageError(f"{self.path}: {error.strerror or error}")) from error
        crcs = [(start + number, zlib.crc32(vector)) for number, vector in enumerate(vectors)]
        self._know(crcs)  # before a snapshot can show the rows
        self.count = start + len(vectors)
        return crcs

    def close(self) -> None:
        """Close the file; mappings stay valid while they are referenced."""
        if self._fd >= 0:
            fsio.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Close and delete the file; existing mappings keep its data."""
        self.close()
        fsio.remove_leftover(self.path)

    def _know(self, crcs: Iterable[tuple[int, int]]) -> None:
        if len(self._crcs) < self.count:
            self._crcs.extend(no_crcs(self.count - len(self._crcs)))
        for row, crc in crcs:
            if row == len(self._crcs):
                self._crcs.append(crc)
            else:
                self._crcs[row] = crc


def cosines(matrix: Any, rows: int, dim: int, query_vec: bytes, first: int = 0) -> Scores:
    """Return the cosine of the query with each row from *first* on."""
    newer, query = table(matrix, rows, dim)[first:], np.frombuffer(query_vec, np.float32)
    if len(newer) > ALONE_ROWS:
        return newer @ query
    found = np.empty(len(newer), np.float32)
    step = max(4, ALONE_VALUES // dim // 4 * 4)  # BLAS computes four rows at once
    for start in range(0, len(newer), step):
        np.dot(newer[start : start + step], query, out=found[start : start + step])
    return found


def by_chunk(row_scores: Scores, columns: Columns) -> Scores:
    """Return each chunk's score, taken from its row; -1 if it has no row."""
    with_none = np.empty(len(row_scores) + 1, np.float32)  # index -1 is the last entry
    with_none[:-1] = row_scores
    with_none[-1] = -1
    return with_none[columns.row]


def cosines_at(
    matrix: Any, rows: int, dim: int, query_vec: bytes, *, columns: Columns, ids: Sequence[int] | Ids
) -> Scores:
    """Return the cosines of a few chunks; -1 without a row. A result does not depend on the other chunks.

    Not by BLAS, whose last digit depends on the position of a row in its block, and which wakes a thread on
    every core for a millisecond of work.
    """
    numbers, places = np.unique(columns.row[np.asarray(ids, np.int64)], return_inverse=True)
    every, query = table(matrix, rows, dim), np.frombuffer(query_vec, np.float32)
    found = np.full(len(numbers), -1, np.float32)
    slab = np.empty((min(SLAB_ROWS, len(numbers)), dim), np.float32)
    for start in range(int(np.count_nonzero(numbers < 0)), len(numbers), SLAB_ROWS):
        part = numbers[start : start + SLAB_ROWS]
        gathered = np.take(every, part, axis=0, out=slab[: len(part)], mode="clip")  # otherwise buffered
        np.einsum("ij,j->i", gathered, query, out=found[start : start + len(part)])
    return found[places]


def with_newest(ids: Ids, row_scores: Scores, columns: Columns, mask: Mask, *, first: int, limit: int) -> Ids:
    """Return *ids* and the *limit* best chunks under *mask* among rows from *first* on (*row_scores*)."""
    newer = np.flatnonzero(mask & (columns.row >= first))
    return np.concatenate([ids, best_of(newer, row_scores[columns.row[newer] - first], limit)])


def table(matrix: Any, rows: int, dim: int) -> Table:
    """Return the matrix as an array of shape (rows, dim), without a copy."""
    return np.frombuffer(matrix, np.float32, rows * dim).reshape(rows, dim)
