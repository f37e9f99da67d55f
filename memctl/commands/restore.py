"""`memctl restore`: write what `memctl backup` kept, and register its workspaces."""

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memctl import exits, paths, workspaces
from memctl.agents import config_file
from memctl.agents.config_file import Change
from memctl.client import RpcError
from memctl.commands import common
from memctl.commands.backup import FORMAT, JOURNALS, OF_WORKSPACE, USER_CONFIG
from memctl.commands.init import SCAN_TIMEOUT_S
from memctl.exits import CommandError
from memctl.output.text import one_line


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl restore`."""
    parser.add_argument("file", metavar="FILE", help="what memctl backup wrote")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--force", action="store_true", help="replace settings that differ; they are kept as FILE.before-memd"
    )
    parser.epilog = """\
Writes the settings that are missing and registers the workspaces whose folders exist; their indexes are built
in the background. Without --force, nothing is written if a file exists with other content. Journals are only
added where there is none. Folders that are missing are named: put them there, and run it again.
"""


def run(args: Namespace) -> int:
    """Write all files or none, then register the workspaces."""
    kept = _parsed(Path(workspaces.absolute(args.file)))
    here = [known for known in kept["workspaces"] if Path(known["root"]).is_dir()]
    missing = [known for known in kept["workspaces"] if known not in here]
    changes = list(_changes(kept, here))
    differing = [change for change in changes if change.before is not None]
    if differing and not args.force:
        named = ", ".join(str(change.path) for change in differing)
        raise CommandError(f"{named}: exists with other content. --force replaces it", exits.REFUSED)
    for change in changes:
        print(f"{'replace' if change.before is not None else 'write'}: {one_line(str(change.path))}")
    for known in here:
        print(f"register: {one_line(known['root'])}")
    for known in missing:
        common.note(f"{known['root']} is missing and not registered")
    if not args.yes and not _agreed():
        return exits.NONE
    paths.make_private_dir(paths.state_dir())
    config_file.apply(changes)
    failed = _register([known["root"] for known in here])
    return failed or (exits.NOT_FOUND if missing else exits.OK)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise CommandError("this would restore what is listed: pass --yes to confirm without a terminal")
    return common.confirmed("Restore that?")


def _changes(kept: dict[str, Any], here: list[dict[str, Any]]) -> Iterator[Change]:
    """Yield what is to be written: files that differ, and journals that are missing."""
    wanted = {paths.config_dir() / USER_CONFIG: kept["config"]}
    for known in here:
        memory = Path(known["root"]) / "memory"
        if not memory.resolve().is_relative_to(Path(known["root"]).resolve()):
            raise CommandError(f"{memory} is a link out of the workspace: move it away", exits.REFUSED)
        wanted |= {Path(known["root"]) / name: known["files"].get(name) for name in OF_WORKSPACE}
    for path, text in wanted.items():
        before = config_file.read(path)
        after = None if text is None else text.encode("utf-8", "surrogateescape")
        if after is not None and after != before:
            yield Change(path, before, after, "leave" if before is None else "make")
    for name, text in kept["journals"].items():
        path = paths.state_dir() / JOURNALS / name
        if config_file.read(path) is None:
            yield Change(path, None, text.encode("utf-8", "surrogateescape"), "leave")


def _register(roots: list[str]) -> int:
    """Register each root; report those that the daemon refuses, and return the exit code of the last one."""
    status = exits.OK
    with common.daemon() as client:
        for root in roots:
            try:
                client.call("workspace.add", {"path": root, "nested": True}, timeout_s=SCAN_TIMEOUT_S)
            except RpcError as error:
                common.note(f"{root} is not registered: {error}")
                status = exits.of(error.code)
    return status


def _parsed(path: Path) -> dict[str, Any]:
    """
    Return a checked backup.

    Raises:
        CommandError: it cannot be read, or is none.
    """
    try:
        kept = json.loads(path.read_bytes())
    except OSError as error:
        raise CommandError(f"can't read {path}: {error.strerror}", exits.NOT_FOUND) from error
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is not a backup: {error}") from error
    if isinstance(kept, dict) and isinstance(kept.get("format"), int) and kept["format"] > FORMAT:
        raise CommandError(f"{path} was written by a newer memctl ({kept.get('memd')}): update this one")
    if not _is_backup(kept):
        raise CommandError(f"{path} is not a backup that memctl wrote")
    found: dict[str, Any] = kept
    return found


def _is_backup(kept: Any) -> bool:
    """Return whether all that is used has the expected type; names in it lead to no other folder."""
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        return False
    known, journals = kept.get("workspaces"), kept.get("journals")
    return (
        isinstance(kept.get("config"), str | None)
        and isinstance(known, list)
        and all(
            isinstance(one, dict)
            and isinstance(root := one.get("root"), str)
            and root.startswith("/")
            and "\0" not in root
            and isinstance(files := one.get("files"), dict)
            and all(isinstance(text, str | None) for text in files.values())
            for one in known
        )
        and isinstance(journals, dict)
        and all(
            re.fullmatch(r"[0-9a-f]{16}\.jsonl", name) and isinstance(text, str)
            for name, text in journals.items()
        )
    )
