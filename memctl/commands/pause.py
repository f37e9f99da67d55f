"""`memctl pause`: pause embedding for a while, or resume it."""

from argparse import ArgumentParser, Namespace

from memctl import exits
from memctl.arguments import flag, seconds
from memctl.commands import common
from memctl.output.status import moment

DEFAULT_S = 3600.0  # same as memd's default


def arguments(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--for", dest="duration_s", type=seconds, default=DEFAULT_S, metavar="DURATION",
        help="how long: 90s, 30m, 2h or 1d (default: 1h)",
    )  # fmt: skip
    flag(how, "--off", "end the pause")
    flag(parser, "--json", "one object: paused_until; with --off resumed")
    parser.epilog = """\
Applies to all workspaces. Notes saved meanwhile are found by words at once, and by meaning after the pause.
The pause ends after DURATION, by memctl pause --off, or when the daemon stops.
"""


def run(args: Namespace) -> int:
    """Pause embedding and print until when, or end the pause, if any."""
    if args.off:
        answer = common.asked("resume", {}, timeout_s=common.AT_ONCE_S)
        line = "embedding resumed" if answer["resumed"] else "embedding was not paused"
    else:
        answer = common.asked("pause", {"duration_s": args.duration_s}, timeout_s=common.AT_ONCE_S)
        line = f"embedding is paused until {moment(answer['paused_until'])} (memctl pause --off ends it)"
    common.print_answer(answer, line, as_json=args.json)
    return exits.OK
