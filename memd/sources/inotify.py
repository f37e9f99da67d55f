"""What does the Linux kernel tell of a folder that is watched?

inotify(7) through ctypes. Knows no tree and decides nothing: watches are numbers, events are as they come.
"""

import ctypes
import os
import struct
import sys
from enum import IntFlag
from functools import cache
from typing import NamedTuple, Self

# As much as the kernel queues by default (16,384 events) in about ten reads.
READ_BYTES = 64 * 1024
_HEAD = struct.Struct("iIII")  # struct inotify_event: watch, mask, cookie of a rename, length of the name


class Kind(IntFlag):
    """The bits of an event and of a watch's mask, sys/inotify.h."""

    MODIFY = 0x2
    ATTRIB = 0x4
    CLOSE_WRITE = 0x8
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    DELETE_SELF = 0x400
    MOVE_SELF = 0x800
    UNMOUNT = 0x2000
    Q_OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLYDIR = 0x1000000
    DONT_FOLLOW = 0x2000000
    EXCL_UNLINK = 0x4000000
    ISDIR = 0x40000000


class Event(NamedTuple):
    """One event. *mask* is a plain int: a flag object for each of thousands costs more than the rest."""

    watch: int  # -1 for Q_OVERFLOW
    mask: int
    name: str  # in the folder, as os.fsdecode has it; "" for the folder itself


class Inotify:
    """One queue of events."""

    def __init__(self) -> None:
        """Open a queue.

        Raises:
            OSError: EMFILE when the user has as many as the system allows (fs.inotify.max_user_instances).
        """
        self._fd = _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def fileno(self) -> int:
        """Return what to poll for reading."""
        return self._fd

    def add(self, path: str, mask: int) -> int:
        """Watch *path*; return the watch, which is the same one for the same folder under another name.

        Raises:
            OSError: ENOSPC when there are as many watches as the system allows.
        """
        return _checked(_libc().inotify_add_watch(self._fd, os.fsencode(path), mask), path)

    def remove(self, watch: int) -> None:
        """End a watch. One event of it, IGNORED, follows, also where the kernel had ended it before."""
        _libc().inotify_rm_watch(self._fd, watch)

    def read(self) -> list[Event]:
        """Return some of the events that wait; none if none do."""
        try:
            content = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return []
        events = []
        at = 0
        while at < len(content):
            watch, mask, _, length = _HEAD.unpack_from(content, at)
            at += _HEAD.size
            name = content[at : at + length].rstrip(b"\0")
            events.append(Event(watch, mask, os.fsdecode(name)))
            at += length
        return events


def available() -> bool:
    """Tell whether this system has inotify."""
    return sys.platform == "linux" and hasattr(_libc(), "inotify_init1")


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result
