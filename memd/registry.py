"""The registry of workspaces: their roots, and the index folder of each.

A workspace is a directory with ``memory/config.toml``; where that cannot be written, its settings lie in the
state directory, and the directory itself is the sign that its disk is there. The registry is a list of roots
in the state directory and has no unique data: ``memctl init`` can write it again, and each index folder
stores its root. A damaged registry is restored from there, and the damaged file is kept for inspection.
"""

import errno
import json
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from memctl import paths
from memctl.paths import WORKSPACE_CONFIG, PathError, as_on_disk, open_own, reason_and_cure
from memd import fsio
from memd.config import config_template
from memd.errors import StorageError, UnsafeError, WorkspaceError, storage_error


@dataclass(slots=True)
class Presence:
    """What was seen of a root last, by the threads that may touch it."""

    is_there: bool = False
    is_slow: bool = False  # it did not answer at once
    sign: str = ""  # of the workspace
    # Returns which of these paths, relative to the root, are gone; a disk that hangs is not waited for.
    gone: Callable[[list[str]], AbstractSet[str]] | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """The places of one workspace's files."""

    root: Path  # real path
    index_dir: Path  # in the machine's state directory, never in the synced tree
    seen: Presence | None = field(default=None, compare=False)  # None: nobody looks, but who asks

    @property
    def config_path(self) -> Path:
        """The file with its settings, which makes the folder a workspace, unless that cannot be written."""
        return self.kept_config if self.kept_config.exists() else self.root / WORKSPACE_CONFIG

    @property
    def kept_config(self) -> Path:
        """Where the settings of a folder lie that cannot be written."""
        return paths.kept_settings(self.index_dir.parent, self.root)

    @property
    def sign(self) -> str:
        """What `sign_of` returned for such a folder, by which it is known; "" for any other."""
        try:
            return self.kept_config.with_suffix(".sign").read_text(encoding="utf-8")
        except OSError:
            return ""

    @property
    def journal_path(self) -> Path:
        """The journal of its entries; next to the index, which may be rebuilt."""
        return self.index_dir.parent / "journal" / f"{self.index_dir.name}.jsonl"

    @property
    def recalls_path(self) -> Path:
        """The record of recalled entries, beside the journal."""
        return self.journal_path.with_suffix(".recalls")

    def is_there(self) -> bool:
        """Return whether the workspace exists; without its configuration, its disk may not be mounted.

        Of an open workspace this is what was seen last, and touches no disk.
        """
        if self.seen is not None:
            return self.seen.is_there
        return is_workspace(self.root, self.sign)


def is_workspace(root: Path, sign: str) -> bool:
    """Return whether *root* has a configuration, or is the folder with this *sign*."""
    is_made = os.path.isfile(f"{root}/{WORKSPACE_CONFIG}")  # noqa: PTH113 - as is_folder
    return is_made or (sign != "" and sign_of(root) == sign)


def sign_of(root: Path) -> str:
    """Return what tells a folder from one that lies at its path while its disk is away; "" without a folder.

    The number of a file system outlives a restart, where that of a device may be another; some have none.
    """
    try:
        found, system = os.stat(root), os.statvfs(root)  # noqa: PTH116 - as is_folder
    except OSError:
        return ""
    return f"{system.f_fsid or found.st_dev} {found.st_ino}" if stat.S_ISDIR(found.st_mode) else ""


def gone_of(root: Path, paths: list[str]) -> set[str]:
    """Return which of *paths* below *root* are gone."""
    # In half of the time of os.path.exists.
    return {path for path in paths if not os.access(f"{root}/{path}", os.F_OK)}


def workspace_at(root: Path, state_dir: Path) -> Workspace:
    """Return the workspace with the real root *root*; its index folder is named by the root's hash."""
    return Workspace(root, state_dir / paths.state_name(root))


def root_for(folder: str | Path) -> Path:
    """Return the root for ``memctl init FOLDER``: the parent if the folder is named ``memory``.

    Raises:
        WorkspaceError: *folder* is not absolute, or not a path at all.
    """
    if not str(folder).startswith("/"):
        raise WorkspaceError(f"{str(folder)[:200]!r} is not an absolute path")
    try:
        real = Path(as_on_disk(str(folder))).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise WorkspaceError(f"{str(folder)[:200]!r} is not a folder that can be used: {error}") from error
    return real.parent if real.name == "memory" else real


def is_folder(path: str | Path) -> bool:
    """Return whether *path* is a folder; False if access is denied, where Path.is_dir raises."""
    return os.path.isdir(path)  # noqa: PTH112


_NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def create(place: Workspace, *, force: bool) -> bool:
    """Create ``memory/config.toml`` below the root; return False if it existed.

    In a folder that cannot be written, the settings are kept in the state directory; once it can be, they
    move there.

    Raises:
        WorkspaceError: the root is not a folder.
        UnsafeError: the root is ``/`` or a home folder, without *force*; ``memory`` is a link out of it.
        StorageError: it cannot be written.
    """
    root = place.root
    if not is_folder(root):
        there = os.path.lexists(root)
        advice = "Name the folder that contains it" if there else f"Make it first: mkdir -p {root}"
        raise WorkspaceError(f"{root} is not a folder. {advice}")
    if root in {Path("/"), Path.home().resolve()} and not force:
        raise UnsafeError(f"{root} holds far more than notes. Name a folder of notes, or use --force")
    config_path = root / WORKSPACE_CONFIG
    # Reject a link out of the folder: a clone may bring one, and settings and vectors would go there.
    real = Path(os.path.realpath(config_path.parent))
    if not real.is_relative_to(root):
        raise UnsafeError(
            f"{config_path.parent} is a link to {real}, out of the workspace. Move it away, then try again"
        )
    try:
        config_path.parent.mkdir(exist_ok=True)
        with config_path.open("x", encoding="utf-8") as stream:
            try:
                is_kept = place.kept_config.exists()
                stream.write(place.kept_config.read_text("utf-8-sig") if is_kept else config_template())
                stream.flush()
            except OSError:  # a full disk; the next attempt would take half a file for the user's own
                config_path.unlink()
                raise
    except FileExistsError:
        if not os.path.isfile(config_path):  # noqa: PTH113 - as above
            raise UnsafeError(f"{config_path} or the folder it is in is not a regular one") from None
        forget_settings(place)
        return False
    except OSError as error:
        if error.errno in _NOT_WRITABLE:
            return _keep_settings(place)
        raise storage_error(
            f"{config_path} cannot be written, and makes a folder a workspace", error
        ) from error
    forget_settings(place)
    return not is_kept


def _keep_settings(place: Workspace) -> bool:
    """Keep a folder's settings in the state directory, with its sign; return False if they were there."""
    path = place.kept_config
    is_new = not path.exists()
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if is_new:
        fsio.replace_own(path, config_template().encode())
    fsio.replace_own(path.with_suffix(".sign"), sign_of(place.root).encode())
    return is_new


def forget_settings(place: Workspace) -> None:
    """Delete what `create` kept in the state directory."""
    for path in (place.kept_config, place.kept_config.with_suffix(".sign")):
        path.unlink(missing_ok=True)


def path_on_disk(root: Path, path: str) -> str:
    """Return a path in *root*, made absolute, with the names that the disk has, in whatever Unicode form."""
    return as_on_disk(str(root / path))


def choose(path: str | None, roots: Iterable[Path]) -> Path:
    """Return the root for a request: the nearest one at or above *path*, or the only one.

    Raises:
        WorkspaceError: with the registered roots, and advice.
    """
    known = sorted(roots)
    if path is None:
        if len(known) == 1:
            return known[0]
        raise WorkspaceError(_advice("the request names no workspace", known))
    if not path.startswith("/") or "\0" in path:
        raise WorkspaceError(_advice(f"workspace {path!r} is not an absolute path", known))
    real = Path(os.path.realpath(as_on_disk(path)))
    for folder in (real, *real.parents):
        if folder in known:
            return folder
    raise WorkspaceError(_advice(f"{path} is not in a registered workspace", known))


def exactly(
    path: str, roots: Iterable[Path], *, cure: str = "To unregister all of that: memctl workspaces remove"
) -> Path:
    """Return the root that equals *path* as typed, also if the folder is gone or has become a link.

    Raises WorkspaceError if it is no root, with the root that contains it, and with the *cure* for that one.
    """
    known = list(roots)
    if Path(path) in known:
        return Path(path)
    root = choose(path, known)
    if Path(os.path.realpath(path)) != root:
        raise WorkspaceError(
            f"{path} is not the root of a workspace: it is in {root}, which is not changed. "
            f"{cure} {shlex.quote(str(root))}"
        )
    return root


def _advice(fault: str, known: list[Path]) -> str:
    if not known:
        return f"{fault}, and none is registered. Make one: memctl init DIR"
    listed = ", ".join(str(root) for root in known)
    return f"{fault}. Registered: {listed}. Name one of them, or make another: memctl init DIR"


