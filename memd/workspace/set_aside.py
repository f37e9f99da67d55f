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
from memd.registry import is_folder

log = structlog.get_logger()

Reason = Literal["damaged", "old"]  # old: written by another release

KEPT = 2  # of each kind, for their vectors; damaged ones for inspection, too


class SetAside:
    """The folders of one workspace, counted when it is opened and after deletions."""

    def __init__(self, index_dir: Path) -> None:
        self.folders: list[Path] = []  # newest first
        self._index_dir = index_dir
        self.count()

    @property
    def why(self) -> Literal["", "updated", "damaged"]:
        """Why an incomplete index is being rebuilt; "" if it is the first one."""
        if not self.folders:
            return ""
        return "updated" if self.folders[0] in self.old else "damaged"

    @property
    def old(self) -> list[Path]:
        """The indexes of another release, newest first."""
        return [folder for folder in self.folders if folder.suffix.startswith(".old-")]

    def count(self) -> None:
        """List the existing folders again."""
        every = [folder for reason in get_args(Reason) for folder in _kept(self._index_dir, reason)]
        self.folders = sorted(every, key=lambda folder: folder.name.rpartition("-")[2], reverse=True)

    def delete(self, folders: list[Path] | None = None) -> None:
        """Delete *folders*, or all of them. Raises StorageError: one cannot be deleted."""
        try:
            for folder in self.folders if folders is None else folders:
                delete_index(folder)
        finally:
            self.count()


def set_index_aside(folder: Path, reason: Reason = "damaged") -> None:
    """Rename an unreadable index; only the newest few of each kind are kept, and none is overwritten."""
    log.warning("index_set_aside", reason=reason)
    kept = _kept(folder, reason)
    for old in kept[: len(kept) + 1 - KEPT]:
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


def _kept(folder: Path, reason: Reason) -> list[Path]:
    """Return the indexes that were set aside for *reason*, oldest first."""
    return sorted(folder.parent.glob(f"{folder.name}.{reason}-*"))
