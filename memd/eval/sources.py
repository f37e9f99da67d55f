"""Which notes does memd search here, and what stands in them? The daemon's word counts, for each file.

It lists no sources, so the folder is walked for what could be one, and memd is asked for each: what it
gives back is a source, and its text is what is indexed. Nothing is written.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from memctl.client import Client, RpcError

GET_TIMEOUT_S = 10.0  # a file of 4 MiB on a slow disk

# memd enters none of these, whatever the patterns say.
_NEVER_ENTERED = frozenset({"node_modules", "__pycache__", "site-packages"})
_PLAIN = "**/*."  # patterns of this shape are a test of the name's end


def candidates(root: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yield what could be a source, relative to *root*: a superset of those that *patterns* select."""
    plain = all(pattern.startswith(_PLAIN) and pattern[len(_PLAIN) :].isalnum() for pattern in patterns)
    endings = tuple(pattern.removeprefix("**/*") for pattern in patterns) if plain else ("",)
    for folder, inner, names in os.walk(root):
        at = os.path.relpath(folder, root)
        prefix = "" if at == "." else f"{at}/"
        inner[:] = sorted(name for name in inner if _may_enter(folder, name))
        wanted = (*endings, ".md") if f"{prefix}".startswith("memory/") else endings
        for name in sorted(names):
            if name.endswith(wanted) and not name.startswith(".") and _is_text(name):
                yield prefix + name


def read(client: Client, workspace: str, path: str) -> str | None:
    """Return the text of a source, lines ending in line feeds; None where memd has none at *path*."""
    return _got(client, {"workspace": workspace, "path": path})


def is_source(client: Client, workspace: str, path: str) -> bool:
    """Say whether memd searches the file at *path*."""
    return _got(client, {"workspace": workspace, "path": path, "end_line": 1}) is not None


def texts(
    client: Client,
    workspace: str,
    paths: Iterable[str],
    *,
    limit: int | None,
    told: Callable[[int], None],
) -> dict[str, list[str]]:
    """
    Return path → lines of the sources among *paths*.

    Args:
        client: a connection.
        workspace: which.
        paths: in the order in which they are tried.
        limit: so many sources are enough; None: all.
        told: is told how many are read.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        if limit is not None and len(found) >= limit:
            break
        text = read(client, workspace, path)
        if text is not None:
            found[path] = text.split("\n")
            told(len(found))
    return found


def _got(client: Client, params: dict[str, object]) -> str | None:
    try:
        answer = client.call("get", params, timeout_s=GET_TIMEOUT_S)
    except RpcError as error:
        if error.code == "MEMD_NOT_FOUND":
            return None
        raise
    return str(answer["text"])


def _may_enter(folder: str, name: str) -> bool:
    inner = f"{folder}/{name}"
    # A workspace of its own inside of this one: nothing of it is searched here.
    nested = os.path.lexists(f"{inner}/memory/config.toml")
    return not name.startswith(".") and name not in _NEVER_ENTERED and not nested and _is_text(name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # not UTF-8 on the disk: memd takes no such name
        return False
    return True
