"""Convert paths and globs relative to the current folder to ones relative to a workspace's root, and back.

Command line arguments work as for grep: `..`, absolute paths and patterns that begin above the workspace are
allowed. A pattern after `path:` in a query, and each path on the wire, is relative to the root.
"""

import os
import re
from collections.abc import Sequence

from memctl import exits, workspaces
from memctl.exits import CommandError
from memctl.text import one_line

_MAGIC = "*?["
_PATH = re.compile(r"^[/.~]|\.(md|markdown)$")  # a path, never a title

# OWNER@MACHINE:WORKSPACE/PATH[:LINE[-LINE]], as a search of a team prints a note of another machine
_OF_TEAM = re.compile(r"([^@/]*)@([^:/]*):([^/]+)/(.+?)(?::([1-9]\d{0,8})(?:-\d+)?)?", re.DOTALL)


def root_of(workspace: str) -> str:
    """Return the root of the workspace that contains a folder, with symbolic links resolved."""
    return os.path.realpath(workspaces.above(workspace) or workspace)


def source(typed: str, workspace: str, *, outside: bool = False, titled: bool = False) -> str:
    """Return the path of a note relative to the workspace's root.

    Args:
        typed: relative to the current folder, or absolute.
        workspace: the root of the workspace, or a folder in it.
        outside: whether to return an absolute path if it is not in the workspace.
        titled: whether *typed* may also be a title, which is returned unchanged.

    Raises:
        CommandError: the path is outside the workspace, exists only relative to the root, or is of a team.
    """
    if titled and re.match("[a-z-]+://", typed):  # a URI, which memd reads
        return typed
    root = root_of(workspace)
    full = workspaces.absolute(typed)
    path = inside(full, root)
    at_root = not typed.startswith("/") and exists(f"{root}/{typed}")
    of_team = _OF_TEAM.fullmatch(typed)
    if of_team and _PATH.search(of_team[4]) and not at_root and not exists(full):
        raise CommandError(
            f"{typed} is a note of the team: all of it is on {of_team[2]}. Here memctl search --team and "
            "memctl recall --team print passages",
            exits.NOT_FOUND,
        )
    if at_root and not exists(full):
        raise CommandError(
            f"there is no {full}. Paths count from the current folder: {typed} of the workspace "
            f"is {os.path.relpath(f'{root}/{typed}', workspaces.current_directory())}",
            exits.NOT_FOUND,
        )
    if titled and not exists(full) and not _PATH.search(typed):
        return typed
    if path is None and not outside:
        raise CommandError(f"{full} is outside the workspace {root}: paths count from the current folder")
    return full if path is None else path or "."


def entry(typed: str, workspace: str) -> str:
    """Return the id of an entry if *typed* is one, otherwise the result of `source`."""
    if re.fullmatch(r"[0-9a-f]{6,16}", typed) and not exists(workspaces.absolute(typed)):
        return typed
    return source(typed, workspace)


def globs(typed: Sequence[str], workspace: str) -> list[str]:
    """Return patterns relative to the root that match what any of *typed* matches here; [] for all notes.

    Raises:
        CommandError: one of them cannot match anything in the workspace.
    """
    found = globs_of_each(typed, [workspace])[0]
    assert found is not None  # with a single workspace, no matches raise CommandError
    return found


def globs_of_each(typed: Sequence[str], named: Sequence[str]) -> list[list[str] | None]:
    """Return the result of `globs` for each of several workspaces; None for a workspace without matches.

    Raises:
        CommandError: one pattern cannot match anything in any workspace.
    """
    if not typed:
        return [[] for _ in named]
    roots = [root_of(workspace) for workspace in named]
    found = [[_within(pattern, root) for pattern in typed] for root in roots]
    for number, pattern in enumerate(typed):
        if all(of_root[number] is None for of_root in found):
            outside = f"the workspace {roots[0]}" if len(roots) == 1 else "all workspaces that are searched"
            raise CommandError(
                f"--path {pattern}: {workspaces.absolute(pattern)} is outside {outside}. It counts from "
                f"the current folder; path:{pattern} in a query counts from a workspace's root"
            )
    each: list[list[str] | None] = []
    for of_root in found:
        meant = [globs for globs in of_root if globs is not None]
        joined = [] if [] in meant else list(dict.fromkeys(glob for globs in meant for glob in globs))
        each.append(joined if meant else None)
    return each


