"""Array files: many named blocks of numbers in one memory-mapped file, with a checksum for each block.

They store data derived from the database or the matrices. A file is written once and never changed or
truncated. Its layout: the header, the blocks, then the table of contents with facts as JSON, the names in
byte order, the end of each name, and an entry for each block. Numbers have the byte order of the machine,
since an index is not moved between machines.

Opening reads the header and the table and verifies their checksums, so a truncated or different file is
refused. A block is verified when it is first read. For any thread.
"""

import json
import mmap
import re
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import structlog

from memd import fsio

log = structlog.get_logger()

MAGIC = b"memdarrs"
FORMAT = 1
BYTE_ORDER = 0x01020304
# magic, format, byte order, kind, name; offset of the table; sizes of facts and names; number of names;
# CRC-32 of the table.
HEADER = struct.Struct("=8sII16s16sQQQQI")
CHECKED = struct.Struct("=I")  # CRC-32 of the header and its padding
DATA_AT = 128  # where the blocks begin: after the header and its checksum
ENTRY = struct.Struct("=QQII")  # offset, size in bytes, note, checksum
ALIGNED = 8  # bytes: offsets of blocks and table are multiples of this
# Bytes written between two syncs: a commit of a save waits for a sync in progress, some 20 ms.
SYNCED_BYTES = 16 * 1024 * 1024
NAME = re.compile(r"[0-9a-f]{16}")


class DamagedFileError(Exception):
    """The file is not the expected one, or its content differs from what was written."""


class Block(NamedTuple):
    """One block, and the number that its writer stored with it."""

    note: int
    content: memoryview


def file_name(kind: str, name: str) -> str:
    """Return the file name for a kind and a name."""
    return f"{kind}.{name}.bin"


class ArrayFile:
    """One open file."""

    def __init__(self, path: Path, kind: str, name: str) -> None:
        """Map the file at *path*.

        Raises:
            DamagedFileError: the file is of another kind or name, or damaged.
            OSError: the file does not exist, or cannot be read.
        """
        self.path = path
        self.kind = kind
        self.name = name
        self.is_damaged = False  # a damaged block was found: no further block is returned
        descriptor = fsio.open_existing(path)
        try:
            self._read_table(descriptor)
            self._map = memoryview(mmap.mmap(descriptor, self.size_bytes, prot=mmap.PROT_READ))
        finally:
            fsio.close(descriptor)
        self._sound = bytearray(self._count)  # 1: the block was verified

    def _read_table(self, descriptor: int) -> None:
        header = _read(descriptor, 0, DATA_AT)
        magic, version, order, its_kind, its_name, at, facts, names, count, crc = HEADER.unpack_from(header)
        if (magic, version, order, its_kind.rstrip(b"\0")) != (MAGIC, FORMAT, BYTE_ORDER, self.kind.encode()):
            raise DamagedFileError("it is of another kind")
        if CHECKED.unpack_from(header, -CHECKED.size) != (crc32(header[: -CHECKED.size]),):
            raise DamagedFileError("its header is not what was written")
        if its_name.decode() != self.name:
            raise DamagedFileError("it is another file")
        ends_at = _aligned(facts + names)
        entries_at = ends_at + 4 * count
        self.size_bytes: int = at + entries_at + ENTRY.size * count
        if fsio.size(descriptor) != self.size_bytes:
            raise DamagedFileError("it is cut, or longer than what was written")
        table = _read(descriptor, at, self.size_bytes - at)
        if crc32(table) != crc:
            raise DamagedFileError("its table of contents is not what was written")
        self.facts: Mapping[str, Any] = json.loads(bytes(table[:facts]))
        self._names = table[facts : facts + names]
        self._ends = table[ends_at:entries_at].cast("I")
        self._entries = table[entries_at:]
        self._count: int = count

    def reopened(self) -> "ArrayFile":
        """Open the file again, to read its present state on the disk. Raises as opening does."""
        return ArrayFile(self.path, self.kind, self.name)

    def find(self, name: bytes, *, anew: bool = False) -> Block | None:
        """Return the block called *name*; None if it does not exist or is damaged.

        A block is verified when it is first read, and on every call with *anew*.
        """
        number = bisect_left(range(self._count), name, key=self._name)
        if self.is_damaged or number == self._count or self._name(number) != name:
            return None
        if anew or not self._sound[number]:
            if not self._is_sound(number):
                log.warning("derived_file_damaged", file=self.path.name)
                self.is_damaged = True
                return None
            self._sound[number] = 1
        place, size, note, _ = self._entry(number)
        return Block(note, self._map[place : place + size])

    def copied(self, name: bytes) -> memoryview:
        """Return a copy of a large block, read with read(2): a failing disk raises an error, not SIGBUS.

        Raises:
            DamagedFileError: the block is damaged.
            OSError: the block cannot be read.
        """
        number = bisect_left(range(self._count), name, key=self._name)
        place, size, note, crc = self._entry(number)
        descriptor = fsio.open_existing(self.path)
        try:
            content = _read(descriptor, place, size)
        finally:
            fsio.close(descriptor)
        if checksum(name, note, content) != crc:
            raise DamagedFileError("a block is not what was written")  # its name may be a word of a note
        return content

    def names(self) -> Iterator[bytes]:
        """Yield the name of each block, in order."""
        return map(self._name, range(self._count))

    def damaged(self, ends: Callable[[], None]) -> int:
        """Return the number of damaged blocks; *ends* is called before each block.

        Raises:
            OSError: the disk fails.
        """
        count = 0
        for number in range(self._count):
            ends()
            try:
                self.copied(self._name(number))
            except DamagedFileError:
                count += 1
        return count

    def _is_sound(self, number: int) -> bool:
        place, size, note, crc = self._entry(number)
        return checksum(self._name(number), note, self._map[place : place + size]) == crc

    def _name(self, number: int) -> bytes:
        return bytes(self._names[self._ends[number - 1] if number else 0 : self._ends[number]])

    def _entry(self, number: int) -> tuple[int, int, int, int]:
        found: tuple[int, int, int, int] = ENTRY.unpack_from(self._entries, number * ENTRY.size)
        return found


