"""Durable writes of files, whole or in place, and the errors of a full or failing disk.

A file that is written whole goes through `replace_own`, `replace_users` or `unnamed`: temporary name, fsync,
rename, fsync of the folder. The other functions are the single seam for the index's own I/O: callers write
``fsio.sync(…)``, so that a test can record, count or fail each call. Knows nothing of rows or of SQLite,
which does its own I/O. A function raises OSError unless its docstring names another error.
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
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # opens a folder, to sync it or to reach what is in it
# Clocks of file systems tick in steps of up to 2 s (FAT), 10 ms (ext4): what changes twice within a tick
# keeps its stamp.
RACY_NS = 2_000_000_000
APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW  # for `regular`: to a file that may be new
PRIVATE = 0o600  # the mode of files that contain users' texts
# Names that no person or other program uses: a killed process leaves such files, and the next one deletes
# them.
UNFINISHED = re.compile(r"\.memd-write-[0-9a-f]{16}\.tmp")
_EXCHANGE = 2  # Linux' RENAME_EXCHANGE and macOS' RENAME_SWAP
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
# Errors of opening a link without following it, a socket or a pipe, a folder.
_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO, errno.EISDIR})
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync leaves data in the disk's cache


class NotRegularError(OSError):
    """What was to be opened as a file is a folder, a pipe, a device, or a link that is not followed."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def regular(
    path: Path | str, flags: int = os.O_RDONLY, *, folder: int | None = None, mode: int = PRIVATE
) -> Iterator[int]:
    """Open a regular file for the block; *path* is relative to an open *folder*, if there is one.

    It is not waited for: a pipe waits for its other end. Raises NotRegularError for any other kind.
    """
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode, dir_fd=folder)
    except OSError as error:
        raise NotRegularError(path) if error.errno in _NO_FILE else error from None
    with closing(descriptor):
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError(path)
        yield descriptor


def read_regular(
    path: Path | str, most_bytes: int = -1, *, flags: int = 0, folder: int | None = None
) -> bytes:
    """Return up to *most_bytes* of a file that `regular` opens."""
    with (
        regular(path, os.O_RDONLY | flags, folder=folder) as descriptor,
        os.fdopen(descriptor, "rb", closefd=False) as stream,
    ):
        return stream.read(most_bytes)


def replace_own(path: Path, raw: bytes) -> None:
    """Replace a file in a folder of memd's own; it is complete on the disk when this returns.

    Raises:
        NoSpaceError, StorageError: it cannot be written, with a command that fixes that; the old content
            remains.
    """
    fresh = path.with_name(f"{path.name}.new")
    try:
        remove(fresh)  # left by a killed daemon; creating the file follows no link
        _replace(path, fresh.name, raw, mode=PRIVATE)
    except OSError as error:
        if is_full(error):
            raise storage_error(f"can't write {path}", error) from error
        blocked = path if path.is_dir() else fresh
        raise StorageError(f"can't write {path}: {reason_and_cure(blocked, error)}") from error


def replace_users(path: Path, raw: bytes) -> None:
    """Replace a file in a user's folder, keeping its mode; it is complete on the disk when this returns.

    Raises:
        NoSpaceError, StorageError: it cannot be written; the old content remains.
    """
    try:
        _replace(path, unfinished_name(), raw, mode=path.stat().st_mode & 0o777)
    except OSError as error:
        raise storage_error(f"can't write {path}", error) from error


def unfinished_name() -> str:
    """Return a temporary name that cannot be predicted, so that no link can be prepared under it."""
    return f".memd-write-{secrets.token_hex(8)}.tmp"