def expanded_by_the_shell(typed: Sequence[str], words: Sequence[str]) -> str | None:
    """Return the pattern after --path that the shell seems to have expanded, so that files became words."""
    for path in typed:
        for word in words:
            folder, suffix = os.path.dirname(path), os.path.splitext(path)[1]  # noqa: PTH120, PTH122 - of texts
            is_alike = os.path.dirname(word) == folder and os.path.splitext(word)[1] == suffix  # noqa: PTH120, PTH122 - as above
            if word != path and is_alike and (folder or suffix) and exists(path) and exists(word):
                return os.path.join(folder, f"*{suffix}")  # noqa: PTH118 - as above
    return None


def inside(full: str, root: str) -> str | None:
    """Return an absolute path relative to *root*, "" for the root itself, None if it is outside."""
    for path in (full, os.path.realpath(full)):
        if path == root or path.startswith(f"{root.rstrip('/')}/"):
            return path[len(root) :].lstrip("/")
    return None


def has_magic(path: str) -> bool:
    """Return whether a path has signs of a pattern."""
    return any(sign in path for sign in _MAGIC)


def exists(path: str) -> bool:
    """Return whether a path exists; inaccessible paths count as missing."""
    return os.path.exists(path)  # noqa: PTH110 - Path's raises for names that are too long and for locked folders


def shown(workspace: str, path: str, cwd: str) -> str:
    """Return the path of a source, relative to *cwd* if it is below it, otherwise absolute; safe to print."""
    return one_line(seen_from(workspace, path, cwd))


def seen_from(workspace: str, path: str, cwd: str) -> str:
    """Return the result of `shown` with the name as it is on the disk, which may have control characters."""
    return f"{workspace}/{path}".removeprefix(cwd if cwd.endswith("/") else cwd + "/")


def _within(typed: str, root: str) -> list[str] | None:
    """Return patterns relative to *root* for the pattern *typed*; [] for all notes, None for none."""
    if not typed:
        raise CommandError("--path: a path or a pattern is missing")
    full = workspaces.absolute(typed)
    if not has_magic(typed) or exists(full):
        path = inside(full, root)
        if path is None:
            is_above = inside(root, os.path.realpath(full)) is not None
            return [] if is_above else None
        if has_magic(path):  # escaped: a file, or a folder, of this name
            return [_escaped(path), f"{_escaped(path)}/*"]
        return [path] if path else []
    here = "" if typed.startswith(("/", "~")) else f"{_escaped(workspaces.current_directory())}/"
    pattern = os.path.normpath(f"{here}{os.path.expanduser(typed)}")  # noqa: PTH111 - as in workspaces.absolute
    if (found := _rest(pattern, root)) is not None:
        return found
    parts = pattern.split("/")  # again with the symbolic links before its first wildcard resolved
    literal = next((at for at, part in enumerate(parts) if has_magic(part)), len(parts))
    real = os.path.realpath("/".join(parts[:literal]) or "/")
    return _rest("/".join([_escaped(real), *parts[literal:]]), root)


def _escaped(path: str) -> str:
    from glob import escape  # rarely needed

    return escape(path)


def _rest(pattern: str, root: str) -> list[str] | None:
    """Return the rests of an absolute *pattern* below *root*; [] if it matches all of it, None if nothing.

    There may be several, because "**" may end above the root or continue below it. Above the root, other
    signs match in one name, as in a shell.
    """
    from fnmatch import fnmatchcase
    from unicodedata import normalize  # a name on a disk may be in another form than it is typed

    parts = normalize("NFC", pattern).split("/")[1:]
    places = {0}  # possible indexes of the part for the next name
    for name in filter(None, normalize("NFC", root).split("/")):
        if len(parts) in places:  # it matches a folder above
            return []
        deep = {place for place in places if len(parts[place]) > 1 and not parts[place].strip("*")}
        places = deep | {place + 1 for place in places if fnmatchcase(name, parts[place])}
    if len(parts) in places:  # it matches the root itself
        return []
    return ["/".join(parts[place:]) for place in sorted(places)] or None
