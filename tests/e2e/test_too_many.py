"""Connections past the limit are told so."""

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, until
from patience import PATIENCE

from memctl.protocol import ANSWERS, Decoder, Request, Response, pack

BUSY = "MEMD_BUSY"
SERVED = "served"

needs_proc = pytest.mark.skipif(
    not Path("/proc").is_dir(), reason="there is no /proc to count descriptors in"
)


def knock(daemon: Daemon, opened: ExitStack, method: str = "ping") -> socket.socket:
    """Connect and ask, without waiting for the answer."""
    peer = opened.enter_context(socket.socket(socket.AF_UNIX))
    peer.connect(str(daemon.socket))
    peer.settimeout(20 * PATIENCE)
    peer.sendall(pack(Request(1, method, {})))
    return peer


def heard(peer: socket.socket) -> str:
    reader = Decoder(ANSWERS)
    while received := peer.recv(1 << 16):
        for message in reader.feed(received):
            assert isinstance(message, Response)
            return SERVED if message.error is None else message.error[1].partition(":")[0]
    return ""


def test_each_of_three_hundred_hears_something(daemon):
    """256 follow events, each of the others is told that memd is busy: none is closed without a word."""
    with ExitStack() as opened:
        peers = [knock(daemon, opened, "subscribe") for _ in range(256)]
        assert {heard(peer) for peer in peers} == {SERVED}
        assert {heard(knock(daemon, opened)) for _ in range(44)} == {BUSY}
    until(lambda: daemon.call("ping")["pong"])


def test_a_thousand_idle_connections_leave_room(daemon):
    with ExitStack() as opened:
        for number in range(1100):
            peer = opened.enter_context(socket.socket(socket.AF_UNIX))
            peer.connect(str(daemon.socket))  # waits for room in the backlog, as none with a timeout does
            peer.settimeout(20 * PATIENCE)
            if number % 2:
                peer.sendall(pack(Request(1, "ping", {})))
        began = time.monotonic()
        assert heard(knock(daemon, opened)) == SERVED
        assert time.monotonic() - began < 5 * PATIENCE


@needs_proc
def test_with_few_descriptors_all_are_answered_and_notes_are_still_read(unstarted, tmp_path):
    root = folder_of(tmp_path / "notes", {"heron.md": "A grey bird.\n"})
    daemon = unstarted.start(under=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"))
    daemon.add(root)
    until(lambda: daemon.call("search", query="heron")["mode"] == "hybrid")
    time.sleep(0.2)
    before = daemon.descriptors()
    with ExitStack() as opened:
        peers = [knock(daemon, opened, "subscribe") for _ in range(100)]
        told = [heard(peer) for peer in peers]
        assert set(told) == {SERVED, BUSY}
        assert told.count(SERVED) >= 4
        (root / "otter.md").write_text("It slides.\n")
        first = peers[0]
        first.sendall(pack(Request(2, "search", {"query": "slides", "sync": True, "mode": "keyword"})))
        reader, answers = Decoder(ANSWERS), []
        while not answers:  # events come as well
            answers = [one for one in reader.feed(first.recv(1 << 16)) if isinstance(one, Response)]
        [answer] = answers
        assert [hit["path"] for hit in answer.result["hits"]] == ["otter.md"]
    with ExitStack() as opened:  # who says nothing waits for room, or holds it for a while
        for _ in range(60):
            silent = opened.enter_context(socket.socket(socket.AF_UNIX))
            silent.connect(str(daemon.socket))
        time.sleep(0.3)
        used_s = daemon.cpu_s()
        time.sleep(1.5)
        assert daemon.cpu_s() - used_s < 0.5
        assert daemon.descriptors() < 64
    # The scrub has read by a connection of its own since: SQLite keeps its descriptor for the next one.
    until(lambda: daemon.descriptors() <= before + 1)
    assert daemon.call("health")["ok"]
    assert daemon.process.poll() is None
