"""How does the one connection that writes commit, and what is left when the disk fails meanwhile?

It also says how the index was left: a database whose last user did not come to the end is looked through
before it is trusted, since files of SQLite's own (the WAL) may have been lost or changed meanwhile.
"""

import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import apsw

from memd import fsio
from memd.errors import IndexDamagedError, MemdError, NoSpaceError, SchemaError, StorageError
from memd.fsio import Failure
from memd.index import schema
from memd.index.database import BUSY_TIMEOUT_MS, damaged, is_of_the_device, open_writer, told

# Where a lost page would be noticed late or never; the full-text tables have checks of their own.
LOOKED_THROUGH = ("meta", "sources", "chunks", "matrices", "vectors", "waiting")
# Pages of 4 KiB in the log at which it is written back. By ourselves, after the commit: what SQLite does of
# its own there passes over a disk that fails, and more and more is acknowledged that only the log holds.
LOG_PAGES = 1000

Row = tuple[Any, ...]


class Store:
    """The one connection that writes and checkpoints. For the writing thread."""

    def __init__(self, path: Path, failure: Failure) -> None:
        self.failure = failure
        self._path = path
        self.most_log_pages = LOG_PAGES
        self._log_pages = 0  # after the last commit
        _expect_files(path)
        try:
            self._db = open_writer(path)
            try:
                self._db.set_wal_hook(self._note_log)
                self._begin()
            except BaseException:
                self._db.close()
                raise
        except apsw.Error as error:
            raise told(path, error) or damaged(path, error) from error  # also "no such table", at the start
        except OSError as error:
            raise fsio.translated(path, error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block does as one, or undo all of it.

        Raises:
            StorageError: the disk failed, now or before: nothing is written until the index is opened anew.
        """
        self.failure.check()
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # after some errors SQLite has undone it itself
                with suppress(MemdError):
                    self.run("ROLLBACK")
            raise
        if self._log_pages >= self.most_log_pages:
            with suppress(MemdError):  # of the next commit, not of this one: it stands
                self._write_back()

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; return all of its rows."""
        try:
            return list(self._db.execute(statement, values))
        except apsw.Error as error:
            raise self._ours(error) from error
        except UnicodeDecodeError as error:
            raise damaged(self._path, error) from error

    def run_many(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of *values*."""
        try:
            self._db.executemany(statement, values)
        except apsw.Error as error:
            raise self._ours(error) from error

    @property
    def changes_made(self) -> int:
        """A number that grows with every row that is written."""
        return self._db.total_changes()

    def get(self, key: str) -> Any:
        """Return a value of the meta table, None where it has none."""
        found = self.run("SELECT value FROM meta WHERE key = ?", (key,))
        return found[0][0] if found else None

    def number(self, key: str) -> int | None:
        """Return a value that is a number or not there."""
        found = self.get(key)
        if found is None or type(found) is int:
            return found
        raise damaged(self._path, f"{key} is {type(found).__name__}")

    def set(self, key: str, value: int | str | bytes | None) -> None:
        """Set a value of the meta table; None removes it. Inside a transaction."""
        if value is None:
            self.run("DELETE FROM meta WHERE key = ?", (key,))
            return
        self.run(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def count_generation_up(self) -> None:
        """Say, inside a transaction, that the next reader sees another index."""
        self.set("generation", (self.number("generation") or 0) + 1)

    def checkpoint(self) -> bool:
        """Write the log back into the database as far as readers allow; True when the log is empty."""
        self.failure.check()
        if not self._write_back():
            return False
        try:
            return self._cut_log()
        except apsw.Error as error:
            raise self._ours(error) from error

    def close(self) -> None:
        """Write the log back into the database and close it."""
        try:
            if self.failure.error is None:
                with suppress(NoSpaceError):
                    with self.transaction():
                        self.set("open", None)
                    self.checkpoint()
        finally:
            self._db.close()

    def _note_log(self, _database: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _write_back(self) -> bool:
        """Write the log back into the database; True when all of it is there. Raises what the disk says."""
        try:
            in_log, written = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            raise self._ours(error) from error
        return written >= in_log

    def _cut_log(self) -> bool:
        """Cut the log to nothing if nobody reads it just now."""
        self._db.set_busy_timeout(0)
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        finally:
            self._db.set_busy_timeout(BUSY_TIMEOUT_MS)
        return True

    @property
    def _place(self) -> str:
        """Which workspace it is of: its folder's name up to a dot, since the rest changes with a rename."""
        return self._path.parent.name.partition(".")[0]

    def _begin(self) -> None:
        version = self._db.pragma("user_version")
        if version == 0:
            self._make()
        elif version != schema.VERSION:
            raise SchemaError(
                f"{self._path} has tables of version {version}, not {schema.VERSION}: it is built anew"
            )
        if self.get("place") != self._place:
            raise IndexDamagedError(f"{self._path} is the index of another workspace: it is built anew")
        if self.get("open") is not None:
            self._look_through()
        with suppress(NoSpaceError):  # a full disk does not keep what is indexed from answering
            with self.transaction():
                self.set("open", 1)
                for table in schema.FULL_TEXT:  # a repair that did not come to its end
                    self.run(f"DROP TABLE IF EXISTS {table}_anew")
            self.checkpoint()  # into the database itself: its log may be what is lost

    def _make(self) -> None:
        with self.transaction():
            self.run(schema.SCHEMA)
            for statement in chain.from_iterable(map(schema.full_text, schema.FULL_TEXT)):
                self.run(statement)
            self.set("generation", 0)
            self.set("place", self._place)
            self.run(f"PRAGMA user_version = {schema.VERSION}")
        fsio.sync_folder(self._path.parent)

    def _look_through(self) -> None:
        for table in LOOKED_THROUGH:
            for [finding] in self.run(f"PRAGMA quick_check('{table}')"):
                if finding != "ok":
                    raise damaged(self._path, finding)

    def _ours(self, error: apsw.Error) -> MemdError | apsw.Error:
        ours = told(self._path, error)
        if isinstance(ours, StorageError) and is_of_the_device(error):
            return self.failure.keep(ours)
        return ours or error


def _expect_files(path: Path) -> None:
    """Refuse a database, or what SQLite keeps beside it, that is a folder, a link or a pipe."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        place = path.with_name(name)
        with suppress(OSError):  # not there
            if not stat.S_ISREG(place.lstat().st_mode):
                raise damaged(place, "it is no regular file")
