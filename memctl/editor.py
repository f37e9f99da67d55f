"""The user's editor: start it at a line of a note."""

import os
import shlex
from contextlib import suppress
from pathlib import Path

from memctl import exits
from memctl.exits import CommandError
from memctl.last_hits import HitPlace
from memctl.paths import PathError, make_private_dir, state_dir

OPENED = "opened.json"  # path of a note → when it was opened, for the start page of `memctl find`
MOST_OPENED = 100
VARIABLES = ("MEMCTL_EDITOR", "VISUAL", "EDITOR")
# Editors by the syntax of a line number on their command line; others get only the file.
PLUS_LINE = frozenset(
    "vi vim nvim gvim view nano pico emacs emacsclient micro kak joe mg ne".split()  # noqa: SIM905 - readable
)
COLON_LINE = {"hx", "helix", "subl", "zed", "zeditor", "lapce"}
GOTO_LINE = {"code", "code-insiders", "codium", "cursor", "windsurf"}


def open_place(place: HitPlace) -> int:
    """Start the editor at a place and wait for it; return its exit code.

    Raises:
        CommandError: the file is gone, or there is no such editor.
    """
    if not Path(place.path).exists():
        raise CommandError(f"{place.path} no longer exists: search again", exits.NOT_FOUND)
    import subprocess  # slow to import, and completion imports this module

    _note_opened(place.path)
    named = next(filter(None, map(os.environ.get, VARIABLES)), "vi")
    try:
        command = editor_command(shlex.split(named) or ["vi"], place)
    except ValueError as error:
        raise CommandError(f"the editor {named!r} is not a command line: {error}", exits.USAGE) from error
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as error:
        why = f"{command[0]} can't be started ({error.strerror}): set EDITOR to a program that exists"
        raise CommandError(why, exits.USAGE) from error


def opened() -> dict[str, float]:
    """Return the notes that were opened from here last, with the time."""
    import json  # as above

    try:
        found = json.loads((state_dir() / OPENED).read_bytes())
    except (OSError, PathError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _note_opened(path: str) -> None:
    import json  # as above
    import time

    last = sorted((opened() | {path: time.time()}).items(), key=lambda one: one[1])[-MOST_OPENED:]
    with suppress(OSError, PathError):  # the user asked only to open it
        make_private_dir(state_dir())
        fresh = state_dir() / f"{OPENED}.{os.getpid()}"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(dict(last), file)
        fresh.rename(state_dir() / OPENED)


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
