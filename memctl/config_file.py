"""Read and atomically replace configuration files of other programs, with a backup.

A file is changed only if nothing is unusual about it (a link, another owner, read-only); one that was changed
in the meantime is an error, and then nothing is written.
"""

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from memctl import exits
from memctl.exits import CommandError
from memctl.paths import PathError, make_private_dir, open_own, reason_and_cure, state_dir

MAX_BYTES = 64 << 20  # arbitrary: Claude Code stores histories of several MB in its file
BACKUP_SUFFIX = ".before-memd"
NEW_FILE_MODE = 0o600  # other programs may store keys in the file later
MADE = "made-folders"  # a file of the state folder: the folders that were made for such files, one a line


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file: its bytes before and after; None means that there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    backup: Literal["make", "leave", "drop"]
    mode: int = NEW_FILE_MODE  # of a new file

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before, after = ((raw or b"").decode().splitlines(keepends=True) for raw in (self.before, self.after))
        old, new = ("/dev/null" if raw is None else str(self.path) for raw in (self.before, self.after))
        lines = unified_diff(before, after, old, new)
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines
        )


def backup_of(path: Path) -> Path:
    """Return the path of a file's backup."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def obstacle(path: Path) -> str:
    """Return what forbids to change a file, or to make it; "" if nothing does."""
    try:
        found = path.lstat()
    except OSError:
        found = None
    if found is None or stat.S_ISREG(found.st_mode):
        above = next((one for one in path.parents if one.exists()), path.parent)
        if above.is_dir() and not os.access(above, os.W_OK):
            return f"{above} is read-only"
    if found is None:
        return ""
    if stat.S_ISLNK(found.st_mode):
        return f"it is a symbolic link to {os.readlink(path)}"  # noqa: PTH115
    if found.st_uid != os.geteuid():
        return f"it belongs to uid {found.st_uid}, and you are {os.geteuid()}"
    return "" if found.st_mode & stat.S_IWUSR else f"it is read-only (mode {stat.S_IMODE(found.st_mode):04o})"


def read(path: Path) -> bytes | None:
    """Return the bytes of a regular file, also through a link; None if it is missing. Raises CommandError."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "it is not a regular file")
    if found.st_size > MAX_BYTES:
        raise _refused(path, f"it has {found.st_size} bytes, more than {MAX_BYTES}")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise _failed(path, error) from error


def apply(changes: Sequence[FileChange]) -> None:
    """Write all *changes*; if one fails, undo those before it.

    Raises:
        CommandError: a file was changed since it was read, or cannot be written. All changes are undone.
    """
    begun: list[FileChange] = []
    try:
        for change in changes:
            begun.append(change)
            if change.backup == "make" and change.before is not None:
                replace(backup_of(change.path), change.before, like=change.path)
            replace(change.path, change.after, like=change.path, expected=change)
    except (CommandError, OSError) as error:
        for change in reversed(begun):
            with suppress(OSError, CommandError):
                if read(change.path) == change.after:
                    replace(change.path, change.before, like=change.path)
                if change.backup == "make":
                    backup_of(change.path).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _failed(begun[-1].path, error) from error
        raise
    for change in changes:
        if change.backup == "drop":
            backup_of(change.path).unlink(missing_ok=True)


def replace(path: Path, raw: bytes | None, *, like: Path, expected: FileChange | None = None) -> None:
    """Replace a file durably, with the mode and group of *like*, or delete it if *raw* is None.

    *expected*: raise CommandError if the file differs from its `before` just before the change.
    """
    if raw is None:
        _expect_unchanged(expected)
        path.unlink(missing_ok=True)
        _remove_made(path)
        return
    missing = [above for above in path.parents if not above.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    _note_made(missing)
    temporary = path.with_name(f".memd-write-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = expected.mode if expected else NEW_FILE_MODE
    try:
        with os.fdopen(os.open(temporary, flags, mode), "wb") as stream:
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


def _note_made(folders: Sequence[Path]) -> None:
    if folders:
        with suppress(OSError, PathError):
            make_private_dir(state_dir())
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(open_own(state_dir() / MADE, flags), "ab") as file:
                file.writelines(os.fsencode(folder) + b"\n" for folder in folders)


def _remove_made(path: Path) -> None:
    """Remove the folders around a deleted file that were made for it, as far as they are empty."""
    with suppress(OSError, PathError):
        made = (state_dir() / MADE).read_bytes().split(b"\n")
        for folder in path.parents:
            if os.fsencode(folder) in made:
                folder.rmdir()


def _expect_unchanged(change: FileChange | None) -> None:
    if change is not None and (change.path.is_symlink() or read(change.path) != change.before):
        raise _refused(change.path, "it was changed just now: try again")


def _refused(path: Path, reason: str) -> CommandError:
    return CommandError(f"{path} is not changed: {reason}", exits.CONFIG)


def _failed(path: Path, error: OSError) -> CommandError:
    return _refused(path, reason_and_cure(path, error, is_own=False))
