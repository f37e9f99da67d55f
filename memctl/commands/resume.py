"""`memctl resume`: let embedding go on."""

from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits
from memctl.commands import common
from memctl.commands.pause import PAUSE_TIMEOUT_S


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl resume`."""
    parser.add_argument("--json", action="store_true", help="one object: resumed")


def run(args: Namespace) -> int:
    """End a pause, if there is one."""
    with common.daemon() as client:
        answer: dict[str, Any] = client.call("resume", {}, timeout_s=PAUSE_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        print("embedding goes on" if answer["resumed"] else "embedding was not paused")
    return exits.OK
