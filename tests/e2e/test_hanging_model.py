"""A daemon whose model never answers says everything else, and each answer comes in time."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, until
from model_server import ModelServer
from patience import PATIENCE

from memctl.client import RpcError
from memd.api.methods import METHODS

LATE_S = 10.0  # of a loaded machine; one second is promised
OWN_MS = 500  # a deadline for what has none


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that answers until it is told to hang."""
    server = ModelServer()
    yield server
    server.stop()


@pytest.fixture
def hung(daemon: Daemon, server: ModelServer, tmp_path: Path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon with a workspace that is whole, and a saved note that the model has hung on."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    daemon.add(root)
    server.behaviour = "hang"
    (root / "otter.md").write_text("# Otter\n\nIt slides.\n")
    assert server.hanging.wait(20 * PATIENCE)
    yield daemon, root
    server.answer_again()


def asked(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return a call of each method that reads or waits for something."""
    question = {"workspace": str(root), "query": "heron"}
    yield from (
        (method, {}) for method in ("memd.hello", "ping", "status", "workspace.list", "subscribe", "debug")
    )
    yield "health", {}
    for mode in ("hybrid", "keyword", "vector"):
        yield "search", {**question, "mode": mode}
        yield "search", {**question, "mode": mode, "sync": True}
    yield "search_memory", question
    yield "recall", {**question, "sync": True}
    yield "similar", {"path": "heron.md", "sync": True}
    yield "why", {**question, "path": "otter.md", "sync": True}
    yield "get", {"path": "otter.md"}
    yield "extract_memory", {"topic": "birds", "title": "Storks", "content": "They come in April."}
    yield "workspace.configure", {}
    yield "workspace.add", {"path": str(root), "timeout_ms": OWN_MS}
    yield from ((method, {"timeout_ms": OWN_MS}) for method in ("index", "sync", "check"))


def test_each_request_is_answered_within_its_deadline(hung):
    daemon, root = hung
    late: list[tuple[str, float]] = []
    wrong: list[tuple[str, str]] = []

    def ask(method: str, params: dict[str, Any]) -> None:
        most_s = params.get("timeout_ms", 1000 * (METHODS[method].deadline_s or 0)) / 1000
        began = time.monotonic()
        try:
            with daemon.client() as client:
                client.call(method, params, timeout_s=None)
        except RpcError as error:
            if error.code != "MEMD_TIMEOUT":
                wrong.append((method, str(error)))
        if (took_s := time.monotonic() - began) > most_s + LATE_S:
            late.append((method, took_s))

    threads = [threading.Thread(target=ask, args=one) for one in asked(root)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert (late, wrong) == ([], [])
    answer = daemon.call("search", workspace=str(root), query="otter")
    assert [hit["path"] for hit in answer["hits"]] == ["otter.md"]
    assert answer["mode"] == "keyword"
    assert answer["degraded"] == ["model-slow"]


def test_a_rebuild_that_nobody_waits_for_goes_on_and_says_so(hung, server):
    daemon, root = hung
    with pytest.raises(RpcError) as caught:
        daemon.call("index", workspace=str(root), rebuild=True, timeout_ms=1500)
    assert caught.value.code == "MEMD_TIMEOUT"
    assert "index did not end within 1.5 s: the rebuild continues" in caught.value.message
    assert "memctl status" in caught.value.message
    [seen] = daemon.call("status")["workspaces"]
    assert seen["rebuilding"] == {"stage": "embed", "done": 0, "total": 2}
    assert "rebuilding" in daemon.memctl("status").stdout
    server.answer_again()
    until(lambda: daemon.call("status")["workspaces"][0].get("rebuilding") is None, 60)

    def whole() -> bool:
        [seen] = daemon.call("status")["workspaces"]
        return (seen["state"], seen.get("sources"), seen.get("vectors")) == ("ready", 2, 2)

    until(whole, 60)


def test_an_index_that_nobody_waits_for_says_that_indexing_goes_on(hung):
    daemon, root = hung
    with pytest.raises(RpcError, match="indexing continues, and `memctl status` shows its progress"):
        daemon.call("index", workspace=str(root), timeout_ms=300)
    with pytest.raises(RpcError, match="nothing is purged yet"):
        daemon.call("index", workspace=str(root), purge=True, timeout_ms=300)


def test_a_second_signal_ends_it_at_once(hung):
    daemon, _ = hung
    daemon.process.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in daemon.log())
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(timeout=20 * PATIENCE) == 1
