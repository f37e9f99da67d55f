"""Install and remove the systemd user service, and report its state.

Writes two units into the user's unit folder, and a drop-in if a workspace needs the network. Other files
there are not changed. Without systemd, as on macOS, memctl starts memd itself.
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
from memctl.launch import python_module, source_tree, stop_daemon
from memctl.systemd import SERVICE, SOCKET, ServiceError, manager_runs, systemctl, template, unit_dir

# Written on macOS by `memctl service install` of earlier versions.
LAUNCHD_AGENT = "Library/LaunchAgents/local.memd.plist"
LAUNCHCTL_TIMEOUT_S = 30.0  # bootout waits for memd, which may take 10 s to end

# Paths that must be the same for memctl and memd, but that systemd does not inherit from a shell.
_SHARED_VARIABLES = ("XDG_STATE_HOME", "XDG_CONFIG_HOME")


def install() -> list[Path]:
    """Write the units, and let systemd listen for memd now and after each login; return the files written.

    Raises:
        ServiceError: there is no systemd for this user, or systemctl failed.
    """
    if sys.platform == "darwin":
        raise ServiceError("macOS has no systemd, and needs no service: memctl starts memd when needed")
    if not manager_runs():
        raise ServiceError(
            "no systemd runs for this user ($XDG_RUNTIME_DIR/systemd is missing): log in, or run "
            "`loginctl enable-linger` and log in again. Without systemd, memctl starts memd itself"
        )
    # Only one daemon can hold the index: one started by hand would keep systemd's from starting.
    stop_daemon()
    folder = unit_dir()
    folder.mkdir(parents=True, exist_ok=True)
    texts = {SOCKET: template(SOCKET), SERVICE: _with_command(template(SERVICE), memd_command())}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    more = systemd.update()
    systemctl("daemon-reload")
    systemctl("enable", SOCKET)
    systemctl("start", SOCKET)
    return [*(folder / name for name in texts), *more]


def uninstall() -> bool:
    """Stop memd and remove its units; return False if there were none."""
    agent_was_there = _remove_launchd_agent()
    folder = unit_dir()
    paths = [path for name in (SOCKET, SERVICE) if (path := folder / name).exists()]
    if paths and manager_runs():
        systemctl("disable", SOCKET)
        systemctl("stop", SOCKET, SERVICE)
    (folder / "sockets.target.wants" / SOCKET).unlink(missing_ok=True)
    for path in paths:
        path.unlink()
    systemd.remove()
    if paths and manager_runs():
        systemctl("daemon-reload")
        systemctl("reset-failed", SOCKET, SERVICE, check=False)
    return bool(paths) or agent_was_there


def status() -> dict[str, Any]:
    """Return {"installed", "units", "enabled", "socket", "service"}, with states as systemd names them."""
    places = [unit_dir() / SOCKET, unit_dir() / SERVICE, systemd.drop_in()]
    paths = [str(path) for path in places if path.exists()]
    has_manager = manager_runs()

    def ask(verb: str, unit: str) -> str:
        return (systemctl(verb, unit, check=False) if has_manager else "") or "unknown"

    return {
        "installed": bool(paths),
        "units": paths,
        "enabled": ask("is-enabled", SOCKET) == "enabled",
        "socket": ask("is-active", SOCKET),
        "service": ask("is-active", SERVICE),
    }


def _remove_launchd_agent() -> bool:
    """Stop and delete the launchd agent; return False if there is none."""
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
    """Return the command of memd: the script of this installation, or one on the PATH, or the module."""
    script = Path(sysconfig.get_path("scripts"), "memd")
    if script.is_file():
        return [str(script)]
    found = shutil.which("memd")
    return [found] if found else python_module("memd")


def _with_command(text: str, command: list[str]) -> str:
    variables = {name: value for name in _SHARED_VARIABLES if (value := os.environ.get(name))}
    if tree := source_tree():
        variables["PYTHONPATH"] = tree
    lines = ["ExecStart=" + " ".join(_escaped(word) for word in command)]
    lines += ["Environment=" + _escaped(f"{name}={value}") for name, value in variables.items()]
    return re.sub(r"(?m)^ExecStart=.*$", lambda _: "\n".join(lines), text)


def _escaped(word: str) -> str:
    """Return *word* quoted for systemd, with quotes and specifiers escaped."""
    # "$" needs no escape: it has no meaning in Environment= and in the first word of a command.
    for sign, escape in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        word = word.replace(sign, escape)
    return f'"{word}"'
