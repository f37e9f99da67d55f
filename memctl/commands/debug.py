"""`memctl debug`: print what a bug report needs; no note and no query is quoted."""

from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import workspace_option
from memctl.client import Client
from memctl.commands import common

PATIENCE_S = 15.0  # the daemon's own deadline


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl debug`."""
    workspace_option(parser)
    parser.add_argument(
        "--lag", type=float, default=1.0, metavar="S", help="measure the lag for S seconds, 10 at most"
    )
    parser.epilog = """\
Prints JSON: versions, threads, the lag of the daemon's event loop, the last 200 requests (no parameters) and
the last 1,000 batches of file events; with --workspace those of that workspace, with file names.

example:
  memctl debug > memd-debug.json
"""


def run(args: Namespace) -> int:
    """Print what the running daemon knows of itself."""
    params = {"lag_s": args.lag} | ({"workspace": workspaces.find(args.workspace)} if args.workspace else {})
    with Client.connect(timeout_s=PATIENCE_S) as client:
        common.print_json(common.ask(client, "debug", params, timeout_s=PATIENCE_S))
    return exits.OK
