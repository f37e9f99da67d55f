"""The program `python -m memd.move`, started by `memctl workspaces move`: the index follows a moved folder.

The folder of an index is named by its root, so it is renamed, with the journal and what was set aside. No
daemon may run: this program holds the lock of the state directory. If it is killed at any moment, a second
run ends the work. Output and exit follow memd.process.
"""

import argparse
import fcntl
import os
import shlex
from contextlib import suppress
from pathlib import Path

from memctl import lock, paths
from memd import fsio, process, registry
from memd.errors import BusyError, IndexDamagedError, MemdError, WorkspaceError, storage_error
from memd.index.database import follow_folder
from memd.index.index import DATABASE
from memd.registry import Registry, workspace_at


def main() -> int:
    """Move; return 0 even if the last line reports an error."""
    parser = argparse.ArgumentParser(prog="python -m memd.move", description=__doc__, allow_abbrev=False)
    parser.add_argument("old")
    parser.add_argument("new")
    args = parser.parse_args()
    with process.running() as send:
        process.leave_without_parent()
        try:
            send({"report": {"moved": move(args.old, args.new, paths.state_dir())}})
        except MemdError as error:
            send({"error": {"code": error.code, "message": str(error)}})
        except paths.PathError as error:
            send({"error": {"code": "MEMD_UNSAFE", "message": str(error)}})
    return 0


def move(old: str, new: str, state_dir: Path) -> list[dict[str, str]]:
    """Register the workspace *old* as *new*, with the workspaces inside of it; return what was moved.

    Raises:
        BusyError: a daemon runs.
        WorkspaceError: *old* is not registered or still there, or *new* is not where it is now.
        StorageError: something cannot be renamed or written; a second run goes on.
    """
    paths.make_private_dir(state_dir)
    descriptor = paths.open_own(state_dir / lock.LOCK_NAME, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError("memd was started again meanwhile: try again") from None
        register = Registry(state_dir)
        known = register.read()
        before = registry.exactly(old, known)
        after = registry.root_for(new)
        pairs = {root: after / root.relative_to(before) for root in known if root.is_relative_to(before)}
        for source, target in pairs.items():
            _check(source, target, known, state_dir)
        for source, target in pairs.items():
            _rename(source, target, state_dir)
        register.write([pairs.get(root, root) for root in known])
    finally:
        os.close(descriptor)
    return [{"from": str(source), "root": str(target)} for source, target in pairs.items()]


def _check(source: Path, target: Path, known: list[Path], state_dir: Path) -> None:
    if workspace_at(source, state_dir).is_there():
        command = f"mv {shlex.quote(str(source))} {shlex.quote(str(target))}"
        raise WorkspaceError(f"{source} is still there. Move the folder first: {command}")
    if not workspace_at(target, state_dir).is_there():
        raise WorkspaceError(f"{target} has no memory/config.toml: it is not the folder that was moved")
    if target in known:
        raise WorkspaceError(
            f"{target} is registered already, with an index of its own. To use that of {source}: "
            f"memctl workspaces remove {shlex.quote(str(target))}, then try again"
        )


def _rename(source: Path, target: Path, state_dir: Path) -> None:
    """Rename all that is named by the root *source*; what an earlier run has renamed is missing."""
    before, after = workspace_at(source, state_dir), workspace_at(target, state_dir)
    try:
        for path in sorted(state_dir.glob(f"{before.index_dir.name}*")):
            path.rename(state_dir / path.name.replace(before.index_dir.name, after.index_dir.name, 1))
        with suppress(FileNotFoundError):
            before.journal_path.rename(after.journal_path)
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
