"""`memctl man`: show the manual page of memctl or of one of its commands."""

import os
import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module

from memctl import exits
from memctl.arguments import actions_of, overview, parser_of
from memctl.commands import COMMANDS
from memctl.exits import CommandError

SUMMARY = "search the memory that memd keeps"


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl man`."""
    parser.add_argument(
        "command", nargs="?", choices=COMMANDS, metavar="COMMAND", help="the command (default: memctl itself)"
    )
    parser.add_argument("--roff", action="store_true", help="print the page's source")
    parser.epilog = """\
The same pages are installed in share/man: `man memctl-search` finds them where that folder is searched.

examples:
  memctl man
  memctl man search
"""


def run(args: Namespace) -> int:
    """Show the page with man, or print its source."""
    name, text = page(args.command)
    if args.roff:
        print(text, end="")
        return exits.OK
    import shutil
    import subprocess
    from pathlib import Path
    from tempfile import TemporaryDirectory

    if not (man := shutil.which("man")):
        raise CommandError(
            f"man is not installed: memctl help{f' {args.command}' if args.command else ''} has the same text"
        )
    with TemporaryDirectory(prefix="memctl-man-") as folder:
        path = Path(folder) / f"{name}.1"
        path.write_text(text, encoding="utf-8")
        sys.stdout.flush()
        done = subprocess.run([man, str(path)], check=False)
    if done.returncode:
        raise CommandError(f"{man} could not show the page: exit code {done.returncode}", exits.INTERNAL)
    return exits.OK


def page(command: str | None) -> tuple[str, str]:
    """Return the name and the source of the manual page of *command*; None: of memctl."""
    from memctl.output import man

    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = man.COLUMNS  # which the parser reads
    try:
        if command is None:
            return "memctl", man.page("memctl", SUMMARY, overview())
        name = f"memctl-{command}"
        return name, man.page(name, COMMANDS[command], *help_pages(command))
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def help_pages(command: str) -> list[str]:
    """Return the help page of *command* and those of its actions."""
    parser = parser_of(command, import_module(f"memctl.commands.{command}").arguments)
    return [one.format_help() for one in (parser, *actions_of(parser).values())]
