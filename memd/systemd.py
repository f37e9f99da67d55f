"""The protocols of sd_listen_fds(3) and sd_notify(3): socket activation, readiness, watchdog.

Without systemd every function does nothing.
"""

import os
import re
import socket
from contextlib import suppress

_FIRST_FD = 3  # SD_LISTEN_FDS_START
_NO_INTERVAL_US = (0, 2**64 - 1)  # values that sd_watchdog_enabled(3) rejects: zero and infinity
_LISTEN_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def listen_sockets() -> list[socket.socket]:
    """Return the listening Unix sockets that systemd passed to this process, each once.

    The variables are removed, so that child processes do not use them.

    Raises:
        ValueError: systemd passed a file that is not a listening Unix socket: memd.socket is wrong.
    """
    variables = {name: os.environ.pop(name, "") for name in _LISTEN_VARIABLES}
    if variables["LISTEN_PID"] != str(os.getpid()):
        return []
    count = int(variables["LISTEN_FDS"] or 0)
    return [_listening(fd) for fd in range(_FIRST_FD, _FIRST_FD + count)]


def ready(status: str = "") -> None:
    """Report that requests are served."""
    _notify("READY=1", f"STATUS={_line(status)}")


def status(text: str) -> None:
    """Set the status line of `systemctl status`."""
    _notify(f"STATUS={_line(text)}")


def stopping() -> None:
    """Report that the service is stopping."""
    _notify("STOPPING=1", "STATUS=")


def watchdog() -> None:
    """Report that the service works; needed every `beat_s`."""
    _notify("WATCHDOG=1")


def beat_s() -> float | None:
    """Return the interval of watchdog reports, a third of systemd's; None if there is no watchdog.

    As in sd_watchdog_enabled(3), WATCHDOG_PID, if set, names the process that must report.
    """
    interval_us = os.environ.get("WATCHDOG_USEC", "")
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    # At most 20 digits: systemd writes no longer number.
    if not re.fullmatch("[0-9]{1,20}", interval_us) or int(interval_us) in _NO_INTERVAL_US:
        return None
    return int(interval_us) / 1e6 / 3


def _listening(fd: int) -> socket.socket:
    passed = socket.socket(fileno=fd)
    passed.set_inheritable(False)
    is_unix = passed.family == socket.AF_UNIX and passed.type == socket.SOCK_STREAM
    if not is_unix or not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise ValueError(
            f"file descriptor {fd} of systemd is not a listening Unix socket: check ListenStream= in "
            "memd.socket, or write it again: memctl service install"
        )
    return passed


def _notify(*assignments: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]  # an abstract socket name on Linux
    # A manager that is gone or busy must not stop the service.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(0)
        manager.sendto("\n".join(assignments).encode(), address)


def _line(text: str) -> str:
    return " ".join(text.split())  # a line break would begin another assignment
