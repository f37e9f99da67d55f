"""The kernel's list of this process's inotify watches, by device and inode, from /proc/self/fdinfo (proc(5)).

It tells which folders really have a watch, which the library that adds them does not. Where there is no such
list (macOS), nothing can be proved and nothing is doubted.
"""

import os
import re
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")
_INOTIFY = "anon_inode:inotify"
_LINE = re.compile(rb"^inotify wd:[0-9a-f]+ ino:([0-9a-f]+) sdev:([0-9a-f]+) ", re.MULTILINE)
_MINOR_BITS = 20  # of a device number inside of the kernel, which is another one than stat's


class WatchTable:
    """The inodes that have a watch."""

    def __init__(self, listed: bytes) -> None:
        self._watched = {(int(device, 16), int(inode, 16)) for inode, device in _LINE.findall(listed)}
        self._devices = {device for device, _ in self._watched}
        self._inodes = {inode for _, inode in self._watched}

    def __len__(self) -> int:
        return len(self._watched)

    def holds(self, status: os.stat_result) -> bool:
        """Tell whether the folder with this status is watched."""
        device = os.major(status.st_dev) << _MINOR_BITS | os.minor(status.st_dev)
        if device in self._devices:
            return (device, status.st_ino) in self._watched
        # btrfs shows stat a number for each subvolume; the list has that of the file system.
        return status.st_ino in self._inodes


def inotify_descriptors() -> frozenset[int]:
    """Return the descriptors of this process's inotify instances; none where the system lists none."""
    try:
        names = os.listdir(_DESCRIPTORS)  # noqa: PTH208 - names are wanted
    except OSError:
        return frozenset()
    return frozenset(int(name) for name in names if _is_inotify(name))


def watch_table(descriptor: int) -> WatchTable | None:
    """Return the watches of one inotify instance; None where it is closed."""
    try:
        return WatchTable(Path(f"/proc/self/fdinfo/{descriptor}").read_bytes())
    except OSError:
        return None


def _is_inotify(name: str) -> bool:
    try:
        return os.readlink(_DESCRIPTORS / name) == _INOTIFY  # noqa: PTH115 - it is no path
    except OSError:
        return False
