"""The protocols of sd_listen_fds(3) and sd_notify(3): socket activation, readiness, watchdog.

Without systemd there is nothing to take and nobody to tell: every function does nothing then.
"""

import os
import re
import socket
from contextlib import suppress

_FIRST_FD = 3  # SD_LISTEN_FDS_START
_NO_INTERVAL_US = (0, 2**64 - 1)  # as sd_watchdog_enabled(3) refuses them: nothing, and for ever
_LISTEN_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def listen_sockets() -> list[socket.socket]:
    """
    Return the listening Unix sockets that systemd passed to this process, each once.

    The variables are removed, so that no child takes them for its own.

    Raises:
        ValueError: systemd passed something that is no listening Unix socket: memd.socket is wrong.
    """
    variables = {name: os.environ.pop(name, "") for name in _LISTEN_VARIABLES}
    if variables["LISTEN_PID"] != str(os.getpid()):
        return []
    count = int(variables["LISTEN_FDS"] or 0)
    return [_listening(fd) for fd in range(_FIRST_FD, _FIRST_FD + count)]


def ready(status: str = "") -> None:
    """Tell that requests are served."""
    _notify("READY=1", f"STATUS={_line(status)}")


def status(text: str) -> None:
    """Tell in a line what goes on, for `systemctl status`."""
    _notify(f"STATUS={_line(text)}")


def stopping(text: str = "") -> None:
    """Tell that the service is on its way down."""
    _notify("STOPPING=1", f"STATUS={_line(text)}")


def watchdog() -> None:
    """Tell that the service is well; needed at each `beat_s`."""
    _notify("WATCHDOG=1")


def beat_s() -> float | None:
    """Return how often to tell the watchdog, a third of its interval; None where none waits for this process.

    As sd_watchdog_enabled(3): WATCHDOG_PID, where it is set, names the process that is meant.
    """
    interval_us = os.environ.get("WATCHDOG_USEC", "")
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    # Of 20 digits or none: longer is no number of systemd's.
    if not re.fullmatch("[0-9]{1,20}", interval_us) or int(interval_us) in _NO_INTERVAL_US:
        return None
    return int(interval_us) / 1e6 / 3


def _listening(fd: int) -> socket.socket:
    passed = socket.socket(fileno=fd)
    passed.set_inheritable(False)
    is_unix = passed.family == socket.AF_UNIX and passed.type == socket.SOCK_STREAM
    if not is_unix or not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise ValueError(
            f"file descriptor {fd} of systemd is no listening Unix socket: look at ListenStream= in "
            "memd.socket, or write it again: memctl service install"
        )
    return passed


def _notify(*assignments: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]  # Linux's abstract names
    # A manager that is gone, or full, must not take the service with it.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(0)
        manager.sendto("\n".join(assignments).encode(), address)


def _line(text: str) -> str:
    return " ".join(text.split())  # a line break would begin another assignment
