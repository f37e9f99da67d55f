"""The launchd agent on macOS: its installation and its removal.

Untested on macOS: written from launchd.plist(5) and launchctl(1). The places are parameters and values, so
that what can be tested elsewhere is.
"""

import os
import plistlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memctl.launch import LOG_NAME, source_tree
from memctl.paths import make_private_dir
from memctl.systemd import ServiceError

LABEL = "local.memd"
TEMPLATE = Path(__file__).resolve().parent / "launchd" / f"{LABEL}.plist"

# The places that memctl and memd must agree on, and that launchd does not take from a shell.
_SHARED_VARIABLES = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "MEMD_SOCKET")
_LAUNCHCTL_TIMEOUT_S = 30.0  # bootout waits for memd, which may take 10 s to leave


def agent_path(home: Path) -> Path:
    """Return where launchd looks for this agent of the user with this *home*."""
    return home / "Library/LaunchAgents" / f"{LABEL}.plist"


def plist(command: list[str], *, state_dir: Path, environment: Mapping[str, str]) -> bytes:
    """
    Return the agent's property list.

    Args:
        command: what starts memd.
        state_dir: the folder of its log.
        environment: of the user's shell; the variables that name places are kept.
    """
    template = TEMPLATE.read_bytes()
    agent: dict[str, Any] = plistlib.loads(template)
    agent["ProgramArguments"] = command
    shared = {name: value for name in _SHARED_VARIABLES if (value := environment.get(name))}
    tree = source_tree()
    agent["EnvironmentVariables"] |= shared | ({"PYTHONPATH": tree} if tree else {})
    agent["StandardOutPath"] = agent["StandardErrorPath"] = str(state_dir / LOG_NAME)
    # plistlib reads no comments, and the ones of the template say what the file is.
    comment = re.search(rb"(?s)<!--.*?-->\n", template)
    head, start, body = plistlib.dumps(agent, sort_keys=False).partition(b"<plist")
    return head + (comment[0] if comment else b"") + start + body


def write(home: Path, command: list[str], *, state_dir: Path, environment: Mapping[str, str]) -> Path:
    """Write the agent for the user with this *home*, and return the file."""
    # launchd makes the log, but not the folder that it is in.
    make_private_dir(state_dir)
    path = agent_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plist(command, state_dir=state_dir, environment=environment))
    return path


def load(path: Path) -> None:
    """Let launchd start the agent now and at each login. Raises ServiceError."""
    _launchctl("bootout", f"{_domain()}/{LABEL}", check=False)  # the one before it, where there is one
    _launchctl("bootstrap", _domain(), str(path))


def remove(home: Path) -> bool:
    """Stop the agent and remove it; False if it was not there."""
    path = agent_path(home)
    if not path.exists():
        return False
    _launchctl("bootout", f"{_domain()}/{LABEL}", check=False)  # it may not be loaded
    path.unlink()
    return True


def status(home: Path) -> dict[str, Any]:
    """Return what `memctl.service.status` returns; launchd has no socket of ours."""
    path = agent_path(home)
    there = path.exists()
    loaded = there and _launchctl("print", f"{_domain()}/{LABEL}", check=False) == 0
    return {
        "installed": there,
        "units": [str(path)] if there else [],
        "enabled": there,
        "socket": "unknown",
        "service": "loaded" if loaded else "not loaded",
    }


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _launchctl(*arguments: str, check: bool = True) -> int:
    import subprocess

    command = ["launchctl", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LAUNCHCTL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"{' '.join(command)}: {error}") from error
    if check and done.returncode != 0:
        raise ServiceError(
            f"{' '.join(command)}: {done.stderr.strip() or done.returncode}. The agent for macOS is "
            "untested; without it memctl starts memd by itself: memctl service uninstall"
        )
    return done.returncode
