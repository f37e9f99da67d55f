"""`memctl resume`: resume embedding."""

from argparse import ArgumentParser, Namespace

from memctl import exits
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl resume`."""
    parser.add_argument("--json", action="store_true", help="one object: resumed")


def run(args: Namespace) -> int:
    """End the pause, if any."""
    answer = common.asked("resume", {}, timeout_s=common.AT_ONCE_S)
    line = "embedding resumed" if answer["resumed"] else "embedding was not paused"
    common.print_answer(answer, line, as_json=args.json)
    return exits.OK
