"""`memctl debug`: print the state of the daemon for a bug report, without text of notes or queries."""

from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, versions, workspaces
from memctl.arguments import workspace_option
from memctl.client import Client
from memctl.commands import common
from memctl.output.text import ascii_only, to_json

TIMEOUT_S = 15.0  # the daemon's own deadline


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl debug`."""
    workspace_option(parser)
    parser.add_argument(
        "--lag", type=float, default=1.0, metavar="S", help="measure the lag for S seconds, 10 at most"
    )
    parser.epilog = """\
Prints JSON, with each part and each entry of a long part on a line: versions, threads, the lag of memd's
event loop, the last 200 requests (without parameters) and the last 1,000 batches of file events; --workspace
limits these to one workspace and adds file names.
"other_distributions" names what else is installed with a package memd or memctl.

example:
  memctl debug > memd-debug.json
"""


def run(args: Namespace) -> int:
    """Print the internal state of the running daemon."""
    params = {"lag_s": args.lag} | ({"workspace": workspaces.find(args.workspace)} if args.workspace else {})
    with Client.connect(timeout_s=TIMEOUT_S) as client:
        answer = common.ask(client, "debug", params, timeout_s=TIMEOUT_S)
    print(_by_lines(answer | {"other_distributions": versions.other_distributions()}))
    common.note(versions.others_line())
    return exits.OK


def _by_lines(parts: dict[str, Any]) -> str:
    """Return an object as JSON with a line for each part, and for each entry of a list of objects."""

    def shown(part: Any) -> str:
        if not (isinstance(part, list) and part and isinstance(part[0], dict)):
            return to_json(part, ascii_only=ascii_only())
        return "[\n  " + ",\n  ".join(to_json(entry, ascii_only=ascii_only()) for entry in part) + "\n ]"

    return "{\n" + ",\n".join(f" {shown(name)}: {shown(part)}" for name, part in parts.items()) + "\n}"
