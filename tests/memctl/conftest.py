"""Fixtures of the tests of the commands: the current folder, and a scripted peer."""

import asyncio
import os
import socket
import threading
from pathlib import Path

import pytest
from patience import PATIENCE
from scripted_peer import WAIT_S, Peer

from memctl import exits, lock
from memctl.paths import make_private_dir
from memd.errors import NotFoundError
from memd.rpc.server import serve


async def answer(method, params, call):
    """Do what the tests ask for."""
    if method == "echo":
        return params
    if method == "missing":
        raise NotFoundError("no source notes/a.md: memctl status lists them")
    if method in {"steps", "slow steps"}:
        for step in range(3 if method == "steps" else 4):
            await asyncio.sleep(0.1 if method == "steps" else 0.5)
            call.progress({"stage": "embed", "done": step})
        return "done"
    if method == "large":
        return "x" * 7_000_000
    await asyncio.sleep(5)
    return None


@pytest.fixture
def place(tmp_path):
    """The socket of a real server in a thread of its own."""
    path = str(tmp_path / "memd.sock")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(serve([listening], answer))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield path
    asyncio.run_coroutine_threadsafe(server.close(grace_s=0), loop).result(5 * PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def listener(tmp_path):
    """A socket in the daemon's place, for a test that answers by itself."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        listening.settimeout(WAIT_S)
        yield listening


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A workspace as the current folder, and a socket path of our own."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "config.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    monkeypatch.setenv("MEMD_SOCKET", str(tmp_path / "s"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = tmp_path / "state" / "memd"
    make_private_dir(state)
    with (state / lock.LOCK_NAME).open("wb") as held:
        lock.write(held.fileno(), lock.newly_taken(os.getpid())._replace(socket=str(tmp_path / "s")))
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
