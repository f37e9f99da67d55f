"""Does systemd look after memd for this user, and how is it asked?

Reads the file system to answer; runs systemctl only where something is to be done.
"""

import os
from pathlib import Path

from memctl.client import Unreachable
from memctl.paths import PathError, config_dir, socket_path

SOCKET = "memd.socket"
SERVICE = "memd.service"

# memd.service may take TimeoutStopSec=20 to stop; systemctl waits for it.
SYSTEMCTL_TIMEOUT_S = 30.0

# Where systemd looks for user units, besides the user's own folder (systemd.unit(5)).
_SYSTEM_DIRS = tuple(
    Path(folder) / "systemd/user" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)


class ServiceError(Unreachable):
    """systemd did not do what was asked; the text is its own."""


def unit_dir() -> Path:
    """Return the folder of the units that this user installs."""
    return config_dir().parent / "systemd/user"


def installed() -> bool:
    """Whether a memd.socket is there, the user's own or the machine's."""
    return any((folder / SOCKET).is_file() for folder in (unit_dir(), *_SYSTEM_DIRS))


def manager_runs() -> bool:
    """Whether this user's systemd can be asked; it can't in most containers and on macOS."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return bool(runtime) and Path(str(runtime), "systemd/private").exists()


def managed() -> bool:
    """Whether systemd is the one starter of the daemon behind `socket_path`."""
    if not manager_runs() or not installed():
        return False
    try:
        return socket_path() == Path(os.environ["XDG_RUNTIME_DIR"], "memd/memd.sock")
    except PathError:
        return False


def unnamed_runtime_dir() -> str | None:
    """Return what XDG_RUNTIME_DIR should be where systemd starts memd and nobody has set it, as in cron."""
    expected = f"/run/user/{os.getuid()}"
    if os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("MEMD_SOCKET") or not installed():
        return None
    return expected if Path(expected, "systemd/private").exists() else None


def systemctl(*arguments: str, check: bool = True) -> str:
    """
    Run systemctl --user and return what it printed.

    Raises:
        ServiceError: it failed (with *check*), is missing, or hangs.
    """
    import subprocess  # 8 ms, and hardly ever needed

    command = ["systemctl", "--user", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SYSTEMCTL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"{' '.join(command)}: {error}") from error
    if check and done.returncode != 0:
        reason = done.stderr.strip() or f"exit code {done.returncode}"
        raise ServiceError(f"{' '.join(command)}: {reason}. See: journalctl --user -u memd")
    return done.stdout.strip()
