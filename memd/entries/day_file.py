"""Daily entries: blocks in a daily file, appended by one write and removed by blanking in place.

memd.daily defines the marks between blocks. The file is never read, changed and written back, because other
programs append to it, too: agents, editors, shells, a second machine's sync. What they write concurrently is
kept:

- An append is one write(2) of a whole block to a file opened with O_APPEND: the kernel finds the end and
  writes there in one atomic step for all processes. The block begins with a line break, which ends the torn
  last line of a writer that was killed.
- A removal overwrites only the bytes of the block, with spaces. The file keeps its length and its inode, so
  that a concurrent append, even by an old handle, goes to the end as before. Rejected alternatives: replacing
  the file by a new one (by rename, or by RENAME_EXCHANGE and a check for appended data) loses what is written
  at any time through handles of the old file; moving up the rest, or truncating the end, loses what is
  appended between the check and the truncation.
- Because some editors truncate and rewrite the file, the bytes are compared right before they are
  overwritten, under a write lease where Linux grants one: no other process has the file open then, and one
  that opens it waits for the few microseconds.
- An editor that saves by rename may replace the file while a block goes to the old one. So after each write
  the file that has the name now is checked, and the write is repeated if the block is missing.

Must not know the index: the caller tells the index. One caller at a time per root in this process; other
processes may write at the same time.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import signal
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

from memd import daily, fsio
from memd.entries.entry import EntryText, Written, checked_source, hash_of, one_line, tags_of
from memd.entries.place import memory_folder
from memd.errors import ChangedError, InvalidError, NotFoundError, StorageError, UnsafeError, storage_error

# Of a daily file with the block: a longer file is not a source, and its entries would not be found.
MAX_BYTES = 4 * 1024 * 1024

_ATTEMPTS = 5  # an editor replaces a file once per save; more in a row have another cause
_REPLACED_S = 0.05  # for an editor that saves by rename to create the new file
_LEASE_TRIES = 20  # a reader of the file, such as memd's indexing, is done in that time
_LEASE_POLL_S = 0.005


def append_entry(
    root: Path, text: EntryText, *, new_id: Callable[[], str] = lambda: secrets.token_hex(8)
) -> Written:
    """Append one fact to memory/<its day>.md; the data is on the disk when this returns.

    The topic is optional, and becomes the first tag. A daily entry names no other notes.

    Raises:
        InvalidError: as `write_entry`; or the content has a line that looks like a mark, or the file would be
            too long.
        SecretError: as `write_entry`.
        WorkspaceError: *root* has no memory/.
        UnsafeError: memory/ or the file is a link or not a file, or other programs keep replacing it.
        NoSpaceError, StorageError: the disk is full, or fails; no part of the entry remains.
    """
    tags, content = text.tags or (), text.content
    about = tags_of([one_line(text.topic, "topic"), *tags] if text.topic else tags)
    source = checked_source(text)
    if daily.has_mark(content):
        raise InvalidError(
            "content has a line that begins a daily entry. Indent that line, or write a separate entry"
        )
    entry_id, end = new_id(), "" if content.endswith("\n") else "\n"
    labels = " ".join(f"#{label}" for label in map(_label, about) if label)
    head = "\n".join(filter(None, [f"## {text.now:%H:%M} {one_line(text.title or '', 'title')}", labels]))
    path = daily.path_of(text.now.date())
    block = daily.marked(entry_id, f"{head}\n\n{content}{end}", origin=source, at=text.now)
    _append(root, path, block)
    created = text.now.isoformat(timespec="seconds")
    return Written(path=path, id=entry_id, created=created, hash=hash_of(block))


def remove_entry(root: Path, path: str, entry_id: str) -> None:
    """Remove a block from the daily file at *path*; the change is on the disk when this returns.

    Raises:
        ChangedError: the block is not as memd wrote it.
        NotFoundError: there is no such block (any more).
        WorkspaceError, UnsafeError, NoSpaceError, StorageError: as `append_entry`.
    """
    try:
        with memory_folder(root) as memory:
            for _ in range(_ATTEMPTS):
                with _opened(memory, path, os.O_RDWR) as fd:
                    with _alone(fd):
                        raw = _read(fd)
                        found = _of_id(raw, path, entry_id)
                        changed = [block.start for block in found if not block.is_whole]
                        if changed:
                            line = 1 + raw.count(b"\n", 0, changed[0])
                            raise ChangedError(
                                f"the entry {entry_id} was not removed: the text at {path}:{line} is not as "
                                "memd wrote it. Check it, then delete its lines yourself"
                            )
                        for block in found:
                            _overwrite(fd, block.start, block.stop)
                    fsio.sync(fd)
                if not any(_shows(memory, path, raw[block.start : block.stop]) for block in found):
                    return
    except FileNotFoundError:
        raise NotFoundError(f"{root}/{path} does not exist (any more)") from None
    except OSError as error:
        raise storage_error(f"{root}/{path} was not changed", error) from error
    raise UnsafeError(f"{path} is being replaced by another program: try again")


def daily_identity(root: Path, path: str, entry_id: str) -> tuple[str, str]:
    """Return the title of a block and the hash of its bytes.

    Raises:
        NotFoundError, UnsafeError, WorkspaceError, StorageError: as `remove_entry`.
    """
    raw = _bytes_of(root, path)
    block = _of_id(raw, path, entry_id)[0]
    title = raw[block.body : block.stop].partition(b"\n")[0].decode(errors="replace")
    return title.lstrip("# "), hash_of(raw[block.start : block.stop])


def find_daily_entry(root: Path, entry_id: str) -> str | None:
    """Return the path of the newest daily file that has an entry with this id, None if there is none."""
    paths: list[str] = []
    with contextlib.suppress(OSError), memory_folder(root) as memory:
        paths = [f"memory/{name}" for name in os.listdir(memory)]  # noqa: PTH208 - of a descriptor
    for path in sorted(filter(daily.PATH.fullmatch, paths), reverse=True):
        with contextlib.suppress(NotFoundError, UnsafeError, StorageError):
            if any(block.id == entry_id for block in daily.blocks(_bytes_of(root, path))):
                return path
    return None


def _append(root: Path, path: str, block: bytes) -> None:
    """Append *block*, which ends with a line break, to the daily file at *path*, created if it is missing."""
    try:
        with memory_folder(root) as memory:
            for attempt in range(_ATTEMPTS):
                if attempt:
                    time.sleep(_REPLACED_S)
                with _opened(memory, path, fsio.APPEND) as fd:
                    if not attempt or block not in _read(fd):
                        _write(fd, path, block)
                os.fsync(memory)  # the directory entry, too
                if _shows(memory, path, block):
                    return
    except OSError as error:
        raise storage_error(f"{root}/{path} was not written", error) from error
    raise UnsafeError(f"{path} is being replaced by another program: try again")


def _bytes_of(root: Path, path: str) -> bytes:
    """Return the bytes of the daily file at *path*. Raises as `remove_entry`."""
    try:
        with memory_folder(root) as memory, _opened(memory, path, os.O_RDONLY) as fd:
            return _read(fd)
    except FileNotFoundError:
        raise NotFoundError(f"{root}/{path} does not exist (any more)") from None
    except OSError as error:
        raise StorageError(f"{root}/{path} cannot be read: {error.strerror}") from error


def _label(tag: str) -> str:
    """Return a tag in the form that it has in a text after "#"."""
    kept = (char if unicodedata.category(char)[0] in "LMN" or char in "_/" else "-" for char in tag)
    return re.sub("-+", "-", "".join(kept)).strip("-/")


def _of_id(raw: bytes, path: str, entry_id: str) -> list[daily.DailyBlock]:
    found = [block for block in daily.blocks(raw) if block.id == entry_id]
    if not found:
        raise NotFoundError(f"there is no entry {entry_id} in {path} (any more)")
    return found


@contextlib.contextmanager
def _opened(memory: int, path: str, flags: int) -> Iterator[int]:
    try:
        with fsio.regular(path.removeprefix("memory/"), flags | os.O_NOFOLLOW, folder=memory) as fd:
            yield fd
    except fsio.NotRegularError:
        raise UnsafeError(f"{path} is a link or not a file: daily entries go into a real file") from None


def _read(fd: int) -> bytes:
    parts: list[bytes] = []
    at = 0
    while part := os.pread(fd, MAX_BYTES, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _write(fd: int, path: str, block: bytes) -> None:
    size = fsio.size(fd)
    # Always, not only after a torn line: between a check of the last byte and the write it may change.
    # A blank line behind, too: git takes a removal and an append for one place if no line is between them,
    # and would bring a forgotten entry back.
    raw = (b"\n" if size else b"") + block + b"\n"
    if b"\0" in _read(fd):
        raise InvalidError(
            f"{path} is no text in UTF-8 and not searched: convert it, or write a separate entry"
        )
    if size + len(raw) > MAX_BYTES:
        raise InvalidError(
            f"{path} has {size} bytes and would not be searched with {len(raw)} more: a source has at most "
            f"{MAX_BYTES}. Write a separate entry, without daily"
        )
    written = os.write(fd, raw)
    try:
        if written < len(raw):  # the only other cause of a partial write is a fatal signal
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301 - what was written goes
        fsio.sync(fd)
    except OSError:
        # With O_APPEND the position is now where this write ended, whatever other processes wrote since.
        stop = os.lseek(fd, 0, os.SEEK_CUR)
        with contextlib.suppress(OSError):
            _overwrite(fd, stop - written, stop)
        raise


def _overwrite(fd: int, start: int, stop: int) -> None:
    """Replace the range by a blank line of the same length."""
    # On Linux a file with O_APPEND is always appended to, whatever the position is.
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND)
    fsio.write_at(fd, b" " * (stop - start - 1) + b"\n", start)


def _shows(memory: int, path: str, text: bytes) -> bool:
    """Return whether the file with this name contains *text* now; False while the name does not exist."""
    try:
        with _opened(memory, path, os.O_RDONLY) as fd:
            return text in _read(fd)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _alone(fd: int) -> Iterator[None]:
    """Keep other processes from opening the file, if the system supports it and the file is soon free."""
    is_leased = _leased(fd)
    try:
        yield
    finally:
        if is_leased:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _leased(fd: int) -> bool:
    if not hasattr(fcntl, "F_SETLEASE"):  # not Linux
        return False
    for _ in range(_LEASE_TRIES):
        try:
            # Signal to send when another process opens the file: this one is ignored, SIGIO would kill memd.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            if error.errno != errno.EAGAIN:  # the file has another owner, or the file system has no leases
                return False
            time.sleep(_LEASE_POLL_S)
        else:
            return True
    return False
