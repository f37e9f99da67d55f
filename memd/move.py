"""The program `python -m memd.move`, started by `memctl workspaces move`: the index follows a moved folder.

The folder of an index is named by its root, so it is renamed, with the journal and what was set aside. No
daemon may run: this program holds the lock of the state directory. What it is about to do is written down
first: if it is killed at any moment, the next daemon ends the work before it opens an index, and a second run
says that it is done. Output and exit follow memd.process.
"""

import argparse
import fcntl
import json
import os
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

from memctl import lock, paths
from memd import fsio, process, registry
from memd.config import load_team_config, write_shared
from memd.errors import BusyError, ConfigError, IndexDamagedError, WorkspaceError, storage_error
from memd.index.database import follow_folder
from memd.index.index import DATABASE
from memd.registry import Registry, workspace_at
from memd.team.identity import Identity

Pairs = dict[Path, Path]  # old root → new root, of a workspace and of those inside of it


def main() -> int:
    """Move, or with --check only look; return 0 even if the last line reports an error."""
    parser = argparse.ArgumentParser(prog="python -m memd.move", description=__doc__, allow_abbrev=False)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--check", action="store_true", help="move nothing; a daemon may run")
    args = parser.parse_args()
    with process.running() as send:
        act = check if args.check else move
        pairs = act(args.old, args.new, paths.state_dir())
        send({"report": {"moved": [{"from": str(old), "root": str(new)} for old, new in pairs.items()]}})
    return 0


def check(old: str, new: str, state_dir: Path) -> Pairs:
    """Return what `move` would move.

    Raises:
        WorkspaceError: *old* is not registered or still there, or *new* is not where it is now.
    """
    after = registry.root_for(new)
    if (begun := _begun(state_dir)).get(Path(old)) == after:
        return begun
    known = Registry(state_dir).known()
    before = registry.exactly(old, known)
    pairs = {root: after / root.relative_to(before) for root in known if root.is_relative_to(before)}
    for source, target in pairs.items():
        if workspace_at(source, state_dir).is_there():
            command = f"mv {shlex.quote(str(source))} {shlex.quote(str(target))}"
            raise WorkspaceError(f"{source} is still there. Move the folder first: {command}")
        if not os.path.lexists(target):
            raise WorkspaceError(f"there is no {target}: name the folder that {source} was moved to")
        if not _is_moved(source, target, state_dir):
            raise WorkspaceError(f"{target} has no memory/config.toml: it is not the folder that was moved")
        if target in known:
            raise WorkspaceError(
                f"{target} is registered already, with an index of its own. To use that of {source}: "
                f"memctl workspaces remove {shlex.quote(str(target))}, then try again"
            )
    return pairs


def move(old: str, new: str, state_dir: Path) -> Pairs:
    """Register the workspace *old* as *new*, with the workspaces inside of it; return what was moved.

    Raises:
        BusyError: a daemon runs.
        WorkspaceError: as in `check`.
        StorageError: something cannot be renamed or written; a second run goes on.
    """
    paths.make_private_dir(state_dir)
    with fsio.closing(paths.open_own(state_dir / lock.LOCK_NAME, os.O_RDWR | os.O_CREAT)) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError("memd was started again meanwhile: try again") from None
        go_on(state_dir)
        pairs = check(old, new, state_dir)
        if pairs != _begun(state_dir):
            for source, target in pairs.items():
                if workspace_at(
                    source, state_dir
                ).index_dir.exists():  # the other is of a forgotten workspace
                    shutil.rmtree(workspace_at(target, state_dir).index_dir, ignore_errors=True)
            written = {str(source): str(target) for source, target in pairs.items()}
            fsio.replace_own(state_dir / registry.MOVE_NAME, json.dumps(written).encode())
            _carry_out(pairs, state_dir)
        fsio.remove(state_dir / registry.MOVE_NAME)
    return pairs


def go_on(state_dir: Path) -> None:
    """End a move that was begun, if its folders still are where it says; for the holder of the lock.

    Its record stays, so that a second run of the same command has something to say.

    Raises:
        StorageError: something cannot be renamed or written.
    """
    pairs = _begun(state_dir)
    if pairs and all(
        _is_moved(old, new, state_dir) and not workspace_at(old, state_dir).is_there()
        for old, new in pairs.items()
    ):
        _carry_out(pairs, state_dir)


def _begun(state_dir: Path) -> Pairs:
    """Return the move that was written down; {} without one, or if the file is damaged."""
    try:
        written = json.loads((state_dir / registry.MOVE_NAME).read_bytes())
        return {Path(old): Path(new) for old, new in written.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _carry_out(pairs: Pairs, state_dir: Path) -> None:
    """Rename and register; each step may have been taken before."""
    register = Registry(state_dir)
    known = register.read()
    for source, target in pairs.items():
        _rename(source, target, state_dir)
    after = list(dict.fromkeys(pairs.get(root, root) for root in known))
    if after != known:
        register.write(after)

    # What was published to a team goes on from the new place, under the same id.
    folder = paths.config_dir()
    Identity(folder).follow({str(source): str(target) for source, target in pairs.items()})
    with suppress(ConfigError):  # a [team] that is wrong publishes nothing
        team = load_team_config(folder / "config.toml")
        shared = {Path(root).expanduser() for root in team.share} if team else set()
        for source, target in pairs.items():
            if source in shared:
                write_shared(folder / "config.toml", str(target), is_shared=True)
                write_shared(folder / "config.toml", str(source), is_shared=False)


def _is_moved(source: Path, target: Path, state_dir: Path) -> bool:
    """Return whether *target* is a workspace, by its own configuration or as what *source* was."""
    sign = workspace_at(target, state_dir).sign or workspace_at(source, state_dir).sign
    return registry.is_workspace(target, sign)


def _rename(source: Path, target: Path, state_dir: Path) -> None:
    """Rename all that is named by the root *source*; what an earlier run has renamed is missing."""
    before, after = workspace_at(source, state_dir), workspace_at(target, state_dir)
    try:
        for path in sorted(state_dir.glob(f"{before.index_dir.name}*")):
            renamed = state_dir / path.name.replace(before.index_dir.name, after.index_dir.name, 1)
            if renamed.exists():  # *path* was made after it was renamed, by a memd that knew of no move
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.rename(renamed)
        for old, new in (
            (before.journal_path, after.journal_path),
            (before.recalls_path, after.recalls_path),
            (before.kept_config, after.kept_config),
            (before.kept_config.with_suffix(".sign"), after.kept_config.with_suffix(".sign")),
        ):
            with suppress(FileNotFoundError):
                old.rename(new)
        for path in state_dir.glob(f"{after.index_dir.name}*/{DATABASE}"):
            with suppress(IndexDamagedError):  # the daemon replaces it
                follow_folder(path)
        if after.index_dir.is_dir():
            registry.remember_root(after)
        fsio.sync_folder(state_dir)
    except OSError as error:
        raise storage_error(f"the index of {source} cannot be moved", error) from error


if __name__ == "__main__":
    raise SystemExit(main())
