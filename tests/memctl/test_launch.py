import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from patience import PATIENCE
from tests_support import many

from memctl import launch, systemd
from memctl.client import Client, MustMendError, NoDaemonError, Unreachable
from memctl.launch import ensure_daemon, stop_daemon
from memctl.lock import holder_of, write
from memctl.paths import make_private_dir, socket_path, state_dir

FAKE = [sys.executable, str(Path(__file__).with_name("fake_memd.py"))]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Give each test folders of its own, and leave no daemon behind."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.split("_")[1].lower()))
    for name in ("MEMD_SOCKET", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    # pytest's own folders are too deep for a socket's path where TMPDIR is long.
    assert len(str(socket_path())) < 104
    yield tmp_path
    # Also the one that was spawned last and has not written its line: it would take the lock of the dead.
    for pid in {*starts(), *unfinished_starts()}:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def starts():
    """Return the process of each daemon that began to start."""
    path = state_dir() / "starts"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def unfinished_starts():
    """Return our child processes that run the stand-in for memd, on systems that list them."""
    listed = ""
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # a thread that has just ended
            listed += f" {path.read_text()}"
    lines = {int(pid): Path(f"/proc/{pid}/cmdline") for pid in listed.split()}
    return [pid for pid, line in lines.items() if line.exists() and FAKE[1].encode() in line.read_bytes()]


def test_many_starters_make_one_daemon():
    program = (
        "import sys\nfrom memctl.launch import ensure_daemon\n"
        "with ensure_daemon(command=sys.argv[1:]) as memd: print(memd.call('ping')['pid'])"
    )
    tree = str(Path(launch.__file__).parents[1])
    clients = [
        subprocess.Popen([sys.executable, "-c", program, *FAKE], stdout=subprocess.PIPE, cwd=tree)
        for _ in range(many(100))
    ]
    answers = {client.communicate()[0] for client in clients}
    assert len(answers) == 1
    assert {client.returncode for client in clients} == {0}
    assert len(starts()) == 1


def test_the_daemons_own_words_say_why_it_did_not_start():
    with pytest.raises(MustMendError, match=r"did not start: config\.toml: unknown key"):
        ensure_daemon(command=[*FAKE, "--fail", "config.toml: unknown key"])


def test_a_daemon_that_dies_silently_is_explained_by_its_log():
    with pytest.raises(Unreachable, match="the last line of the log"):
        ensure_daemon(command=[*FAKE, "--silent"])


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(Unreachable, match="/nowhere/memd"):
        ensure_daemon(command=["/nowhere/memd"])


def test_a_slow_daemon_is_waited_for_only_so_long():
    with pytest.raises(Unreachable, match=r"pid \d+\) is not ready yet"):
        ensure_daemon(command=[*FAKE, "--slow", "3"], timeout_s=0.7)
    with ensure_daemon(command=FAKE, timeout_s=8 * PATIENCE) as memd:
        assert memd.call("ping")["pid"] == starts()[0]


def test_a_daemon_at_another_socket_than_the_one_that_is_named_is_told_at_once(monkeypatch, tmp_path):
    ensure_daemon(command=FAKE).close()
    at = str(socket_path())
    monkeypatch.setenv("MEMD_SOCKET", str(tmp_path / "other.sock"))
    with pytest.raises(Unreachable, match=rf"listens at {at}, and MEMD_SOCKET names .*unset MEMD_SOCKET"):
        ensure_daemon(command=FAKE)
    assert len(starts()) == 1


@pytest.mark.parametrize("runtime", [None, "other"])
def test_a_daemon_of_another_runtime_directory_is_found_through_its_state_directory(
    home, monkeypatch, runtime
):
    """As in cron, a container or after su: it answers, and nothing is started."""
    with ensure_daemon(command=FAKE) as memd:
        pid = memd.call("ping")["pid"]
    if runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / runtime))
    else:
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        monkeypatch.setenv("TMPDIR", str(home))
    with Client.connect() as memd:
        assert memd.call("ping")["pid"] == pid
    with ensure_daemon(command=FAKE) as memd:
        assert memd.call("ping")["pid"] == pid
    assert starts() == [pid]


