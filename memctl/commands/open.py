"""`memctl open`: open a hit of the last search in the editor, at its line."""

from argparse import ArgumentParser, Namespace

from memctl import exits, last_hits
from memctl.arguments import count
from memctl.editor import open_place
from memctl.exits import CommandError


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("number", nargs="?", type=count, default=1, metavar="N", help="(default: 1)")
    parser.epilog = """\
Opens the hit in $MEMCTL_EDITOR, $VISUAL or $EDITOR. Each terminal has the hits of its own last search; only
their paths and lines are stored, in the folder of memd's socket.

examples:
  memctl search retry policy && memctl open
  memctl open 3
"""


def run(args: Namespace) -> int:
    """Start the editor, wait for it and return its exit code."""
    places = last_hits.kept()
    if not places:
        raise CommandError("this terminal has not shown any hits yet: memctl search WORDS", exits.NONE)
    if args.number > len(places):
        raise CommandError(f"there is no hit {args.number}: the last search showed {len(places)}")
    return open_place(places[args.number - 1])
