"""`memctl hook`: how long the daemon may take, and what a missed deadline leaves behind."""

import json
import os
import subprocess
import sys

import pytest
from daemon_process import folder_of, until
from scripted_peer import WAIT_S, taken

from memctl.agents import hooks
from memctl.protocol import Response, pack

PROMPT = "On which port does the staging database listen?"


@pytest.fixture
def hook(tmp_path):
    """A hook that asks about a note."""
    folder_of(tmp_path, {"memory/config.toml": ""})
    (tmp_path / "state/memd").mkdir(parents=True, mode=0o700)
    process = subprocess.Popen(
        [sys.executable, "-m", "memctl", "hook", "claude-code", "UserPromptSubmit"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {
            "MEMD_SOCKET": str(tmp_path / "s"), "XDG_STATE_HOME": str(tmp_path / "state"),
            "MEMD_HOOK_MS": "5000", "MEMD_WORKSPACE": "",
        },
    )  # fmt: skip
    process.stdin.write(json.dumps({"cwd": str(tmp_path), "prompt": PROMPT}).encode())
    process.stdin.close()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_missed_deadline_is_noted_once_and_the_question_warms_the_daemon(
    tmp_path, listener, hook, monkeypatch
):
    """The daemon has what Python's start leaves. The second question is a search: a recall would count."""
    connection, request = taken(listener)
    late = Response(request.id, [2, "MEMD_TIMEOUT: recall took longer than 4 s"], None)
    with connection:
        assert request.method == "recall"
        assert 4400 <= request.params["timeout_ms"] < 5000
        connection.sendall(pack(late))
        assert (hook.stdout.read(), hook.wait(WAIT_S)) == (b"", 0)
    connection, again = taken(listener)
    connection.close()
    assert (again.method, again.params["query"]) == ("search", request.params["query"])
    assert again.params["agent"] is True
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert len(until(hooks.missed)) == 1
    assert hooks.missed() == []


def test_many_missed_deadlines_take_little_room(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "memd").mkdir(mode=0o700)
    for _ in range(1000):
        hooks.note_missed(1_800_000_000.2)
    assert (tmp_path / "memd" / hooks.MISSED).stat().st_size <= hooks.MISSED_BYTES + 16
    assert set(hooks.missed()) == {1_800_000_000}
