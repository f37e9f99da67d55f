"""The cache of codes for the approximate first pass: a file beside the matrix, made from it.

It is derived and can be deleted at any time. Its name is in the database and changes in one commit; only the
file of that name counts, so a leftover, the file of another index or an older state of this one is never
used. A file is never changed, only replaced. Checksums tell what the disk made of it. It is read whole into
memory, 48 bytes a row of 384 dimensions, so nothing is mapped that could be cut.

The header, then the centroids, then the codes. Numbers are the machine's own and the order of the codes is
the library's own: an index does not travel, and another version of the library makes its own file.

Rows are never written twice, so no transaction is needed while it is made: the codes of what is there now
stay true. Before the file counts, some of its own rows are searched with it and without it: how many
candidates the second pass needs is measured on these vectors.

Opening an index only looks for the name. Reading the file, which loads a library, is for a thread that
nobody waits for; until it is read every vector is scanned.
"""

import re
import secrets
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import structlog

from memd import fsio
from memd.errors import NoSpaceError, StorageError
from memd.index.columns import Columns, Mask
from memd.index.cosine import Ids, cosines, with_newest
from memd.index.derived_file import Making
from memd.index.matrices import Matrices
from memd.index.vectors import Rows
from memd.index.writer import Writer

FILE_NAME = re.compile(r"first_pass\.[0-9a-f]{16}\.codes")

MAGIC = b"memdcode"
FORMAT = 1
BYTE_ORDER = 0x01020304
# magic, format, byte order, name, library; matrix, dimensions, rows, candidates; CRC-32 of what follows.
HEADER = struct.Struct("=8sII16s32sQQQQI")
CHECKED = struct.Struct("=I")  # CRC-32 of the header, behind it
DATA_AT = 128  # the header and its checksum fit in front
COMPARED = 256  # rows whose codes a check makes again; the checksum speaks for the others


class DamagedCodesError(Exception):
    """The file is not what was written, or not of this matrix and library."""


@dataclass(frozen=True, slots=True)
class CodesHeader:
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

    facts: CodesHeader
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


def header_of(facts: CodesHeader) -> bytes:
    """Return the first bytes of a file."""
    header = HEADER.pack(
        MAGIC, FORMAT, BYTE_ORDER, facts.name.encode(), facts.library.encode(),
        facts.matrix, facts.dim, facts.rows, facts.candidates, facts.crc,
    )  # fmt: skip
    return (header + CHECKED.pack(crc32(header))).ljust(DATA_AT, b"\0")


def facts_of(folder: Path, name: str) -> CodesHeader:
    """Return what the file *name* says of itself.

    Raises:
        DamagedFileError: its header is not as it was written, or it is another file.
        OSError: it is not there, or cannot be read.
    """
    descriptor = fsio.open_existing(folder / file_name(name))
    try:
        block = memoryview(bytearray(DATA_AT))
        if fsio.read_at(descriptor, block, 0) < DATA_AT:
            raise DamagedCodesError("it is cut")
    finally:
        fsio.close(descriptor)
    header = block[: HEADER.size]
    magic, version, order, *rest = HEADER.unpack(header)
    if (magic, version, order) != (MAGIC, FORMAT, BYTE_ORDER):
        raise DamagedCodesError("it is of another kind")
    if CHECKED.unpack_from(block, HEADER.size) != (crc32(header),):
        raise DamagedCodesError("its header is not what was written")
    facts = CodesHeader(rest[0].decode(), rest[1].rstrip(b"\0").decode(), *rest[2:])
    if facts.name != name:
        raise DamagedCodesError("it is another file")
    return facts


def is_of(facts: CodesHeader, matrix: int, rows: Rows) -> bool:
    """Tell whether a file is of the first *rows* of the matrix of that number."""
    return (facts.matrix, facts.dim) == (matrix, rows.dim) and 0 < facts.rows <= rows.count


def read(folder: Path, facts: CodesHeader) -> FirstPass:
    """Read the file of which these are the facts: 0.1 s for a million rows, and once 0.2 s for the library.

    Raises:
        DamagedFileError: it is not as it was written, or another version of the library wrote it.
        ImportError: the library cannot be loaded.
        OSError: it is not there, or cannot be read.
    """
    from memd.index import ann as codes  # noqa: PLC0415 - needs numpy

    if facts.library != codes.library():
        raise DamagedCodesError("it is of another version of the library")
    block = memoryview(bytearray(codes.size_bytes(facts.rows, facts.dim)))
    if facts_of(folder, facts.name) != facts:
        raise DamagedCodesError("it was exchanged")
    descriptor = fsio.open_existing(folder / file_name(facts.name))
    try:
        has_length = fsio.size(descriptor) == DATA_AT + len(block)
        is_whole = has_length and fsio.read_at(descriptor, block, DATA_AT) == len(block)
    finally:
        fsio.close(descriptor)
    if not is_whole or crc32(block) != facts.crc:
        raise DamagedCodesError("its codes are not what was written")
    return FirstPass(facts, codes.Codes(facts.rows, facts.dim, block))


