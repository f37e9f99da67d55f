"""`memctl pause`: pause embedding for a while, or resume it."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from memctl import exits
from memctl.arguments import flag, number
from memctl.commands import common
from memctl.output.status import moment

UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
DEFAULT_S = 3600.0  # same as memd's default


def duration(raw: str) -> float:
    """Parse a time span such as 90s, 30m, 2h or 1d into seconds; the default unit is seconds."""
    amount = raw.rstrip("abcdefghijklmnopqrstuvwxyz")
    length_s = number(amount) * UNITS_S.get(raw[len(amount) :] or "s", 0.0)
    if not 0 < length_s <= 7 * UNITS_S["d"]:
        raise ArgumentTypeError(f"{raw!r} is not a time span of up to a week, as 90s, 30m, 2h or 1d")
    return length_s


def arguments(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--for", dest="duration_s", type=duration, default=DEFAULT_S, metavar="DURATION",
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
