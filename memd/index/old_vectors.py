"""The vectors of indexes that other releases of memd made: a text that one knows needs no model again.

Of such an index two tables are read and the rows that they name; where they are not as expected, nothing is
taken. All is read when it is opened: its folder may be deleted meanwhile, with what is forgotten. For the
writing thread.
"""

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import structlog

from memd.errors import MemdError
from memd.fsio import Failure
from memd.index.database import open_other
from memd.index.index import Index
from memd.index.matrices import matrix_name
from memd.index.vectors import FLOAT_BYTES, Matrix, Rows

LOOKED_FOR = 1024  # chunks in one commit, 1.5 MiB of the shipped model: some 50 ms
MATRICES = "SELECT number FROM matrices WHERE model_id = ? AND dim = ?"
VECTORS = "SELECT hash, row, crc FROM vectors WHERE matrix = ?"

log = structlog.get_logger()


class OldVectors:
    """The vectors of one model, by the hash of the text that the model read."""

    def __init__(self, folders: Iterable[Path], database: str, *, model_id: str, dim: int) -> None:
        """Look through indexes.

        Args:
            folders: of the indexes; where two know a text, the first one counts.
            database: name of the database in each.
            model_id: whose vectors are wanted.
            dim: of its vectors.
        """
        self.seen = 0  # the highest id of a chunk that was looked for
        self._row_bytes = dim * FLOAT_BYTES
        self._places: dict[bytes, tuple[Rows, int, int]] = {}  # hash of a text → where its vector is, its CRC
        for folder in folders:
            try:
                self._read(folder, folder / database, model_id, dim)
            except (MemdError, OSError) as error:
                log.warning("old_vectors_not_usable", error=type(error).__name__)

    def of(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the row bytes of those texts whose vector is here and sound."""
        found: dict[bytes, bytes] = {}
        for digest in hashes:
            if place := self._places.get(digest):
                rows, row, crc = place
                raw = bytes(rows.buffer[row * self._row_bytes : (row + 1) * self._row_bytes])
                if len(raw) == self._row_bytes and zlib.crc32(raw) == crc:
                    found[digest] = raw
        return found

    def _read(self, folder: Path, path: Path, model_id: str, dim: int) -> None:
        with open_other(path) as database:
            for [number] in database.execute(MATRICES, (model_id, dim)).fetchall():
                matrix = Matrix(folder / matrix_name(cast("int", number)), dim=dim, failure=Failure())
                matrix.use(matrix.room)
                rows = matrix.rows
                matrix.close()
                for digest, row, crc in database.execute(VECTORS, (number,)):
                    if type(digest) is bytes and type(row) is int and type(crc) is int:
                        self._places.setdefault(digest, (rows, row, crc))


def adopt(index: Index, old: OldVectors, *, model_id: str) -> bool:
    """Give some chunks that wait the vectors that *old* has, in one commit; False when none is left.

    Raises what `Transaction.embed` raises.
    """
    waiting = index.matrices.ledger.waiting_after(old.seen, LOOKED_FOR)
    if not waiting:
        return False
    if taken := old.of(digest for _, digest in waiting):
        with index.changes() as changes:
            changes.embed(taken, model_id=model_id)
    old.seen = waiting[-1][0]
    return True
