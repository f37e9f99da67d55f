"""`memctl watch`: follow the events of a workspace, one a line."""

import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import flag, workspace_option
from memctl.commands import common
from memctl.output.status import counted
from memctl.text import one_line

PATHS_SHOWN = 3  # arbitrary, to fit on one line; --json has all that memd sends


def arguments(parser: ArgumentParser) -> None:
    workspace_option(parser)
    flag(parser, "--json", "one object a line for each event")
    parser.epilog = """\
Follows the workspace of the current folder, otherwise all, until Ctrl-C; exit code 3 when the daemon stops.
Kinds: indexed, removed (with paths), embedded, state, trouble; lost, if the reader is too slow.

example:
  memctl watch --json | jq -r 'select(.event == "indexed") | .paths[]'
"""


def run(args: Namespace) -> int:
    """Print events as they arrive."""
    root = workspaces.if_any(args.workspace)
    with common.daemon() as client:
        happening = client.events(root)
        common.note(f"following {root or 'all workspaces'}, Ctrl-C ends")
        for event in happening:
            if args.json:
                common.print_json(event)
            else:
                print(_line(event, root=root is None))
            sys.stdout.flush()  # do not wait until the buffer of a pipe is full
    return exits.OK  # pragma: no cover (the iterator ends by an exception only)


def _line(event: dict[str, Any], *, root: bool) -> str:
    """Return the time of an event, its kind and its details; *root*: of several workspaces, its root, too."""
    when = event.get("at")
    time = datetime.fromtimestamp(when, UTC).astimezone().strftime("%H:%M:%S") if when else "--:--:--"
    where = f"  {one_line(str(event['workspace']))}" if root and event.get("workspace") else ""
    kind = one_line(str(event.get("event")))
    return f"{time}{where}  {kind:<8}  {_what(kind, event)}".rstrip()


def _what(kind: str, event: dict[str, Any]) -> str:
    match kind:
        case "indexed" | "removed":
            return _paths(event)
        case "embedded":
            waiting = event.get("pending_vectors")
            left = f", {waiting:,} to go" if waiting else ""
            return f"{counted(event.get('count'), 'chunk')}{left}"
        case "state":
            return one_line(str(event.get("state")))
        case "trouble":
            return one_line(str(event.get("text")))
        case "lost":
            return f"{counted(event.get('count'), 'event')}: memctl status shows the current state"
    common_keys = {"event", "at", "workspace", "generation"}
    return one_line(", ".join(f"{key} {value}" for key, value in event.items() if key not in common_keys))


def _paths(event: dict[str, Any]) -> str:
    named = [one_line(str(path)) for path in event.get("paths") or ()]
    count = event.get("count") or len(named)
    if len(named) == count <= PATHS_SHOWN:
        return ", ".join(named)
    examples = f": {', '.join(named[:PATHS_SHOWN])}, …" if named else ""
    return counted(count, "source") + examples
