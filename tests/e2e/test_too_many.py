"""Connections past the limit where a daemon may open few files."""

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


def knock(daemon: Daemon, opened: ExitStack) -> socket.socket:
    """Connect and ask to follow what happens, without waiting for the answer."""
    peer = opened.enter_context(socket.socket(socket.AF_UNIX))
    peer.connect(str(daemon.socket))
    peer.settimeout(20 * PATIENCE)
    peer.sendall(pack(Request(1, "subscribe", {})))
    return peer


def heard(peer: socket.socket) -> str:
    reader = Decoder(ANSWERS)
    while received := peer.recv(1 << 16):
        for message in reader.feed(received):
            assert isinstance(message, Response)
            return SERVED if message.error is None else message.error[1].partition(":")[0]
    return ""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc to count descriptors in")
def test_with_few_descriptors_all_are_answered_and_notes_are_still_read(unstarted, tmp_path):
    root = folder_of(tmp_path / "notes", {"heron.md": "A grey bird.\n"})
    daemon = unstarted.start(under=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"))
    daemon.add(root)
    until(lambda: daemon.call("search", query="heron")["mode"] == "hybrid")
    time.sleep(0.2)
    before = daemon.descriptors()
    with ExitStack() as opened:
        peers = [knock(daemon, opened) for _ in range(100)]
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
