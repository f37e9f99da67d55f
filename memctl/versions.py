"""The comparison of memctl's version with that of the running daemon.

Done only where it costs nothing: by `status`, `start` and `version`, and after an error that a difference
would explain. Nothing here ends or restarts a daemon: memctl.launch does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.lock import Holder


def older_line(holder: "Holder") -> str:
    """Return one line for stderr about a daemon older than this memctl, with the command that replaces it."""
    from memctl import lock, systemd  # only where a daemon is older

    if systemd.managed():
        cure = f"restart it: systemctl --user restart {systemd.SERVICE}"
    elif holder.installation != lock.installation():
        cure = "it is another installation's, and memctl restart puts this one's in its place"
    else:
        cure = "restart it: memctl restart"
    return f"the memd that runs (process {holder.pid}) is older than this memctl; {cure}"


def own() -> str:
    """Return memctl's version; "unknown" when it runs from a folder that was not installed."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms: not for every command

    try:
        return version("memd")
    except PackageNotFoundError:
        return "unknown"


def warning(daemon_version: str) -> str | None:
    """Return one line for stderr when the daemon is of another version, None when all is well."""
    mine = own()
    if "unknown" in (mine, daemon_version) or mine == daemon_version:
        return None
    return f"this memctl is {mine}, the running memd is {daemon_version}. Take the new one: memctl restart"


def mismatch() -> str | None:
    """Return the `warning` about the daemon that runs; None where none runs."""
    from memctl.client import Client, RpcError, Unreachable

    try:
        with Client.connect(timeout_s=1.0) as daemon:
            return warning(str(daemon.call("memd.hello", timeout_s=1.0)["server_version"]))
    except (RpcError, Unreachable):
        return None
