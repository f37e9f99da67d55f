"""SQLite connections: how they are opened, their tokenizer, and the translation of their errors."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import cast

import apsw

from memd import fsio
from memd.errors import (
    DeadlineError,
    IndexClosedError,
    IndexDamagedError,
    MemdError,
    NoSpaceError,
    StorageError,
)
from memd.index import schema

BUSY_TIMEOUT_MS = 5000  # only a checkpoint of our own can hold the lock for a moment
# Chunks take 1.5 kB: of pages of 4 KiB a quarter would stay empty, a tenth of the whole index. Larger ones
# save little more, and each save would write more of them to the log.
PAGE_BYTES = 8192
WRITTEN_BACK_BYTES = (
    4 * 1024 * 1024
)  # SQLite writes the log back from so many on, as by default with 4 KiB pages
JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024  # the WAL is cut back to this after a checkpoint
READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

Terms = Callable[[str], list[str]]

_DEVICE = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)
# The last two can't come from our statements on sound tables: a row that is there twice, a text for an id.
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.ConstraintError, apsw.MismatchError)
# What SQLite says of full-text tables and of a schema whose pages were lost sounds like a mistake in our SQL.
_LOST_HEAD = re.compile(r"(SQL logic error: )?(invalid fts5 file format|no such fts5 table|no such table)")


def open_reader(path: Path) -> apsw.Connection:
    """Open the database read-only, with the tables of postings."""
    database = apsw.Connection(f"file:{_uri(path)}?mode=ro", flags=READ_ONLY)
    database.set_busy_timeout(BUSY_TIMEOUT_MS)
    for statement in (schema.POSTINGS, schema.TERMS, schema.TRIGRAM_POSTINGS):
        database.execute(statement)
    database.execute("PRAGMA query_only = 1")
    return database


def open_writer(path: Path) -> apsw.Connection:
    """Open the database for the one connection that writes, making it where it is not there."""
    # 0600 before SQLite sees it: its log and shared memory take the mode over.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    database = apsw.Connection(str(path))
    database.set_busy_timeout(BUSY_TIMEOUT_MS)
    database.pragma("page_size", PAGE_BYTES)
    database.pragma("journal_mode", "wal")
    database.pragma("wal_autocheckpoint", WRITTEN_BACK_BYTES // PAGE_BYTES)
    # FULL: a commit that was acknowledged survives a power cut (0.4 ms each on ext4).
    database.pragma("synchronous", "full")
    database.pragma("fullfsync", 1)  # macOS: fsync alone does not reach the disk
    database.pragma("checkpoint_fullfsync", 1)
    database.pragma("journal_size_limit", JOURNAL_LIMIT_BYTES)
    database.pragma("secure_delete", 1)
    database.pragma("foreign_keys", 1)
    return database


@contextmanager
def open_other(path: Path) -> Iterator[apsw.Connection]:
    """Open the database of an index that nobody uses any more, read-only, whatever tables it has.

    Raises:
        IndexDamagedError: it is none, or lacks a table or column that is asked for.
    """
    try:
        with closing(apsw.Connection(f"file:{_uri(path)}?mode=ro", flags=READ_ONLY)) as database:
            yield database
    except apsw.Error as error:
        raise damaged(path, error) from error


def open_scratch() -> apsw.Connection:
    """Open empty full-text tables of their own, in a file that has no name and goes with the connection."""
    database = apsw.Connection("")
    made = chain.from_iterable(map(schema.full_text, schema.FULL_TEXT))
    for statement in (*made, schema.POSTINGS, schema.TRIGRAM_POSTINGS):
        database.execute(statement)
    return database


def terms_of(database: apsw.Connection, reason: int) -> Terms:
    """Return what makes of a prepared text the terms that FTS5 itself makes."""
    tokenize = database.fts5_tokenizer(schema.WORDS_TOKENIZER[0], list(schema.WORDS_TOKENIZER[1:]))

    def terms(prepared: str) -> list[str]:
        found = tokenize(prepared.encode(), reason, None, include_offsets=False, include_colocated=False)
        return list(cast("Iterable[str]", found))

    return terms


def sqlite_version() -> str:
    """Return the version of SQLite that is linked."""
    return apsw.sqlite_lib_version()


@contextmanager
def translated(path: Path | str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except apsw.Error as error:
        ours = told(path, error)
        if ours is None:
            raise
        raise ours from error


@contextmanager
def decoded(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, and what a flipped bit makes of a value into damage.

    For reading only, a few lines at a time: elsewhere a ValueError is a mistake of our own.
    """
    with translated(path):
        try:
            yield
        except (ValueError, TypeError, OverflowError) as error:
            raise damaged(path, error) from error


def told(path: Path | str, error: apsw.Error) -> MemdError | None:
    """Return the error of ours that says the same; None for what can only be a mistake of our own."""
    # SQLite does not say why it cannot make its log, and its own errno is another one by then.
    if isinstance(error, apsw.FullError) or (
        isinstance(error, apsw.CantOpenError) and fsio.lacks_inodes(path)
    ):
        return NoSpaceError(f"{path}: no space left on the device; what was indexed still answers")
    if isinstance(error, _DAMAGE) or (isinstance(error, apsw.SQLError) and _LOST_HEAD.match(str(error))):
        return damaged(path, error)
    if isinstance(error, apsw.InterruptError):
        return DeadlineError("the search took longer than its deadline; ask for less")
    if isinstance(error, apsw.ConnectionClosedError):  # who waited for the writing thread may come late
        return IndexClosedError(f"{path} is being reopened: ask again")
    if isinstance(error, (apsw.BusyError, *_DEVICE)):
        is_busy = isinstance(error, apsw.BusyError)
        return StorageError(f"{path}: {'another process holds its lock: ' if is_busy else ''}{error}")
    return None


def is_of_the_device(error: BaseException) -> bool:
    """Tell whether reading or writing failed below SQLite."""
    return isinstance(error, _DEVICE)


def damaged(path: Path | str, what: object) -> IndexDamagedError:
    """Return the error that says so."""
    return IndexDamagedError(f"{path} is damaged: {what}. It is rebuilt: memctl index --rebuild")


def _uri(path: Path) -> str:
    return "".join(f"%{byte:02x}" if byte in b"?#%" else chr(byte) for byte in os.fsencode(path))
