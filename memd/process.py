"""Private folders of one process, and the life of a program that memctl starts beside the daemon.

The state folder is 0700, on a disk and never synced. A folder in it is locked while its process lives, so
that the leftover of a killed process can be told from a folder in use; `remove_abandoned` deletes it.

Such a program writes lines of JSON to stdout. Each line is an object with one key: `note` (a sentence),
`progress` (stage, done, total), and at the end `report`, `nothing` (why there is none) or `error` (code,
message). The program ends at a signal and when stdin is closed: then whoever started it is gone, even by
kill -9. This module imports little, so that a signal is heard while what is heavy loads.
"""

import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from memd.errors import StorageError

PREFIX = "eval-"  # of a folder's name; the indexes of workspaces have hexadecimal ones

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# For cleaning up, once nobody waits: a model server that hangs is given up first. What a signal raises in a
# finalizer is lost: then this is the end.
LEAVE_S = 60.0


@contextmanager
def private_folder(state_dir: Path) -> Iterator[Path]:
    """Make a folder in *state_dir*, 0700; delete it at the end, whatever ends the block.

    Raises:
        StorageError: it cannot be made, or not be deleted.
    """
    try:
        remove_abandoned(state_dir)
        with _locked(state_dir):  # else its lock could be taken before it is ours
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=state_dir)).resolve()
            lock = os.open(folder, _FOLDER)
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise StorageError(f"no folder can be made in {state_dir}: {error.strerror}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        if folder.exists():
            raise StorageError(f"{folder} cannot be deleted; it holds a copy of notes: rm -r {folder}")


def remove_abandoned(state_dir: Path) -> None:
    """Delete the folders whose process was killed: nobody holds their lock."""
    with _locked(state_dir):
        for folder in sorted(state_dir.glob(f"{PREFIX}*")):
            if _is_free(folder):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, _FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_free(folder: Path) -> bool:
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError:  # a link or a file: none of ours
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


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
