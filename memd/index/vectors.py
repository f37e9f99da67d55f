"""Where are the vectors? In one append-only file of float32 rows, mapped read-only.

Invariants: rows are written and made durable before SQLite names them; a row is never written twice; a
mapped file is never truncated (that would be SIGBUS for every reader). So an unnamed row is garbage and
a named row is what its CRC says, whenever the power goes.
"""

import errno
import mmap
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memd.errors import NoSpaceError, StorageError

FLOAT_BYTES = 4
CAPACITY_STEP_BYTES = 8 * 1024 * 1024  # a new mapping for every 5,000 rows of 384 dimensions, not for each


sync = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter


@dataclass(frozen=True, slots=True)
class Rows:
    """A read-only view of the first *count* rows; stays valid while it is held."""

    buffer: mmap.mmap | bytes
    count: int
    dim: int


class Matrix:
    """The file of one workspace's vectors. Only the writing thread appends."""

    def __init__(self, path: Path, *, dim: int, rows: int) -> None:
        self.path = path
        self._row_bytes = dim * FLOAT_BYTES
        self._dim = dim
        self._rows = rows
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(path, flags, 0o600)
            # Of a file that was cut off, the lost rows are zeros then: readable, and of a wrong CRC.
            self._reserve(rows * self._row_bytes)
        except OSError as error:
            raise StorageError(f"{path} cannot be opened: {error.strerror}") from error
        self._reserve(
            rows * self._row_bytes
        )  # a file that was cut off: its lost rows are zeros, of a wrong CRC
        self._map: mmap.mmap | bytes = b""

    @property
    def rows(self) -> Rows:
        """What is readable now. The mapping is made anew only when the file has outgrown it."""
        needed = self._rows * self._row_bytes
        if len(self._map) < needed:
            self._map = mmap.mmap(self._fd, os.fstat(self._fd).st_size, prot=mmap.PROT_READ)
        return Rows(self._map, self._rows, self._dim)

    def append(self, vectors: Sequence[bytes]) -> list[tuple[int, int]]:
        """Write rows and make them durable; return (row, CRC-32) of each.

        Raises:
            NoSpaceError: nothing was added; the rows before are untouched.
            StorageError: the device failed.
        """
        start = self._rows
        block = b"".join(vectors)
        if len(block) != len(vectors) * self._row_bytes:
            raise StorageError(f"{self.path}: a vector has another length than {self._row_bytes} bytes")
        try:
            self._reserve((start + len(vectors)) * self._row_bytes)
            _write_all(self._fd, block, start * self._row_bytes)
            sync(self._fd)
        except OSError as error:
            raise _translated(self.path, error) from error
        self._rows = start + len(vectors)
        return [(start + number, zlib.crc32(vector)) for number, vector in enumerate(vectors)]

    def damaged(self, crcs: Iterable[tuple[int, int]]) -> list[int]:
        """Return the rows that are missing or do not have the CRC-32 that SQLite recorded."""
        bad = []
        for row, crc in crcs:
            vector = os.pread(self._fd, self._row_bytes, row * self._row_bytes)
            if len(vector) < self._row_bytes or zlib.crc32(vector) != crc:
                bad.append(row)
        return bad

    def close(self) -> None:
        """Close the file; mappings in use stay valid until they are let go."""
        os.close(self._fd)

    def _reserve(self, size_bytes: int) -> None:
        """Make sure that writing cannot fail for want of space: a clean error now, not SIGBUS later."""
        have = os.fstat(self._fd).st_size
        if size_bytes <= have:
            return
        target = -(-size_bytes // CAPACITY_STEP_BYTES) * CAPACITY_STEP_BYTES
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._fd, 0, target)
        else:  # macOS has no posix_fallocate: zeros do the same
            _write_all(self._fd, b"\0" * (target - have), have)


def _write_all(descriptor: int, block: bytes, offset: int) -> None:
    view = memoryview(block)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _translated(path: Path, error: OSError) -> NoSpaceError | StorageError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return NoSpaceError(f"{path}: no space left on the device; what was indexed still answers")
    return StorageError(f"{path}: {error.strerror}")
