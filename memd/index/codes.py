"""The file of codes for the coarse stage of vector search: in faiss's own format, with a CRC-32.

A code is a row compressed to a sixteenth of its size (`memd.index.ann`). A search scans the codes of all rows
for candidates and then scores these by their rows: codes select candidates and never affect a score. Before a
file is used, sample rows are searched with and without it: this measures how many candidates these vectors
need, and if the recall of the codes is too low, no file is made.

The database names the file in use, with its checksum: faiss notices few of the bits that may flip. A file is
never changed, only replaced; at any trouble it is dropped, and made again when there is time. Its format is
private to the version of faiss that wrote it: another version makes a new one. Reading it loads faiss, so a
background thread does it; until then every vector is scanned. Rows are never overwritten, so making a file
needs no transaction; rows that are added meanwhile are not covered.
"""

import json
import re
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from zlib import crc32

import structlog

from memd import fsio
from memd.errors import NoSpaceError, StorageError, storage_error
from memd.index import ann, vectors
from memd.index.ann import Codes
from memd.index.matrices import Matrices
from memd.index.vectors import Rows
from memd.index.writer import Writer

log = structlog.get_logger()

# An exact scan of this many rows of 384 dimensions takes 3 ms on an idle machine and 10 ms under memory load;
# with codes 1 ms.
MIN_ROWS = 1 << 16
# Rows added after the file was made are scanned exactly: a fiftieth of a million takes 1 ms per query. A new
# file encodes all rows again: 10 s of one core for a million.
NEW_SHARE = 1 / 50
BUSY_NEW_SHARE = 1 / 4  # while there is other work: a first import makes ten files
SLICE_ROWS = 8_192  # encoded at once, whole blocks: 60 ms of one core, 12 MB
PROBES = 64  # sample rows for measuring recall: 640 chances to miss one of the ten nearest
CANDIDATES = 2_000  # 0.9 ms to score; for the real vectors measured, a quarter sufficed
MAX_CANDIDATES = 16_000  # more take longer than the scan of the codes
# Above the target of 0.99: queries are a little further from their answers than rows are from each other.
RECALL = 0.998
ROWS_COMPARED = 200  # rows that a check encodes again: a checksum says nothing about how a file was made
# Bytes written between two syncs: a commit of a save waits for a sync in progress, some 20 ms.
SYNCED_BYTES = 16 * 1024 * 1024
FILE_NAME = re.compile(r"codes\.[0-9a-f]{16}\.faiss")
NAMED = "codes"  # key in meta: the file in use, as JSON


class UnusableFileError(Exception):
    """The file is not what was written, or another version of the library wrote it."""


UNUSABLE = (UnusableFileError, ImportError, OSError)  # raised by reading


class UnderivableError(Exception):
    """No file can be made from the present rows."""


@dataclass(frozen=True, slots=True)
class CodesFile:
    """One file, as the database describes it. For any thread."""

    path: Path
    crc: int
    library: str  # name and version
    matrix: int  # number of the matrix that it was made from
    dim: int
    covered: int  # number of rows covered: the first ones of that matrix
    candidates: int  # to score by their rows, measured on these vectors

    def read(self) -> Codes:
        """Return the codes: 0.1 s for a million rows, and once 0.2 s for the library. Raises `UNUSABLE`."""
        if self.library != ann.library():
            raise UnusableFileError("it is of another version of the library")
        content, place = self._content(), 0

        def read(size: int) -> bytes:
            nonlocal place
            place += size
            return bytes(content[place - size : place])

        return Codes.read(read, self.covered, self.candidates)

    def flaw(self, codes: Codes, rows: Rows) -> str:
        """Return a description of what is wrong with the file or its *codes* in use, "" if nothing is."""
        try:
            self._content()
        except UNUSABLE as error:
            return str(error)
        wrong = codes.wrong(rows.buffer, ROWS_COMPARED)
        return f"{wrong} of {ROWS_COMPARED} rows have other codes" if wrong else ""

    def _content(self) -> memoryview:
        """Read the file at once: the library must not see bytes that were not compared with the checksum."""
        descriptor = fsio.open_existing(self.path)
        try:
            content = memoryview(bytearray(fsio.size(descriptor)))
            fsio.read_at(descriptor, content, 0)
        finally:
            fsio.close(descriptor)
        if crc32(content) != self.crc:
            raise UnusableFileError("it is not what was written")
        return content


