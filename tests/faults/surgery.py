"""Files of the index that are cut, lost or exchanged, under a stopped and under a running daemon.

Nothing that no note says may be quoted at any time, and in the end all is right again by itself. A file
that is cut while it is mapped may cost the daemon's life once.
"""

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from faults.household import Household, household

FILES = ("matrix", "index.db", "index.db-wal", "index.db-shm")
FOLDER = "folder"
ROTTED = "rotted"

Operation = Callable[
    [Path, Path], None
]  # on a file or the folder; the second is its like in another workspace


def _emptied(path: Path, _: Path) -> None:
    os.truncate(path, 0)


def _halved(path: Path, _: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _cut(path: Path, _: Path) -> None:
    os.truncate(path, max(path.stat().st_size - 1000, 0))


def _deleted(path: Path, _: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _exchanged(path: Path, other: Path) -> None:
    fresh = path.parent.parent / "fresh"
    if path.is_dir():
        shutil.rmtree(path)
        shutil.copytree(other, fresh)
    else:
        shutil.copyfile(other, fresh)
    fresh.replace(path)


def _scribbled(path: Path, _: Path) -> None:
    with path.open("r+b") as file:
        for at in range(0, min(path.stat().st_size, 1 << 20), 4096):
            file.seek(at)
            file.write(random.Random(at).randbytes(100))


def _rotted(path: Path, _: Path) -> None:
    """Flip a bit of every id, or count of an id, in the rows of postings, which SQLite cannot notice."""
    raw = bytearray(path.read_bytes())
    database = apsw.Connection(
        f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    rows = list(database.execute("SELECT ifnull(ids, x''), counts, crc FROM postings"))
    database.close()
    flipped = 0
    for ids, counts, crc in rows:
        stored = re.escape(ids + counts) + b"(\0\0)?" + re.escape(crc.to_bytes(4))
        for found in re.finditer(stored, bytes(raw)):
            end, step = (len(ids), 4) if ids else (len(counts), 1)
            for at in range(found.start(), found.start() + end, step):
                raw[at] ^= 1
                flipped += 1
    assert flipped > len(rows) / 2, "the others are in the log"
    with path.open("r+b") as file:  # never cut: a running daemon may have mapped it
        file.write(raw)


OPERATIONS: dict[str, Operation] = {
    "emptied": _emptied, "halved": _halved, "cut": _cut, "deleted": _deleted, "exchanged": _exchanged,
    "scribbled": _scribbled, ROTTED: _rotted,
}  # fmt: skip
STOPPED = [(file, operation) for file in FILES for operation in OPERATIONS if operation != ROTTED]
STOPPED += [(FOLDER, "deleted"), (FOLDER, "exchanged"), ("index.db", ROTTED)]
# Not the shared memory: who cuts what SQLite has mapped is no accident.
RUNNING = [case for case in STOPPED if case[0] != "index.db-shm"]


class Surgery:
    """Two households: one that is operated on, one that gives foreign files."""

    def __init__(self, house: Household, other: Household) -> None:
        self._house = house
        self._other = other

    def stopped(self, file: str, operation: str) -> Iterator[str]:
        """Operate while no daemon runs; yield what is wrong."""
        house = self._house
        house.restore()
        self._operate(file, operation)
        yield from self._started()

    def running(self, file: str, operation: str) -> Iterator[str]:
        """Operate under a running daemon, that then has to write; yield what is wrong, then and later."""
        house = self._house
        house.restore()
        house.daemon.start()
        yield from house.said_at_last()
        self._operate(file, operation)
        os.utime(next(house.root.rglob("*.md")))
        yield from house.said_at_once()
        if operation == "scribbled":  # what was mapped and checked once, the daily check looks at again
            house.check()
        yield from house.said_at_last()
        house.kill()
        yield from self._started()

    def _started(self) -> Iterator[str]:
        house = self._house
        house.daemon.start()
        yield from house.said_at_once()
        yield from house.said_at_last()
        house.check()  # what it finds it mends
        yield from house.flaws()

    def _operate(self, file: str, operation: str) -> None:
        OPERATIONS[operation](_path(self._house, file), _path(self._other, file))


def _path(house: Household, file: str) -> Path:
    if file == FOLDER:
        return house.index_dir
    return getattr(house, file) if file == "matrix" else house.index_dir / file


@contextmanager
def surgery(folder: Path) -> Iterator[Surgery]:
    """Have both households for a while."""
    with (
        household(folder / "one", is_hot=True) as house,
        household(folder / "other", first=100, is_hot=True) as other,
    ):
        other.restore()
        yield Surgery(house, other)