def flaw(folder: Path, found: FirstPass, rows: Rows) -> str:
    """Return what is wrong with codes that are in use, "" where nothing is found: for the check."""
    try:
        read(folder, found.facts)
    except (DamagedCodesError, OSError) as error:
        return str(error)
    wrong: int = found.codes.wrong(rows.buffer, COMPARED)
    return f"{wrong} of {COMPARED} do not stand for their rows" if wrong else ""


SLICE_ROWS = 8_192  # coded at once, whole blocks: 60 ms of one core, 12 MB
PROBES = 64  # rows that are searched to measure the recall: 640 chances to miss one of the ten nearest
CANDIDATES = 2_000  # 0.9 ms to look at; of the real vectors that were tried a quarter would do
MAX_CANDIDATES = 16_000  # more take longer than the first pass itself
# More than the 0.99 that is wanted: questions are a little further from their answers than rows from rows.
RECALL = 0.998


WHOLE = object()  # no piece is left


class TooRoughError(Exception):
    """The codes miss too many of the nearest vectors: the exact scan goes on."""


class CodesBuild(Making):
    """A file of codes that is being made.

    Its `step` also raises TooRoughError, there is no file for these vectors, and ImportError, the library
    cannot be loaded.
    """

    def __init__(self, folder: Path, matrix: int, rows: Rows) -> None:
        """Begin with the *rows* of the matrix of that number; the library is there."""
        self._name = secrets.token_hex(8)
        super().__init__(folder / file_name(self._name))
        self.made: FirstPass | None = None  # once it is whole
        self.rows = rows
        self.matrix = matrix
        self._size = DATA_AT
        self._crc = 0
        self._pieces = self._all_pieces()

    @property
    def _is_done(self) -> bool:
        return self.made is not None

    def _go_on(self, stop: float) -> None:
        while not self._given_up and next(self._pieces, WHOLE) is not WHOLE:
            if time.monotonic() > stop:
                break

    def _all_pieces(self) -> Iterator[None]:
        from memd.index import ann as codes  # noqa: PLC0415 - needs numpy

        self._descriptor = fsio.create(self.path)
        table = codes.table(self.rows.buffer, self.rows.count, self.rows.dim)
        coder = codes.Coder(table)
        self._write(coder.centroids)
        probes = codes.Probes(table, PROBES)
        for start in range(0, len(table), SLICE_ROWS):
            yield
            part = table[start : start + SLICE_ROWS]
            self._write(coder.coded(part))
            probes.look(part)
        del coder  # the codes are in memory once, not twice
        yield
        made = codes.Codes(len(table), self.rows.dim, self._read_back())
        candidates = CANDIDATES
        while probes.recall(made, candidates) < RECALL:
            candidates *= 2
            if candidates > MAX_CANDIDATES:
                raise TooRoughError
            yield
        facts = CodesHeader(
            self._name, codes.library(), self.matrix, self.rows.dim, len(table), candidates, self._crc
        )
        fsio.write_at(self._descriptor, header_of(facts), 0)
        fsio.sync(self._descriptor)
        fsio.sync_folder(self.path.parent)
        self._close()
        self.made = FirstPass(facts, made)

    def _write(self, block: bytes) -> None:
        fsio.write_at(self._descriptor, block, self._size)
        self._size += len(block)
        self._crc = crc32(block, self._crc)

    def _read_back(self) -> memoryview:
        block = memoryview(bytearray(self._size - DATA_AT))
        if fsio.read_at(self._descriptor, block, DATA_AT) < len(block) or crc32(block) != self._crc:
            raise StorageError(f"{self.path}: what was written is not what is read")
        return block


log = structlog.get_logger()

# Scanned exactly, so many rows of 384 dimensions take 3 ms where nobody else uses the memory, and 10 ms
# where others do; by their codes 1 ms.
MIN_ROWS = 1 << 16
# Rows beyond the file, which are scanned exactly, as a share of those in it: a fiftieth of a million is
# 1 ms of each query. All codes are made again, 10 s of one core for a million.
TAIL_SHARE = 1 / 50
BUSY_TAIL_SHARE = 1 / 4  # the same while there is other work: in a first import it is made ten times
NAMED = "first_pass_file"  # in meta: the name of the file that counts

Load = Callable[[], FirstPass]


