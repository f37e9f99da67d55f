"""Has it arrived, and what happens now? sync and watch."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import seconds, workspace_option
from memctl.client import RpcError
from memctl.commands import common
from memctl.render import events

SYNC_TIMEOUT_S = 60.0  # as Watchman: whoever saved a whole tree may wait for it


def sync_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl sync`."""
    workspace_option(parser)
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=SYNC_TIMEOUT_S,
        metavar="S",
        help=f"give up after S seconds (default: {SYNC_TIMEOUT_S:g})",
    )
    parser.add_argument("--json", action="store_true", help="one object: synced, generation, index, took_ms")
    parser.epilog = """\
What was saved before the command is searchable when it ends with exit code 0; 6 says that it took too
long. It waits for words, not for vectors: memctl index waits for these, too.

example:
  git pull && memctl sync && memctl search --since 2026-05-01 outage
"""


def run_sync(args: Namespace) -> int:
    """Wait until the index has everything that is saved."""
    params = {"workspace": workspaces.find(args.workspace)}
    with common.daemon() as client:
        try:
            answer = common.ask(client, "sync", params, timeout_s=args.timeout)
        except RpcError as error:
            if error.code != "MEMD_TIMEOUT":
                raise
            answer = {"synced": False}
    if args.json:
        common.print_json(answer)
    elif answer["synced"]:
        print(f"synced in {answer['took_ms']:.0f} ms")
    if not answer["synced"]:
        common.note(f"not synced within {args.timeout:g} s: memctl status shows what it is busy with")
    return exits.OK if answer["synced"] else exits.BUSY


def watch_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl watch`."""
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object an event, on lines")
    parser.epilog = """\
Follows the workspace that you are in, or all of them, until Ctrl-C; exit code 3 when the daemon goes.
Kinds: indexed, removed (with paths), embedded, state, trouble; lost, where you read too slowly.

example:
  memctl watch --json | jq -r 'select(.event == "indexed") | .paths[]'
"""


def run_watch(args: Namespace) -> int:
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
