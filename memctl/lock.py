"""The lock file of a state directory: which daemon holds it, and where that daemon listens.

flock makes the lock. The contents of the file are for messages, and for clients whose environment has another
runtime directory, as in cron, in containers and after su. Both memctl and memd import this module.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from memctl.paths import check_private_dir, open_own
from memctl.protocol import API_LEVEL

if TYPE_CHECKING:
    from pathlib import Path

LOCK_NAME = "lock"
EXIT_RUNNING = 73  # of a memd that another one keeps from the lock: clients just connect
_MOST_BYTES = 16 << 10  # above a pid, a time, and three paths of maximum length


class Holder(NamedTuple):
    """The daemon that took the lock last, as it wrote to the file."""

    pid: int
    start: int  # unix seconds
    socket: str = ""  # "" until it listens
    is_stopping: bool = False
    api_level: int = 0  # of its protocol; 0: older than this field
    installation: str = ""  # the result of `installation`
    by_memctl: bool = False  # started by memctl, not by systemd or a person


def installation() -> str:
    """Return an identifier of this installation of memd: the folders of its Python and of its code."""
    return ascii((sys.prefix, os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120 - pathlib is slow


def write(descriptor: int, holder: Holder) -> None:
    """Write the holder to the lock file, for `holder_of`; only the holder of the lock may call this."""
    text = f"pid {holder.pid}\nstart {holder.start}\n"
    if holder.socket:
        text += f"socket {holder.socket}\n"
    text += f"level {holder.api_level}\ninstallation {holder.installation}\n"
    if holder.by_memctl:
        text += "memctl\n"
    if holder.is_stopping:
        text += "stopping\n"
    # One write, then truncate: a reader always sees all lines of the old or the new text.
    raw = os.fsencode(text)
    os.pwrite(descriptor, raw, 0)
    os.ftruncate(descriptor, len(raw))


def newly_taken(pid: int, *, by_memctl: bool = False) -> Holder:
    """Return the `Holder` that a daemon of this installation writes before it listens."""
    return Holder(
        pid, int(time.time()), api_level=API_LEVEL, installation=installation(), by_memctl=by_memctl
    )


def holder_of(state_dir: Path | str) -> Holder | None:
    """Return the daemon that took the lock last, which may have ended; None if there was none.

    Raises:
        PathError: the state directory or its lock file must be fixed first.
    """
    try:
        check_private_dir(state_dir)
        with os.fdopen(open_own(f"{state_dir}/{LOCK_NAME}", os.O_RDONLY), "rb") as file:
            return read(file.fileno())
    except FileNotFoundError:
        return None


def read(descriptor: int) -> Holder | None:
    """Return the holder in an open lock file; None if the text cannot be parsed."""
    values = {}
    for line in os.pread(descriptor, _MOST_BYTES, 0).split(b"\n"):
        name, _, value = line.partition(b" ")
        values[name] = os.fsdecode(value)
    try:
        return Holder(
            int(values[b"pid"]),
            int(values[b"start"]),
            values.get(b"socket", ""),
            is_stopping=b"stopping" in values,
            api_level=int(values.get(b"level", 0)),
            installation=values.get(b"installation", ""),
            by_memctl=b"memctl" in values,
        )
    except (KeyError, ValueError):
        return None
