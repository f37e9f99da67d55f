"""A daemon tells systemd's watchdog that it lives as often as the unit asks for, and else never."""

import socket
import time

import pytest
from daemon_process import Daemon

INTERVAL_US = "1500000"  # a beat each half second
LISTEN_S = 5.0


@pytest.fixture
def beats(tmp_path):
    """Return a function that starts a daemon and counts its beats until there are so many."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        daemon = Daemon(tmp_path)
        manager.bind(str(daemon.runtime / "manager"))

        def count(most: int, **environment: str) -> int:
            daemon.start(NOTIFY_SOCKET=str(daemon.runtime / "manager"), **environment)
            stop, beats = time.monotonic() + LISTEN_S, 0
            while beats < most and (left_s := stop - time.monotonic()) > 0:
                manager.settimeout(left_s)
                try:
                    beats += manager.recv(1000) == b"WATCHDOG=1"
                except TimeoutError:
                    break
            return beats

        yield count
        daemon.close()


def test_a_short_interval_is_kept(beats):
    """The unit's own, not the one that memd ships with."""
    assert beats(4, WATCHDOG_USEC=INTERVAL_US) == 4


def test_without_an_interval_there_is_no_beat(beats):
    assert beats(1, WATCHDOG_USEC=INTERVAL_US, WATCHDOG_PID="1") == 0
