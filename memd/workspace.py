"""Which folders are workspaces, and where is the index of each?

A workspace is a directory with ``memory/config.toml``. The registry is a list of roots in the state
directory; it holds nothing that cannot be written again by ``memctl init``.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memd.errors import UnsafeError, WorkspaceError, storage_error

CONFIG_TEMPLATE = """\
# What memd does in this folder. Every line is optional; what stands here are the defaults.
# Take the "# " off a line to change it; memd reads the file again when it is saved.

# Which files are searched, and which of them are not (gitignore patterns, relative to the workspace).
# sources = ["**/*.md", "**/*.markdown"]
# ignore = []

# How long a chunk is, and how much of it is repeated in the next one, in words.
# chunk_words = 200
# chunk_overlap = 50

# Which model turns text into vectors: "onnx" is in-process and offline; "ollama" asks a local server;
# "none" searches by keyword only. A model folder or another address must also be named in your own
# ~/.config/memd/config.toml, because this file may arrive with a git clone.
# provider = "onnx"
# model = "all-MiniLM-L6-v2"
# address = "http://127.0.0.1:11434"

# Keep vectors in memory/index/vectors/ too, so that another machine that receives this folder by git or
# Dropbox embeds nothing again.
# sidecars = false

# How the two arms are merged: "weighted" (scores) or "rrf" (ranks).
# fusion = "weighted"
# weights = { vector = 0.7, keyword = 0.3 }

# A file whose name starts with a day (2026-05-01.md) loses half of its score in so many days.
# half_life_days = 30

# Hits whose score before that decay is lower are not shown; how many are shown by default.
# min_score = 0.1
# max_results = 10
"""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where one workspace's files are."""

    root: Path  # real path
    index_dir: Path  # in the machine's state directory, never in the synced tree

    @property
    def config_path(self) -> Path:
        """The file that makes the folder a workspace."""
        return self.root / "memory" / "config.toml"

    def is_there(self) -> bool:
        """Tell whether the workspace can be seen: without its configuration the disk may not be mounted."""
        return os.path.isfile(self.config_path)  # noqa: PTH113 - as is_folder


def workspace_at(root: Path, state_dir: Path) -> Workspace:
    """Return the workspace whose real root is *root*; its index folder is named by the root's hash."""
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return Workspace(root, state_dir / digest)


def root_for(folder: str | Path) -> Path:
    """Return the root that ``memctl init FOLDER`` means: the parent of a folder named ``memory``.

    Raises:
        WorkspaceError: *folder* is not absolute, or not a path at all.
    """
    if not str(folder).startswith("/"):
        raise WorkspaceError(f"{str(folder)[:200]!r} is not an absolute path")
    try:
        real = Path(folder).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise WorkspaceError(f"{str(folder)[:200]!r} is not a folder that can be used: {error}") from error
    return real.parent if real.name == "memory" else real


def is_folder(path: str | Path) -> bool:
    """Tell whether *path* is a folder; no where that cannot be seen, which Path.is_dir raises for."""
    return os.path.isdir(path)  # noqa: PTH112


def create(root: Path, *, force: bool) -> bool:
    """Make ``memory/config.toml`` below *root*; True where it was not there before.

    Raises:
        WorkspaceError: *root* is not a folder.
        UnsafeError: *root* is ``/`` or a home folder, and not *force*; ``memory`` links out of it.
        StorageError: it cannot be written.
    """
    if not is_folder(root):
        there = os.path.lexists(root)
        advice = "Name the folder that it is in" if there else f"Make it first: mkdir -p {root}"
        raise WorkspaceError(f"{root} is not a folder. {advice}")
    if root in {Path("/"), Path.home().resolve()} and not force:
        raise UnsafeError(f"{root} holds far more than notes. Name a folder of notes, or use --force")
    config_path = root / "memory" / "config.toml"
    _refuse_outside(root, config_path.parent)
    try:
        config_path.parent.mkdir(exist_ok=True)
        with config_path.open("x", encoding="utf-8") as stream:
            stream.write(CONFIG_TEMPLATE)
    except FileExistsError:
        if not os.path.isfile(config_path):  # noqa: PTH113 - as above
            raise UnsafeError(f"{config_path} or the folder it is in is not a regular one") from None
        return False
    except OSError as error:
        raise storage_error(f"{config_path} cannot be written", error) from error
    return True


def _refuse_outside(root: Path, memory: Path) -> None:
    """Refuse a link out of the folder: a clone may bring one, and settings and vectors would go there."""
    real = Path(os.path.realpath(memory))
    if not real.is_relative_to(root):
        raise UnsafeError(f"{memory} is a link to {real}, out of the workspace. Move it away, then try again")


def choose(path: str | None, roots: Iterable[Path]) -> Path:
    """Return the root that a request means: the nearest one at or above *path*, or the only one.

    Raises:
        WorkspaceError: with the registered roots and the call to make.
    """
    known = sorted(roots)
    if path is None:
        if len(known) == 1:
            return known[0]
        raise WorkspaceError(_advice("the request names no workspace", known))
    if not path.startswith("/") or "\0" in path:
        raise WorkspaceError(_advice(f"workspace {path!r} is not an absolute path", known))
    real = Path(os.path.realpath(path))
    for folder in (real, *real.parents):
        if folder in known:
            return folder
    raise WorkspaceError(_advice(f"{path} is not in a registered workspace", known))


def _advice(fault: str, known: list[Path]) -> str:
    if not known:
        return f"{fault}, and none is registered. Make one: memctl init DIR"
    listed = ", ".join(str(root) for root in known)
    return f"{fault}. Registered: {listed}. Name one of them, or make another: memctl init DIR"
