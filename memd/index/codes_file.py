"""The file of codes: what the coarse search among very many vectors reads, made from the rows of the matrix.

A code is a row rounded to a sixteenth of its size (`memd.index.ann`). A search reads the codes of all rows,
which leaves some candidates, and those are scored by their rows: so the codes choose who is looked at, never
what the score is. Before a file counts, some rows are searched with it and without it: how many candidates
are needed is measured on these vectors, and where the codes are too rough there is no file.

How codes lie in the file is the affair of the library that made them: another version makes its own. Reading
them loads the library, so it is for a thread that nobody waits for; until then every vector is scanned. Rows
are never written twice, so no transaction is needed while a file is made.
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
# Scanned exactly, so many rows of 384 dimensions take 3 ms where nobody else uses the memory, and 10 ms
# where others do; by their codes 1 ms.
MIN_ROWS = 1 << 16
# Rows beyond the file are scanned exactly: a fiftieth of a million is 1 ms of each query. All codes are made
# again, 10 s of one core for a million.
TAIL_SHARE = 1 / 50
SLICE_ROWS = 8_192  # coded at once, whole blocks: 60 ms of one core, 12 MB
PROBES = 64  # rows that are searched to measure the recall: 640 chances to miss one of the ten nearest
CANDIDATES = 2_000  # 0.9 ms to look at; of the real vectors that were tried a quarter would do
MAX_CANDIDATES = 16_000  # more take longer than the codes themselves
# More than the 0.99 that is wanted: questions are a little further from their answers than rows from rows.
RECALL = 0.998


class CodesFile:
    """One file; its codes are in memory once it is loaded. For any thread."""

    def __init__(self, file: ArrayFile) -> None:
        self.file = file
        facts = file.facts
        self.library: str = facts["library"]  # name and version
        self.matrix: int = facts["matrix"]  # the number of the matrix that it was made from
        self.dim: int = facts["dim"]
        self.covered: int = facts["rows"]  # the first of that matrix
        self.candidates: int = facts["candidates"]  # to be scored by their rows, of these vectors
        self._codes: Any = None  # memd.index.ann.Codes; that module is not there without numpy

    @property
    def is_loaded(self) -> bool:
        """Whether the codes are in memory."""
        return self._codes is not None

    def load(self) -> None:
        """Read the codes: 0.1 s for a million rows, and once 0.2 s for the library.

        Where no library is installed, nothing is read.

        Raises:
            DamagedFileError: they are not what was written, or another version of the library wrote them.
            ImportError: the library cannot be loaded.
            OSError: they cannot be read.
        """
        if can_code(self.dim):
            self._codes = self._read()

    def nearest(self, rows: Rows, query_vec: bytes, *, columns: Columns, mask: Mask, limit: int) -> Ids:
        """Return chunks under *mask* that may be among the *limit* nearest, in any order.

        By their codes; those whose rows came after the file, by their cosines.
        """
        older: Ids = self._codes.chunks(query_vec, self.candidates, columns, mask)
        if rows.count == self.covered:
            return older
        scores = cosines(rows.buffer, rows.count, rows.dim, query_vec, self.covered)
        return with_newest(older, scores, columns, mask, first=self.covered, limit=limit)

    def wrong(self, view: View, count: int, ends: Callable[[], None]) -> int:
        """Return how many of *count* rows, chosen evenly, have another code than is made of them now."""
        ends()
        found: int = self._codes.wrong(view.snapshot.rows.buffer, count)
        return found

    def _read(self) -> Any:
        from memd.index import ann  # noqa: PLC0415 - needs numpy

        if self.library != ann.library():
            raise DamagedFileError("it is of another version of the library")
        file = self.file.reopened()  # what it says of itself may have been damaged since, too
        return ann.Codes([file.copied(name) for name in file.names()])


def can_code(dim: int) -> bool:
    """Tell whether there is a library for vectors of so many dimensions; it is not loaded for that."""
    try:
        from memd.index import ann  # noqa: PLC0415 - needs numpy
    except ImportError:
        return False
    return ann.is_there() and ann.fits(dim)


class CodesBuild(Build[CodesFile]):
    """A file of codes that is being made of the *rows* of the matrix of that number."""

    def __init__(self, folder: Path, matrix: int, rows: Rows) -> None:
        super().__init__(folder, KIND)
        self._matrix = matrix
        self._rows = rows

    def pieces(self, out: ArrayFileWriter) -> Iterator[CodesFile | None]:
        """Find the centroids, code slice after slice, measure how many candidates are needed."""
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
        del codes, stripes  # the codes are in memory once: as they are read back
        made = CodesFile(
            out.finish(
                {"library": library, "matrix": self._matrix, "dim": rows.dim, "rows": rows.count}
                | {"candidates": candidates}
            )
        )
        made.load()
        yield made


class CodesKeeper(DerivedFileKeeper[CodesFile]):
    """Keeps the file of codes, which is made from the matrix that answers. For the writing thread."""

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
        """Return what queries use of a file, once it is loaded."""
        return CodesFile(file)

    def is_true(self, found: CodesFile) -> bool:
        """Tell whether its rows are the first of the matrix that answers."""
        rows = self._matrices.rows
        is_of_matrix = (found.matrix, found.dim) == (self.base(), rows.dim)
        return is_of_matrix and 0 < found.covered <= rows.count

    def base(self) -> Hashable:
        """Return the number of the matrix that answers; None while there is none."""
        active = self._matrices.active
        return active.number if active is not None else None

    def end(self) -> int | None:
        """Return how many rows there are; None where they are few, or cannot be coded."""
        active = self._matrices.active
        if active is None or active.file.count < MIN_ROWS or not can_code(active.file.dim):
            return None
        return active.file.count

    def build(self, folder: Path) -> CodesBuild:
        """Return a file to be made."""
        active = self._matrices.active
        assert active is not None
        return CodesBuild(folder, active.number, self._matrices.rows)
