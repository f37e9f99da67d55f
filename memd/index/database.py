"""How is SQLite opened, how does it cut text into terms, and how do its errors read?"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import apsw

from memd.errors import IndexDamagedError, NoSpaceError, StorageError
from memd.index import schema

BUSY_TIMEOUT_MS = 5000  # only a checkpoint of our own can hold the lock for a moment
JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024  # the WAL is cut back to this after a checkpoint

Terms = Callable[[str], list[str]]


def open_reader(path: Path) -> apsw.Connection:
    """Open the database read-only, with the table of postings."""
    database = apsw.Connection(
        f"file:{_uri(path)}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    database.set_busy_timeout(BUSY_TIMEOUT_MS)
    database.execute(schema.POSTINGS)
    database.execute("PRAGMA query_only = 1")
    return database


def open_writer(path: Path) -> apsw.Connection:
    """Open the database for the one connection that writes, making it where it is not there."""
    # 0600 before SQLite sees it: its log and shared memory take the mode over.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = apsw.Connection(str(path))
    database.set_busy_timeout(BUSY_TIMEOUT_MS)
    database.pragma("journal_mode", "wal")
    # FULL: a commit that was acknowledged survives a power cut (0.4 ms each on ext4).
    database.pragma("synchronous", "full")
    database.pragma("journal_size_limit", JOURNAL_LIMIT_BYTES)
    database.pragma("secure_delete", 1)
    database.pragma("foreign_keys", 1)
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
    except apsw.FullError as error:
        raise NoSpaceError(f"{path}: no space left on the device; what was indexed still answers") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise IndexDamagedError(
            f"{path} is damaged: {error}. It is rebuilt: memctl index --rebuild"
        ) from error
    except (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise StorageError(f"{path}: {error}") from error


def _uri(path: Path) -> str:
    return "".join(f"%{byte:02x}" if byte in b"?#%" else chr(byte) for byte in os.fsencode(path))
