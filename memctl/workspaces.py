"""Find the workspace that a command applies to.

In this order: an option, the environment, the nearest initialised folder at or above the current one (as git
finds its repository), the only registered workspace. Only files are read; the daemon knows whether it is
registered.
"""

import os
import sys
from contextlib import suppress

from memctl import exits, paths
from memctl.exits import CommandError
from memctl.text import safe


def find(named: str | None) -> str:
    """Return the absolute path of the workspace, for the daemon.

    *named*: the value of --workspace, or None. A note on stderr tells if it is the only registered one.

    Raises:
        CommandError: none is named, none is at or above the current directory, and not exactly one is
            registered.
    """
    if named == "":  # as a shell leaves "$NOTES" where it is not set
        raise CommandError("--workspace is empty: name a folder")
    if root := if_any(named):
        return root
    here, roots = current_directory(), registered()
    if len(roots) == 1:
        # Tell the user, who may expect notes of the current folder.
        print(f"memctl: workspace {safe(roots[0])}, the only one: none is in {safe(here)} or above it",
              file=sys.stderr)  # fmt: skip
        return roots[0]
    from shlex import quote  # rarely needed

    listed = f"Registered: {', '.join(roots)}. " if roots else ""
    # `init` refuses these two.
    folder = "DIR" if here in {"/", os.path.expanduser("~")} else quote(here)  # noqa: PTH111 - as below
    every = ", or search all of them: memctl search --all" if roots else ""
    raise CommandError(
        f"no workspace in {here} or above it. {listed}Make one: memctl init {folder}. "
        f"Or name one: --workspace DIR, or MEMD_WORKSPACE=DIR{every}",
        exits.WORKSPACE,
    )


def if_any(named: str | None) -> str | None:
    """Return the named workspace, or the one around the current folder; None without either."""
    if named := named or os.environ.get("MEMD_WORKSPACE"):
        return absolute(named)
    root = around(current_directory())
    return absolute(root) if root else None


def of_conversation(folder: str, named: str | None) -> tuple[str | None, str]:
    """Return the workspace whose notes an agent's conversation in *folder* gets, and why it is this one.

    As `find`, but *named*, which `memctl agents install` wrote into the hook's command, is only for folders
    outside of all workspaces. None: there is none.
    """
    if given := os.environ.get("MEMD_WORKSPACE"):
        return _root(given), "MEMD_WORKSPACE names it"
    if root := around(os.path.realpath(folder)):
        return root, "it is around the folder"
    if named:
        return _root(named), "the hook's command names it"
    roots = registered()
    return (roots[0], "it is the only registered one") if len(roots) == 1 else (None, "")


def _root(path: str) -> str:
    real = os.path.realpath(absolute(path))
    return above(real) or real


def registered() -> list[str]:
    """Return the roots in memd's registry; [] if it can't be read, which the daemon reports."""
    import json  # only needed outside of workspaces

    try:
        state = str(paths.state_dir())
        with open(f"{state}/workspaces.json", encoding="utf-8") as stream:  # noqa: PTH123 (Path's is slower)
            roots = [str(entry["root"]) for entry in json.load(stream)["workspaces"]]
    except (OSError, ValueError, KeyError, TypeError, paths.PathError):
        return []
    return sorted(roots)


def above(start: str | os.PathLike[str]) -> str | None:
    """Return *start*, an absolute path, or the nearest folder above it that is a workspace.

    It holds memory/config.toml, or is registered although that cannot be written there; or, where there is
    no such folder, although that is gone: its index still answers.
    """
    folder, kept = os.fspath(start), list[str]()
    with suppress(OSError, paths.PathError):
        if os.listdir(f"{paths.state_place()}/{paths.SETTINGS}"):  # noqa: PTH208 - as below
            kept = registered()
    # os.path instead of Path, which raises for folders that the user may not enter.
    while folder not in kept and (
        not os.path.isfile(f"{folder}/{paths.WORKSPACE_CONFIG}") or _is_twin(folder)  # noqa: PTH113
    ):
        inner, folder = folder, os.path.dirname(folder)  # noqa: PTH120
        if folder == inner:
            return next((root for root in registered()[::-1] if f"{start}/".startswith(f"{root}/")), None)
    return folder


def around(folder: str) -> str | None:
    """Return the workspace of a folder as `above`; in a git worktree that is not registered, of its main one.

    Agents work in such folders, whose notes and configuration are another version of those of the main one.
    """
    root, top = above(folder), folder
    while top != (outer := os.path.dirname(top)):  # noqa: PTH120 - as above
        if (main := _main_worktree(top)) and root not in registered():
            return above(os.path.normpath(f"{main}/{os.path.relpath(folder, top)}")) or root
        top = outer
    return root


def _is_twin(folder: str) -> bool:
    """Return whether a folder is a git worktree inside of its main one, and not registered."""
    main = _main_worktree(folder)
    return main is not None and folder.startswith(f"{main}/") and folder not in registered()


def _main_worktree(folder: str) -> str | None:
    """Return the main worktree of the repository of which a folder is another worktree, if it is one."""
    try:
        with open(f"{folder}/.git", encoding="utf-8") as stream:  # noqa: PTH123 (Path's is slower)
            main, found, _ = stream.read(4096).removeprefix("gitdir: ").partition("/.git/worktrees/")
    except (OSError, ValueError):  # a folder: it is the main one
        return None
    return os.path.realpath(os.path.join(folder, main)) if found else None  # noqa: PTH118 - as above


def absolute(path: str) -> str:
    """Return *path* as an absolute path in UTF-8, which the wire requires. Raises CommandError."""
    if not path:  # as a shell leaves "$NOTES" where it is not set
        raise CommandError("a path is empty: name a file or a folder")
    # No shell expands "~" in --workspace=~/notes or in an agent's JSON configuration.
    expanded = os.path.expanduser(path)  # noqa: PTH111 (Path's raises for ~nobody; here it stays a name)
    full = os.path.normpath(expanded if expanded.startswith("/") else f"{current_directory()}/{expanded}")
    try:
        full.encode()
    except UnicodeEncodeError:
        raise CommandError(f"the path {full!a} is not UTF-8, as each note must be: rename it") from None
    return paths.as_on_disk(full)


def current_directory() -> str:
    """Return the current directory. Raises CommandError if it was deleted."""
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        raise CommandError(
            "the current directory no longer exists: cd to another, or use --workspace DIR", exits.WORKSPACE
        ) from None
