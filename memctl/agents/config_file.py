"""Read and atomically replace configuration files of other programs, with a backup.

Anything unusual about a file (a link, another owner, read-only, changed in the meantime) is an error before
anything is written.
"""

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memctl import exits
from memctl.exits import CommandError
from memctl.paths import reason_and_cure

MAX_BYTES = 64 << 20  # arbitrary: Claude Code stores histories of several MB in its file
BACKUP_SUFFIX = ".before-memd"
NEW_FILE_MODE = 0o600  # other programs may store keys in the file later


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file: its bytes before and after; None means that there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    backup: Literal["make", "leave", "drop"]


def backup_of(path: Path) -> Path:
    """Return the path of a file's backup."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def read(path: Path, *, to_change: bool = True) -> bytes | None:
    """Return the bytes of a regular file; None if it is missing.

    Raises:
        CommandError: it cannot be read, or, unless *to_change* is false, must not be changed.
    """
    try:
        found = path.lstat() if to_change else path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(path, reason_and_cure(path, error)) from error
    if stat.S_ISLNK(found.st_mode):
        raise _refused(path, f"it is a symbolic link to {os.readlink(path)}: change that file by hand")  # noqa: PTH115
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "it is not a regular file")
    if to_change and found.st_uid != os.geteuid():
        raise _refused(path, f"it belongs to uid {found.st_uid}, and you are {os.geteuid()}")
    if to_change and not found.st_mode & stat.S_IWUSR:
        raise _refused(path, f"it is read-only (mode {stat.S_IMODE(found.st_mode):04o})")
    if found.st_size > MAX_BYTES:
        raise _refused(path, f"it has {found.st_size} bytes, more than {MAX_BYTES}")
    try:
        follow = os.O_NOFOLLOW if to_change else 0
        descriptor = os.open(path, os.O_RDONLY | follow | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise _refused(path, reason_and_cure(path, error)) from error


def apply(changes: Sequence[FileChange]) -> None:
    """
    Write all *changes*; if one fails, undo those before it.

    Raises:
        CommandError: a file was changed since it was read, or cannot be written. All changes are undone.
    """
    begun: list[FileChange] = []
    try:
        for change in changes:
            begun.append(change)
            if change.backup == "make" and change.before is not None:
                _replace(backup_of(change.path), change.before, like=change.path)
            _replace(change.path, change.after, like=change.path, expected=change)
    except (CommandError, OSError) as error:
        for change in reversed(begun):
            _take_back(change)
        if isinstance(error, OSError):
            place = Path(str(error.filename)) if error.filename else begun[-1].path
            raise _refused(place, reason_and_cure(place, error)) from error
        raise
    for change in changes:
        if change.backup == "drop":
            backup_of(change.path).unlink(missing_ok=True)


def _take_back(change: FileChange) -> None:
    with suppress(OSError, CommandError):
        if read(change.path) == change.after:
            _replace(change.path, change.before, like=change.path)
        if change.backup == "make":
            backup_of(change.path).unlink(missing_ok=True)


def _replace(path: Path, raw: bytes | None, *, like: Path, expected: FileChange | None = None) -> None:
    """
    Replace a file durably, with the mode and group of *like*, or delete it if *raw* is None.

    *expected*: raise CommandError if the file differs from its `before` just before the change.
    """
    if raw is None:
        _expect_unchanged(expected)
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".memd-write-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, NEW_FILE_MODE), "wb") as stream:
            stream.write(raw)
            stream.flush()
            if like.exists():
                found = like.stat()
                with suppress(PermissionError):  # the user is not a member of that group
                    os.fchown(stream.fileno(), -1, found.st_gid)
                os.fchmod(stream.fileno(), stat.S_IMODE(found.st_mode))
            os.fsync(stream.fileno())
        _expect_unchanged(expected)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _expect_unchanged(change: FileChange | None) -> None:
    if change is not None and read(change.path) != change.before:
        raise _refused(change.path, "it was changed just now: try again")


def _refused(path: Path, reason: str) -> CommandError:
    return CommandError(f"{path} is not changed: {reason}", exits.CONFIG)
