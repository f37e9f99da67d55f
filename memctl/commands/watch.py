"""`memctl watch`: follow what happens in a workspace, an event a line."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import workspace_option
from memctl.commands import common
from memctl.output import events


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl watch`."""
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object an event, on lines")
    parser.epilog = """\
Follows the workspace that you are in, or all of them, until Ctrl-C; exit code 3 when the daemon goes.
Kinds: indexed, removed (with paths), embedded, state, trouble; lost, where you read too slowly.

example:
  memctl watch --json | jq -r 'select(.event == "indexed") | .paths[]'
"""


def run(args: Namespace) -> int:
    """Print what happens, as it happens."""
    root = workspaces.if_any(args.workspace)
    with common.daemon() as client:
        happening = client.events(root)
        common.note(f"following {root or 'all workspaces'}, Ctrl-C ends")
        for event in happening:
            _print(event, args, several=root is None)
    return exits.OK  # pragma: no cover (the iterator ends by an exception only)


def _print(event: dict[str, Any], args: Namespace, *, several: bool) -> None:
    if args.json:
        common.print_json(event)
    else:
        print(events.line(event, root=several))
    sys.stdout.flush()  # a pipe has its line now, not when four kilobytes are full
