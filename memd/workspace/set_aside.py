"""Indexes of one workspace that were set aside: damaged ones, and those of another release of memd.

Each is a folder next to the index, INDEX.damaged-TIME or INDEX.old-TIME. The new index takes its vectors. It
contains old text of notes, so it is deleted when text is purged; one of another release is deleted as soon as
the new index is complete.
"""

import shutil
import time
from pathlib import Path
from typing import Literal, get_args

import structlog

from memd.errors import StorageError
from memd.records import Renewal
from memd.registry import is_folder

log = structlog.get_logger()

Reason = Literal["damaged", "old"]  # old: written by another release
KEPT = 2  # of each kind, for their vectors; damaged ones for inspection, too


def set_aside(index_dir: Path, *reasons: Reason) -> list[Path]:
    """Return the indexes that were set aside for *reasons*, or for any, newest first."""
    wanted = reasons or get_args(Reason)
    found = (one for reason in wanted for one in index_dir.parent.glob(f"{index_dir.name}.{reason}-*"))
    return sorted(found, key=lambda folder: folder.name.rpartition("-")[2], reverse=True)


def why_renewed(index_dir: Path) -> Renewal:
    """Return why an incomplete index is being rebuilt; "" if it is the first one."""
    for newest in set_aside(index_dir):
        return "updated" if newest in set_aside(index_dir, "old") else "damaged"
    return ""


def delete_aside(index_dir: Path, *reasons: Reason) -> None:
    """Delete what `set_aside` returns. Raises StorageError: it cannot be deleted."""
    for folder in set_aside(index_dir, *reasons):
        delete_index(folder)


def set_index_aside(folder: Path, reason: Reason = "damaged") -> None:
    """Rename an unreadable index; only the newest few of each kind are kept, and none is overwritten."""
    log.warning("index_set_aside", reason=reason)
    for old in set_aside(folder, reason)[KEPT - 1 :]:
        delete_index(old)
    try:
        folder.rename(folder.with_name(f"{folder.name}.{reason}-{time.time_ns()}"))
    except FileNotFoundError:  # it was deleted as a whole
        return
    except OSError as error:
        raise StorageError(f"{folder} is {reason} and cannot be renamed: {error.strerror}") from error


def delete_index(folder: Path) -> None:
    """Delete an index, or one that was set aside."""
    try:
        if is_folder(folder) and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"{folder} cannot be deleted: {error.strerror}") from error
