"""How are the codes for the first pass made? Out of the matrix alone, a slice at a time.

Rows are never written twice, so no transaction is needed: the codes of what is there now stay true. Before
the file counts, some of its own rows are searched with it and without it: how many candidates the second
pass needs is measured on these vectors, not believed.
"""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from memd import fsio
from memd.errors import StorageError
from memd.index.first_pass import DATA_AT, Facts, FirstPass, file_name, header_of
from memd.index.making import Making
from memd.index.vectors import Rows

SLICE_ROWS = 8_192  # coded at once, whole blocks: 60 ms of one core, 12 MB
PROBES = 64  # rows that are searched to measure the recall: 640 chances to miss one of the ten nearest
CANDIDATES = 2_000  # 0.9 ms to look at; of the real vectors that were tried a quarter would do
MAX_CANDIDATES = 16_000  # more take longer than the first pass itself
# More than the 0.99 that is wanted: questions are a little further from their answers than rows from rows.
RECALL = 0.998


WHOLE = object()  # no piece is left


class TooRoughError(Exception):
    """The codes miss too many of the nearest vectors: the exact scan goes on."""


class Building(Making):
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
        facts = Facts(
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