class ArrayFileWriter:
    """Writes one file: `add` for each block, then `finish`. For one thread at a time."""

    def __init__(self, path: Path, kind: str, name: str) -> None:
        """Create the file. All methods raise OSError; `close` must be called then, too."""
        self._path, self._kind, self._name = path, kind, name
        self._descriptor = fsio.create(path)
        self._size = self._synced = DATA_AT
        self._names = bytearray()
        self._ends = array("I")
        self._entries = bytearray()

    def add(self, name: bytes, note: int, content: bytes | memoryview) -> None:
        """Append a block; blocks must come in the byte order of their names."""
        fsio.write_at(self._descriptor, content, self._size)
        self._names += name
        self._ends.append(len(self._names))
        self._entries += ENTRY.pack(self._size, len(content), note, checksum(name, note, content))
        self._size = _aligned(self._size + len(content))
        if self._size - self._synced > SYNCED_BYTES:
            fsio.sync(self._descriptor)
            self._synced = self._size

    def finish(self, facts: Mapping[str, Any]) -> ArrayFile:
        """Write the table and the header, sync, and open the finished file.

        Raises:
            DamagedFileError: the table read back differs from what was written.
            OSError: the file cannot be written.
        """
        facts_json = json.dumps(facts).encode()
        front = facts_json + self._names
        table = front.ljust(_aligned(len(front)), b"\0") + self._ends.tobytes() + self._entries
        header = HEADER.pack(
            MAGIC, FORMAT, BYTE_ORDER, self._kind.encode(), self._name.encode(), self._size,
            len(facts_json), len(self._names), len(self._ends), crc32(table),
        ).ljust(DATA_AT - CHECKED.size, b"\0")  # fmt: skip
        fsio.write_at(self._descriptor, table, self._size)
        fsio.write_at(self._descriptor, header + CHECKED.pack(crc32(header)), 0)
        fsio.sync(self._descriptor)
        fsio.sync_folder(self._path.parent)
        self.close()
        return ArrayFile(self._path, self._kind, self._name)

    def close(self) -> None:
        """Close the file, finished or not."""
        if self._descriptor >= 0:
            fsio.close(self._descriptor)
            self._descriptor = -1


def checksum(name: bytes, note: int, content: bytes | memoryview) -> int:
    """Return the CRC-32 of a block with its name, size and note."""
    return crc32(content, crc32(name + ENTRY.pack(0, len(content), note, 0)))


def _read(descriptor: int, place: int, size: int) -> memoryview:
    block = memoryview(bytearray(size))
    if fsio.read_at(descriptor, block, place) < size:
        raise DamagedFileError("it is cut")
    return block


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
