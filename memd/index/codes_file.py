"""The file of codes for the coarse stage of vector search in large indexes, made from the rows of a matrix.

A code is a row compressed to a sixteenth of its size (`memd.index.ann`). A search scans the codes of all rows
for candidates and then scores these by their rows: codes select candidates and never affect a score. Before a
file is used, sample rows are searched with and without it: this measures how many candidates these vectors
need, and if the recall of the codes is too low, no file is made.

The format of the codes is private to the version of the library that wrote them: another version makes new
ones. Reading them loads the library, so a background thread does it; until then every vector is scanned.
Rows are never overwritten, so making a file needs no transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memd.index.array_file import ArrayFile, ArrayFileWriter, DamagedFileError
from memd.index.derived_file import Build, DerivedFileKeeper, UnderivableError
from memd.index.vectors import Ids, cosines, with_newest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from pathlib import Path

    from memd.index.columns import Columns, Mask
    from memd.index.matrices import Matrices
    from memd.index.snapshot import View
    from memd.index.vectors import Rows
    from memd.index.writer import Writer

KIND = "codes"
# An exact scan of this many rows of 384 dimensions takes 3 ms on an idle machine and 10 ms under memory load;
# with codes 1 ms.
MIN_ROWS = 1 << 16
# Rows added after the file was made are scanned exactly: a fiftieth of a million takes 1 ms per query. A new
# file encodes all rows again: 10 s of one core for a million.
TAIL_SHARE = 1 / 50
SLICE_ROWS = 8_192  # encoded at once, whole blocks: 60 ms of one core, 12 MB
PROBES = 64  # sample rows for measuring recall: 640 chances to miss one of the ten nearest
CANDIDATES = 2_000  # 0.9 ms to score; for the real vectors measured, a quarter sufficed
MAX_CANDIDATES = 16_000  # more take longer than the scan of the codes
# Above the target of 0.99: queries are a little further from their answers than rows are from each other.
RECALL = 0.998


class CodesFile:
    """One file; its codes are in memory after `load`. For any thread."""

    def __init__(self, file: ArrayFile) -> None:
        self.file = file
        facts = file.facts
        self.library: str = facts["library"]  # name and version
        self.matrix: int = facts["matrix"]  # number of the matrix that it was made from
        self.dim: int = facts["dim"]
        self.covered: int = facts["rows"]  # number of rows covered: the first ones of that matrix
        self.candidates: int = facts["candidates"]  # to score by their rows, measured on these vectors
        self._codes: Any = None  # memd.index.ann.Codes; that module cannot be imported without numpy

    @property
    def is_loaded(self) -> bool:
        """Whether the codes are in memory."""
        return self._codes is not None

    def load(self) -> None:
        """Read the codes: 0.1 s for a million rows, and once 0.2 s for the library.

        Without the library nothing is read.

        Raises:
            DamagedFileError: the codes are damaged, or another version of the library wrote them.
            ImportError: the library cannot be loaded.
            OSError: the file cannot be read.
        """
        if can_code(self.dim):
            self._codes = self._read()

    def nearest(self, rows: Rows, query_vec: bytes, *, columns: Columns, mask: Mask, limit: int) -> Ids:
        """Return chunks under *mask* that may be among the *limit* nearest, in any order.

        Rows covered by the file are selected by code, newer rows by their cosines.
        """
        older: Ids = self._codes.chunks(query_vec, self.candidates, columns, mask)
        if rows.count == self.covered:
            return older
        scores = cosines(rows.buffer, rows.count, rows.dim, query_vec, self.covered)
        return with_newest(older, scores, columns, mask, first=self.covered, limit=limit)

    def wrong(self, view: View, count: int, ends: Callable[[], None]) -> int:
        """Return how many of *count* evenly spaced rows do not match their codes."""
        ends()
        found: int = self._codes.wrong(view.snapshot.rows.buffer, count)
        return found

    def _read(self) -> Any:
        from memd.index import ann  # noqa: PLC0415 - needs numpy

        if self.library != ann.library():
            raise DamagedFileError("it is of another version of the library")
        file = self.file.reopened()  # its table may have been damaged since, too
        return ann.Codes([file.copied(name) for name in file.names()])


def can_code(dim: int) -> bool:
    """Return whether the library is installed and can code *dim* dimensions, without loading it."""
    try:
        from memd.index import ann  # noqa: PLC0415 - needs numpy
    except ImportError:
        return False
    return ann.is_there() and ann.fits(dim)


class CodesBuild(Build[CodesFile]):
    """Makes a file of codes for the *rows* of the matrix with that number."""

    def __init__(self, folder: Path, matrix: int, rows: Rows) -> None:
        super().__init__(folder, KIND)
        self._matrix = matrix
        self._rows = rows

    def pieces(self, out: ArrayFileWriter) -> Iterator[CodesFile | None]:
        """Train the centroids, encode slice by slice, and measure how many candidates are needed."""
        from memd.index import ann  # noqa: PLC0415 - needs numpy

        rows = self._rows
        table = ann.table(rows.buffer, rows.count, rows.dim)
        try:
            coder = ann.Coder(table)
            library = ann.library()
        except ImportError as error:
            raise UnderivableError(f"the library cannot be loaded: {error}") from error
        probes = ann.Probes(table, PROBES)
        stripes = []
        for number, (first, end) in enumerate(ann.stripes(rows.count)):
            for start in range(first, end, SLICE_ROWS):
                yield None
                part = table[start : min(start + SLICE_ROWS, end)]
                coder.add(part)
                probes.look(part)
            stripes.append(coder.taken())
            out.add(b"stripe %d" % number, end - first, stripes[-1])
        del coder
        yield None
        codes = ann.Codes(stripes)
        candidates = CANDIDATES
        while probes.recall(codes, candidates) < RECALL:
            candidates *= 2
            if candidates > MAX_CANDIDATES:
                raise UnderivableError("the codes miss too many of the nearest vectors")
            yield None
        del codes, stripes  # so that the codes are not in memory twice when they are read back
        made = CodesFile(
            out.finish(
                {"library": library, "matrix": self._matrix, "dim": rows.dim, "rows": rows.count}
                | {"candidates": candidates}
            )
        )
        made.load()
        yield made


class CodesKeeper(DerivedFileKeeper[CodesFile]):
    """Maintains the file of codes for the active matrix. For the writing thread."""

    kind = KIND
    tail_share = TAIL_SHARE

    def __init__(
        self,
        folder: Path,
        writer: Writer,
        publish: Callable[[CodesFile | None], None],
        *,
        matrices: Matrices,
    ) -> None:
        self._matrices = matrices
        super().__init__(folder, writer, publish)

    def opened(self, file: ArrayFile) -> CodesFile:
        """Return the object that queries use, not yet loaded."""
        return CodesFile(file)

    def is_true(self, found: CodesFile) -> bool:
        """Return whether the file covers the first rows of the active matrix."""
        rows = self._matrices.rows
        is_of_matrix = (found.matrix, found.dim) == (self.base(), rows.dim)
        return is_of_matrix and 0 < found.covered <= rows.count

    def base(self) -> Hashable:
        """Return the number of the active matrix, None if there is none."""
        active = self._matrices.active
        return active.number if active is not None else None

    def end(self) -> int | None:
        """Return the number of rows; None if there are too few, or if they cannot be coded."""
        active = self._matrices.active
        if active is None or active.file.count < MIN_ROWS or not can_code(active.file.dim):
            return None
        return active.file.count

    def build(self, folder: Path) -> CodesBuild:
        """Return the build of a new file."""
        active = self._matrices.active
        assert active is not None
        return CodesBuild(folder, active.number, self._matrices.rows)
