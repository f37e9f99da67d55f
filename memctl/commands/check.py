"""`memctl check`: compare the index with itself and with the notes; repair it."""

import sys
from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import workspace_option
from memctl.commands import common
from memctl.output import check


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl check`."""
    parser.add_argument("--repair", action="store_true", help="mend what was found, from the notes")
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object: ok, findings, checked, took_ms")
    parser.epilog = """\
Reads the whole database, every vector and every note, and compares: searches go on meanwhile. A line a
finding; exit code 0 where nothing is wrong (any more), 9 otherwise. No note is changed.
"""


def run(args: Namespace) -> int:
    """Compare everything with everything."""
    params = {"workspace": workspaces.find(args.workspace), "repair": args.repair}
    with common.daemon() as client:
        answer = common.wait_for(client, "check", params)
    if args.json:
        common.print_json(answer)
    else:
        sys.stdout.write(check.lines(answer))
        common.note(check.verdict(answer, repair=args.repair))
    return exits.OK if answer["ok"] else exits.UNHEALTHY
