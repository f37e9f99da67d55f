"""How does a setting get into config.toml without losing what the user wrote there?"""

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from memd.errors import UnsafeError, storage_error


def write(root: Path, path: Path, settings: dict[str, Any]) -> None:
    """Set top-level keys; comments, order and all else stay. The file is replaced as a whole, durably.

    Raises:
        NoSpaceError, StorageError: it cannot be written, and is as it was.
        UnsafeError: *path* links out of *root*: the file it names was not made for this.
    """
    target = path.resolve()
    if not target.is_relative_to(root):
        raise UnsafeError(f"{path} links to {target}, out of the workspace: change that file yourself")
    import tomlkit  # noqa: PLC0415 - settings are written seldom, and each start would load it

    document = tomlkit.parse(target.read_text(encoding="utf-8-sig"))
    for key, value in settings.items():
        document[key] = value
    try:
        _replace(target, tomlkit.dumps(document))
    except OSError as error:
        raise storage_error(f"{target} cannot be written", error) from error


def _replace(target: Path, text: str) -> None:
    # A name that nobody can have put there before, as a link to somewhere else; `clear_leftovers` knows it.
    fresh = target.parent / f".memd-write-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # for as long as it is no leftover
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), target.stat().st_mode & 0o777)
            os.fsync(stream.fileno())
            fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
