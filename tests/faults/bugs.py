"""Planted bugs: mistakes in the order of a write that the loops beside this module must find."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw

from memd import fsio
from memd.errors import StorageError
from memd.fsio import Failure
from memd.index import database
from memd.index.vector_table import NewRow, VectorTable
from memd.index.vectors import Matrix

SLOW_DISK_S = 0.01  # between the two halves of a write that is in the wrong order: this disk is too fast

Patch = tuple[object, str, Callable[..., Any]]


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have the production code make that mistake within the block."""
    patches = BUGS[name]()
    kept = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in patches]
    for owner, attribute, mistaken in patches:
        setattr(owner, attribute, mistaken)
    try:
        yield
    finally:
        for owner, attribute, right in kept:
            setattr(owner, attribute, right)


def _overwritten() -> list[Patch]:
    """New rows are written over older ones, whose texts are embedded again some time."""
    append, put_rows = Matrix.append, VectorTable.put_rows

    def in_place(matrix: Matrix, vectors: Sequence[bytes], **options: Any) -> list[tuple[int, int]]:
        count = matrix.count
        matrix.use(max(count - len(vectors), 0))
        rows = append(matrix, vectors, **options)
        matrix.use(max(count, matrix.count))
        time.sleep(SLOW_DISK_S)
        return rows

    def instead(vectors: VectorTable, matrix: int, rows: Iterable[NewRow]) -> None:
        listed = list(rows)
        vectors.drop_rows(matrix, [row for row, _, _ in listed])
        put_rows(vectors, matrix, listed)
        vectors.refill(vectors._database.number("building") or vectors._database.number("active"))

    return [(Matrix, "append", in_place), (VectorTable, "put_rows", instead)]


def _committed_first() -> list[Patch]:
    """SQLite names rows before they are written."""
    append, transaction = Matrix.append, database.Database.transaction
    late: list[Callable[[], object]] = []

    def append_later(matrix: Matrix, vectors: Sequence[bytes], **options: Any) -> list[tuple[int, int]]:
        start = matrix.count
        fsio.reserve(matrix._fd, (start + len(vectors)) * matrix.dim * 4)
        late.append(lambda: (matrix.use(start), append(matrix, vectors, **options)))
        matrix.use(start + len(vectors))
        return [(start + number, crc32(vector)) for number, vector in enumerate(vectors)]

    @contextmanager
    def commit_first(writer: database.Database) -> Iterator[None]:
        with transaction(writer):
            yield
        if late:
            time.sleep(SLOW_DISK_S)
        while late:
            late.pop(0)()

    return [(Matrix, "append", append_later), (database.Database, "transaction", commit_first)]


def _no_sync() -> list[Patch]:
    """Rows are not made durable before SQLite names them."""
    return [(fsio, "sync", lambda _descriptor: None)]


def _no_folder_sync() -> list[Patch]:
    """The name of a new matrix is not made durable before SQLite names it."""
    return [(fsio, "sync_folder", lambda _path: None)]


def _lazy_log() -> list[Patch]:
    """A commit is acknowledged before SQLite's log is on the disk."""
    open_writer = database.open_writer

    def mistaken(path: Path) -> apsw.Connection:
        connection = open_writer(path)
        connection.pragma("synchronous", "normal")
        return connection

    return [(database, "open_writer", mistaken)]


def _swallowed() -> list[Patch]:
    """A failed sync of the matrix is passed over."""
    sync = fsio.sync

    def mistaken(descriptor: int) -> None:
        with suppress(OSError):
            sync(descriptor)

    return [(fsio, "sync", mistaken)]


def _forgotten() -> list[Patch]:
    """An error of the disk is told once, and the next commit is acknowledged as if nothing had been."""

    def mistaken(_failure: Failure, error: StorageError) -> StorageError:
        return error

    return [(Failure, "keep", mistaken)]


BUGS: dict[str, Callable[[], list[Patch]]] = {
    "overwritten": _overwritten, "committed first": _committed_first, "no sync": _no_sync,
    "no folder sync": _no_folder_sync, "lazy log": _lazy_log, "swallowed": _swallowed,
    "forgotten": _forgotten,
}  # fmt: skip
