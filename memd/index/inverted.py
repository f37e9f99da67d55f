"""Where do the frequent terms stand? In a file beside the database, made from FTS5 and mapped read-only.

It is a copy that can be deleted at any time. Its name is in the database, and only the file of that name
counts, so one that was left over, that is of another index or of an older state of this one is none. It is
never changed: another one takes its place. What the disk makes of it is noticed by checksums, those of a
term's postings when they are first asked for.

The postings, then the keys by their bytes, where each key ends, and an entry for each; the header says
where they are. Numbers are the machine's own: an index does not travel.
"""

import mmap
import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import structlog

from memd import fsio
from memd.index.posting_list import Part, decoded

log = structlog.get_logger()

FILE_NAME = re.compile(r"postings\.[0-9a-f]{16}\.bin")

MAGIC = b"memdpost"
FORMAT = 1
# magic, format, byte order, name; last id, chunks, terms; where keys, their ends and entries begin; CRC-32
# from the keys to the end of the file.
HEADER = struct.Struct("=8sII16sQQQQQQI")
ENTRY = struct.Struct("=QIII")  # place; documents, whether dense, checksum
BYTE_ORDER = 0x01020304
CHECKED = struct.Struct("=I")  # CRC-32 of the header, behind it
DATA_AT = 128  # the header and its checksum fit in front
ALIGNED = 8  # bytes: arrays begin at whole numbers
BEGINNING = b"\xff"  # ends the key of all terms that begin so: behind those, and no byte of UTF-8


class Stored(NamedTuple):
    """What the file has of one term."""

    part: Part
    documents: int  # chunks, live when the file was made or not


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file's header says."""

    name: str  # 16 hexadecimal digits, in its file name and in the database
    last: int  # all chunks up to this id are covered
    chunks: int  # how many of them were there
    terms: int
    keys_at: int
    ends_at: int
    entries_at: int
    crc: int  # of all from the keys on


class DamagedFileError(Exception):
    """The file is not what was written."""


class Inverted:
    """One file, open. For any thread."""

    def __init__(self, path: Path, name: str) -> None:
        """Map the file at *path*.

        Raises:
            DamagedFileError: it is not the file *name*, or not as it was written.
            OSError: it is not there, or cannot be read.
        """
        descriptor = fsio.open_existing(path)
        try:
            size = fsio.size(descriptor)
            if size < DATA_AT:
                raise DamagedFileError("it is cut")
            self._map = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
        finally:
            fsio.close(descriptor)
        self._view = memoryview(self._map)
        self._facts = _facts_of(self._view, name)
        self._ends = self._view[self._facts.ends_at : self._facts.entries_at].cast("I")
        self._sound = bytearray(self._facts.terms)  # 1: its postings were compared with their checksum
        self.is_damaged = False  # found since it was opened: nothing more is read of it

    @property
    def name(self) -> str:
        """What the database calls it."""
        return self._facts.name

    @property
    def last(self) -> int:
        """The highest id that is covered."""
        return self._facts.last

    @property
    def chunks(self) -> int:
        """How many chunks up to that id there were when it was made."""
        return self._facts.chunks

    def find(self, term: tuple[str, bool], *, anew: bool = False) -> Stored | None:
        """Return the postings of a term up to `last`; None where it is too rare for the file.

        They are compared with their checksum when they are first asked for, and again for who asks *anew*.
        """
        wanted = key_of(term)
        number = bisect_left(range(self._facts.terms), wanted, key=self._key)
        if self.is_damaged or number == self._facts.terms or self._key(number) != wanted:
            return None
        if anew or not self._sound[number]:
            if not self._is_sound(number):
                log.warning("postings_damaged")
                self.is_damaged = True
                return None
            self._sound[number] = 1
        return self._stored(number)

    def terms(self) -> Iterator[tuple[str, bool]]:
        """Yield every term that it has."""
        for number in range(self._facts.terms):
            key = self._key(number)
            is_beginning = key.endswith(BEGINNING)
            yield key.removesuffix(BEGINNING).decode(), is_beginning

    def damaged_terms(self, ends: Callable[[], None]) -> int:
        """Return how many terms' postings are not what was written; *ends* is called for each."""
        count = 0
        for number in range(self._facts.terms):
            ends()
            count += not self._is_sound(number)
        return count

    def _is_sound(self, number: int) -> bool:
        place, documents, is_dense, crc = self._entry(number)
        stored = self._bytes(place, documents, is_dense)
        return checksum(self._key(number), documents, is_dense, stored) == crc

    def _stored(self, number: int) -> Stored:
        place, documents, is_dense, _ = self._entry(number)
        stored = self._bytes(place, documents, is_dense)
        return Stored(decoded(stored, documents, dense=bool(is_dense)), documents)

    def _bytes(self, place: int, documents: int, is_dense: int) -> memoryview:
        size = self._facts.last + 1 if is_dense else 5 * documents
        return self._view[place : place + size]

    def _key(self, number: int) -> bytes:
        ends, at = self._ends, self._facts.keys_at
        return bytes(self._view[at + (ends[number - 1] if number else 0) : at + ends[number]])

    def _entry(self, number: int) -> tuple[int, int, int, int]:
        found: tuple[int, int, int, int] = ENTRY.unpack_from(
            self._view, self._facts.entries_at + number * ENTRY.size
        )
        return found


def file_name(name: str) -> str:
    """Return how the file of that name is called."""
    return f"postings.{name}.bin"


def key_of(term: tuple[str, bool]) -> bytes:
    """Return what a term, or all that begin so, stands under."""
    text, is_beginning = term
    return text.encode() + (BEGINNING if is_beginning else b"")


def checksum(key: bytes, documents: int, is_dense: int, stored: bytes | memoryview) -> int:
    """Return the CRC-32 of postings and of what is said of them."""
    return crc32(stored, crc32(key + ENTRY.pack(0, documents, is_dense, 0)))


def header_of(facts: Facts) -> bytes:
    """Return the first bytes of a file."""
    header = HEADER.pack(
        MAGIC, FORMAT, BYTE_ORDER, facts.name.encode(), facts.last, facts.chunks, facts.terms,
        facts.keys_at, facts.ends_at, facts.entries_at, facts.crc,
    )  # fmt: skip
    return header + CHECKED.pack(crc32(header))


def _facts_of(view: memoryview, name: str) -> Facts:
    header = view[: HEADER.size]
    magic, version, order, *rest = HEADER.unpack(header)
    if (magic, version, order) != (MAGIC, FORMAT, BYTE_ORDER):
        raise DamagedFileError("it is of another kind")
    if CHECKED.unpack_from(view, HEADER.size) != (crc32(header),):
        raise DamagedFileError("its header is not what was written")
    facts = Facts(rest[0].decode(), *rest[1:])
    if facts.name != name:
        raise DamagedFileError("it is another file")
    if crc32(view[facts.keys_at :]) != facts.crc:
        raise DamagedFileError("it is cut, or its keys are not what was written")
    return facts
