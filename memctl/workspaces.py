"""Which workspace does the user mean?

An option, else the environment, else the nearest folder above that was initialised, as git looks for
its own. Knows files only: whether the daemon has it registered is the daemon's answer.
"""

import os
from pathlib import Path

from memctl import exits
from memctl.exits import CommandError

CONFIG = "memory/config.toml"


def find(named: str | None) -> str:
    """
    Return the absolute path that names the workspace to the daemon.

    Args:
        named: what --workspace said; None without it.

    Raises:
        CommandError: nothing named one and none is above the current directory.
    """
    if named := named or os.environ.get("MEMD_WORKSPACE"):
        return absolute(named)
    here = current_directory()
    if root := above(here):
        return absolute(str(root))
    from shlex import quote  # only for messages

    raise CommandError(
        f"no workspace in {here} or above it. Make one: memctl init {quote(str(here))}. "
        "Or name one: --workspace DIR, or MEMD_WORKSPACE=DIR (memctl workspaces lists them)",
        exits.WORKSPACE,
    )


def if_any(named: str | None) -> str | None:
    """Return the workspace where one is meant; None where none is named and none is here."""
    try:
        return find(named)
    except CommandError:
        if named:
            raise
        return None


def above(start: Path) -> Path | None:
    """Return *start* or the nearest folder above it that holds memory/config.toml."""
    # os.path and not Path: a folder that may not be entered is none of ours, and no reason to stop.
    return next(
        (folder for folder in (start, *start.parents) if os.path.isfile(folder / CONFIG)),  # noqa: PTH113
        None,
    )


def absolute(path: str) -> str:
    """Return *path* as an absolute one that can travel: the wire is UTF-8, names on a disk may not be."""
    # "~" is ours to expand: no shell does it in --workspace=~/notes or in an agent's JSON configuration.
    expanded = os.path.expanduser(path)  # noqa: PTH111 (Path's raises for ~nobody; here it stays a name)
    full = os.path.normpath(expanded if expanded.startswith("/") else f"{current_directory()}/{expanded}")
    try:
        full.encode()
    except UnicodeEncodeError:
        raise CommandError(f"the path {full!a} is not UTF-8: rename the folder to use it") from None
    return full


def current_directory() -> Path:
    """Return the current directory; CommandError where it was deleted below us."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise CommandError(
            "the current directory no longer exists: cd to another, or use --workspace DIR",
            exits.WORKSPACE,
        ) from None
