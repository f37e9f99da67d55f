"""`memctl backup`: write settings, the list of workspaces and journals to a file, for `memctl restore`."""

import json
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from memctl import exits, paths, versions, workspaces
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output.status import counted
from memctl.output.text import one_line

FORMAT = 1  # of the file; a later memctl reads older ones
OF_WORKSPACE = ("memory/config.toml", "memory/.memdignore")  # below a root
USER_CONFIG = "config.toml"  # below the user's configuration folder
JOURNALS = "journal"  # below the state folder


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl backup`."""
    parser.add_argument("file", metavar="FILE", help="a new file, e.g. memd-backup.json")
    parser.epilog = """\
The file has your own config.toml, the list of workspaces, each workspace's memory/config.toml and
memory/.memdignore, and the journals (who stored and forgot what). It has no note and no index: notes are
backed up with their folders, and memctl restore builds the indexes again. Keys of servers in your config.toml
are in the file, too: only you may read it.

example:
  memctl backup memd-backup.json
"""


def run(args: Namespace) -> int:
    """Write the file."""
    target = Path(workspaces.absolute(args.file))
    roots = [one["root"] for one in common.asked("workspace.list", {})["workspaces"]]
    roots = [root for root in roots if not workspaces.is_copy(root)]
    journals = sorted((paths.state_dir() / JOURNALS).glob("*.jsonl"))
    kept = {
        "memd": versions.own(),
        "format": FORMAT,
        "config": _text(paths.config_dir() / USER_CONFIG),
        "workspaces": [
            {"root": root, "files": {name: _text(Path(root) / name) for name in OF_WORKSPACE}}
            for root in roots
        ],
        "journals": {path.name: _text(path) for path in journals},
    }
    _write(target, json.dumps(kept, indent=1) + "\n")
    print(f"{one_line(str(target))}: {counted(len(roots), 'workspace')}, {counted(len(journals), 'journal')}")
    return exits.OK


def _text(path: Path) -> str | None:
    """Return the text of a file, which restore gives back byte by byte; None if there is none."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CommandError(
            f"can't read {path}: {paths.reason_and_cure(path, error)}", exits.STORAGE
        ) from error


def _write(target: Path, text: str) -> None:
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except FileExistsError:
        raise CommandError(f"{target} exists, and is not replaced: name a new file") from None
    except OSError as error:
        raise CommandError(
            f"can't write {target}: {error.strerror}. Name another file", exits.STORAGE
        ) from error
