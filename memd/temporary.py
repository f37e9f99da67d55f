"""Private folders in memd's state folder that live as long as one process.

The state folder is 0700, on a disk and never synced. A folder is locked while its process lives, so that what
a killed process left can be told from what is in use; `remove_abandoned` deletes it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.errors import StorageError

PREFIX = "eval-"  # of a folder's name; the indexes of workspaces have hexadecimal ones

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
