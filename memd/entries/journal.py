"""The journal of a workspace: who wrote, revised, superseded and deleted which entry, and when.

A file of JSON lines to which lines are only appended, each by one write. It has the random id of an entry and
the hash of its file, but neither text nor title nor path, which readers of the journal look up while the
entry exists. So nothing has to be removed from it when an entry is deleted.

Must not know the index. `record` runs in the thread that writes into the workspace, one call at a time;
everything else is thread-safe.
"""

import errno
import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from memd import fsio
from memd.records import Action, JournalLine

MAX_NAME_CHARS = 200  # of a client or a conversation: keeps a line below a page, so that it is written whole


_OWED: dict[Path, bytes] = {}  # journal → lines that could not be written because the disk was full
_WRITING = threading.Lock()  # protects `_OWED`, and the order of lines

log = structlog.get_logger()


def record(
    path: Path, action: Action, *, entry_id: str, digest: str, origin: dict[str, str], now: datetime
) -> None:
    """Add a line to the journal at *path*; on the disk when this returns. *digest*: hash of the entry's file.

    Never fails, because the action itself is done: if the disk is full, this is logged, and `write_owed` adds
    the line later.
    """
    names = {"client": origin.get("client", ""), "conversation": origin.get("session", "")}
    line = JournalLine(
        time=now.isoformat(timespec="milliseconds"),
        action=action,
        id=entry_id,
        hash=digest,
        origin=origin.get("origin", "agent"),
        **{key: " ".join(name.split())[:MAX_NAME_CHARS] for key, name in names.items()},
    )
    with _WRITING:
        _OWED[path] = _OWED.get(path, b"") + msgspec.json.encode(line) + b"\n"
        try:
            _write_owed(path)
        except OSError as error:
            log.warning("journal_not_written", reason=error.strerror)


def write_owed() -> None:
    """Add the lines that wait because a disk was full, if there is space now."""
    with _WRITING:
        for path in list(_OWED):
            with suppress(OSError):
                _write_owed(path)


def _write_owed(path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    lines = _OWED[path]  # all of them or nothing; on the disk when this returns
    with fsio.regular(path, fsio.APPEND) as descriptor:
        size = fsio.size(descriptor)
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # ends a line that was cut off by a kill
        if os.write(descriptor, lines) < len(lines):
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsio.sync(descriptor)
    del _OWED[path]


def newest(path: Path) -> Iterator[JournalLine]:
    """Yield the records of a journal, the newest first; skip invalid lines."""
    with suppress(OSError), fsio.regular(path, os.O_RDONLY | os.O_NOFOLLOW) as descriptor:
        size = fsio.size(descriptor)
        if not size:
            return
        with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as lines:
            end = len(lines)
            while end > 0:
                start = lines.rfind(b"\n", 0, end) + 1
                if (found := _read(lines[start:end])) is not None:
                    yield found
                end = start - 1


def _read(line: bytes) -> JournalLine | None:
    try:
        return msgspec.json.decode(line, type=JournalLine)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