@contextmanager
def unnamed(folder: int, temporary: str, raw: bytes, *, mode: int = PRIVATE) -> Iterator[None]:
    """Write a whole file into an open folder, durable when the block begins; the block gives it its name.

    The file stays locked, so that it does not look like a leftover. The temporary name is removed at the end.

    Raises:
        FileExistsError: the temporary name is taken.
    """
    descriptor = os.open(temporary, _NEW, PRIVATE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if mode != PRIVATE:  # some file systems reject even a chmod that changes nothing
                os.fchmod(descriptor, mode)
            file.write(raw)
            file.flush()
            # Before the rename: a name that becomes durable before its bytes is an empty file after a power
            # cut.
            _sync_new(descriptor)
            yield
    finally:
        with suppress(FileNotFoundError):  # it was renamed
            os.unlink(temporary, dir_fd=folder)


def exchange(folder: int, one: str, other: str) -> None:
    """Exchange the files of two names in an open folder atomically: neither name is ever missing.

    Python's os lacks this call, and rename() would lose a file that was saved a moment before.

    Raises:
        OSError: with `is_unsupported`, if the system or the file system cannot do it.
    """
    import ctypes  # noqa: PLC0415 - only for a revision: the daemon's start does not need it

    libc = ctypes.CDLL(None, use_errno=True)
    swap = getattr(libc, "renameat2", None) or getattr(libc, "renameatx_np", None)
    if swap is None:
        raise OSError(errno.ENOSYS, "cannot exchange files", one)
    if swap(folder, os.fsencode(one), folder, os.fsencode(other), _EXCHANGE) != 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed), one)


def is_unsupported(error: OSError) -> bool:
    """Return whether an error means that the system or the file system lacks an operation."""
    return error.errno in _UNSUPPORTED


def _replace(path: Path, temporary: str, raw: bytes, *, mode: int) -> None:
    with closing(os.open(path.parent, FOLDER)) as folder:
        with unnamed(folder, temporary, raw, mode=mode):
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


def _sync_new(descriptor: int) -> None:
    """Sync data like `sync`, including owner and mode."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    else:
        os.fsync(descriptor)


class Failure:
    """Remembers that the disk failed. Shared by all writing parts of an index; never reset.

    After a failed fsync the kernel may have dropped the data and report success the next time (LMDB,
    PostgreSQL 2018), so nothing may be acknowledged until everything was read again.
    """

    def __init__(self) -> None:
        self.error: StorageError | None = None

    def keep(self, error: StorageError) -> StorageError:
        """Store *error*, and return it to be raised."""
        self.error = self.error or error
        return error

    def check(self) -> None:
        """Raise an error if one was stored."""
        if self.error is not None:
            raise StorageError(f"{self.error}. Nothing is written until the index is opened again")


def create(path: Path) -> int:
    """Create a file for its owner alone; FileExistsError if the name is taken."""
    return os.open(path, _OWN | os.O_CREAT | os.O_EXCL, PRIVATE)


def open_existing(path: Path) -> int:
    """Open an existing file of memd's own; a link, a folder or a pipe is an error."""
    descriptor = os.open(path, _OWN)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "is not a regular file", str(path))
    return descriptor


def size(descriptor: int) -> int:
    """Return the size of a file in bytes."""
    return os.fstat(descriptor).st_size


def reserve(descriptor: int, size_bytes: int) -> None:
    """Allocate space, so that later writes cannot fail for lack of it: an error now, not SIGBUS later."""
    have = size(descriptor)
    if size_bytes <= have:
        return
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size_bytes)
    else:  # macOS has no posix_fallocate: write zeros
        write_at(descriptor, b"\0" * (size_bytes - have), have)


def write_at(descriptor: int, block: bytes | memoryview, offset: int) -> None:
    """Write all of *block* at *offset*."""
    view = memoryview(block)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def read_at(descriptor: int, into: memoryview, offset: int) -> int:
    """Fill *into* from *offset* on; return the number of bytes read."""
    done = 0
    while done < len(into) and (got := os.preadv(descriptor, [into[done:]], offset + done)):
        done += got
    return done


def sync(descriptor: int) -> None:
    """Wait until the written data is on the disk."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    else:
        os.fdatasync(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the entries of a folder are on the disk."""
    with closing(os.open(path, FOLDER)) as descriptor:
        os.fsync(descriptor)


def remove(path: Path) -> None:
    """Remove a file if it exists. Existing mappings of it stay valid."""
    path.unlink(missing_ok=True)


def remove_leftover(path: Path) -> None:
    """Remove a file if that can be: one that remains is removed at the next start; a folder is not memd's."""
    with suppress(OSError):
        remove(path)


def close(descriptor: int) -> None:
    """Close a file."""
    os.close(descriptor)


def lacks_inodes(path: Path | str) -> bool:
    """Return whether no file can be created next to *path* for lack of inodes; some systems have no limit."""
    try:
        space = os.statvfs(os.path.dirname(path))  # noqa: PTH120 - it may be a word and not a path
    except OSError:
        return False
    return space.f_files > 0 and space.f_favail == 0
