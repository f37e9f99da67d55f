"""After an update: memctl restarts only a daemon of its own, and hooks, MCP servers and editors go on."""

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, folder_of, until
from patience import PATIENCE, ran

import memctl
import memd
from memctl.client import Client, RpcError, Unreachable
from memctl.lock import holder_of
from memctl.protocol import API_LEVEL

QUESTION = "on which port does the staging database listen?"
NOTE = "The staging database listens on 5433, because 5432 is taken.\n"
IN_TURN_S = float(os.environ.get("MEMD_IN_TURN_S", "1"))  # .ci/long has a minute


class Installation:
    """A copy of memd and memctl, made for some level of the protocol, in the home of a daemon."""

    def __init__(self, daemon: Daemon, folder: Path, level: int) -> None:
        self._daemon = daemon
        self._folder = folder
        for package in (memd, memctl):
            source = Path(package.__path__[0])
            # What is compiled goes along: else each process would compile everything again.
            left_out = shutil.ignore_patterns("protocol.*.pyc", "model.onnx")
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
        os.utime(path, (level, level))  # whole seconds and size tell Python that what it compiled is stale

    def memctl(self, *words: str, told: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Run its memctl; *told* is its input, *more* its environment."""
        return ran(
            [sys.executable, "-P", "-m", "memctl", *words], input=told,
            env=self._daemon.environment | self.environment | more, cwd="/",
        )  # fmt: skip

    def workspace(self, root: Path) -> str:
        """Make a workspace with a note, by its memctl, which starts the daemon."""
        folder_of(root, {"port.md": NOTE})
        for words in (("init", str(root)), ("index", "-w", str(root))):
            done = self.memctl(*words)
            assert done.returncode == 0, done.stderr
        return str(root)

    def ping(self) -> tuple[int, str]:
        """Return the daemon that answers its memctl, and what memctl says on stderr."""
        done = self.memctl("ping")
        assert done.returncode == 0, done.stderr
        return self._daemon.call("ping")["pid"], done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Daemon]:
    """A home in which no daemon runs yet."""
    daemon = Daemon(folder_of(tmp_path / "home"))
    yield daemon
    daemon.close()


def test_after_an_update_the_daemon_is_restarted_once(home, tmp_path):
    installed = Installation(home, tmp_path / "installed", API_LEVEL - 1)
    before, said = installed.ping()
    assert said == ""
    installed.update(API_LEVEL)
    after, said = installed.ping()
    assert (after != before, said) == (True, "memctl: an older memd was running: it was restarted\n")
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
    installed = Installation(home, tmp_path / "installed", API_LEVEL - 1)
    home.start(**installed.environment, under=["env", "-C", "/"])
    installed.update(API_LEVEL)
    pid, said = installed.ping()
    assert pid == home.call("ping")["pid"]
    assert "restart it: memctl restart" in said


def test_two_installations_in_turn_leave_one_daemon_alive(home, tmp_path):
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


def pid_of(daemon: Daemon) -> int:
    """Return the process that answers, 0 while none does."""
    with suppress(Unreachable, RpcError):
        return int(daemon.call("ping")["pid"])
    return 0


def test_a_hook_goes_on_after_an_update(home, tmp_path):
    installed = Installation(home, tmp_path / "installed", API_LEVEL - 1)
    root = installed.workspace(tmp_path / "notes")
    before = pid_of(home)
    installed.update(API_LEVEL)

    def prompted() -> str:
        told = {"cwd": root, "prompt": QUESTION, "session_id": str(uuid.uuid4()), "transcript_path": "/none"}
        done = installed.memctl(
            "hook", "claude-code", "UserPromptSubmit", told=json.dumps(told), MEMD_HOOK_MS="5000"
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def is_replaced() -> bool:
        prompted()  # a daemon that was not idle after the last one is replaced after this one
        holder = holder_of(home.state)  # a ping would keep it from being idle
        return holder is not None and holder.pid != before

    assert NOTE.strip() in prompted()
    until(is_replaced)
    until(lambda: NOTE.strip() in prompted())
    assert pid_of(home) not in (0, before)


def test_an_mcp_server_that_runs_during_an_update_goes_on(home, tmp_path):
    installed = Installation(home, tmp_path / "installed", API_LEVEL - 1)
    root = installed.workspace(tmp_path / "notes")
    before = pid_of(home)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "memctl", "mcp", "--workspace", root],
        env=home.environment | installed.environment, cwd="/",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdin
        assert server.stdout

        def asked(method: str, **params: Any) -> Any:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())["result"]

        def found() -> list[str]:
            answer = asked("tools/call", name="search_memory", arguments={"query": QUESTION})
            return [hit["path"] for hit in answer["structuredContent"]["hits"]]

        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        asked("initialize", **client)
        assert found() == ["port.md"]
        installed.update(API_LEVEL)
        assert found() == ["port.md"]
        assert installed.ping()[0] != before
        assert found() == ["port.md"]
        server.stdin.close()
        assert server.wait(60 * PATIENCE) == 0


def test_what_an_older_daemon_does_not_know_is_said_in_one_line(home, tmp_path, monkeypatch):
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
