"""A memctl that is newer than the daemon says so, and restarts only what is its own to restart."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon
from patience import PATIENCE

import memctl
import memd
from memctl.client import Client, RpcError
from memctl.protocol import API_LEVEL

IN_TURN_S = float(os.environ.get("MEMD_IN_TURN_S", "4"))  # .ci/long has a minute


class Installation:
    """A copy of memd and memctl, made for some level of the protocol, in the home of a daemon."""

    def __init__(self, daemon: Daemon, folder: Path, level: int) -> None:
        self._daemon = daemon
        self._folder = folder
        for package in (memd, memctl):
            source = Path(package.__path__[0])
            left_out = shutil.ignore_patterns("__pycache__", "model.onnx")
            shutil.copytree(source, folder / source.name, ignore=left_out)
        model = Path("embedding/model/model.onnx")
        (folder / "memd" / model).symlink_to(Path(memd.__path__[0]) / model)
        self.environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        self.update(level)

    def update(self, level: int) -> None:
        """Put a release of another level in its place."""
        path = self._folder / "memctl" / "protocol.py"
        text = (Path(memctl.__path__[0]) / "protocol.py").read_text()
        assert f"\nAPI_LEVEL = {API_LEVEL} " in text
        path.write_text(text.replace(f"\nAPI_LEVEL = {API_LEVEL} ", f"\nAPI_LEVEL = {level} "))

    def memctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run its memctl."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "memctl", *words],
            env=self._daemon.environment | self.environment,
            capture_output=True, text=True, timeout=120 * PATIENCE, check=False, cwd="/",
        )  # fmt: skip

    def ping(self) -> tuple[int, str]:
        """Return the daemon that answers its memctl, and what memctl says on stderr."""
        done = self.memctl("ping")
        assert done.returncode == 0, done.stderr
        return self._daemon.call("ping")["pid"], done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Daemon]:
    """A home in which no daemon runs yet."""
    (tmp_path / "home").mkdir()
    daemon = Daemon(tmp_path / "home")
    yield daemon
    daemon.close()


def test_after_an_update_the_daemon_is_restarted_once(home, tmp_path):
    """Where memctl of the same installation started it and it is idle; one line says so."""
    installed = Installation(home, tmp_path / "installed", API_LEVEL - 1)
    before, said = installed.ping()
    assert said == ""
    installed.update(API_LEVEL)
    after, said = installed.ping()
    assert after != before
    assert said == "memctl: an older memd was running: it was restarted\n"
    assert installed.ping() == (after, "")
    installed.update(API_LEVEL - 1)  # never a newer one
    assert installed.ping() == (after, "")


def test_a_daemon_that_is_not_idle_is_left_alone(home, tmp_path):
    """A pause would be over: one line names the command that restarts it all the same."""
    installed = Installation(home, tmp_path / "installed", API_LEVEL - 1)
    before, _ = installed.ping()
    assert installed.memctl("pause").returncode == 0
    installed.update(API_LEVEL)
    after, said = installed.ping()
    assert after == before
    assert said.count("\n") == 1
    assert "is older than this memctl; restart it: memctl restart" in said
    assert installed.memctl("restart").returncode == 0
    assert installed.ping()[1] == ""


def test_a_daemon_that_somebody_else_started_is_left_alone(home, tmp_path):
    """A person, or a service."""
    installed = Installation(home, tmp_path / "installed", API_LEVEL - 1)
    home.start(**installed.environment, under=["env", "-C", "/"])
    installed.update(API_LEVEL)
    pid, said = installed.ping()
    assert pid == home.call("ping")["pid"]
    assert "restart it: memctl restart" in said


def test_two_installations_in_turn_leave_one_daemon_alive(home, tmp_path):
    """Whichever started it: the newer one says that it is another's, and nobody ends it."""
    older = Installation(home, tmp_path / "older", API_LEVEL - 1)
    newer = Installation(home, tmp_path / "newer", API_LEVEL)
    first, _ = older.ping()
    stop = time.monotonic() + IN_TURN_S
    while time.monotonic() < stop:
        pid, said = newer.ping()
        assert (pid, "it belongs to another installation" in said) == (first, True)
        assert older.ping() == (first, "")
    assert older.memctl("stop").returncode == 0
    second, said = newer.ping()
    assert said == ""
    assert older.ping() == newer.ping() == (second, "")


def test_what_an_older_daemon_does_not_know_is_said_in_one_line(home, tmp_path, monkeypatch):
    """The Python client as memctl: no word of a parameter that is unknown."""
    Installation(home, tmp_path / "older", API_LEVEL - 1).ping()
    monkeypatch.setenv("XDG_STATE_HOME", home.environment["XDG_STATE_HOME"])
    with Client.connect(home.socket) as client:
        for method, params in (("ping", {"new_parameter": 1}), ("new.method", {})):
            with pytest.raises(
                RpcError, match="does not know the method or a parameter: the running memd"
            ) as caught:
                client.call(method, params)
            assert "unknown parameter" not in str(caught.value)
            assert "\n" not in str(caught.value)
