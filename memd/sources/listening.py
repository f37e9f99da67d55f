"""How does a watch live? It listens, and after trouble listens again, in a thread of its own.

Knows the life, not the events: a backend is a function that listens until it is told to stop or fails.
"""

import errno
import os
import select
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memd.sources.dirty import Dirty, Waiting

# Waiting times before the watch is armed again; the last one repeats. One that lasted a minute starts over.
RETRY_S = (0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
STABLE_S = 60.0
# How often to look for a root that is gone.
MISSING_POLL_S = 2.0


class RearmError(Exception):
    """What is watched is no more what must be watched: begin again, nothing is broken."""

    def __init__(self, *, overflow: bool = False) -> None:
        super().__init__()
        self.overflow = overflow  # because too much happened at once


class RootGoneError(Exception):
    """The root is missing, or another folder took its place."""


class Halt:
    """Tells a thread to stop, also one that waits in poll."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        self._halted = False

    def fileno(self) -> int:
        """Return what becomes readable when it is time to stop."""
        return self._out

    def is_set(self) -> bool:
        """Tell whether it is time to stop."""
        return self._halted

    def set(self) -> None:
        """Say that it is time to stop. Once only."""
        self._halted = True
        os.close(self._in)  # the end of the pipe is what poll sees

    def wait(self, seconds: float) -> bool:
        """Wait for so long, or until it is time to stop; tell whether it is."""
        poller = select.poll()
        poller.register(self._out, select.POLLIN)
        poller.poll(seconds * 1000)
        return self._halted

    def close(self) -> None:
        """Give the pipe back, when no thread waits any more."""
        os.close(self._out)


@dataclass(frozen=True, slots=True)
class Order:
    """What to watch, and where to say what was seen."""

    root: Path
    cookies: Path | None
    enters: Callable[[str], bool]
    waiting: Waiting
    halt: Halt

    @property
    def prefix(self) -> str:
        """What every path below the root begins with."""
        return f"{str(self.root).rstrip('/')}/"


# Listens until the order's halt is set. When it is armed it adds *first*, with its own trouble if it has any.
Backend = Callable[[Order, Dirty], None]


class Listening:
    """A thread that listens."""

    def __init__(self, order: Order, backend: Backend) -> None:
        self._order = order
        self._thread = threading.Thread(target=_live, args=(order, backend), name="memd-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop it and wait for its end, which takes a moment."""
        self._order.halt.set()
        self._thread.join()
        self._order.halt.close()


def _live(order: Order, listen: Backend) -> None:
    failures = 0
    first = Dirty(rescan=True)
    while not order.halt.is_set():
        began = time.monotonic()
        overflow = False
        try:
            listen(order, first)
        except RearmError as error:
            overflow = error.overflow
            trouble = Dirty(trouble=f"too much changed at once below {order.root}, or its mounts did")
        except RootGoneError:
            trouble = Dirty(rescan=True, trouble=f"{order.root} is missing")
        except BaseException as error:  # noqa: BLE001 - a panic in Rust, too, ends this try and not the daemon
            trouble = Dirty(rescan=True, trouble=_explained(order.root, error), polling=True)
        if order.halt.is_set():
            return
        first = Dirty(rescan=True, overflow=overflow)
        failures = 0 if time.monotonic() - began > STABLE_S else failures + 1
        _pause(order, trouble, RETRY_S[min(max(failures - 1, 0), len(RETRY_S) - 1)])


def _pause(order: Order, trouble: Dirty, pause_s: float) -> None:
    """Wait for the root, if it is gone, or for so long; tell the trouble if that takes time."""
    if identity(order.root) is None:
        order.waiting.add(Dirty(rescan=True, trouble=f"{order.root} is missing"))
        while identity(order.root) is None:
            if order.halt.wait(MISSING_POLL_S):
                return
    elif pause_s:
        order.waiting.add(trouble)
        order.halt.wait(pause_s)


def identity(root: Path) -> tuple[int, int] | None:
    """Return what tells a folder from one that took its place; None if there is none."""
    try:
        status = root.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def limit_trouble(root: Path) -> str:
    """Say what to do about a root with more folders than may be watched."""
    return (
        f"{root} has more folders than the system lets memd watch; those over the limit are looked at on a "
        "timer. Raise it: sysctl fs.inotify.max_user_watches=524288"
    )


def remote_trouble(root: Path, kind: str) -> str:
    """Say what a file system means that another machine may change; nothing if *kind* is ""."""
    if not kind:
        return ""
    return f"{root} is on {kind} or has it inside: what another machine changes there is found by scans only"


def _explained(root: Path, error: BaseException) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EMFILE:
        return (
            f"{root} cannot be watched: this user watches too much already. Raise the limit: "
            "sysctl fs.inotify.max_user_instances=512"
        )
    if number == errno.ENOSPC or "limit" in str(error).lower():
        return limit_trouble(root)
    return f"watching {root} failed ({type(error).__name__}): saved files are found by scans only"