log = structlog.get_logger()

REGISTRY_NAME = "workspaces.json"
MOVE_NAME = "move.json"  # a move of workspaces that was begun: old root → new root
ROOT_NAME = "root"  # file in an index folder with its workspace's root, as encoded by the system
KEPT_DAMAGED = 2  # damaged registries that are kept for inspection
MAX_BYTES = 16 << 20  # a registry of 100,000 long paths is shorter: a longer file is not one
_READ_BYTES = 1 << 16  # size of a read; arbitrary


class Registry:
    """The registry file; for one thread at a time."""

    def __init__(self, state_dir: Path) -> None:
        self.trouble = ""  # what was wrong with the file, for users; "" if nothing was
        self._state_dir = state_dir
        self._path = state_dir / REGISTRY_NAME

    def read(self) -> list[Path]:
        """Return the registered roots; if the file is damaged or missing, those of the index folders.

        Raises:
            StorageError: it exists but cannot be read; it is not changed then.
        """
        roots, fault = self._found()
        if fault and (os.path.lexists(self._path) or roots):
            self._replace_damaged(roots, fault)
        return roots

    def known(self) -> list[Path]:
        """Return the same without changing anything, for callers without the lock of the state directory."""
        return self._found()[0]

    def write(self, roots: Iterable[Path]) -> None:
        """Replace the registry atomically and durably."""
        text = json.dumps({"workspaces": [{"root": str(root)} for root in roots]}, indent=1) + "\n"
        fsio.replace_own(self._path, text.encode())

    def _found(self) -> tuple[list[Path], str]:
        """Return the roots, and what is wrong with the file, "" if nothing is."""
        roots: list[Path] = []
        try:
            roots, fault = _parsed(fsio.read_regular(self._path, MAX_BYTES))
        except FileNotFoundError:
            fault = "is missing"
        except OSError as error:
            if _is_file(self._path):
                raise StorageError(
                    f"can't read {self._path}: {reason_and_cure(self._path, error)}"
                ) from error
            fault = "is not a file"
        if fault and self._state_dir.is_dir():  # those of the index folders, each verified by its name
            found = map(root_of, sorted(self._state_dir.iterdir()))
            roots = list(dict.fromkeys([*roots, *(root for root in found if root is not None)]))
        return roots, fault

    def _replace_damaged(self, roots: list[Path], fault: str) -> None:
        kept = ""
        if os.path.lexists(self._path):
            aside = self._path.with_name(f"{REGISTRY_NAME}.damaged-{time.time_ns()}")
            self._keep(aside)
            kept = f", and its content is kept as {aside}"
        self.write(roots)
        log.warning("registry_read_back", workspaces=len(roots))
        self.trouble = (
            f"{self._path} {fault}: {len(roots)} workspaces were read back from their indexes{kept}. If one "
            "is missing: memctl init DIR"
        )

    def _keep(self, aside: Path) -> None:
        """Keep a copy of the damaged file next to it; the file itself stays until it is replaced."""
        for old in sorted(self._state_dir.glob(f"{REGISTRY_NAME}.damaged-*"))[: 1 - KEPT_DAMAGED]:
            if _is_file(old):  # a folder may have other content
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
    """Store the root of a workspace in its index folder."""
    if root_of(place.index_dir) != place.root:
        fsio.replace_own(place.index_dir / ROOT_NAME, os.fsencode(place.root))


def root_of(folder: Path) -> Path | None:
    """Return the root of the index in *folder*; None if it is unknown."""
    try:
        with fsio.closing(open_own(folder / ROOT_NAME, os.O_RDONLY)) as descriptor:
            raw = os.read(descriptor, _READ_BYTES)
    except (PathError, OSError):
        return None
    root = Path(os.fsdecode(raw))
    return root if workspace_at(root, folder.parent).index_dir == folder else None


def _parsed(raw: bytes) -> tuple[list[Path], str]:
    """Parse a registry; return its valid roots, and what is wrong with it."""
    try:
        entries = json.loads(raw)["workspaces"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return [], f"is damaged ({type(error).__name__})"
    if not isinstance(entries, list):
        return [], "is damaged (its workspaces are not a list)"
    named = [entry.get("root") if isinstance(entry, dict) else None for entry in entries]
    roots = [Path(name) for name in named if isinstance(name, str) and name[:1] == "/" and "\0" not in name]
    return roots, "" if len(roots) == len(entries) else "is damaged (not every root is an absolute path)"


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