def test_a_socket_that_others_could_have_put_there_is_not_trusted(home, monkeypatch):
    """The lock names it, but its folder is open to others by now: nobody connects."""
    ensure_daemon(command=FAKE).close()
    socket_path().parent.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "other"))
    with pytest.raises(NoDaemonError):
        Client.connect()


def test_a_daemon_that_is_not_reached_is_told_at_once(home):
    with ensure_daemon(command=FAKE) as memd:
        pid = memd.call("ping")["pid"]
    socket_path().unlink()
    began = time.monotonic()
    with pytest.raises(Unreachable, match=rf"memd \(process {pid}\) uses .*\(kill {pid}\)"):
        ensure_daemon(command=FAKE)
    assert time.monotonic() - began < launch.START_TIMEOUT_S / 2
    assert len(starts()) == 2


def test_a_daemon_that_is_just_ending_is_waited_for(home):
    """It holds the lock and takes no connection any more: the next one is started once it is gone."""
    with ensure_daemon(command=FAKE) as memd:
        pid = memd.call("ping")["pid"]
    lock = os.open(state_dir() / "lock", os.O_RDWR)
    holder = holder_of(state_dir())
    write(lock, holder._replace(is_stopping=True))
    os.close(lock)
    socket_path().unlink()

    def kill_when_refused():
        """Not by a clock: a start that is slow under load would come after it, and need no other."""
        while len(starts()) < 2 or Path(f"/proc/{starts()[1]}/exe").exists():
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)

    killing = threading.Thread(target=kill_when_refused, daemon=True)
    killing.start()
    with ensure_daemon(command=FAKE) as memd:
        assert memd.call("ping")["pid"] not in {None, pid}
    killing.join()
    assert len(starts()) == 3


def test_where_systemd_starts_memd_the_line_to_set_is_told(home, monkeypatch, tmp_path):
    """Its units are installed and this environment does not lead to it: nothing is started beside them."""
    monkeypatch.setattr(systemd, "unnamed_runtime_dir", lambda: "/run/user/1000")
    with pytest.raises(Unreachable, match=r"export XDG_RUNTIME_DIR=/run/user/1000$"):
        ensure_daemon(command=FAKE)
    assert starts() == []


def test_a_stopped_daemon_is_gone_when_stop_returns():
    with ensure_daemon(command=FAKE) as memd:
        pid = memd.call("ping")["pid"]
    assert stop_daemon()
    assert not Path(f"/proc/{pid}/exe").exists()
    with pytest.raises(NoDaemonError):
        Client.connect()


def test_the_log_is_private_and_bounded():
    make_private_dir(state_dir())
    log = state_dir() / launch.LOG_NAME
    log.write_bytes(b"x" * (launch.LOG_BYTES + 1))
    log.chmod(0o600)
    ensure_daemon(command=FAKE).close()
    assert log.stat().st_size < 1000
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.with_suffix(".log.1").stat().st_size > launch.LOG_BYTES


def test_what_belongs_to_our_own_service_manager_is_not_handed_on(monkeypatch, tmp_path):
    """Started from within a service, memd does not speak in that service's name."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        ensure_daemon(command=FAKE).close()
        with pytest.raises(BlockingIOError):
            manager.recv(100)


def test_a_relative_socket_is_the_same_for_both_sides(home, monkeypatch):
    """The daemon starts in another folder, and still listens where its client looks."""
    (home / "run").mkdir(mode=0o700)
    monkeypatch.chdir(home)
    monkeypatch.setenv("MEMD_SOCKET", "run/s")
    assert launch.environment()["MEMD_SOCKET"] == str(home / "run/s")
    with ensure_daemon(command=FAKE) as memd:
        assert memd.call("ping")["pid"] == starts()[0]
