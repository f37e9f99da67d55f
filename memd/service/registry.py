"""The registry of workspaces: a list of roots in the state directory.

It holds nothing that is not elsewhere, too: each index has its root beside it. What is damaged is read back
from there, and kept to be looked at.
"""

import json
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import structlog

from memctl.paths import PathError, open_own, reason_and_cure
from memd.errors import StorageError, is_full, storage_error
from memd.workspace import Workspace, workspace_at

log = structlog.get_logger()

REGISTRY_NAME = "workspaces.json"
ROOT_NAME = "root"  # in the folder of an index: whose it is, as the system names it
KEPT_DAMAGED = 2  # damaged registries that are kept to be looked at
MAX_BYTES = 16 << 20  # a registry of 100,000 long paths is shorter: what is longer is none
_READ_BYTES = 1 << 16  # at once; arbitrary


class Registry:
    """The file; for one thread at a time."""

    def __init__(self, state_dir: Path) -> None:
        self.trouble = ""  # what was wrong with it, for a person; "" mostly
        self._state_dir = state_dir
        self._path = state_dir / REGISTRY_NAME

    def read(self) -> list[Path]:
        """Return the registered roots; where the file is damaged or gone, those of the indexes.

        Raises:
            StorageError: it is there and cannot be read; then it is left as it is.
        """
        roots, fault = self._found()
        if fault and (os.path.lexists(self._path) or roots):
            self._replace_damaged(roots, fault)
        return roots

    def known(self) -> list[Path]:
        """Return the same and change nothing: for who does not hold the lock of the state directory."""
        return self._found()[0]

    def write(self, roots: Iterable[Path]) -> None:
        """Replace the registry: a new file, durable, then a rename."""
        text = json.dumps({"workspaces": [{"root": str(root)} for root in roots]}, indent=1) + "\n"
        write_durably(self._path, text.encode())

    def _found(self) -> tuple[list[Path], str]:
        """Return the roots, and what is wrong with the file: "" mostly."""
        try:
            raw = self._raw()
        except FileNotFoundError:
            roots, fault = _no_roots("is not there")
        else:
            roots, fault = _parsed(raw) if raw is not None else _no_roots("is no file")
        return (list(dict.fromkeys([*roots, *self._roots_of_indexes()])) if fault else roots), fault

    def _raw(self) -> bytes | None:
        """Return what is in the file, or in the one that it is a link to; None where it is none."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise
        except OSError as error:
            if not _is_file(self._path):
                return None
            raise StorageError(f"can't read {self._path}: {reason_and_cure(self._path, error)}") from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                return stream.read(MAX_BYTES)
        except OSError as error:
            raise StorageError(f"can't read {self._path}: {reason_and_cure(self._path, error)}") from error
        finally:
            os.close(descriptor)

    def _roots_of_indexes(self) -> list[Path]:
        """Return the roots that indexes are of; the name of each folder proves it."""
        folders = sorted(self._state_dir.iterdir()) if self._state_dir.is_dir() else []
        return [root for folder in folders if (root := root_of(folder)) is not None]

    def _replace_damaged(self, roots: list[Path], fault: str) -> None:
        kept = ""
        if os.path.lexists(self._path):
            aside = self._path.with_name(f"{REGISTRY_NAME}.damaged-{time.time_ns()}")
            self._keep(aside)
            kept = f", and what was there is kept as {aside}"
        self.write(roots)
        log.warning("registry_read_back", workspaces=len(roots))
        self.trouble = (
            f"{self._path} {fault}: {len(roots)} workspaces were read back from their indexes{kept}. If one "
            "is missing: memctl init DIR"
        )

    def _keep(self, aside: Path) -> None:
        """Keep what is damaged beside; a file also stays where it is, until another one takes its place."""
        for old in sorted(self._state_dir.glob(f"{REGISTRY_NAME}.damaged-*"))[: 1 - KEPT_DAMAGED]:
            if _is_file(old):  # a folder may hold something
                old.unlink()
        try:
            if _is_file(self._path):
                os.link(self._path, aside)
            else:
                self._path.rename(aside)
        except OSError as error:
            raise StorageError(
                f"can't set {self._path} aside: {reason_and_cure(self._path, error)}"
            ) from error


def remember_root(place: Workspace) -> None:
    """Leave in the folder of an index which root it is of."""
    if root_of(place.index_dir) != place.root:
        write_durably(place.index_dir / ROOT_NAME, os.fsencode(place.root))


def root_of(folder: Path) -> Path | None:
    """Return the root that the index in *folder* is of; None where that is not to be known."""
    try:
        descriptor = open_own(folder / ROOT_NAME, os.O_RDONLY)
    except (PathError, FileNotFoundError):
        return None
    try:
        raw = os.read(descriptor, _READ_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    root = Path(os.fsdecode(raw))
    return root if workspace_at(root, folder.parent).index_dir == folder else None


def write_durably(path: Path, raw: bytes) -> None:
    """Replace a file of memd's by a new one that is on the disk.

    Raises:
        StorageError, NoSpaceError: it cannot be written; what was there is as it was.
    """
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)  # of a daemon that was killed; what else stands there is not followed
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        blocked = path if path.is_dir() else fresh
        if is_full(error):
            raise storage_error(f"can't write {path}", error) from error
        raise StorageError(f"can't write {path}: {reason_and_cure(blocked, error)}") from error


def _parsed(raw: bytes) -> tuple[list[Path], str]:
    """Return the roots in a registry, and what is wrong with it; with a fault, those that are right."""
    try:
        entries = json.loads(raw)["workspaces"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return _no_roots(f"is damaged ({type(error).__name__})")
    if not isinstance(entries, list):
        return _no_roots("is damaged (its workspaces are no list)")
    named = [entry.get("root") if isinstance(entry, dict) else None for entry in entries]
    roots = [Path(name) for name in named if isinstance(name, str) and name[:1] == "/" and "\0" not in name]
    return roots, "" if len(roots) == len(entries) else "is damaged (not every root is an absolute path)"


def _no_roots(fault: str) -> tuple[list[Path], str]:
    return [], fault


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
