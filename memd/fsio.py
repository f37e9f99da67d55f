"""Durable writes of files, whole or in place, and the errors of a full or failing disk.

A file that is written whole goes through `replace_own`, `replace_users` or `unnamed`: a temporary name, the
bytes on the disk, the name, the folder on the disk. The rest is the one seam of the index for its own I/O:
everything else calls these as ``fsio.sync(…)``, so that a test can record, count or fail each of them. It
knows nothing of rows or of SQLite, which has I/O of its own. What has no other error in its docstring raises
OSError.
"""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memctl.paths import reason_and_cure
from memd.errors import StorageError, is_full, storage_error

_OWN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PRIVATE = 0o600  # the mode of a file that holds what somebody wrote
# Names that no person and no other program gives: a killed process leaves them, the next one clears them.
UNFINISHED = re.compile(r"\.memd-write-[0-9a-f]{16}\.tmp")
_EXCHANGE = 2  # Linux' RENAME_EXCHANGE and macOS' RENAME_SWAP
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone does not reach the disk


def replace_own(path: Path, raw: bytes) -> None:
    """Replace a file in a folder of memd's own; it is whole on the disk when this returns.

    Raises:
        NoSpaceError, StorageError: it cannot be written, with the command that mends it; what was there is
            as it was.
    """
    fresh = path.with_name(f"{path.name}.new")
    try:
        remove(fresh)  # of a daemon that was killed; what else stands there is not followed
        _replace(path, fresh.name, raw, mode=PRIVATE)
    except OSError as error:
        if is_full(error):
            raise storage_error(f"can't write {path}", error) from error
        blocked = path if path.is_dir() else fresh
        raise StorageError(f"can't write {path}: {reason_and_cure(blocked, error)}") from error


def replace_users(path: Path, raw: bytes) -> None:
    """Replace a file in a user's folder, which keeps its mode; it is whole on the disk when this returns.

    Raises:
        NoSpaceError, StorageError: it cannot be written; what was there is as it was.
    """
    try:
        _replace(path, unfinished_name(), raw, mode=path.stat().st_mode & 0o777)
    except OSError as error:
        raise storage_error(f"can't write {path}", error) from error


def unfinished_name() -> str:
    """Return a name for what is being written: nobody can have put a link to somewhere else there before."""
    return f".memd-write-{secrets.token_hex(8)}.tmp"


@contextmanager
def unnamed(folder: int, temporary: str, raw: bytes, *, mode: int = PRIVATE) -> Iterator[None]:
    """Write a whole file into an open folder, on the disk when the block begins; the block names it.

    The file is locked for as long as it is no leftover. What has the temporary name at the end goes.

    Raises:
        FileExistsError: the temporary name is taken.
    """
    descriptor = os.open(temporary, _NEW, PRIVATE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if mode != PRIVATE:  # some file systems refuse even what changes nothing
                os.fchmod(descriptor, mode)
            file.write(raw)
            file.flush()
            # Before the name: a name that is durable before its bytes is an empty file after a power cut.
            _sync_new(descriptor)
            yield
    finally:
        with suppress(FileNotFoundError):  # a rename took it
            os.unlink(temporary, dir_fd=folder)


def exchange(folder: int, one: str, other: str) -> None:
    """Exchange the files of two names in an open folder in one step: neither name is ever without one.

    Python's os has no name for it, and rename() loses what somebody saved under the name a moment before.

    Raises:
        OSError: with `is_unsupported`: neither this system nor this file system can do it.
    """
    import ctypes  # noqa: PLC0415 - only for a revision: a start answers without it

    libc = ctypes.CDLL(None, use_errno=True)
    swap = getattr(libc, "renameat2", None) or getattr(libc, "renameatx_np", None)
    if swap is None:
        raise OSError(errno.ENOSYS, "cannot exchange files", one)
    if swap(folder, os.fsencode(one), folder, os.fsencode(other), _EXCHANGE) != 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed), one)


def is_unsupported(error: OSError) -> bool:
    """Tell whether a file system, or the system, does not know what was asked for."""
    return error.errno in _UNSUPPORTED


def _replace(path: Path, temporary: str, raw: bytes, *, mode: int) -> None:
    folder = os.open(path.parent, _FOLDER)
    try:
        with unnamed(folder, temporary, raw, mode=mode):
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def _sync_new(descriptor: int) -> None:
    """As `sync`, with the owner and the mode."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    else:
        os.fsync(descriptor)


class Failure:
    """Remembers that the disk failed. Shared by all parts of one index that write; never forgets.

    After a failed fsync the kernel may have dropped what was to be written and say "done" the next time
    (LMDB, PostgreSQL 2018), so nothing may be acknowledged any more until all is read anew.
    """

    def __init__(self) -> None:
        self.error: StorageError | None = None

    def keep(self, error: StorageError) -> StorageError:
        """Remember *error*, and return it to be raised."""
        self.error = self.error or error
        return error

    def check(self) -> None:
        """Raise what was remembered."""
        if self.error is not None:
            raise StorageError(f"{self.error}. Nothing is written until the index is opened again")


def create(path: Path) -> int:
    """Make a file that is not there yet, for its owner alone; FileExistsError where something is."""
    return os.open(path, _OWN | os.O_CREAT | os.O_EXCL, PRIVATE)


def open_existing(path: Path) -> int:
    """Open a file of ours; a link, a folder or a pipe in its place is refused."""
    descriptor = os.open(path, _OWN)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "is no regular file", str(path))
    return descriptor


def size(descriptor: int) -> int:
    """Return the size of a file in bytes."""
    return os.fstat(descriptor).st_size


def reserve(descriptor: int, size_bytes: int) -> None:
    """Make sure that writing cannot fail for want of space: a clean error now, not SIGBUS later."""
    have = size(descriptor)
    if size_bytes <= have:
        return
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size_bytes)
    else:  # macOS has no posix_fallocate: zeros do the same
        write_at(descriptor, b"\0" * (size_bytes - have), have)


def write_at(descriptor: int, block: bytes | memoryview, offset: int) -> None:
    """Write all of *block*."""
    view = memoryview(block)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def read_at(descriptor: int, into: memoryview, offset: int) -> int:
    """Fill *into* from *offset* on; return how many bytes there were."""
    done = 0
    while done < len(into) and (got := os.preadv(descriptor, [into[done:]], offset + done)):
        done += got
    return done


def sync(descriptor: int) -> None:
    """Return when what was written is on the disk."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    else:
        os.fdatasync(descriptor)


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(path, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file; it may be gone already. A mapping in use keeps its bytes."""
    path.unlink(missing_ok=True)


def close(descriptor: int) -> None:
    """Close a file."""
    os.close(descriptor)


def lacks_inodes(path: Path | str) -> bool:
    """Tell whether no file can be made beside *path* for want of inodes. Some file systems have no limit."""
    try:
        space = os.statvfs(os.path.dirname(path))  # noqa: PTH120 - it may be no path but a word
    except OSError:
        return False
    return space.f_files > 0 and space.f_favail == 0
