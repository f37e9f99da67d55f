"""The comparison of memctl's installation with that of the running daemon.

Asked only where it costs nothing: by `status`, `start` and `version`, and after an error that a
difference would explain. Never ends or restarts a daemon: it may be busy for somebody else.
"""


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
    """Ask a running daemon for its version, without starting one; see `warning`."""
    from memctl.client import Client, RpcError, Unreachable

    try:
        with Client.connect(timeout_s=1.0) as daemon:
            return warning(str(daemon.call("memd.hello", timeout_s=1.0)["server_version"]))
    except (RpcError, Unreachable):
        return None
