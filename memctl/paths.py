"""The paths of socket, state and configuration, and checks that they are safe.

Only this module reads the MEMD_* and XDG_* path variables. It imports no library, because memctl and
memd use it. Functions that each command needs work on strings: importing pathlib takes a fifth of
a start.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from memctl.errors import Unreachable

if TYPE_CHECKING:
    from pathlib import Path

# The smallest sun_path of the supported systems is that of macOS: 104 bytes with the final NUL.
MAX_SOCKET_PATH_BYTES = 103
WORKSPACE_CONFIG = "memory/config.toml"  # the file that makes a folder a workspace, below its root
SETTINGS = "settings"  # in the state folder: the same files of folders that cannot be written
EXIT_UNSAFE = 78  # EX_CONFIG of sysexits.h: memd and memctl end with it if a path must be fixed first

_MACOS = sys.platform == "darwin"


class PathError(Unreachable):
    """A folder or file of memd can't be used; the text has the reason and the command that fixes it."""


def socket_path() -> Path:
    """Return the path of memd's socket: MEMD_SOCKET, or memd.sock in the user's runtime directory.

    Raises:
        PathError: the path is too long for a socket.
    """
    return _path(socket_place()[0])


def socket_place() -> tuple[str, bool]:
    """Return `socket_path` as text, and whether it is in the runtime directory. Raises PathError."""
    runtime = _runtime_dir()
    named = os.environ.get("MEMD_SOCKET")
    path = named or f"{runtime}/memd.sock"
    if not path.startswith("/"):
        try:
            path = f"{os.getcwd()}/{path}"  # noqa: PTH109 - as above
        except FileNotFoundError:
            raise PathError(f"MEMD_SOCKET={path} counts from the current folder, which was deleted") from None
    size_bytes = len(os.fsencode(path))
    if size_bytes > MAX_SOCKET_PATH_BYTES:
        raise PathError(
            f"the socket's path has {size_bytes} bytes, more than {MAX_SOCKET_PATH_BYTES}: {path}. "
            f"Use a shorter path: export MEMD_SOCKET=/tmp/memd-{os.getuid()}/memd.sock"
        )
    return path, os.path.dirname(path) == runtime  # noqa: PTH120 - as above


def runtime_dir() -> Path:
    """Return the folder of the socket: $XDG_RUNTIME_DIR/memd, or memd-<uid> in the temporary folder."""
    return _path(_runtime_dir())


def _runtime_dir() -> str:
    if (runtime := _from_env("XDG_RUNTIME_DIR")) and not runtime_fault():
        return f"{runtime.rstrip('/')}/memd"
    temporary = _from_env("TMPDIR") or "/tmp"  # noqa: S108 - checked before use
    return f"{temporary.rstrip('/')}/memd-{os.getuid()}"


def runtime_fault() -> str:
    """Return why $XDG_RUNTIME_DIR is not used; "" if it is, or if it is not set.

    After su or sudo it is another user's, and after a logout it is gone: nobody but the system may make
    what is in /run/user.
    """
    if (runtime := _from_env("XDG_RUNTIME_DIR")) is None:
        return ""
    try:
        found = os.stat(runtime)  # noqa: PTH116 - as above
    except FileNotFoundError:
        is_of_system = f"{runtime}/".startswith("/run/user/")
        may_make = not is_of_system and os.access(_nearest(_path(runtime)), os.W_OK | os.X_OK)
        return "" if may_make else f"XDG_RUNTIME_DIR={runtime} is gone: it is taken as not set"
    except OSError as error:
        return f"XDG_RUNTIME_DIR={runtime} cannot be used ({error.strerror}): it is taken as not set"
    if found.st_uid != os.getuid():
        return f"XDG_RUNTIME_DIR={runtime} belongs to {_user(found.st_uid)}: it is taken as not set"
    return ""


def state_dir() -> Path:
    """Return the folder of the lock, the registry, the indexes and the log."""
    return _path(state_place())


def state_place() -> str:
    """Return `state_dir` as text."""
    if state := _from_env("XDG_STATE_HOME"):
        return f"{state.rstrip('/')}/memd"
    return f"{_home_place()}/{'Library/Application Support/memd' if _MACOS else '.local/state/memd'}"


def state_name(root: str | os.PathLike[str]) -> str:
    """Return the name of a workspace's index in the state folder: a hash of its real root."""
    import hashlib  # few commands need it

    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def kept_settings(state: Path, root: Path) -> Path:
    """Return where in the state folder the settings of a folder lie that cannot be written."""
    return state / SETTINGS / f"{state_name(root)}.toml"


def data_dir() -> Path:
    """Return the folder of downloaded models."""
    if named := _from_env("XDG_DATA_HOME"):
        return _path(named) / "memd"
    return _path(_home_place()) / ("Library/Application Support/memd" if _MACOS else ".local/share/memd")


