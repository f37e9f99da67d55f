"""Fixtures of the tests of the commands: the current folder, and a scripted peer."""

from pathlib import Path

import pytest
from scripted_peer import Peer

from memctl import exits


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A workspace as the current folder, and a socket path of our own."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "config.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    monkeypatch.setenv("MEMD_SOCKET", str(tmp_path / "s"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(Path(exits.__file__).parent.parent))
    return tmp_path


@pytest.fixture
def peer(root):
    """Make a scripted peer: its keyword arguments are answers, or functions, by method; and events."""
    peers = []

    def listen(*events, **answers):
        functions = {
            method.replace("__", "."): answer if callable(answer) else lambda _, answer=answer: answer
            for method, answer in answers.items()
        }
        peers.append(Peer(root / "s", functions, events))
        return peers[-1]

    yield listen
    for one in peers:
        one.close()
