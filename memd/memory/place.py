"""How does a new file get below memory/ and nowhere else, whole or not at all? How does one leave?

From the root on, every step is relative to an open folder and follows no link: what a path means can
change between a check and its use, what a descriptor means can't. (Resolving the path and comparing it
with the root is the rejected way: a thread that swaps a folder for a link gets through it.) Must not
know what an entry is.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path

from memd.errors import MemdError, NoSpaceError, NotFoundError, StorageError, UnsafeError, WorkspaceError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_A_FOLDER = frozenset({errno.ELOOP, errno.ENOTDIR})
# What file systems without hard links (FAT, some network mounts) answer to link().
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def place(root: Path, folder: str, name: str, body: bytes) -> bool:
    """Put *body* at memory/*folder*/*name*, on the disk when this returns.

    Args:
        root: the workspace; memory/ stands in it.
        folder: one path component; made if it is missing.
        name: one path component; never replaced.
        body: the whole file.

    Returns:
        False if *name* is taken; nothing was written then.

    Raises:
        WorkspaceError: there is no memory/ here.
        UnsafeError: memory/ or *folder* is a link, is no folder, or was moved meanwhile.
        NoSpaceError, StorageError: the disk is full, or fails.
    """
    try:
        with contextlib.ExitStack() as opened:
            base = _keep(opened, os.open(root, os.O_RDONLY | os.O_DIRECTORY))
            memory = _keep(opened, _open_memory(root, base))
            topic = _keep(opened, _open_topic(memory, folder))
            done = _write(topic, name, body)
            if done and not _stands_at(memory, folder, topic):
                os.unlink(name, dir_fd=topic)
                raise UnsafeError(
                    f"memory/{folder} was moved away while {name} was written. Nothing is kept: try again"
                )
            os.fsync(topic)
            return done
    except OSError as error:
        raise _told(error, root / "memory" / folder / name) from error


def take_away(root: Path, folder: str, name: str) -> None:
    """Delete the file memory/*folder*/*name*; it is off the disk when this returns.

    Raises:
        NotFoundError: there is no such file (any more).
        UnsafeError: memory/ or *folder* is a link, or *name* is no regular file.
        WorkspaceError, StorageError: as `place`.
    """
    shown = f"memory/{folder}/{name}"
    try:
        with contextlib.ExitStack() as opened:
            base = _keep(opened, os.open(root, os.O_RDONLY | os.O_DIRECTORY))
            memory = _keep(opened, _open_memory(root, base))
            topic = _keep(opened, _open_folder(folder, memory, shown=f"memory/{folder}"))
            if not stat.S_ISREG(os.stat(name, dir_fd=topic, follow_symlinks=False).st_mode):
                raise UnsafeError(f"{shown} is a link or no file, and only entries are deleted")
            os.unlink(name, dir_fd=topic)
            os.fsync(topic)
    except FileNotFoundError:
        raise NotFoundError(f"{root}/{shown} does not exist (any more)") from None
    except OSError as error:
        raise StorageError(f"deleting {root}/{shown} failed: {error.strerror}") from error


def _keep(opened: contextlib.ExitStack, fd: int) -> int:
    opened.callback(os.close, fd)
    return fd


def _open_memory(root: Path, base: int) -> int:
    # Not made here: without it this is no workspace, or its disk is not mounted.
    try:
        return _open_folder("memory", base, shown=f"{root}/memory")
    except FileNotFoundError:
        raise WorkspaceError(
            f"{root} has no memory/ folder. Is its disk mounted? Else: memctl init {root}"
        ) from None


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
                f"{shown} is a link or no folder, and entries go into real folders only. Move it away"
            ) from None
        raise


def _write(topic: int, name: str, body: bytes) -> bool:
    """Write under a name that scanners skip, then give it its own: a killed process leaves no half entry."""
    temporary = f".{name}.tmp"
    try:
        fd = os.open(temporary, _NEW_FILE, 0o600, dir_fd=topic)
    except FileExistsError:
        return False
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(body)
            file.flush()
            # Before the name: a name that is durable before its bytes is an empty note after a power cut.
            os.fsync(fd)
        return _publish(topic, temporary, name)
    finally:
        with contextlib.suppress(FileNotFoundError):  # a rename took it
            os.unlink(temporary, dir_fd=topic)


def _publish(topic: int, temporary: str, name: str) -> bool:
    """Name the finished file unless the name is taken.

    rename() replaces what is there, and its RENAME_NOREPLACE has no place in Python's os: link() refuses
    by itself. Where a file system has no links, a look and a rename must do; between the two only a writer
    with the same title and the same random id could come.
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


def _stands_at(memory: int, folder: str, topic: int) -> bool:
    """Tell whether the open folder is still the one that readers will find at its name."""
    try:
        there = os.stat(folder, dir_fd=memory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(topic))


def _told(error: OSError, path: Path) -> MemdError:
    if error.errno in _FULL:
        return NoSpaceError(f"no space left for {path}: nothing was kept. Free some and try again")
    return StorageError(f"writing {path} failed: {error.strerror}. Nothing was kept")
