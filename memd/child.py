"""The life of a program that memctl starts beside the daemon: lines of JSON on stdout, and an orderly end.

Each line is an object with one key: `note` (a sentence), `progress` (stage, done, total), and at the end
`report`, `nothing` (why there is none) or `error` (code, message). The program ends at a signal and when
stdin is closed: then whoever started it is gone, even by kill -9. Imports little, so that a signal is heard
while what is heavy loads.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# For cleaning up, once nobody waits: a model server that hangs is given up first. What a signal raises in a
# finalizer is lost: then this is the end.
LEAVE_S = 60.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Send = Callable[[dict[str, Any]], None]


@contextmanager
def running() -> Iterator[Send]:
    """Make this process one that memctl can follow and end, and yield what writes a line.

    Files that it makes are for their owner alone. Behind the block nothing is left to be cleaned up, and a
    signal would only interrupt Python's own end.
    """
    _leave_at_signals()
    os.umask(0o077)
    threading.Thread(target=_leave_without_parent, name="memd-parent", daemon=True).start()
    try:
        yield _events()
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _events() -> Send:
    """Return what writes a line to stdout; what anybody else prints goes to stderr."""
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(event: dict[str, Any]) -> None:
        try:
            stream.write(json.dumps(event) + "\n")
            stream.flush()
        except BrokenPipeError:  # nobody reads any more
            raise SystemExit(1) from None

    return send


def _leave_at_signals() -> None:
    """Let the first signal end the process orderly; later ones would interrupt the cleaning up."""
    is_leaving = False

    def leave(number: int, _: FrameType | None) -> None:
        nonlocal is_leaving
        if not is_leaving:
            is_leaving = True
            raise SystemExit(128 + number)  # as shells report it

    for number in _SIGNALS:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:  # nohup's stays
            signal.signal(number, leave)


def _leave_without_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LEAVE_S)
    os._exit(128 + signal.SIGTERM)