def can_code(dim: int) -> bool:
    """Return whether the library is installed and can code *dim* dimensions, without loading it."""
    return ann.is_there() and ann.fits(dim)


class CodesBuild:
    """The making of one file. `step` is for one thread at a time, `abandon` for any.

    A file that is abandoned during a step may be left; the next opening of the index removes it.
    """

    def __init__(self, folder: Path, matrix: int, rows: Rows) -> None:
        """Take the *rows* of the matrix with that number; nothing is created yet."""
        self.path = folder / f"codes.{secrets.token_hex(8)}.faiss"
        self.made: tuple[CodesFile, Codes] | None = None  # set when the file is complete and synced
        self.is_taken = False  # by the keeper: it stays
        self._matrix = matrix
        self._rows = rows
        self._pieces = self._all_pieces()

    def step(self, budget_s: float) -> bool:
        """Work for about *budget_s*; return True when the file is complete.

        Raises:
            MemdError: the disk is full or fails.
            UnderivableError: no file can be made from these rows.
        """
        stop = time.monotonic() + budget_s
        try:
            while self.made is None:
                self.made = next(self._pieces)
                if time.monotonic() > stop:
                    break
        except BaseException as error:
            self.abandon()
            if isinstance(error, UnusableFileError):
                raise StorageError(f"{self.path}: what was written is not what is read: {error}") from error
            if isinstance(error, OSError):
                raise storage_error(str(self.path), error) from error
            raise
        return self.made is not None

    def abandon(self) -> None:
        """Remove the file, unless it is taken."""
        if not self.is_taken:
            self.made = None
            fsio.remove_leftover(self.path)

    def _all_pieces(self) -> Generator[tuple[CodesFile, Codes] | None]:
        """Train the centroids, encode slice by slice, and measure how many candidates are needed."""
        rows = self._rows
        table = vectors.table(rows.buffer, rows.count, rows.dim)
        with closing(_Output(self.path)) as out:
            try:
                coder = ann.Coder(table)
                library = ann.library()
            except ImportError as error:
                raise UnderivableError(f"the library cannot be loaded: {error}") from error
            probes = ann.Probes(table, PROBES)
            for first, end in ann.stripes(rows.count):
                for start in range(first, end, SLICE_ROWS):
                    yield None
                    part = table[start : min(start + SLICE_ROWS, end)]
                    coder.add(part)
                    probes.look(part)
                coder.write(out.write)
            out.finish()
        del coder
        yield None
        made = CodesFile(self.path, out.crc, library, self._matrix, rows.dim, rows.count, CANDIDATES)
        codes = made.read()
        while probes.recall(codes, made.candidates) < RECALL:
            made = replace(made, candidates=2 * made.candidates)
            if made.candidates > MAX_CANDIDATES:
                raise UnderivableError("the codes miss too many of the nearest vectors")
            yield None
        yield made, replace(codes, candidates=made.candidates)


