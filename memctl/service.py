"""The systemd user service: its installation, its removal and its state.

Writes two units into the user's own folder, and a drop-in where a workspace needs the network. What else the
user keeps beside them is not touched. Where there is no systemd, as on macOS, memctl starts memd itself.
"""

import os
import re
import shutil
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Any

from memctl import systemd
from memctl.launch import default_command, source_tree, stop_daemon
from memctl.paths import state_dir
from memctl.systemd import SERVICE, SOCKET, ServiceError, manager_runs, systemctl, unit_dir

# What an earlier `memctl service install` wrote on macOS; nothing writes it any more.
LAUNCHD_AGENT = "Library/LaunchAgents/local.memd.plist"
LAUNCHCTL_TIMEOUT_S = 30.0  # bootout waits for memd, which may take 10 s to leave

# The places that memctl and memd must agree on, and that systemd does not take from a shell.
_SHARED_VARIABLES = ("XDG_STATE_HOME", "XDG_CONFIG_HOME")


def install(executable: str | None = None) -> list[Path]:
    """
    Write the units, and let systemd listen for memd from now on and after each login.

    Args:
        executable: the memd to run; None: the one of this installation.

    Returns:
        The files written.

    Raises:
        ServiceError: there is no systemd for this user, or it refused.
    """
    command = [executable] if executable else memd_command()
    if sys.platform == "darwin":
        raise ServiceError("macOS has no systemd, and needs no service: memctl starts memd where none runs")
    if not manager_runs():
        raise ServiceError(
            "no systemd runs for this user ($XDG_RUNTIME_DIR/systemd is missing): log in, or run "
            "`loginctl enable-linger` and log in again. Without systemd memctl starts memd by itself"
        )
    # Only one may hold the index. A daemon that was started by hand would keep systemd's from running.
    stop_daemon()
    folder = unit_dir()
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        SOCKET: _template(SOCKET),
        SERVICE: _with_command(_template(SERVICE), command),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    more = systemd.update(folder, state_dir())
    systemctl("daemon-reload")
    systemctl("enable", SOCKET)
    systemctl("start", SOCKET)
    return [*(folder / name for name in texts), *more]


def uninstall() -> bool:
    """Stop memd and remove its units; False if none of them was there."""
    agent_was_there = _remove_launchd_agent()
    folder = unit_dir()
    paths = [path for name in (SOCKET, SERVICE) if (path := folder / name).exists()]
    if paths and manager_runs():
        systemctl("disable", SOCKET)
        systemctl("stop", SOCKET, SERVICE)
    (folder / "sockets.target.wants" / SOCKET).unlink(missing_ok=True)
    for path in paths:
        path.unlink()
    systemd.remove(folder)
    if paths and manager_runs():
        systemctl("daemon-reload")
        systemctl("reset-failed", SOCKET, SERVICE, check=False)
    return bool(paths) or agent_was_there


def status() -> dict[str, Any]:
    """Return {"installed", "units", "enabled", "socket", "service"}; states are systemd's words."""
    places = [unit_dir() / SOCKET, unit_dir() / SERVICE, systemd.drop_in(unit_dir())]
    paths = [str(path) for path in places if path.exists()]
    asked = manager_runs()

    def ask(verb: str, unit: str) -> str:
        return (systemctl(verb, unit, check=False) if asked else "") or "unknown"

    return {
        "installed": bool(paths),
        "units": paths,
        "enabled": ask("is-enabled", SOCKET) == "enabled",
        "socket": ask("is-active", SOCKET),
        "service": ask("is-active", SERVICE),
    }


def _remove_launchd_agent() -> bool:
    """Stop and delete the agent for launchd; False where there is none."""
    import subprocess

    agent = Path.home() / LAUNCHD_AGENT
    if not agent.exists():
        return False
    bootout = ["launchctl", "bootout", f"gui/{os.getuid()}/{agent.stem}"]
    with suppress(OSError, subprocess.TimeoutExpired):  # it may not be loaded
        subprocess.run(bootout, capture_output=True, timeout=LAUNCHCTL_TIMEOUT_S, check=False)
    agent.unlink()
    return True


def memd_command() -> list[str]:
    """Return the command of this installation's memd: the script beside our Python, else one on the PATH."""
    script = Path(sysconfig.get_path("scripts"), "memd")
    if script.is_file():
        return [str(script)]
    found = shutil.which("memd")
    return [found] if found else default_command()


def _template(name: str) -> str:
    """Return a unit's text: from the wheel's copy, else from the source tree."""
    here = Path(__file__).resolve().parent
    for folder in (here / "systemd", here.parent / "systemd"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise ServiceError(f"{name} is missing beside {here}: install memd again")


def _with_command(text: str, command: list[str]) -> str:
    variables = {name: value for name in _SHARED_VARIABLES if (value := os.environ.get(name))}
    if tree := source_tree():
        variables["PYTHONPATH"] = tree
    lines = ["ExecStart=" + " ".join(_escaped(word) for word in command)]
    lines += ["Environment=" + _escaped(f"{name}={value}") for name, value in variables.items()]
    return re.sub(r"(?m)^ExecStart=.*$", lambda _: "\n".join(lines), text)


def _escaped(word: str) -> str:
    """Return *word* as systemd reads it back unchanged: quotes and specifiers escaped."""
    # "$" stays: it means nothing in Environment= and in a command's first word.
    for sign, escape in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        word = word.replace(sign, escape)
    return f'"{word}"'
