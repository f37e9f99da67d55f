"""`memctl log`: show the daemon's own log.

The journal has it where systemd runs the daemon, else a file in the state folder. This never asks the daemon:
its log is wanted most where it does not answer.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator

from memctl import exits, paths, systemd
from memctl.commands import common
from memctl.exits import CommandError
from memctl.launch import LOG_NAME
from memctl.log_lines import file_lines, journal_lines
from memctl.output.log import Record, as_object, from_journal, from_line, line
from memctl.output.marker import Marker

MOST_LINES = 1_000_000_000  # journalctl takes no number of more than 31 bits
LINES = 50  # arbitrary: a start, a day's troubles and a stop are on one page


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl log`."""
    parser.add_argument(
        "-n", "--lines", type=_lines, default=LINES, metavar="N", help=f"the last N lines (default: {LINES})"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument(
        "--json",
        action="store_true",
        help="the objects that memd wrote, one a line; what others wrote as .text",
    )
    parser.epilog = """\
From the journal where memd is a systemd service (journalctl --user-unit memd.service), else from the file of
a daemon that memctl started. Exit code 5: there is no log. No word of a note or a query is in it.

example:
  memctl log -f
"""


def run(args: Namespace) -> int:
    """Print the last lines, and what follows where that is wanted."""
    shown, marker = False, Marker("", colour=common.wants_colour())
    for record in _records(args.lines, follow=args.follow):
        shown = True
        if args.json:
            common.print_json(as_object(record))
        else:
            print(line(record, marker))
        if args.follow:
            sys.stdout.flush()
    if not shown and args.lines:
        raise CommandError(_nothing(), exits.NOT_FOUND)
    return exits.OK


def _records(count: int, *, follow: bool) -> Iterator[Record]:
    if systemd.managed():
        return map(from_journal, journal_lines(count, follow=follow))
    path = paths.state_dir() / LOG_NAME
    if not path.exists():
        raise CommandError(
            f"there is no log: memd is no systemd service here, and {path} is not there. memctl start makes "
            "it; a memd that was started by hand writes to its own terminal",
            exits.NOT_FOUND,
        )
    return map(from_line, file_lines(path, count, follow=follow))


def _nothing() -> str:
    if not systemd.managed():
        return f"{paths.state_dir() / LOG_NAME} is empty: memd has had nothing to say since it was made"
    return (
        "the journal has nothing of memd.service: it has not run yet (memctl start), or journald has "
        "deleted what is old"
    )


def _lines(raw: str) -> int:
    """A number of lines; 0 is good for following."""
    if not raw.isascii() or not raw.isdigit():
        raise ArgumentTypeError(f"{raw!r} is not a whole number from 0")
    return min(int(raw[:10]), MOST_LINES)
