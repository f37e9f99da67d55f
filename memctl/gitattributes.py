"""The line of .gitattributes with which git joins what two machines have appended to a daily file.

"union" keeps the lines of both. Where both have more than three lines in a row in common, git keeps these
once, and splits the entries around them; with merge.conflictStyle = diff3 it does not look for them. No
.gitattributes can set that, and memctl changes no configuration of git's.
"""

import os
import stat
from pathlib import Path

from memctl.exits import CommandError

LINE = "/memory/????-??-??.md merge=union"
_MAX_BYTES = 1024 * 1024  # arbitrary; far above any real file
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_missing(root: str) -> bool:
    """Return whether a workspace is in a git repository, and its .gitattributes has no such line."""
    try:
        is_in_git = any((folder / ".git").exists() for folder in (Path(root), *Path(root).parents))
        return is_in_git and not _has_line(_path(root).read_bytes()[:_MAX_BYTES])
    except FileNotFoundError:
        return True
    except OSError:
        return False


def add(root: str) -> bool:
    """Append the line once; return whether it was missing.

    Raises:
        CommandError: the file is a link or not a file, is too large, or cannot be written.
    """
    path = _path(root)
    try:
        opened = os.open(path, _FLAGS | os.O_CREAT, 0o644)
        try:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
                raise CommandError(f"{path} is not a file that memctl changes. Add the line yourself: {LINE}")
            before = os.pread(opened, _MAX_BYTES, 0)
            if _has_line(before):
                return False
            torn = "" if not before or before.endswith(b"\n") else "\n"
            os.write(opened, f"{torn}{LINE}\n".encode())
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        raise CommandError(
            f"{path} was not changed: {error.strerror}. Add the line yourself: {LINE}"
        ) from error
    return True


def _path(root: str) -> Path:
    return Path(root) / ".gitattributes"


def _has_line(raw: bytes) -> bool:
    return LINE.encode() in (line.strip() for line in raw.splitlines())
