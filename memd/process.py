"""Private folders of one process, and the lifecycle of a program that memctl starts next to the daemon.

The state folder is 0700, on a local disk and never synced. A folder in it is locked while its process lives,
so that `remove_abandoned` can recognize and delete those of killed processes.

Such a program writes lines of JSON to stdout. Each line is an object with one key: `note` (a sentence),
`progress` (stage, done, total), and at the end `report`, `nothing` (why there is none) or `error` (code,
message). The program ends at a signal and when stdin is closed, which means that its parent is gone, even by
kill -9. This module imports little, so that signals are handled while the heavy imports run.
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

from memctl import paths
from memd import fsio
from memd.errors import MemdError, StorageError

PREFIX = "eval-"  # of a folder's name; the indexes of workspaces have hexadecimal names

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# Limit of the cleanup after the parent is gone; calls to a hanging model server time out earlier. If the
# signal's exception was lost in a finalizer, the process ends after this time.
LEAVE_S = 60.0


@contextmanager
def private_folder(state_dir: Path) -> Iterator[Path]:
    """Create a folder in *state_dir*, 0700; delete it when the block ends in any way.

    Raises:
        StorageError: it cannot be created or deleted.
    """
    try:
        remove_abandoned(state_dir)
        with _locked(state_dir):  # otherwise another process could lock it first
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
            raise StorageError(f"{folder} cannot be deleted; it holds private copies: rm -r {folder}")


def remove_abandoned(state_dir: Path) -> None:
    """Delete the folders of killed processes, which are not locked."""
    with _locked(state_dir):
        for folder in sorted(state_dir.glob(f"{PREFIX}*")):
            if _is_free(folder):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with fsio.closing(os.open(folder, _FOLDER)) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _is_free(folder: Path) -> bool:
    try:
        with fsio.closing(os.open(folder, _FOLDER)) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is in use; or a link or a file: not one of these folders
        return False
    return True


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Send = Callable[[dict[str, Any]], None]


class NothingError(Exception):
    """There is nothing to do, and the reason is no fault."""


@contextmanager
def running(*, watches_parent: bool = True) -> Iterator[Send]:
    """Make this process one that memctl can follow and end; yield the function that writes a line.

    Without *watches_parent* the block calls `leave_without_parent` itself, behind its sandbox. The errors for
    which memctl has words are the last line.

    Files that it creates are private. After the block everything is cleaned up, and signals are ignored,
    because they would only interrupt Python's shutdown.
    """
    _leave_at_signals()
    os.umask(0o077)
    if watches_parent:
        leave_without_parent()
    send = _events()
    try:
        yield send
    except NothingError as error:
        send({"nothing": str(error)})
    except MemdError as error:
        send({"error": {"code": error.code, "message": str(error)}})
    except paths.PathError as error:
        send({"error": {"code": "MEMD_UNSAFE", "message": str(error)}})
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _events() -> Send:
    """Return a function that writes a line to stdout; other output to stdout goes to stderr."""
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(event: dict[str, Any]) -> None:
        try:
            stream.write(json.dumps(event) + "\n")
            stream.flush()
        except BrokenPipeError:  # the reader is gone
            raise SystemExit(1) from None

    return send


def _leave_at_signals() -> None:
    """End the process in order on the first signal; ignore later ones, which would interrupt the cleanup."""
    is_leaving = False

    def leave(number: int, _: FrameType | None) -> None:
        nonlocal is_leaving
        if not is_leaving:
            is_leaving = True
            raise SystemExit(128 + number)  # the exit code that shells use

    for number in _SIGNALS:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:  # keep nohup's setting
            signal.signal(number, leave)


def leave_without_parent() -> None:
    """End this process as soon as its stdin is closed; to be called behind `memd.sandbox.restrict`.

    Landlock does not hold for threads that were started before.
    """
    threading.Thread(target=_leave_without_parent, name="memd-parent", daemon=True).start()


def _leave_without_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LEAVE_S)
    os._exit(128 + signal.SIGTERM)
