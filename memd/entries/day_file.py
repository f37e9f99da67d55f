"""Daily entries and their file on the disk: a block is appended by one write, and blanked in place.

memd.daily defines the marks between blocks. Nothing is ever read, changed and put back, because other
programs append to the file, too: agents, editors, shells, a second machine's sync. Whatever they write
meanwhile stays:

- An append is one write(2) of a whole block to a file that was opened with O_APPEND: the kernel finds the
  end and writes there in one step, for all processes. The block begins with a line break, which ends the
  torn last line of a writer that was killed.
- A removal overwrites the bytes of the block, and no other byte, with spaces. The file keeps its length and
  its inode, so that an append at the same time, by a handle however old, goes behind it as before. The
  rejected ways: a new file in place of the old one (by rename, or by RENAME_EXCHANGE and a look at what was
  appended meanwhile) loses what comes through handles that are open to the old one, whenever that is; to
  move up what follows, or to cut the end off, loses what is appended between the look and the cut.
- Against editors that cut the file to nothing and write it anew, the bytes are compared right before they
  are overwritten, under a write lease where Linux grants one: nobody else has the file open then, and who
  opens it waits for the few microseconds.
- An editor that saves by rename may take the name away while a block goes to the old file. So after each
  write the file that has the name by now is looked at, and the write made again where it does not show.

Must not know the index: the caller tells the index. One caller at a time for each root in this process; other
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from memd import daily, fsio
from memd.entries.entry import Written, checked_source, hash_of, one_line, tags_of
from memd.entries.place import memory_folder
from memd.errors import ChangedError, InvalidError, NotFoundError, StorageError, UnsafeError, storage_error

# Of a daily file with the block: a longer one is no source any more, and its entries would not be found.
MAX_BYTES = 4 * 1024 * 1024

_ATTEMPTS = 5  # an editor replaces a file once in a save; more in a row are something else
_REPLACED_S = 0.05  # until an editor that has taken the name away has given it to its new file
_LEASE_TRIES = 20  # whoever reads the file, as memd does to index it, is done in that time
_LEASE_POLL_S = 0.005

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

# Which bytes are to go: (start, stop) of each stretch; raises what keeps them from going.
Find = Callable[[bytes], list[tuple[int, int]]]


def append_entry(
    root: Path,
    *,
    title: str,
    content: str,
    topic: str = "",
    tags: Sequence[str] = (),
    origin: Mapping[str, str],
    now: datetime,
    force: bool = False,
    new_id: Callable[[], str] = lambda: secrets.token_hex(8),
) -> Written:
    """Append one fact to memory/<day of *now*>.md; it is on the disk when this returns.

    The arguments are those of `write_entry`; the topic may be absent, and comes before the tags.

    Raises:
        InvalidError: as `write_entry`; or the content has a line that would be taken for a mark, or there is
            no room for it in the file.
        SecretError: as `write_entry`.
        UnsafeError, WorkspaceError, NoSpaceError, StorageError: as memd.entries.day_file says.
    """
    about = tags_of([one_line(topic, "topic"), *tags] if topic else tags)
    source = checked_source(origin, content, title=title, topic=topic, tags=tags, force=force)
    if daily.has_mark(content):
        raise InvalidError(
            "content has a line that begins a daily entry. Indent that line, or write an entry of its own"
        )
    entry_id, end = new_id(), "" if content.endswith("\n") else "\n"
    labels = " ".join(f"#{label}" for label in map(_label, about) if label)
    head = "\n".join(filter(None, [f"## {now:%H:%M} {one_line(title, 'title')}", labels]))
    path = daily.path_of(now.date())
    block = daily.marked(entry_id, f"{head}\n\n{content}{end}", origin=source, at=now)
    append(root, _name(path), block)
    created = now.isoformat(timespec="seconds")
    return Written(path=path, id=entry_id, created=created, hash=hash_of(block))


def remove_entry(root: Path, path: str, entry_id: str) -> None:
    """Remove a block from the daily file at *path*; it is off the disk when this returns.

    Raises:
        ChangedError: the block is not what memd wrote.
        NotFoundError: there is no such block (any more).
        UnsafeError, WorkspaceError, StorageError: as memd.entries.day_file says.
    """

    def find(raw: bytes) -> list[tuple[int, int]]:
        found = _of_id(raw, path, entry_id)
        for block in found:
            if not block.is_whole:
                line = raw.count(b"\n", 0, block.start) + 1
                raise ChangedError(
                    f"the entry {entry_id} was not removed: what stands at {path}:{line} is not what memd "
                    "wrote. Look at it; then delete its lines yourself"
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
    """Return the path of the newest daily file that has an entry of this id; None where none has."""
    days = sorted((name for name in names(root) if daily.PATH.fullmatch(f"memory/{name}")), reverse=True)
    for name in days:
        with contextlib.suppress(NotFoundError, UnsafeError, StorageError):
            if any(block.id == entry_id for block in daily.blocks(read(root, name))):
                return f"memory/{name}"
    return None


def append(root: Path, name: str, block: bytes) -> None:
    """Append *block* to memory/*name*; it is on the disk when this returns.

    Args:
        root: the workspace; it has a folder memory/.
        name: one path component; the file is made if it is missing.
        block: ends with a line break.

    Raises:
        InvalidError: the file would be too long to be searched.
        WorkspaceError: there is no memory/ here.
        UnsafeError: memory/ or the file is a link, or no file, or others replace it all the time.
        NoSpaceError, StorageError: the disk is full, or fails; no part of the block is left.
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
                os.fsync(memory)  # its name, too
                if _shows(memory, name, shown, block):
                    return
    except OSError as error:
        raise storage_error(f"{root}/{shown} was not written", error) from error
    raise UnsafeError(f"{shown} is replaced by another program all the time: try again")


def blank(root: Path, name: str, find: Find) -> None:
    """Overwrite stretches of memory/*name* with spaces; it is off the disk when this returns.

    Args:
        root: the workspace.
        name: one path component.
        find: which stretches, each with the line break at its end; asked of the file as it is right then.

    Raises:
        NotFoundError: there is no such file.
        WorkspaceError, UnsafeError, NoSpaceError, StorageError: as `append`.
    """
    shown = f"memory/{name}"
    try:
        with memory_folder(root) as memory:
            for _ in range(_ATTEMPTS):
                with _opened(memory, name, shown, 0) as fd:
                    gone = _blank(fd, find)
                if not any(_shows(memory, name, shown, text) for text in gone):
                    return
    except FileNotFoundError:
        raise NotFoundError(f"{root}/{shown} is not there (any more)") from None
    except OSError as error:
        raise storage_error(f"{root}/{shown} was not changed", error) from error
    raise UnsafeError(f"{shown} is replaced by another program all the time: try again")


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
        raise NotFoundError(f"{root}/{shown} is not there (any more)") from None
    except OSError as error:
        raise StorageError(f"{root}/{shown} cannot be read: {error.strerror}") from error


def names(root: Path) -> list[str]:
    """Return the names in memory/, or [] where it cannot be looked through."""
    with contextlib.suppress(OSError), memory_folder(root) as memory:
        return os.listdir(memory)  # noqa: PTH208 - of a descriptor
    return []


def _label(tag: str) -> str:
    """Return a tag as a text can hold it, behind "#"."""
    kept = (char if unicodedata.category(char)[0] in "LMN" or char in "_/" else "-" for char in tag)
    return re.sub("-+", "-", "".join(kept)).strip("-/")


def _name(path: str) -> str:
    return path.removeprefix("memory/")


def _of_id(raw: bytes, path: str, entry_id: str) -> list[daily.Block]:
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
            raise UnsafeError(f"{shown} is a link or no file: daily entries go into a real file") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UnsafeError(f"{shown} is a link or no file: daily entries go into a real file")
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
    # Not only after a torn line: between a look at the last byte and the write it may be another one.
    raw = b"\n" + block if size else block
    if size + len(raw) > MAX_BYTES:
        raise InvalidError(
            f"{shown} has {size} bytes and would not be searched with {len(raw)} more: a source has at most "
            f"{MAX_BYTES}. Write an entry of its own, without daily"
        )
    written = os.write(fd, raw)
    try:
        _sync(fd, is_whole=written == len(raw))
    except OSError:
        # Behind O_APPEND the position is where this write ended, whoever wrote since.
        stop = os.lseek(fd, 0, os.SEEK_CUR)
        with contextlib.suppress(OSError):
            _overwrite(fd, stop - written, stop)
        raise


def _sync(fd: int, *, is_whole: bool) -> None:
    if not is_whole:  # what else ends a write to a file early is a signal that kills
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    fsio.sync(fd)


def _overwrite(fd: int, start: int, stop: int) -> None:
    """Leave a blank line of the same length."""
    # Linux appends whatever the position is where a file has O_APPEND.
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND)
    fsio.write_at(fd, b" " * (stop - start - 1) + b"\n", start)


def _shows(memory: int, name: str, shown: str, text: bytes) -> bool:
    """Return whether the file that has this name now holds *text*; False while no file has the name."""
    try:
        with _opened(memory, name, shown, 0, os.O_RDONLY) as fd:
            return text in _read(fd)
    except FileNotFoundError:
        return False


def _blank(fd: int, find: Find) -> list[bytes]:
    """Overwrite what *find* names; return what stood there."""
    with _alone(fd):
        raw = _read(fd)
        stretches = find(raw)
        for start, stop in stretches:
            _overwrite(fd, start, stop)
    fsio.sync(fd)
    return [raw[start:stop] for start, stop in stretches]


@contextlib.contextmanager
def _alone(fd: int) -> Iterator[None]:
    """Keep others from opening the file, where the system can and nobody has it open for long."""
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
            # To tell that somebody waits to open it: this one is ignored, SIGIO would end us.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            if error.errno != errno.EAGAIN:  # the file is another user's, or the file system has none
                return False
            time.sleep(_LEASE_POLL_S)
        else:
            return True
    return False
