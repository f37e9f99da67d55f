"""`memctl open`: open a hit of the last search in the editor, at its line."""

import os
import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from memctl import exits, last_hits
from memctl.arguments import count
from memctl.exits import CommandError
from memctl.last_hits import HitPlace

VARIABLES = ("MEMCTL_EDITOR", "VISUAL", "EDITOR")
# Editors by the syntax of a line number on their command line; others get only the file.
PLUS_LINE = frozenset(
    "vi vim nvim gvim view nano pico emacs emacsclient micro kak joe mg ne".split()  # noqa: SIM905 - readable
)
COLON_LINE = {"hx", "helix", "subl", "zed", "zeditor", "lapce"}
GOTO_LINE = {"code", "code-insiders", "codium", "cursor", "windsurf"}


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl open`."""
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


def open_place(place: HitPlace) -> int:
    """
    Start the editor at a place and wait for it; return its exit code.

    Raises:
        CommandError: the file is gone, or there is no such editor.
    """
    if not Path(place.path).exists():
        raise CommandError(f"{place.path} no longer exists: search again", exits.NOT_FOUND)
    import subprocess  # slow to import, and completion imports this module

    command = editor_command(_editor(), place)
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as error:
        named = f"{command[0]} can't be started ({error.strerror}): set EDITOR to a program that exists"
        raise CommandError(named, exits.USAGE) from error


def editor_command(editor: list[str], place: HitPlace) -> list[str]:
    """Return the command line that opens a place in an editor."""
    name = Path(editor[0]).name.removesuffix(".exe")
    if name in PLUS_LINE:
        return [*editor, f"+{place.line}", place.path]
    if name in COLON_LINE:
        return [*editor, f"{place.path}:{place.line}"]
    if name in GOTO_LINE:
        return [*editor, "--goto", f"{place.path}:{place.line}"]
    return [*editor, place.path]


def _editor() -> list[str]:
    named = next(filter(None, map(os.environ.get, VARIABLES)), "vi")
    try:
        return shlex.split(named) or ["vi"]
    except ValueError as error:
        raise CommandError(f"the editor {named!r} is not a command line: {error}", exits.USAGE) from error
