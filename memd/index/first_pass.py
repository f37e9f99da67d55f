"""Where are the codes for the first pass over many vectors? In a file beside the matrix, made from it.

It is derived and can be deleted at any time. Its name is in the database, and only the file of that name
counts, so one that was left over, that is of another index or of an older state of this one is none. It is
never changed: another one takes its place. Checksums tell what the disk made of it; it is read whole into
memory, 48 bytes a row of 384 dimensions, so nothing is mapped that could be cut.

The header, then the centroids, then the codes. Numbers are the machine's own and the order of the codes is
the library's own: an index does not travel, and another version of the library makes its own file.
"""

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from memd import fsio
from memd.index.columns import Columns, Mask
from memd.index.cosine import Ids, cosines, with_newest
from memd.index.vectors import Rows

FILE_NAME = re.compile(r"first_pass\.[0-9a-f]{16}\.codes")

MAGIC = b"memdcode"
FORMAT = 1
BYTE_ORDER = 0x01020304
# magic, format, byte order, name, library; matrix, dimensions, rows, candidates; CRC-32 of what follows.
HEADER = struct.Struct("=8sII16s32sQQQQI")
CHECKED = struct.Struct("=I")  # CRC-32 of the header, behind it
DATA_AT = 128  # the header and its checksum fit in front
COMPARED = 256  # rows whose codes a check makes again; the checksum speaks for the others


class DamagedFileError(Exception):
    """The file is not what was written, or not of this matrix and library."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file's header says."""

    name: str  # 16 hexadecimal digits, in its file name and in the database
    library: str  # name and version
    matrix: int  # the number of the matrix that it was made from
    dim: int
    rows: int  # the first of that matrix
    candidates: int  # that the second pass has to look at, of these vectors
    crc: int  # of all that follows the header


@dataclass(frozen=True, slots=True)
class FirstPass:
    """The codes of one file, in memory. For any thread."""

    facts: Facts
    codes: Any  # memd.index.ann.Codes; that module is not there without numpy

    def candidates(self, rows: Rows, query_vec: bytes, *, columns: Columns, mask: Mask, limit: int) -> Ids:
        """Return chunks under *mask* that may be among the *limit* nearest, in any order.

        By their codes; those whose rows came after the file, by their cosines.
        """
        older: Ids = self.codes.chunks(query_vec, self.facts.candidates, columns, mask)
        if rows.count == self.facts.rows:
            return older
        scores = cosines(rows.buffer, rows.count, rows.dim, query_vec, self.facts.rows)
        return with_newest(older, scores, columns, mask, first=self.facts.rows, limit=limit)


def can_code(dim: int) -> bool:
    """Tell whether there is a library for vectors of so many dimensions; it is not loaded for that."""
    try:
        from memd.index import ann as codes  # noqa: PLC0415 - needs numpy
    except ImportError:
        return False
    return codes.is_there() and codes.fits(dim)


def file_name(name: str) -> str:
    """Return how the file of that name is called."""
    return f"first_pass.{name}.codes"


def header_of(facts: Facts) -> bytes:
    """Return the first bytes of a file."""
    header = HEADER.pack(
        MAGIC, FORMAT, BYTE_ORDER, facts.name.encode(), facts.library.encode(),
        facts.matrix, facts.dim, facts.rows, facts.candidates, facts.crc,
    )  # fmt: skip
    return (header + CHECKED.pack(crc32(header))).ljust(DATA_AT, b"\0")


def facts_of(folder: Path, name: str) -> Facts:
    """Return what the file *name* says of itself.

    Raises:
        DamagedFileError: its header is not as it was written, or it is another file.
        OSError: it is not there, or cannot be read.
    """
    descriptor = fsio.open_existing(folder / file_name(name))
    try:
        block = memoryview(bytearray(DATA_AT))
        if fsio.read_at(descriptor, block, 0) < DATA_AT:
            raise DamagedFileError("it is cut")
    finally:
        fsio.close(descriptor)
    header = block[: HEADER.size]
    magic, version, order, *rest = HEADER.unpack(header)
    if (magic, version, order) != (MAGIC, FORMAT, BYTE_ORDER):
        raise DamagedFileError("it is of another kind")
    if CHECKED.unpack_from(block, HEADER.size) != (crc32(header),):
        raise DamagedFileError("its header is not what was written")
    facts = Facts(rest[0].decode(), rest[1].rstrip(b"\0").decode(), *rest[2:])
    if facts.name != name:
        raise DamagedFileError("it is another file")
    return facts


def is_of(facts: Facts, matrix: int, rows: Rows) -> bool:
    """Tell whether a file is of the first *rows* of the matrix of that number."""
    return (facts.matrix, facts.dim) == (matrix, rows.dim) and 0 < facts.rows <= rows.count


def read(folder: Path, facts: Facts) -> FirstPass:
    """Read the file of which these are the facts: 0.1 s for a million rows, and once 0.2 s for the library.

    Raises:
        DamagedFileError: it is not as it was written, or another version of the library wrote it.
        ImportError: the library cannot be loaded.
        OSError: it is not there, or cannot be read.
    """
    from memd.index import ann as codes  # noqa: PLC0415 - needs numpy

    if facts.library != codes.library():
        raise DamagedFileError("it is of another version of the library")
    block = memoryview(bytearray(codes.size_bytes(facts.rows, facts.dim)))
    if facts_of(folder, facts.name) != facts:
        raise DamagedFileError("it was exchanged")
    descriptor = fsio.open_existing(folder / file_name(facts.name))
    try:
        has_length = fsio.size(descriptor) == DATA_AT + len(block)
        is_whole = has_length and fsio.read_at(descriptor, block, DATA_AT) == len(block)
    finally:
        fsio.close(descriptor)
    if not is_whole or crc32(block) != facts.crc:
        raise DamagedFileError("its codes are not what was written")
    return FirstPass(facts, codes.Codes(facts.rows, facts.dim, block))


def flaw(folder: Path, found: FirstPass, rows: Rows) -> str:
    """Return what is wrong with codes that are in use, "" where nothing is found: for the check."""
    try:
        read(folder, found.facts)
    except (DamagedFileError, OSError) as error:
        return str(error)
    wrong: int = found.codes.wrong(rows.buffer, COMPARED)
    return f"{wrong} of {COMPARED} do not stand for their rows" if wrong else ""
