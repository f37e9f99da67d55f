"""How is one sidecar read and written, in a folder that is open? By its name alone, following no link."""

import os
import stat
from contextlib import suppress
from typing import Final

from memd.index import sidecar
from memd.index.sidecar import SidecarError

# An unneeded file may be needed again: another branch, a note that was moved out and comes back.
KEPT_S: Final = 24 * 3600

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def content(folder: int, name: str, bounds: tuple[int, int], *, most: int = sidecar.MAX_BYTES) -> bytes:
    """Return the first *most* bytes of a regular file whose size is within *bounds*."""
    # Opening a device may already do something; between the two looks it may have been replaced.
    expect_file(os.stat(name, dir_fd=folder, follow_symlinks=False), bounds)
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        expect_file(status, bounds)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(min(status.st_size + 1, most))
    finally:
        os.close(descriptor)


def expect_file(status: os.stat_result, bounds: tuple[int, int]) -> None:
    """Raise SidecarError unless it is a regular file whose size is within *bounds*."""
    if not stat.S_ISREG(status.st_mode):
        raise SidecarError("not-a-file")
    least, most = bounds
    if not least <= status.st_size <= most:
        raise SidecarError("wrong-size")


def put(folder: int, name: str, body: bytes) -> None:
    """Write under a name that is no sidecar's, then give it its own.

    Nothing is synced: after a power cut a file may be short or empty, which its size and its checksum
    tell, and a first run over thousands of notes would wait for the disk thousands of times.
    """
    temporary = f".~{name}.tmp"
    with suppress(FileNotFoundError):  # of a process that was killed
        os.unlink(temporary, dir_fd=folder)
    descriptor = os.open(temporary, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def is_old(folder: int, name: str, now_s: float) -> bool:
    """Tell whether a file was written a day before *now_s*."""
    try:
        return now_s - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > KEPT_S
    except OSError:
        return False


def is_of(folder: int, name: str, model: tuple[str, int]) -> bool:
    """Tell whether a regular file says at its beginning that its vectors are of *model*."""
    try:
        start = content(folder, name, (0, sidecar.MAX_BYTES), most=sidecar.MAX_START_BYTES)
        return sidecar.model_of(start) == model
    except (OSError, SidecarError):
        return False