def config_dir() -> Path:
    """Return the folder of the user's own config.toml."""
    config = _from_env("XDG_CONFIG_HOME")
    return _path(config or f"{_home_place()}/.config") / "memd"


def as_on_disk(path: str) -> str:
    """Return an absolute path with the names that the disk has: a Mac's are NFD, what is typed is NFC."""
    if path.isascii() or os.path.lexists(path):
        return path
    from unicodedata import normalize  # rarely needed

    above, name = os.path.split(path)
    folder = as_on_disk(above)
    with suppress(OSError, ValueError):  # a name with a NUL, which no file has
        wanted = normalize("NFC", name)
        name = next((one for one in os.listdir(folder) if normalize("NFC", one) == wanted), name)  # noqa: PTH208
    return f"{folder.rstrip('/')}/{name}"


def make_private_dir(path: Path) -> None:
    """Create *path*, private to this user, and its missing parents; check it if it exists.

    Raises:
        PathError: it can't be created, or other users could read or replace its contents.
    """
    try:
        for folder in (*reversed(path.parents), path):
            if not os.path.lexists(folder):  # check_private_dir reports anything except a directory
                with suppress(FileExistsError):
                    folder.mkdir(mode=0o700)
                    folder.chmod(0o700)  # a umask may have taken the owner's rights
    except OSError as error:
        raise PathError(f"can't make {path}: {reason_and_cure(path, error)}") from error
    check_private_dir(path)


