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
import stat
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

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

# Returns the byte ranges (start, stop) to remove; raises an error if they must not be removed.
Find = Callable[[bytes], list[tuple[int, int]]]


def append_entry(
    root: Path, text: EntryText, *, new_id: Callable[[], str] = lambda: secrets.token_hex(8)
) -> Written:
    """Append one fact to memory/<its day>.md; the data is on the disk when this returns.

    The topic is optional, and becomes the first tag. A daily entry names no other notes.

    Raises:
        InvalidError: as `write_entry`; or the content has a line that looks like a mark, or the file would be
            too long.
        SecretError: as `write_entry`.
        UnsafeError, WorkspaceError, NoSpaceError, StorageError: as `append`.
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
    append(root, _name(path), block)
    created = text.now.isoformat(timespec="seconds")
    return Written(path=path, id=entry_id, created=created, hash=hash_of(block))


def remove_entry(root: Path, path: str, entry_id: str) -> None:
    """Remove a block from the daily file at *path*; the change is on the disk when this returns.

    Raises:
        ChangedError: the block is not as memd wrote it.
        NotFoundError: there is no such block (any more).
        UnsafeError, WorkspaceError, StorageError: as `blank`.
    """

    def find(raw: bytes) -> list[tuple[int, int]]:
        found = _of_id(raw, path, entry_id)
        for block in found:
            if not block.is_whole:
                line = raw.count(b"\n", 0, block.start) + 1
                raise ChangedError(
                    f"the entry {entry_id} was not removed: the text at {path}:{line} is not as memd "
                    "wrote it. Check it, then delete its lines yourself"
                )
        return [(block.start, block.stop) for block in found]

    blank(root, _name(path), find)


def daily_identity(root: Path, path: str, entry_id: str) -> tuple[str, str]:
    """Return the title of a block and the hash of its bytes.

    Raises:
        NotFoundError, UnsafeError, WorkspaceError, StorageError: as `remove_entry`.
    """
    raw = read(root, _name(path))
    block = _of_id(raw, path, entry_id)[0]
    title = raw[block.body : block.stop].partition(b"\n")[0].decode(errors="replace")
    return title.lstrip("# "), hash_of(raw[block.start : block.stop])


def find_daily_entry(root: Path, entry_id: str) -> str | None:
    """Return the path of the newest daily file that has an entry with this id, None if there is none."""
    days = sorted((name for name in names(root) if daily.PATH.fullmatch(f"memory/{name}")), reverse=True)
    for name in days:
        with contextlib.suppress(NotFoundError, UnsafeError, StorageError):
            if any(block.id == entry_id for block in daily.blocks(read(root, name))):
                return f"memory/{name}"
    return None


def append(root: Path, name: str, block: bytes) -> None:
    """Append *block*, which ends with a line break, to memory/*name*; it is on the disk when this returns.

    The file is created if it is missing.

    Raises:
        InvalidError: the file would be too long for a source.
        WorkspaceError: *root* has no memory/.
        UnsafeError: memory/ or the file is a link or not a file, or other programs keep replacing it.
        NoSpaceError, StorageError: the disk is full, or fails; no part of the block remains.
    """
    shown = f"memory/{name}"
    try:
        with memory_folder(root) as memory:
            for attempt in range(_ATTEMPTS):
                if attempt:
                    time.sleep(_REPLACED_S)
                with _opened(memory, name, shown, os.O_APPEND | os.O_CREAT) as fd:
                    if not attempt or block not in _read(fd):
                        _append(fd, shown, block)
                os.fsync(memory)  # the directory entry, too
                if _shows(memory, name, shown, block):
                    return
    except OSError as error:
        raise storage_error(f"{root}/{shown} was not written", error) from error
    raise UnsafeError(f"{shown} is being replaced by another program: try again")


def blank(root: Path, name: str, find: Find) -> None:
    """Overwrite ranges of memory/*name* with spaces; the change is on the disk when this returns.

    *find* returns them, each with its final line break, given the current content of the file.

    Raises:
        NotFoundError: there is no such file.
        WorkspaceError, UnsafeError, NoSpaceError, StorageError: as `append`.
    """
    shown = f"memory/{name}"
    try:
        with memory_folder(root) as memory:
            for _ in range(_ATTEMPTS):
                with _opened(memory, name, shown, 0) as fd:
                    with _alone(fd):
                        raw = _read(fd)
                        stretches = find(raw)
                        for start, stop in stretches:
                            _overwrite(fd, start, stop)
                    fsio.sync(fd)
                    gone = [raw[start:stop] for start, stop in stretches]
                if not any(_shows(memory, name, shown, text) for text in gone):
                    return
    except FileNotFoundError:
        raise NotFoundError(f"{root}/{shown} does not exist (any more)") from None
    except OSError as error:
        raise storage_error(f"{root}/{shown} was not changed", error) from error
    raise UnsafeError(f"{shown} is being replaced by another program: try again")


def read(root: Path, name: str) -> bytes:
    """Return the bytes of memory/*name*.

    Raises:
        NotFoundError, WorkspaceError, UnsafeError, StorageError: as `blank`.
    """
    shown = f"memory/{name}"
    try:
        with memory_folder(root) as memory, _opened(memory, name, shown, 0, os.O_RDONLY) as fd:
            return _read(fd)
    except FileNotFoundError:
        raise NotFoundError(f"{root}/{shown} does not exist (any more)") from None
    except OSError as error:
        raise StorageError(f"{root}/{shown} cannot be read: {error.strerror}") from error


def names(root: Path) -> list[str]:
    """Return the names in memory/, or [] if it cannot be listed."""
    with contextlib.suppress(OSError), memory_folder(root) as memory:
        return os.listdir(memory)  # noqa: PTH208 - of a descriptor
    return []


def _label(tag: str) -> str:
    """Return a tag in the form that it has in a text after "#"."""
    kept = (char if unicodedata.category(char)[0] in "LMN" or char in "_/" else "-" for char in tag)
    return re.sub("-+", "-", "".join(kept)).strip("-/")


def _name(path: str) -> str:
    return path.removeprefix("memory/")


def _of_id(raw: bytes, path: str, entry_id: str) -> list[daily.DailyBlock]:
    found = [block for block in daily.blocks(raw) if block.id == entry_id]
    if not found:
        raise NotFoundError(f"there is no entry {entry_id} in {path} (any more)")
    return found


@contextlib.contextmanager
def _opened(memory: int, name: str, shown: str, more: int, access: int = os.O_RDWR) -> Iterator[int]:
    try:
        fd = os.open(name, _FLAGS & ~os.O_RDWR | access | more, fsio.PRIVATE, dir_fd=memory)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
            raise UnsafeError(f"{shown} is a link or not a file: daily entries go into a real file") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UnsafeError(f"{shown} is a link or not a file: daily entries go into a real file")
        yield fd
    finally:
        os.close(fd)


def _read(fd: int) -> bytes:
    parts: list[bytes] = []
    at = 0
    while part := os.pread(fd, MAX_BYTES, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _append(fd: int, shown: str, block: bytes) -> None:
    size = fsio.size(fd)
    # Always, not only after a torn line: between a check of the last byte and the write it may change.
    # A blank line behind, too: git takes a removal and an append for one place if no line is between them,
    # and would bring a forgotten entry back.
    raw = (b"\n" if size else b"") + block + b"\n"
    if b"\0" in _read(fd):
        raise InvalidError(
            f"{shown} is no text in UTF-8 and not searched: convert it, or write a separate entry"
        )
    if size + len(raw) > MAX_BYTES:
        raise InvalidError(
            f"{shown} has {size} bytes and would not be searched with {len(raw)} more: a source has at most "
            f"{MAX_BYTES}. Write a separate entry, without daily"
        )
    written = os.write(fd, raw)
    try:
        _sync(fd, is_whole=written == len(raw))
    except OSError:
        # With O_APPEND the position is now where this write ended, whatever other processes wrote since.
        stop = os.lseek(fd, 0, os.SEEK_CUR)
        with contextlib.suppress(OSError):
            _overwrite(fd, stop - written, stop)
        raise


def _sync(fd: int, *, is_whole: bool) -> None:
    if not is_whole:  # the only other cause of a partial write is a fatal signal
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    fsio.sync(fd)


def _overwrite(fd: int, start: int, stop: int) -> None:
    """Replace the range by a blank line of the same length."""
    # On Linux a file with O_APPEND is always appended to, whatever the position is.
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND)
    fsio.write_at(fd, b" " * (stop - start - 1) + b"\n", start)


def _shows(memory: int, name: str, shown: str, text: bytes) -> bool:
    """Return whether the file with this name contains *text* now; False while the name does not exist."""
    try:
        with _opened(memory, name, shown, 0, os.O_RDONLY) as fd:
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
