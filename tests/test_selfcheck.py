"""A daemon notices that clients cannot reach it any more."""

import asyncio
import errno
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from memd import daemon
from memd.daemon import Reachability
from memd.rpc import server as rpc


@pytest.fixture
def folder():
    folder = Path(tempfile.mkdtemp(prefix="memd-test-"))  # a socket's path must be short
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def lock(folder):
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    yield descriptor
    os.close(descriptor)


def listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def lost(folder: Path, lock: int, happens, *, answer: str = "me") -> str:
    """Serve, let something happen, and return what is found to be lost."""

    async def ping(method, params, call):
        return {"pong": True, "instance_id": answer}

    async def look() -> str:
        listener = listening(folder / "memd.sock")
        reach = Reachability([listener], lock_fd=lock, lock_path=folder / "lock", instance_id="me")
        server = await rpc.serve([listener], ping)
        try:
            assert answer != "me" or await reach.lost() == ""
            happens()
            return await reach.lost()
        finally:
            await server.close(grace_s=0)

    return asyncio.run(look())


def test_all_is_well_while_nothing_happens(folder, lock):
    assert lost(folder, lock, lambda: None) == ""


def test_a_deleted_socket_is_noticed(folder, lock):
    assert lost(folder, lock, (folder / "memd.sock").unlink) == "socket"


def test_a_replaced_socket_is_noticed(folder, lock):
    """Clients find somebody else there."""
    others = []

    def replace():
        (folder / "memd.sock").unlink()
        others.append(listening(folder / "memd.sock"))

    assert lost(folder, lock, replace) == "socket"
    others[0].close()


def test_another_daemon_that_answers_in_its_place_is_noticed(folder, lock):
    assert lost(folder, lock, lambda: None, answer="another") == "socket"


def test_a_deleted_or_replaced_lock_is_noticed(folder, lock):
    """A second daemon could take the new one and write to the same index."""
    assert lost(folder, lock, (folder / "lock").unlink) == "lock"
    (folder / "memd.sock").unlink()
    (folder / "lock").write_text("")
    assert lost(folder, lock, lambda: None, answer="another") == "lock"


def test_a_daemon_that_does_not_hear_itself_for_a_minute_ends(folder, lock, monkeypatch):
    """Its loop runs and its socket is there, but clients get no answer; not where they wait with reason."""
    monkeypatch.setattr(daemon, "PING_S", 0.05)
    listener = listening(folder / "memd.sock")
    reach = Reachability([listener], lock_fd=lock, lock_path=folder / "lock", instance_id="me")

    async def looks(*, is_full: bool) -> list[str]:
        return [await reach.lost(is_full=is_full) for _ in range(daemon.UNHEARD)]

    assert set(asyncio.run(looks(is_full=True))) == {""}
    assert asyncio.run(looks(is_full=False)) == ["", "", "answer"]
    listener.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse where Linux keeps waiting")
def test_a_queue_of_connects_that_is_full_is_no_loss(folder, lock):
    """Who can't get in just now is not kept out by another daemon: it goes on serving the others."""
    listener = listening(folder / "memd.sock")
    listener.listen(0)
    reach = Reachability([listener], lock_fd=lock, lock_path=folder / "lock", instance_id="me")
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(5)]
    found = []
    for one in waiting:
        one.settimeout(0)
        found.append(one.connect_ex(str(folder / "memd.sock")))
    assert found[-1] == errno.EAGAIN
    assert asyncio.run(reach.lost()) == ""
    for one in (*waiting, listener):
        one.close()
