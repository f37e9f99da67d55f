"""The line of .gitattributes with which git joins what two machines have appended to a daily file.

"union" keeps the lines of both. Where both have more than three lines in a row in common, git keeps these
once, and splits the entries around them; with merge.conflictStyle = diff3 it does not look for them. No
.gitattributes can set that, and memctl changes no configuration of git's.
"""

from contextlib import suppress
from pathlib import Path

from memctl import config_file
from memctl.config_file import FileChange
from memctl.exits import CommandError

LINE = "/memory/????-??-??.md merge=union"


def is_missing(root: str) -> bool:
    """Return whether a workspace is in a git repository, and its .gitattributes has no such line."""
    with suppress(OSError, CommandError):
        is_in_git = any((folder / ".git").exists() for folder in (Path(root), *Path(root).parents))
        return is_in_git and not _has_line(config_file.read(_path(root)))
    return False


def add(root: str) -> bool:
    """Append the line once; return whether it was missing.

    Raises:
        CommandError: the file is a link or not a file, is too large, or cannot be written.
    """
    path = _path(root)
    try:
        before = config_file.read(path)
        if _has_line(before):
            return False
        if reason := config_file.obstacle(path):
            raise CommandError(f"{path} is not changed: {reason}")  # noqa: TRY301 - with the advice below
        torn = b"\n" if before and not before.endswith(b"\n") else b""
        after = (before or b"") + torn + f"{LINE}\n".encode()
        config_file.apply([FileChange(path, before, after, "leave", mode=0o644)])
    except CommandError as error:
        raise CommandError(f"{error}. Add the line yourself: {LINE}") from error
    return True


def _path(root: str) -> Path:
    return Path(root) / ".gitattributes"


def _has_line(raw: bytes | None) -> bool:
    return LINE.encode() in (line.strip() for line in (raw or b"").splitlines())
