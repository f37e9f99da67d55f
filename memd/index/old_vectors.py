"""Vectors of indexes that were set aside, reused so that known texts are not embedded again.

Only two tables of an old index and the rows they refer to are read; unexpected content is skipped. Everything
is read on opening, since the folder may be deleted afterwards. For the writing thread.
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
from memd.index.vectors import Matrix, Rows

LOOKED_FOR = 1024  # per commit, 1.5 MiB with the shipped model: some 50 ms
MATRICES = "SELECT number FROM matrices WHERE model_id = ? AND dim = ?"
VECTORS = "SELECT hash, row, crc FROM vectors WHERE matrix = ?"
WAITING = """
    SELECT chunk, hash FROM unembedded JOIN chunks ON id = chunk
    WHERE why = 'waiting' AND chunk > ? ORDER BY chunk LIMIT ?
"""

log = structlog.get_logger()


class OldVectors:
    """The vectors of one model, by the hash of the text that the model read."""

    def __init__(self, folders: Iterable[Path], database: str, *, model_id: str, dim: int) -> None:
        """Read the indexes in *folders*; if several have a text, the first one is used."""
        self.seen = 0  # highest chunk id that was looked up
        self._places: dict[bytes, tuple[Rows, int, int]] = {}  # text hash → rows, row, CRC-32
        for folder in folders:
            try:
                self._read(folder, folder / database, model_id, dim)
            except (MemdError, OSError) as error:
                log.warning("old_vectors_not_usable", error=type(error).__name__)

    def of(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return {hash: row bytes} for the texts with an intact vector."""
        found: dict[bytes, bytes] = {}
        for digest in hashes:
            if place := self._places.get(digest):
                rows, row, crc = place
                raw = rows.vector(row)
                if raw and zlib.crc32(raw) == crc:
                    found[digest] = raw
        return found

    def _read(self, folder: Path, path: Path, model_id: str, dim: int) -> None:
        with open_other(path) as database:
            for [number] in database.execute(MATRICES, (model_id, dim)).fetchall():
                matrix = Matrix(folder, cast("int", number), dim=dim, failure=Failure())
                matrix.use(matrix.room)
                rows = matrix.rows
                matrix.close()
                for digest, row, crc in database.execute(VECTORS, (number,)):
                    if type(digest) is bytes and type(row) is int and type(crc) is int:
                        self._places.setdefault(digest, (rows, row, crc))


def adopt(index: Index, old: OldVectors, *, model_id: str) -> bool:
    """Store the old vectors of the next waiting chunks, in one commit; return False when none waits.

    Raises what `Transaction.embed` raises.
    """
    waiting = index.writer.run(WAITING, (old.seen, LOOKED_FOR))
    if not waiting:
        return False
    if taken := old.of(digest for _, digest in waiting):
        with index.changes() as changes:
            changes.embed(taken, model_id=model_id)
    old.seen = waiting[-1][0]
    return True
