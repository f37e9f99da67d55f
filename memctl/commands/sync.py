"""`memctl sync`: wait until all saved notes are searchable."""

from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import flag, seconds, workspace_option
from memctl.commands import common

SYNC_TIMEOUT_S = 60.0  # as Watchman's: a whole tree may just have been saved


def arguments(parser: ArgumentParser) -> None:
    workspace_option(parser)
    parser.add_argument(
        "--timeout", type=seconds, default=SYNC_TIMEOUT_S, metavar="S",
        help=f"give up after S seconds (default: {SYNC_TIMEOUT_S:g})",
    )  # fmt: skip
    flag(parser, "--json", "one object: synced, generation, index, took_ms")
    parser.epilog = """\
With exit code 0, everything saved before the command is searchable; 6 means that it took too long. It waits
for words, not for vectors: memctl index waits for both.

example:
  git pull && memctl sync && memctl search --since 2026-05-01 outage
"""


def run(args: Namespace) -> int:
    with common.daemon() as client:
        answer = common.synced(client, workspaces.find(args.workspace), args.timeout)
    if args.json:
        common.print_json(answer)
    elif answer["synced"]:
        print(f"synced in {answer['took_ms']:.0f} ms")
    if not answer["synced"]:
        common.note(f"not synced within {args.timeout:g} s: memctl status shows what memd is doing")
    return exits.OK if answer["synced"] else exits.BUSY
