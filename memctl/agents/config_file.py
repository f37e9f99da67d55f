"""Configuration files of other programs: read with care, replaced whole or not at all, with a backup.

Whatever is unusual about a file (a link, another owner, no right to write, changed meanwhile) is an error
that names it, before anything is written.
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

MAX_BYTES = 64 << 20  # arbitrary: Claude Code keeps histories in its own, some MB
BACKUP_SUFFIX = ".before-memd"
NEW_FILE_MODE = 0o600  # others may put keys into it later


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file: its bytes before and after, None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    backup: Literal["make", "leave", "drop"]  # the one beside it


def backup_of(path: Path) -> Path:
    """Return where the backup of a file lies."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def read(path: Path) -> bytes | None:
    """Return the bytes of a file that may be changed; None where there is none. Raises CommandError."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(path, reason_and_cure(path, error)) from error
    if stat.S_ISLNK(found.st_mode):
        raise _refused(path, f"it is a symbolic link to {os.readlink(path)}: change that file by hand")  # noqa: PTH115
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "it is no regular file")
    if found.st_uid != os.geteuid():
        raise _refused(path, f"it belongs to uid {found.st_uid}, and you are {os.geteuid()}")
    if not found.st_mode & stat.S_IWUSR:
        raise _refused(path, f"it is read-only (mode {stat.S_IMODE(found.st_mode):04o})")
    if found.st_size > MAX_BYTES:
        raise _refused(path, f"it has {found.st_size} bytes, and {MAX_BYTES} are the most")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise _refused(path, reason_and_cure(path, error)) from error


def apply(changes: Sequence[Change]) -> None:
    """
    Write all *changes*; where one fails, those before it are taken back.

    Raises:
        CommandError: a file is not as it was read, or cannot be written. All are as they were.
    """
    begun: list[Change] = []
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


def _take_back(change: Change) -> None:
    with suppress(OSError, CommandError):
        if read(change.path) == change.after:
            _replace(change.path, change.before, like=change.path)
        if change.backup == "make":
            backup_of(change.path).unlink(missing_ok=True)


def _replace(path: Path, raw: bytes | None, *, like: Path, expected: Change | None = None) -> None:
    """
    Replace a file, with the mode and group of *like*; None: delete it. It is on the disk when this returns.

    *expected*: what must be there until the moment of the change, else CommandError.
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
                with suppress(PermissionError):  # a group that we are not in
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


def _expect_unchanged(change: Change | None) -> None:
    if change is not None and read(change.path) != change.before:
        raise _refused(change.path, "it was changed just now: try again")


def _refused(path: Path, reason: str) -> CommandError:
    return CommandError(f"{path} is not changed: {reason}", exits.CONFIG)
