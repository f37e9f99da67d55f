"""systemctl and the user's units: whether systemd looks after memd, and the drop-in for a network provider.

Reads the file system to answer; runs systemctl only where something is to be done.

The shipped unit allows no network. The drop-in beside it, which `memctl service install` writes and removes,
adds two families of addresses and leaves the rest of the hardening as it is.
"""

import json
import os
import tomllib
from contextlib import suppress
from pathlib import Path

from memctl.client import Unreachable
from memctl.paths import PathError, config_dir, socket_path
from memctl.workspaces import CONFIG

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


NAME = "ollama.conf"

_TEXT = """\
# Written by `memctl service install`, which also removes it when no workspace needs it any more.
# Reason: provider = "ollama" or "openai" in
{roots}
# and their servers are asked over TCP, which memd.service does not allow. Nothing else of it is loosened:
# this adds to its RestrictAddressFamilies=AF_UNIX, and memd itself connects only to the addresses that
# ~/.config/memd/config.toml names, which are loopback unless that file says otherwise.
[Service]
RestrictAddressFamilies=AF_INET AF_INET6
"""


def drop_in(unit_dir: Path) -> Path:
    """Return where the drop-in is, if it is there."""
    return unit_dir / f"{SERVICE}.d" / NAME


def text(roots: list[Path]) -> str:
    """Return the drop-in that lets the workspaces at *roots* ask a server of models."""
    # A root with a line feed in its name would end the comment.
    return _TEXT.format(roots="\n".join(f"#   {str(root)!r}" for root in roots))


def asking_servers(state_dir: Path) -> list[Path]:
    """
    Return the registered workspaces whose configuration names a server of models, without asking the daemon.

    A registry or configuration that can't be read names nothing: memd says so where it is asked.
    """
    return [root for root in _registered(state_dir) if _setting(root, "provider") in {"ollama", "openai"}]


def using_model(state_dir: Path, model: str) -> list[Path]:
    """Return the registered workspaces whose configuration names *model*."""
    return [root for root in _registered(state_dir) if _setting(root, "model") == model]


def update(unit_dir: Path, state_dir: Path) -> list[Path]:
    """Write the drop-in where a workspace needs it, remove it where none does; return the files written."""
    roots = asking_servers(state_dir)
    if not roots:
        remove(unit_dir)
        return []
    path = drop_in(unit_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(roots), encoding="utf-8")
    return [path]


def advice(unit_dir: Path, state_dir: Path) -> str | None:
    """Return what to do where the drop-in does not fit the configurations any more; None where it does."""
    wanted = bool(asking_servers(state_dir))
    if wanted == drop_in(unit_dir).exists():
        return None
    now = (
        "may open no network socket, and a server of models is asked"
        if wanted
        else "may open network sockets for nothing"
    )
    return f"memd under systemd {now}. Mend it: memctl service install"


def remove(unit_dir: Path) -> None:
    """Remove the drop-in, and its folder unless the user keeps drop-ins there."""
    path = drop_in(unit_dir)
    path.unlink(missing_ok=True)
    with suppress(OSError):  # it is not there, or not empty
        path.parent.rmdir()


def _registered(state_dir: Path) -> list[Path]:
    try:
        entries = json.loads((state_dir / "workspaces.json").read_text(encoding="utf-8"))["workspaces"]
        return [Path(entry["root"]) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _setting(root: Path, key: str) -> str:
    try:
        return str(tomllib.loads((root / CONFIG).read_text(encoding="utf-8-sig")).get(key, ""))
    except (OSError, ValueError):
        return ""