def check_private_dir(path: Path | str) -> None:
    """Refuse *path* unless it is a real directory that only this user may enter.

    Raises:
        PathError: the text has the command that fixes it.
        FileNotFoundError: it does not exist.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PathError(f"can't look at {path}: {reason_and_cure(_path(path), error)}") from error
    is_sound = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_sound or stat.S_IMODE(found.st_mode) & 0o777 != stat.S_IRWXU:
        _refuse_dir(_path(path), found)


def _refuse_dir(path: Path, found: os.stat_result) -> None:
    """Raise PathError with what is wrong with a folder, and the command that fixes it."""
    uid = os.getuid()
    if stat.S_ISLNK(found.st_mode):
        raise PathError(f"{path} is a symbolic link; memd needs a real directory: rm {_quoted(path)}")
    if not stat.S_ISDIR(found.st_mode):
        raise PathError(f"{path} is not a directory: {_out_of_the_way(path, found.st_mode)}")
    if not path.name.startswith("memd") and (found.st_uid != uid or found.st_mode & 0o077):
        # memd does not create folders of this name, so it may be /tmp, a home or a folder of notes, which
        # other programs could not use any more if it were private.
        raise PathError(
            f"{path} is not a folder for memd only. Give the socket its own folder: "
            f"export MEMD_SOCKET=/tmp/memd-{uid}/memd.sock"
        )
    if found.st_uid != uid:
        refuse_foreign_home()
        whose = f"{path} belongs to uid {found.st_uid}, not to you ({uid})"
        # In a folder that all users may write to, like /tmp, another user may have created it on purpose.
        if path.parent.stat().st_mode & stat.S_IWOTH:
            raise PathError(f"{whose}: sudo rm -r {_quoted(path)}")
        raise PathError(f"{whose}. Be that user, or choose another place: {_another_place(path)}")
    fault = "open to other users" if found.st_mode & 0o077 else "not accessible to you"
    raise PathError(f"{path} is {fault} (mode {stat.S_IMODE(found.st_mode):04o}): chmod 700 {_quoted(path)}")


def refuse_foreign_home() -> None:
    """Refuse to run as root in another user's home, as `sudo` leaves it: its user could use no file from it.

    Raises:
        PathError: the text says as whom to run it.
    """
    if os.getuid() != 0:
        return
    home = _home_place()
    with suppress(OSError):
        owner = os.stat(home).st_uid  # noqa: PTH116 - as above
        if owner != 0:
            raise PathError(
                f"{home} is the home of {_user(owner)}, and you are root. Run it as that user, without sudo; "
                "for a memd of root: sudo -H"
            )


def _user(uid: int) -> str:
    import pwd

    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"uid {uid}"


def check_socket(path: Path | str) -> None:
    """Refuse *path* if it exists and is not a socket.

    Raises:
        PathError: the text has the command that removes it.
    """
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISSOCK(mode):
            # MEMD_SOCKET=/etc/passwd: what memd does not make is moved by nobody.
            is_own = os.path.basename(path).startswith("memd")  # noqa: PTH119 - as above
            cure = _out_of_the_way(_path(path), mode) if is_own else _another_socket()
            raise PathError(f"{path} is {_kind(mode)} and not a socket: {cure}")


def open_own(path: Path | str, flags: int) -> int:
    """Open a regular file of memd without blocking, even if it was replaced by a FIFO.

    Args:
        path: in a folder of memd.
        flags: for os.open; a new file is private to this user.

    Raises:
        PathError: the text has the command that fixes it.
        FileNotFoundError: it does not exist, and *flags* have no O_CREAT.
    """
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
        raise PathError(f"can't make {path}: its folder was removed just now. Try again") from None
    except OSError as error:
        raise PathError(f"can't open {path}: {reason_and_cure(path, error)}") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise PathError(f"{path} is {_kind(mode)} and not a file: {_out_of_the_way(_path(path), mode)}")
    return descriptor


def reason_and_cure(path: Path | str, error: OSError, *, is_own: bool = True) -> str:
    """Return why memd can't use *path*, and the command that fixes it.

    *is_own*: it is a file of memd, for which a variable can name another place.
    """
    path = _path(path)

    def elsewhere(place: Path) -> str:
        return f". Choose another place: {_another_place(place)}" if is_own else ""

    if error.errno in {errno.EACCES, errno.EPERM}:
        above = reversed(path.parents)
        locked = (one for one in above if os.path.lexists(one) and not os.access(one, os.X_OK))
        place = next(locked, None) or (path if os.path.lexists(path) else _nearest(path.parent))
        return _missing_right(place) or (
            f"{place} belongs to uid {place.lstat().st_uid}, and you are {os.getuid()}{elsewhere(place)}"
        )
    if error.errno == errno.EROFS:
        return f"it is on a read-only file system{elsewhere(path)}"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"no space left. Free some: df -h {_quoted(_nearest(path))}"
    if error.errno == errno.ENAMETOOLONG:
        return f"the name is too long{elsewhere(path)}"
    blocking = _nearest(path)
    with suppress(OSError):
        mode = blocking.lstat().st_mode
        if not stat.S_ISDIR(mode) or (blocking == path and stat.S_ISDIR(mode)):
            cure = f": {_out_of_the_way(blocking, mode)}" if is_own or not _is_device(mode) else ""
            return f"{blocking} is {_kind(mode)}{cure}"
    return f"{error.strerror}{elsewhere(path)}"


def _missing_right(place: Path) -> str:
    """Return the mode of one's own file or folder, and the command that mends it; "" if it is another's."""
    found = place.lstat()
    if found.st_uid != os.getuid():
        return ""
    mode = f"{stat.S_IMODE(found.st_mode):04o}"
    return f"{place} has mode {mode}: chmod u+rw{'x' if place.is_dir() else ''} {_quoted(place)}"


def _nearest(path: Path) -> Path:
    """Return *path* if it exists, or the nearest existing folder above it."""
    return next((place for place in (path, *path.parents) if os.path.lexists(place)), path)


def _kind(mode: int) -> str:
    names = {
        stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file",
        stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
    }  # fmt: skip
    return names.get(stat.S_IFMT(mode), "a device")


def _is_device(mode: int) -> bool:
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _out_of_the_way(path: Path, mode: int) -> str:
    """Return the command that frees *path*: files and folders are moved, because they may have contents."""
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        return f"mv {_quoted(path)} {_quoted(path.with_name(f'{path.name}.aside'))}"
    if _is_device(mode):  # /dev/null, as the home of an account: it is everybody's
        return _another_place(path)
    return f"rm {_quoted(path)}"


def _another_place(path: Path) -> str:
    """Return the shell command that sets another state directory or socket than *path*."""
    with suppress(PathError):
        state = state_dir()
        if path == state or state in path.parents or path in state.parents:
            return another_state_dir()
    return _another_socket()


def _another_socket() -> str:
    return f"export MEMD_SOCKET={_writable_of('/tmp', '/dev/shm')}/memd-{os.getuid()}/memd.sock"  # noqa: S108


def another_state_dir() -> str:
    """Return the shell command that sets another state directory; in a home that is read-only, elsewhere."""
    with suppress(PathError):
        if os.access(_home_place(), os.W_OK | os.X_OK):
            return 'export XDG_STATE_HOME="$HOME/memd-state"'
    return f"export XDG_STATE_HOME={_writable_of('/var/tmp', '/tmp', '/dev/shm')}/memd-state-{os.getuid()}"  # noqa: S108


def _writable_of(*folders: str) -> str:
    return next((folder for folder in folders if os.access(folder, os.W_OK | os.X_OK)), folders[0])


def _path(path: Path | str) -> Path:
    from pathlib import Path  # slow to import

    return Path(path)


def _home_place() -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - as above
    if home.startswith("~"):  # no HOME, and no line for this user in /etc/passwd
        raise PathError("there is no home directory for this user: export HOME=/a/folder/of/yours")
    return home


def _from_env(name: str) -> str | None:
    """Return an absolute path from the environment; the XDG specification demands to ignore relative ones."""
    value = os.environ.get(name, "")
    return value if value.startswith("/") else None


def _quoted(path: Path) -> str:
    from shlex import quote  # 1 ms, only needed for errors

    return quote(str(path))
