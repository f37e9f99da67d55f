"""systemd's user units: whether systemd runs memd, systemctl, and the drop-in for providers on the network.

Questions are answered from the file system; systemctl is run only for changes.

The shipped unit allows no network. The drop-in, which `memctl service install` writes and removes, adds two
address families and does not change the rest of the hardening.
"""

import os
import tomllib
from contextlib import suppress
from pathlib import Path

from memctl.errors import Unreachable
from memctl.paths import WORKSPACE_CONFIG, PathError, config_dir, kept_settings, socket_path, state_dir
from memctl.workspaces import registered

SOCKET = "memd.socket"
SERVICE = "memd.service"

# memd.service may take TimeoutStopSec=20 to stop; systemctl waits for it.
SYSTEMCTL_TIMEOUT_S = 30.0

# Folders of user units in addition to the user's own (systemd.unit(5)).
_SYSTEM_DIRS = tuple(
    Path(folder) / "systemd/user" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)


class ServiceError(Unreachable):
    """systemctl failed; the text has its error message."""


def unit_dir() -> Path:
    """Return the folder of the user's own units."""
    return config_dir().parent / "systemd/user"


def installed() -> bool:
    """Return whether memd.socket is installed, for this user or for the machine."""
    return any((folder / SOCKET).is_file() for folder in (unit_dir(), *_SYSTEM_DIRS))


def manager_runs() -> bool:
    """Return whether systemd runs for this user; it does not in most containers and on macOS."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return bool(runtime) and Path(str(runtime), "systemd/private").exists()


def managed() -> bool:
    """Return whether systemd starts the daemon that listens at `socket_path`."""
    if not manager_runs() or not installed():
        return False
    try:
        return socket_path() == Path(os.environ["XDG_RUNTIME_DIR"], "memd/memd.sock")
    except PathError:
        return False


def unnamed_runtime_dir() -> str | None:
    """Return the value that XDG_RUNTIME_DIR lacks, as in cron; None if it is set or systemd is not used."""
    expected = f"/run/user/{os.getuid()}"
    if os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("MEMD_SOCKET") or not installed():
        return None
    return expected if Path(expected, "systemd/private").exists() else None


def systemctl(*arguments: str, check: bool = True) -> str:
    """Run systemctl --user and return its output.

    Raises:
        ServiceError: it failed (with *check*), is missing, or hangs.
    """
    import subprocess  # 8 ms, and rarely needed

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


def template(name: str) -> str:
    """Return the text of a unit, from the installed copy or the source tree."""
    here = Path(__file__).resolve().parent
    for folder in (here / "systemd", here.parent / "systemd"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise ServiceError(f"{name} is missing beside {here}: install memd again")


NAME = "ollama.conf"


def drop_in() -> Path:
    """Return the path of the drop-in, which may not exist."""
    return unit_dir() / f"{SERVICE}.d" / NAME


def text(roots: list[Path]) -> str:
    """Return the text of the drop-in, which names the workspaces and the file that need a network."""
    # A root with a line feed in its name would end the comment.
    return template(NAME).format(roots="\n".join(f"#   {str(root)!r}" for root in roots))


def using_network() -> list[Path]:
    """Return the registered workspaces whose provider is a model server, without asking the daemon.

    And the user's configuration if its team's store is asked over TCP. Unreadable registries and
    configurations are skipped: memd reports them.
    """
    asking = [root for root in registered() if _setting(root, "provider") in {"ollama", "openai"}]
    path = config_dir() / "config.toml"
    try:
        team = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("team")
    except (OSError, ValueError):
        team = None
    uri = str(team.get("uri", "")) if isinstance(team, dict) else ""
    is_local = not uri or uri.startswith("milvus+lite:")
    return [*map(Path, asking), *([] if is_local else [path])]


def using_model(model: str) -> list[str]:
    """Return the registered workspaces whose configuration sets *model*."""
    return [root for root in registered() if _setting(root, "model") == model]


def update() -> list[Path]:
    """Write the drop-in if something needs it, otherwise remove it; return the files written."""
    roots = using_network()
    if not roots:
        remove()
        return []
    path = drop_in()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(roots), encoding="utf-8")
    return [path]


def advice() -> str | None:
    """Return what to do if the drop-in does not fit the configurations; None if it does."""
    wanted = bool(using_network())
    if wanted == drop_in().exists():
        return None
    now = (
        "may not open network sockets, but a server is configured"
        if wanted
        else "may open network sockets, but needs none"
    )
    return f"memd under systemd {now}. Fix it: memctl service install"


def remove() -> None:
    """Remove the drop-in, and its folder unless the user keeps drop-ins there."""
    path = drop_in()
    path.unlink(missing_ok=True)
    with suppress(OSError):  # it does not exist, or is not empty
        path.parent.rmdir()


def _setting(root: str, key: str) -> str:
    kept = kept_settings(state_dir(), Path(root))
    try:
        path = kept if kept.exists() else Path(root, WORKSPACE_CONFIG)
        return str(tomllib.loads(path.read_text(encoding="utf-8-sig")).get(key, ""))
    except (OSError, ValueError):
        return ""