class FirstPassKeeper:
    """The codes of one index. For the writing thread; `loaded` and `owns` are for any.

    What *publish* does with other codes is seen by the next query.
    """

    def __init__(
        self, folder: Path, writer: Writer, matrices: Matrices, publish: Callable[[FirstPass | None], None]
    ) -> None:
        self.loaded: FirstPass | None = None
        self._facts: CodesHeader | None = None  # of the file that counts
        self._folder = folder
        self._writer = writer
        self._matrices = matrices
        self._publish = publish
        self._building: CodesBuild | None = None
        self._refused = (0, 0)  # the matrix that could not be coded, and its rows then
        self._open()

    def owns(self, path: Path) -> bool:
        """Tell whether a file of the folder is the one that counts, or the one that is being made."""
        building, facts = self._building, self._facts
        return path.name in {
            building.path.name if building is not None else "",
            file_name(facts.name) if facts is not None else "",
        }

    def stored(self) -> Load | None:
        """Return what reads the file that is there, for any thread; None where there is nothing to read.

        `take` follows, or `drop` if it raises DamagedFileError or OSError.
        """
        facts = self._facts
        if facts is None or self.loaded is not None or not can_code(facts.dim):
            return None
        return partial(read, self._folder, facts)

    def take(self, found: FirstPass) -> None:
        """Let codes that were read be used, if they still count."""
        if found.facts == self._facts:
            self.loaded = found
            self._publish(found)

    def is_due(self, *, is_busy: bool) -> bool:
        """Tell whether a file should be made; *is_busy*: there is other work."""
        active = self._matrices.active
        if active is None or active.file.count < MIN_ROWS or not can_code(active.file.dim):
            return False
        rows = active.file.count
        matrix, then = self._refused
        if matrix == active.number and rows < 2 * then:
            return False
        covered = self.loaded.facts.rows if self.loaded is not None else 0
        return rows - covered > (BUSY_TAIL_SHARE if is_busy else TAIL_SHARE) * covered

    def begin(self) -> CodesBuild:
        """Begin to make a file; `adopt` follows when it is whole, `refuse` or `Building.abandon` else.

        Another one that was begun is given up.
        """
        active = self._matrices.active
        assert active is not None
        self.close()
        self._building = CodesBuild(self._folder, active.number, self._matrices.rows)
        return self._building

    def adopt(self, building: CodesBuild) -> bool:
        """Let a file that is whole take the place of the one before; False where its matrix is gone."""
        made = building.made
        is_whole = building is self._building and building.is_whole
        if made is None or not is_whole or not self._is_true(made.facts):
            building.abandon()
            return False
        try:
            with self._writer.transaction():
                self._writer.set(NAMED, made.facts.name)
        except BaseException:
            building.abandon()
            raise
        self._building = None
        self._change(made.facts, made)
        return True

    def refuse(self, building: CodesBuild) -> None:
        """Remember that these vectors could not be coded: tried again when there are twice as many."""
        self._refused = (building.matrix, building.rows.count)

    def drop(self) -> None:
        """Do without a file."""
        with self._writer.transaction():
            self._writer.set(NAMED, None)
        self._change(None, None)

    def look(self) -> None:
        """Let go of a file whose matrix does not answer any more; the caller publishes."""
        if self._facts is not None and not self._is_true(self._facts):
            self._remove(self._facts)
            self._facts = self.loaded = None

    def close(self) -> None:
        """Give up what is being made; the file that is there stays."""
        if self._building is not None:
            self._building.abandon()

    def _is_true(self, facts: CodesHeader) -> bool:
        active = self._matrices.active
        return active is not None and is_of(facts, active.number, self._matrices.rows)

    def _change(self, facts: CodesHeader | None, loaded: FirstPass | None) -> None:
        old, self._facts, self.loaded = self._facts, facts, loaded
        self._publish(loaded)
        if old is not None:
            self._remove(old)

    def _open(self) -> None:
        name = self._writer.get(NAMED)
        if name is not None:
            self._facts = self._facts_of(str(name))
            if self._facts is None:
                with suppress(NoSpaceError), self._writer.transaction():
                    self._writer.set(NAMED, None)
        for path in self._folder.iterdir():
            if FILE_NAME.fullmatch(path.name) and not self.owns(path):
                log.warning("stray_codes_removed")
                with suppress(OSError):  # a folder of that name is none of ours
                    fsio.remove(path)

    def _facts_of(self, name: str) -> CodesHeader | None:
        if not FILE_NAME.fullmatch(file_name(name)):  # a bit that flipped
            return None
        try:
            return facts_of(self._folder, name)  # `look` tells whether they are true
        except FileNotFoundError:
            log.info("codes_missing")  # deleted, or of a matrix that another one took the place of
        except (DamagedCodesError, OSError) as error:
            log.warning("codes_not_usable", kind=type(error).__name__)
        return None

    def _remove(self, facts: CodesHeader) -> None:
        with suppress(OSError):  # a name that stays is removed at the next start
            fsio.remove(self._folder / file_name(facts.name))
