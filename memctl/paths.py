"""Where are the socket, the state and the configuration, and is the place safe?

The one reader of MEMD_* and XDG_* variables. Standard library only, because both sides import it.
"""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

# The smallest sun_path that we run on is macOS's: 104 bytes with the closing NUL.
MAX_SOCKET_PATH_BYTES = 103

_MACOS = sys.platform == "darwin"


class PathError(Exception):
    """A place can't be used as it is; the text says why and gives the command that mends it."""


def socket_path() -> Path:
    """
    Return where memd listens: MEMD_SOCKET, else memd.sock in the user's runtime directory.

    Raises:
        PathError: the path is longer than a socket's may be.
    """
    named = os.environ.get("MEMD_SOCKET")
    path = Path(named).absolute() if named else runtime_dir() / "memd.sock"
    size_bytes = len(os.fsencode(path))
    if size_bytes > MAX_SOCKET_PATH_BYTES:
        raise PathError(
            f"the socket's path has {size_bytes} bytes, {MAX_SOCKET_PATH_BYTES} are possible: {path}. "
            f"Choose a shorter one: export MEMD_SOCKET=/tmp/memd-{os.getuid()}/memd.sock"
        )
    return path


def runtime_dir() -> Path:
    """Return the folder of the socket: $XDG_RUNTIME_DIR/memd, else memd-<uid> among temporary files."""
    if runtime := _from_env("XDG_RUNTIME_DIR"):
        return runtime / "memd"
    return (_from_env("TMPDIR") or Path("/tmp")) / f"memd-{os.getuid()}"  # noqa: S108 - checked before use


def state_dir() -> Path:
    """Return the folder of lock, registry, indexes and log."""
    if state := _from_env("XDG_STATE_HOME"):
        return state / "memd"
    return _home() / ("Library/Application Support/memd" if _MACOS else ".local/state/memd")


def config_dir() -> Path:
    """Return the folder of the user's own config.toml."""
    return (_from_env("XDG_CONFIG_HOME") or _home() / ".config") / "memd"


def make_private_dir(path: Path) -> None:
    """
    Make *path* and what is missing above it, for this user alone; check it where it was there before.

    Raises:
        PathError: it can't be made, or others could read or replace what is in it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # check_private_dir says what is there instead of a directory
            path.mkdir(mode=0o700)
    except OSError as error:
        raise PathError(f"can't make {path}: {error.strerror}. Its parent must be yours to write") from error
    check_private_dir(path)


def check_private_dir(path: Path) -> None:
    """
    Refuse *path* unless it is a real directory of this user that nobody else may enter.

    Raises:
        PathError: with the command that mends it.
        FileNotFoundError: it is not there.
    """
    found = path.lstat()
    uid = os.getuid()
    if stat.S_ISLNK(found.st_mode):
        raise PathError(f"{path} is a symbolic link; memd needs a real directory: rm {_quoted(path)}")
    if not stat.S_ISDIR(found.st_mode):
        raise PathError(f"{path} is not a directory: rm {_quoted(path)}")
    if not path.name.startswith("memd") and (found.st_uid != uid or found.st_mode & 0o077):
        # Not a name that memd gives, so /tmp, a home, a folder of notes: made private, it would break
        # for all else.
        raise PathError(
            f"{path} is not for memd alone. Give the socket a folder of its own: "
            f"export MEMD_SOCKET=/tmp/memd-{uid}/memd.sock"
        )
    if found.st_uid != uid:
        # In a folder that everybody may write, like /tmp, somebody else may have put it there on purpose.
        shared = path.parent.stat().st_mode & stat.S_IWOTH
        mend = "rm -r" if shared else f"chown -R {uid}"
        raise PathError(
            f"{path} belongs to uid {found.st_uid}, not to you ({uid}): sudo {mend} {_quoted(path)}"
        )
    if found.st_mode & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        raise PathError(f"{path} is open to other users (mode {mode}): chmod 700 {_quoted(path)}")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and no line for this user in /etc/passwd
        raise PathError("there is no home directory for this user: export HOME=/a/folder/of/yours") from None


def _from_env(name: str) -> Path | None:
    """Return an absolute path out of the environment; the XDG specification says to ignore relative ones."""
    value = os.environ.get(name, "")
    return Path(value) if value.startswith("/") else None


def _quoted(path: Path) -> str:
    from shlex import quote  # 1 ms, only for an error

    return quote(str(path))