class _Output:
    """A new file and the checksum of what is written to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = fsio.create(path)
        self._size = self._synced = 0
        self.crc = 0

    def write(self, block: bytes) -> None:
        """Append a block."""
        fsio.write_at(self._descriptor, block, self._size)
        self.crc = crc32(block, self.crc)
        self._size += len(block)
        if self._size - self._synced > SYNCED_BYTES:
            fsio.sync(self._descriptor)
            self._synced = self._size

    def finish(self) -> None:
        """Sync the file and its name."""
        fsio.sync(self._descriptor)
        fsio.sync_folder(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        fsio.close(self._descriptor)


class CodesKeeper:
    """Maintains the file of codes for the active matrix. For the writing thread; `owns` is for any.

    After *publish* was called with codes or None, the next query uses that.
    """

    def __init__(
        self, folder: Path, writer: Writer, matrices: Matrices, publish: Callable[[Codes | None], None]
    ) -> None:
        self.current: CodesFile | None = None  # the file that is named in the database
        self.usable: Codes | None = None  # its codes, once they are read
        self._folder = folder
        self._writer = writer
        self._matrices = matrices
        self._publish = publish
        self._building: CodesBuild | None = None
        self._open()

    def owns(self, path: Path) -> bool:
        """Return whether *path* is the file in use or the one being made."""
        return path in {one.path for one in (self._building, self.current) if one is not None}

    def is_due(self, *, is_busy: bool) -> bool:
        """Return whether a file should be made; *is_busy*: there is other work."""
        active = self._matrices.active
        if active is None or active.count < MIN_ROWS or not can_code(active.dim):
            return False
        covered = self.current.covered if self.current is not None else 0
        return active.count - covered > (BUSY_NEW_SHARE if is_busy else NEW_SHARE) * covered

    def begin(self) -> CodesBuild:
        """Begin a file; `adopt` follows when it is complete, otherwise `CodesBuild.abandon`.

        A build in progress is abandoned.
        """
        self.close()
        active = self._matrices.active
        assert active is not None
        self._building = CodesBuild(self._folder, active.number, self._matrices.rows)
        return self._building

    def adopt(self, building: CodesBuild) -> bool:
        """Replace the file by the finished one; return False if that has become wrong meanwhile."""
        made = building.made
        if made is None or building is not self._building or not self._is_true(made[0]):
            building.abandon()
            return False
        building.is_taken = True
        self._name(made[0])
        self._building = None
        self._change(*made)
        return True

    def use(self, found: CodesFile, codes: Codes) -> None:
        """Let queries use the codes that were read from a file, if it is still the current one."""
        if found is self.current:
            self.usable = codes
            self._publish(codes)

    def drop(self) -> None:
        """Stop using the file and remove it."""
        self._name(None)
        self._change(None, None)

    def look(self) -> None:
        """Drop the file if it has become wrong; the caller publishes."""
        if self.current is not None and not self._is_true(self.current):
            fsio.remove_leftover(self.current.path)
            self.current = self.usable = None

    def close(self) -> None:
        """Abandon the build in progress; the file in use stays."""
        if self._building is not None:
            self._building.abandon()
            self._building = None

    def _is_true(self, found: CodesFile) -> bool:
        """Return whether a file covers the first rows of the active matrix."""
        active, rows = self._matrices.active, self._matrices.rows
        is_of_matrix = active is not None and (found.matrix, found.dim) == (active.number, rows.dim)
        return is_of_matrix and 0 < found.covered <= rows.count

    def _name(self, found: CodesFile | None) -> None:
        named = None if found is None else json.dumps(asdict(found) | {"path": found.path.name})
        self._writer.store(NAMED, named)

    def _change(self, found: CodesFile | None, codes: Codes | None) -> None:
        old, self.current, self.usable = self.current, found, codes
        self._publish(codes)
        if old is not None:
            fsio.remove_leftover(old.path)

    def _open(self) -> None:
        named = self._writer.get(NAMED)
        if named is not None:
            with suppress(ValueError, TypeError, AttributeError, KeyError):  # it is not described well
                fields = json.loads(named)
                path = self._folder / fields.pop("path")
                if FILE_NAME.fullmatch(path.name) and path.exists():
                    self.current = CodesFile(path, **fields)
            if self.current is None:
                log.info("codes_missing")
                with suppress(NoSpaceError):
                    self._name(None)
        for path in self._folder.glob("codes.*"):
            if FILE_NAME.fullmatch(path.name) and not self.owns(path):
                log.warning("stray_codes_removed")
                fsio.remove_leftover(path)
