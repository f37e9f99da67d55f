"""Atomic creation, replacement and deletion of entry files below memory/; removal of leftovers.

From the root on, every step is relative to an open folder and follows no link: the meaning of a path can
change between a check and its use, that of a descriptor cannot. (Rejected: resolving the path and comparing
it with the root; a thread that swaps a folder for a link defeats it.) Must not know what an entry is. One
caller at a time per root.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from memd import fsio
from memd.errors import (
    ChangedError,
    MemdError,
    NotFoundError,
    StorageError,
    UnsafeError,
    WorkspaceError,
    storage_error,
)

MAX_BYTES = 512 * 1024  # of a file that may be an entry: content of 256 KiB, and front matter

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Like `fsio.UNFINISHED`, but of a deletion.
_ASIDE = re.compile(r"\.memd-forget-[0-9a-f]{16}-(?P<name>[^/]+\.md)")
_NOT_A_FOLDER = frozenset({errno.ELOOP, errno.ENOTDIR})
# Errors of link() on file systems without hard links (FAT, some network mounts).
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def place(root: Path, folder: str, name: str, body: bytes) -> bool:
    """Create memory/*folder*/*name* with *body*; it is on the disk when this returns.

    Args:
        root: the workspace; must have a folder memory/.
        folder: one path component; created if it is missing.
        name: one path component; an existing file is never replaced.
        body: the whole file.

    Returns:
        False if *name* is taken; nothing was written then.

    Raises:
        WorkspaceError: *root* has no memory/.
        UnsafeError: memory/ or *folder* is a link or not a folder, or was moved meanwhile.
        NoSpaceError, StorageError: the disk is full, or fails.
    """
    try:
        with memory_folder(root) as memory, fsio.closing(_open_topic(memory, folder)) as topic:
            done = _write(topic, name, body)
            if done and not _is_at(memory, folder, topic):
                os.unlink(name, dir_fd=topic)
                raise UnsafeError(
                    f"memory/{folder} was moved away while {name} was written. Nothing is kept: try again"
                )
            os.fsync(topic)
            return done
    except OSError as error:
        raise storage_error(f"{root}/memory/{folder}/{name} was not written", error) from error


def replace(root: Path, folder: str, name: str, revised: Callable[[bytes], bytes]) -> bytes:
    """Replace the content of the file memory/*folder*/*name*; it is on the disk when this returns.

    A reader gets either the old file or the new one, whole. A concurrent save by another program is kept.

    Args:
        root: the workspace.
        folder: one path component.
        name: one path component.
        revised: returns the new bytes for the current ones, or raises an error to leave them unchanged.

    Returns:
        The new bytes.

    Raises:
        NotFoundError: there is no such file (any more).
        ChangedError: another program saved the file during the call.
        UnsafeError: memory/ or *folder* is a link, or *name* is not a regular file.
        WorkspaceError, NoSpaceError, StorageError: as `place`.
    """
    shown = f"memory/{folder}/{name}"
    try:
        with _topic_of(root, folder, name) as topic:
            there = _read(topic, name, shown)
            body = revised(there)
            _swap(topic, name, shown, there, body)
    except OSError as error:
        raise storage_error(f"{root}/{shown} was not revised", error) from error
    return body


def named(root: Path, ending: str) -> list[tuple[str, str, bytes]]:
    """Return folder, name and bytes of each entry whose name ends with *ending*.

    Raises as `take_away`.
    """
    found = []
    try:
        for shown, opened in _folders(root):
            folder = shown.removeprefix("memory").removeprefix("/")
            for name in sorted(os.listdir(opened)) if folder else ():  # noqa: PTH208 - of a descriptor
                if name.endswith(ending) and not name.startswith("."):
                    with contextlib.suppress(FileNotFoundError, UnsafeError):
                        found.append((folder, name, _read(opened, name, f"{shown}/{name}")))
    except OSError as error:
        raise StorageError(f"looking through {root}/memory failed: {error.strerror}") from error
    return found


def take_away(root: Path, folder: str, name: str, check: Callable[[bytes], None] | None) -> None:
    """Delete the file memory/*folder*/*name*, and the folder if nothing else is in it.

    The file is off the disk when this returns.

    Args:
        root: the workspace.
        folder: one path component.
        name: one path component.
        check: raises an error if a file with these bytes must not be deleted; None accepts any file.

    Raises:
        NotFoundError: there is no such file (any more).
        UnsafeError: memory/ or *folder* is a link, or *name* is not a regular file.
        WorkspaceError, StorageError: as `place`.
    """
    shown = f"memory/{folder}/{name}"
    try:
        with _topic_of(root, folder, name) as topic:
            if check is None:
                _read(topic, name, shown)
                os.unlink(name, dir_fd=topic)
            else:
                # The file is read twice. Between a check of a name and its unlink another file may be
                # saved under it, so the file is first renamed to a name that no other program uses: then
                # the bytes that are checked are those deleted.
                check(_read(topic, name, shown))
                aside = f".memd-forget-{secrets.token_hex(8)}-{name}"
                os.rename(name, aside, src_dir_fd=topic, dst_dir_fd=topic)
                try:
                    check(_read(topic, aside, shown))
                except BaseException:
                    _put_back(topic, aside, name)
                    raise
                os.unlink(aside, dir_fd=topic)
        with contextlib.suppress(OSError, MemdError), memory_folder(root) as memory:  # or others are in it
            os.rmdir(folder, dir_fd=memory)
    except OSError as error:
        raise StorageError(f"deleting {root}/{shown} failed: {error.strerror}") from error


def read(root: Path, path: str) -> bytes:
    """Return the bytes of the file at *path*, relative to *root*, or the first MAX_BYTES + 1 of them.

    Raises:
        UnsafeError: a folder of the path is a link, or *path* is not a regular file.
        OSError: it does not exist, or cannot be read.
    """
    *folders, name = path.split("/")
    with contextlib.ExitStack() as opened:
        folder = opened.enter_context(fsio.closing(os.open(root, os.O_RDONLY | os.O_DIRECTORY)))
        for inner in folders:
            folder = opened.enter_context(fsio.closing(_open_folder(inner, folder, shown=path)))
        return _read(folder, name, path)


def add_line(root: Path, name: str, line: str) -> None:
    """Append a line to the file memory/*name* by one write; it is on the disk when this returns.

    Raises:
        UnsafeError: memory/ is a link, or *name* is not a regular file.
        WorkspaceError, NoSpaceError, StorageError: as `place`.
    """
    shown = f"memory/{name}"
    try:
        with (
            memory_folder(root) as memory,
            fsio.regular(name, fsio.APPEND, folder=memory, mode=0o644) as file,
        ):
            size = fsio.size(file)
            ends = not size or os.pread(file, 1, size - 1) == b"\n"
            os.write(file, f"{'' if ends else chr(10)}{line}\n".encode())
            os.fsync(file)
            os.fsync(memory)
    except fsio.NotRegularError:
        raise UnsafeError(f"{shown} is a link or not a file. Move it away") from None
    except OSError as error:
        raise storage_error(f"{root}/{shown} was not written", error) from error


@contextlib.contextmanager
def _topic_of(root: Path, folder: str, name: str) -> Iterator[int]:
    """Open the folder of an entry that is there; what the block does in it is on the disk behind it."""
    shown = f"memory/{folder}"
    try:
        with memory_folder(root) as memory, fsio.closing(_open_folder(folder, memory, shown=shown)) as topic:
            yield topic
            os.fsync(topic)
    except FileNotFoundError:
        gone = f"{root}/{shown}/{name} does not exist (any more): memctl search finds entries"
        raise NotFoundError(gone) from None


@contextlib.contextmanager
def memory_folder(root: Path) -> Iterator[int]:
    """Open memory/ of a workspace. Raises OSError, WorkspaceError and UnsafeError, as `place`."""
    with fsio.closing(os.open(root, os.O_RDONLY | os.O_DIRECTORY)) as base:
        try:
            memory = _open_folder("memory", base, shown=f"{root}/memory")
        except FileNotFoundError:  # not created here: this is not a workspace, or its disk is not mounted
            if not os.access(root, os.W_OK):
                raise WorkspaceError(
                    f"{root} cannot be written, and has no memory/ folder for entries: name another workspace"
                ) from None
            raise WorkspaceError(
                f"{root} has no memory/ folder. Is its disk mounted? If so: memctl init {root}"
            ) from None
        with fsio.closing(memory):
            yield memory


def leftovers(root: Path) -> list[str]:
    """Return the paths of files of entries and settings left by killed processes, relative to *root*.

    Files whose writer is still alive do not count. A folder that cannot be read has none.
    """
    found: list[str] = []
    with contextlib.suppress(OSError, MemdError):
        for folder, opened in _folders(root):
            found += [f"{folder}/{name}" for name in _left_in(opened)]
    return found


def clear_leftovers(root: Path, check: Callable[[bytes, str], None]) -> list[str]:
    """Remove `leftovers`; return their paths.

    Args:
        root: the workspace.
        check: as in `take_away`, with the file's name. A file of an interrupted deletion that it rejects gets
            its name back, because it is a user's text.
    """
    cleared: list[str] = []
    with contextlib.suppress(OSError, MemdError):
        for folder, opened in _folders(root):
            for name in _left_in(opened):
                with contextlib.suppress(OSError, MemdError):  # continue with the next one
                    _clear(opened, name, check)
                    cleared.append(f"{folder}/{name}")
    return cleared


def _swap(topic: int, name: str, shown: str, there: bytes, body: bytes) -> None:
    """Replace a file that has the bytes *there* by *body*.

    The new file is written under the temporary name of a deletion, and the two names are exchanged: then the
    old file is read again, and dropped if it is unchanged. A killed process leaves a file that memd wrote,
    which `clear_leftovers` drops, or a user's file, which gets its name back.
    """
    aside = f".memd-forget-{secrets.token_hex(8)}-{name}"
    mode = os.stat(name, dir_fd=topic, follow_symlinks=False).st_mode & 0o777
    with fsio.unnamed(topic, aside, body, mode=mode):
        try:
            fsio.exchange(topic, aside, name)
        except OSError as error:
            if not fsio.is_unsupported(error):
                raise
            # Without an exchange, a check and a rename must do: between the two are some microseconds.
            _expect(there, _read(topic, name, shown), shown)
            os.rename(aside, name, src_dir_fd=topic, dst_dir_fd=topic)
            return
        try:
            _expect(there, _read(topic, aside, shown), shown)
        except BaseException:
            fsio.exchange(topic, aside, name)
            if _read(topic, aside, shown) != body:  # it was saved a second time meanwhile
                _put_back(topic, aside, name)
            raise


def _expect(there: bytes, found: bytes, shown: str) -> None:
    if found != there:
        raise ChangedError(f"{shown} was saved by another program just now, and stays as saved: check it")


def _put_back(topic: int, aside: str, name: str) -> None:
    """Give a file its name back; if that name is taken now, another name in the same folder."""
    if not _publish(topic, aside, name) and not _is_one_file(topic, aside, name):
        name = f"kept-{secrets.token_hex(3)}-{name}"
        os.rename(aside, name, src_dir_fd=topic, dst_dir_fd=topic)
    with contextlib.suppress(FileNotFoundError):  # it was renamed already
        os.unlink(aside, dir_fd=topic)


def _is_one_file(topic: int, one: str, other: str) -> bool:
    """Return whether two names are hard links to one file, because a kill interrupted a restore."""
    stats = [os.stat(name, dir_fd=topic, follow_symlinks=False) for name in (one, other)]
    return os.path.samestat(*stats)


def _read(topic: int, name: str, shown: str) -> bytes:
    """Return a regular file's bytes, or the first MAX_BYTES + 1 of them: then it is not an entry."""
    try:
        return fsio.read_regular(name, MAX_BYTES + 1, flags=os.O_NOFOLLOW, folder=topic)
    except fsio.NotRegularError:
        raise UnsafeError(f"{shown} is a link or not a file, and only entries are deleted") from None


def _folders(root: Path) -> Iterator[tuple[str, int]]:
    """Yield path and descriptor of each folder that memd writes its own files into."""
    with memory_folder(root) as memory:
        yield "memory", memory
        for folder in sorted(os.listdir(memory)):  # noqa: PTH208 - of a descriptor
            shown = f"memory/{folder}"
            with (
                contextlib.suppress(OSError, UnsafeError),
                fsio.closing(_open_folder(folder, memory, shown=shown)) as opened,
            ):
                yield shown, opened


def _left_in(topic: int) -> list[str]:
    return [
        name
        for name in sorted(os.listdir(topic))
        if (fsio.UNFINISHED.fullmatch(name) or _ASIDE.fullmatch(name)) and _is_left(topic, name)
    ]


def _is_left(topic: int, name: str) -> bool:
    """Return whether *name* is a file of this user that no living process is writing."""
    try:
        with fsio.regular(name, os.O_RDONLY | os.O_NOFOLLOW, folder=topic) as fd:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return os.fstat(fd).st_uid == os.geteuid()
    except OSError:  # its writer holds it, or locks are not supported
        return False


def _clear(topic: int, name: str, check: Callable[[bytes, str], None]) -> None:
    aside = _ASIDE.fullmatch(name)
    if aside is None:
        os.unlink(name, dir_fd=topic)
        return
    try:
        check(_read(topic, name, name), aside["name"])
    except MemdError:
        _put_back(topic, name, aside["name"])
    else:
        os.unlink(name, dir_fd=topic)


def _open_topic(memory: int, folder: str) -> int:
    shown = f"memory/{folder}"
    try:
        return _open_folder(folder, memory, shown=shown)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700, dir_fd=memory)
        os.fsync(memory)
        return _open_folder(folder, memory, shown=shown)


def _open_folder(name: str, parent: int, *, shown: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno in _NOT_A_FOLDER:
            raise UnsafeError(
                f"{shown} is a link or not a folder, and entries need a real folder. Move it away"
            ) from None
        raise


def _write(topic: int, name: str, body: bytes) -> bool:
    """Write to a temporary name that scans skip, then rename: a killed process leaves no partial entry."""
    temporary = fsio.unfinished_name()
    try:
        with fsio.unnamed(topic, temporary, body):
            return _publish(topic, temporary, name)
    except FileExistsError:
        return False


def _publish(topic: int, temporary: str, name: str) -> bool:
    """Give the finished file its name unless the name is taken.

    rename() replaces an existing file, and Python's os lacks its RENAME_NOREPLACE; link() fails by itself. On
    a file system without links, a check and a rename must do: between the two only a writer with the same
    title and the same random id could interfere.
    """
    try:
        os.link(temporary, name, src_dir_fd=topic, dst_dir_fd=topic, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if name in os.listdir(topic):
            return False
        os.rename(temporary, name, src_dir_fd=topic, dst_dir_fd=topic)
    return True


def _is_at(memory: int, folder: str, topic: int) -> bool:
    """Return whether the name *folder* still refers to the open folder *topic*."""
    try:
        there = os.stat(folder, dir_fd=memory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(topic))
