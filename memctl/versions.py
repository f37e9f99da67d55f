"""Compare memctl's version with the version of the running daemon.

Only done when the cost does not matter: by `status`, `start` and `version`, and after an error that a
difference would explain. This module never stops or restarts a daemon: memctl.launch does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.lock import Holder


def older_line(holder: "Holder") -> str:
    """Return one line for stderr about a daemon older than this memctl, with the command that replaces it."""
    from memctl import lock, systemd  # rarely needed

    if systemd.managed():
        cure = f"restart it: systemctl --user restart {systemd.SERVICE}"
    elif holder.installation != lock.installation():
        cure = "it belongs to another installation; memctl restart replaces it by this one"
    else:
        cure = "restart it: memctl restart"
    return f"the running memd (process {holder.pid}) is older than this memctl; {cure}"


def own() -> str:
    """Return memctl's version; "unknown" if it is not installed as a package."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, and rarely needed

    try:
        return version("memd")
    except PackageNotFoundError:
        return "unknown"


def warning(daemon_version: str) -> str | None:
    """Return one line for stderr if the daemon has another version, otherwise None."""
    mine = own()
    if "unknown" in (mine, daemon_version) or mine == daemon_version:
        return None
    return f"this memctl is {mine}, the running memd is {daemon_version}. Start this version: memctl restart"


def mismatch() -> str | None:
    """Return the `warning` about the running daemon; None if none runs."""
    from memctl.client import Client, RpcError, Unreachable

    try:
        with Client.connect(timeout_s=1.0) as daemon:
            return warning(str(daemon.call("memd.hello", timeout_s=1.0)["server_version"]))
    except (RpcError, Unreachable):
        return None
