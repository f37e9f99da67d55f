"""The user's editor: start it at a line of a note."""

import os
import shlex
from pathlib import Path

from memctl import exits
from memctl.exits import CommandError
from memctl.last_hits import HitPlace

VARIABLES = ("MEMCTL_EDITOR", "VISUAL", "EDITOR")
# Editors by the syntax of a line number on their command line; others get only the file.
PLUS_LINE = frozenset(
    "vi vim nvim gvim view nano pico emacs emacsclient micro kak joe mg ne".split()  # noqa: SIM905 - readable
)
COLON_LINE = {"hx", "helix", "subl", "zed", "zeditor", "lapce"}
GOTO_LINE = {"code", "code-insiders", "codium", "cursor", "windsurf"}


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
