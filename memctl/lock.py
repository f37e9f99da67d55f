"""The lock of a state directory: which daemon holds it, and where that daemon listens.

The lock itself is flock's. What the file says is for clients whose environment names another runtime
directory, as in cron, containers and after su, and for messages. Both sides import it.
"""

import os
import time
from pathlib import Path
from typing import NamedTuple

from memctl.paths import check_private_dir, open_own

LOCK_NAME = "lock"
_MOST_BYTES = 1024  # far above a pid, a time and the path of a socket


class Holder(NamedTuple):
    """What the daemon that took the lock last says of itself."""

    pid: int
    start: int  # unix seconds
    socket: str = ""  # "" until it listens
    is_stopping: bool = False


def write(descriptor: int, holder: Holder) -> None:
    """Say who holds the lock, for `holder_of`; only whoever holds it does."""
    text = f"pid {holder.pid}\nstart {holder.start}\n"
    if holder.socket:
        text += f"socket {holder.socket}\n"
    if holder.is_stopping:
        text += "stopping\n"
    # In one write, and cut afterwards: a reader never sees less than one of the two.
    raw = os.fsencode(text)
    os.pwrite(descriptor, raw, 0)
    os.ftruncate(descriptor, len(raw))


def newly_taken(pid: int) -> Holder:
    """Return what a daemon says before it listens."""
    return Holder(pid, int(time.time()))


def holder_of(state_dir: Path) -> Holder | None:
    """
    Return who took the lock last, and may be gone; None where nobody did.

    Raises:
        PathError: the state directory or its lock must be mended first.
    """
    try:
        check_private_dir(state_dir)
        descriptor = open_own(state_dir / LOCK_NAME, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return read(descriptor)
    finally:
        os.close(descriptor)


def read(descriptor: int) -> Holder | None:
    """Return what is written in an open lock; None where that is not to be understood."""
    said = {}
    for line in os.pread(descriptor, _MOST_BYTES, 0).split(b"\n"):
        name, _, value = line.partition(b" ")
        said[name] = os.fsdecode(value)
    try:
        return Holder(int(said[b"pid"]), int(said[b"start"]), said.get(b"socket", ""), b"stopping" in said)
    except (KeyError, ValueError):
        return None
