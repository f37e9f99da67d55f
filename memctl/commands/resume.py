"""`memctl resume`: let embedding go on."""

from argparse import ArgumentParser, Namespace

from memctl import exits
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl resume`."""
    parser.add_argument("--json", action="store_true", help="one object: resumed")


def run(args: Namespace) -> int:
    """End a pause, if there is one."""
    answer = common.asked("resume", {}, timeout_s=common.AT_ONCE_S)
    line = "embedding goes on" if answer["resumed"] else "embedding was not paused"
    common.print_answer(answer, line, as_json=args.json)
    return exits.OK
