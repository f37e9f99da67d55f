"""A daemon ends with the exit code that says why."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon, until
from patience import PATIENCE

from memctl.lock import EXIT_RUNNING
from memctl.paths import EXIT_UNSAFE
from memd import daemon as life

UNIT = Path(__file__).parents[2] / "systemd" / "memd.service"
CODES = {life.EXIT_OK, life.EXIT_HURRIED, EXIT_RUNNING, life.EXIT_LOST, EXIT_UNSAFE}

# Its loop stands still while it stops, as if a library in C never came back.
STUCK = """
import sys, time
from memd import daemon, logs
from memd.workspace import workspaces

async def never_ends(_):
    time.sleep(120)

daemon.STOP_HARD_S = 0.5
workspaces.Workspaces.close = never_ends
logs.configure(sys.stderr, terminal=False)
sys.exit(daemon.run(daemon.starter(None)))
"""


@pytest.fixture
def home(tmp_path):
    """A daemon that is not started yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    daemon = Daemon(folder)
    yield daemon
    daemon.close()


def run(daemon: Daemon) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "memd"],
        env=daemon.environment, capture_output=True, text=True, timeout=60 * PATIENCE, check=False,
    )  # fmt: skip


def test_every_code_is_documented(home):
    """By `memd --help`, which names no other; the unit and memctl mean the same by theirs."""
    done = subprocess.run(
        [sys.executable, "-m", "memd", "--help"],
        env=home.environment, capture_output=True, text=True, timeout=60 * PATIENCE, check=True,
    )  # fmt: skip
    said = " ".join(done.stdout.split()).partition("exit codes: ")[2]
    assert {int(code) for code in re.findall(r"(?:^|, )(\d+) ", said)} == CODES
    [prevented] = re.findall(r"(?m)^RestartPreventExitStatus=(.*)$", UNIT.read_text())
    assert prevented.split() == [str(EXIT_RUNNING), str(EXIT_UNSAFE)]


def test_a_folder_that_others_may_write_is_refused(home):
    home.state.mkdir(parents=True)
    home.state.chmod(0o777)
    done = run(home)
    assert done.returncode == EXIT_UNSAFE
    assert f"chmod 700 {home.state}" in done.stderr
    assert list(home.state.iterdir()) == []


def test_a_lock_that_cannot_be_written_is_told(home):
    limited = ["sh", "-c", 'ulimit -f 0; exec "$0" -m memd', sys.executable]
    done = subprocess.run(limited, env=home.environment, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_UNSAFE
    assert done.stderr.startswith(f"memd: can't write {home.state / 'lock'}: ")
    assert done.stderr.count("\n") == 1


def test_the_socket_of_a_living_process_is_not_taken(home):
    home.socket.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        listener.listen()
        done = run(home)
        assert home.socket.is_socket()
    assert done.returncode == EXIT_UNSAFE
    assert "belongs to another living process" in done.stderr


def test_a_loop_that_hangs_while_it_stops_is_ended(home):
    with home.log_path.open("ab") as log:
        home.process = subprocess.Popen([sys.executable, "-c", STUCK], env=home.environment, stderr=log)
    until(home.listens)
    home.process.send_signal(signal.SIGTERM)
    assert home.process.wait(timeout=30 * PATIENCE) == life.EXIT_HURRIED
    assert "in never_ends" in home.log()
