import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memd import systemd

TREE = Path(systemd.__file__).parents[1]

# Becomes a process as systemd would start it: descriptor 3 is a socket, the variables tell of it.
ACTIVATED = """
import os, socket, sys
listening = eval(sys.argv[1])
if listening.fileno() != 3:
    os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="memd.socket")
os.execv(sys.executable, [sys.executable, "-c", sys.argv[2]])
"""
REPORT = """
import os
from memd.systemd import listen_sockets
try:
    (found,) = listen_sockets()
except ValueError as error:
    print(error)
else:
    left = [name for name in os.environ if name.startswith("LISTEN_")]
    print(found.getsockname(), found.fileno(), found.get_inheritable(), left, listen_sockets())
"""


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """A NOTIFY_SOCKET, read by the test."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(1)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def activated(expression):
    """Run a process that gets the socket of this expression as systemd passes it; return what it printed."""
    command = [sys.executable, "-c", ACTIVATED, expression, REPORT]
    return subprocess.run(command, capture_output=True, text=True, cwd=TREE, check=True).stdout.strip()


def test_readiness_status_and_stop_are_told(manager):
    systemd.ready("scanning 1/8")
    systemd.status("ready")
    systemd.stopping()
    systemd.watchdog()
    told = [manager.recv(1000).decode() for _ in range(4)]
    assert told == ["READY=1\nSTATUS=scanning 1/8", "STATUS=ready", "STOPPING=1\nSTATUS=", "WATCHDOG=1"]


def test_a_status_stays_one_line(manager):
    """A file name with a line break can't tell systemd anything."""
    systemd.status("reading a\nMAINPID=1.md")
    assert manager.recv(1000) == b"STATUS=reading a MAINPID=1.md"


@pytest.mark.skipif(sys.platform != "linux", reason="abstract socket names are Linux's")
def test_an_abstract_socket_is_told_as_well(monkeypatch):
    """Its name begins with @ in the variable and with NUL in the kernel."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0memd-test-{os.getpid()}")
        listening.settimeout(1)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@memd-test-{os.getpid()}")
        systemd.watchdog()
        assert listening.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize("address", [None, "", "/nowhere/notify", "vsock:2:1"])
def test_without_a_manager_nothing_happens(monkeypatch, address):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    systemd.ready()


def test_a_manager_that_does_not_read_holds_nothing_up(manager):
    """A full queue loses the message and not the daemon's time."""
    for _ in range(2000):
        systemd.watchdog()


def test_the_passed_socket_is_taken_once(tmp_path):
    path = str(tmp_path / "memd.sock")
    expression = f"(s := socket.socket(socket.AF_UNIX), s.bind({path!r}), s.listen())[0]"
    assert activated(expression) == f"{path} 3 False [] []"


@pytest.mark.parametrize(
    "expression",
    [
        "socket.create_server(('127.0.0.1', 0))",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
    ],
)
def test_a_socket_of_another_kind_is_refused(expression):
    assert "not a listening Unix socket" in activated(expression)


def test_sockets_for_another_process_are_left_alone(monkeypatch):
    """The variables may be inherited by mistake; LISTEN_PID says for whom they are."""
    monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert systemd.listen_sockets() == []
    assert "LISTEN_FDS" not in os.environ


@pytest.mark.parametrize(
    ("interval_us", "meant", "expected_s"),
    [
        (None, None, None), ("60000000", None, 20.0), ("60000000", "self", 20.0),
        ("60000000", "another", None), ("60000000", "", None), ("0", None, None),
        (str(2**64 - 1), None, None), ("", None, None), ("-3", None, None), ("\u0663", None, None),
        ("1e6", None, None),
    ],
)  # fmt: skip
def test_the_watchdog_is_told_at_a_third_of_its_interval(monkeypatch, interval_us, meant, expected_s):
    pid = {"self": str(os.getpid()), "another": str(os.getpid() + 1)}.get(meant, meant)
    for name, value in (("WATCHDOG_USEC", interval_us), ("WATCHDOG_PID", pid)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert systemd.beat_s() == expected_s
