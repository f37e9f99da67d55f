"""How are files of our own written so that they are there after a power cut?

The one seam of the index for its own I/O: everything else calls these as ``files.sync(…)``, so that a
test can record, count or fail each of them. It knows nothing of rows or of SQLite, which has I/O of its
own. All functions raise OSError.
"""

import errno
import fcntl
import os
import stat
from pathlib import Path

from memd.errors import NoSpaceError, StorageError, is_full

_OWN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone does not reach the disk


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
    return os.open(path, _OWN | os.O_CREAT | os.O_EXCL, 0o600)


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
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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


def translated(path: Path, error: OSError) -> NoSpaceError | StorageError:
    """Return the error of ours that says the same."""
    if is_full(error):
        return NoSpaceError(f"{path}: no space left on the device; what was indexed still answers")
    return StorageError(f"{path}: {error.strerror or error}")


def lacks_inodes(path: Path | str) -> bool:
    """Tell whether no file can be made beside *path* for want of inodes. Some file systems have no limit."""
    try:
        space = os.statvfs(os.path.dirname(path))  # noqa: PTH120 - it may be no path but a word
    except OSError:
        return False
    return space.f_files > 0 and space.f_favail == 0
