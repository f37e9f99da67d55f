"""Searches that come before the model or before all vectors are there, or while it never answers."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, Workspace, until
from model_server import ModelServer
from patience import PATIENCE

from memctl import exits
from memctl.client import RpcError
from memd.api.methods import METHODS
from memd.workspace.embed_loop import EMBED_BATCH

pytestmark = pytest.mark.usefixtures("shared_daemon")

HERON = "# Heron\n\nA grey bird that stands by the weir.\n"
LATE_S = 10.0  # of a loaded machine: nobody waits for ever


@pytest.fixture
def loading(daemon: Daemon, server: ModelServer, tmp_path: Path) -> Workspace:
    """A daemon that has just started with a whole workspace, and whose model does not come."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    workspace = daemon.workspace(root, {"heron.md": HERON})
    daemon.stop()
    server.behaviour = "hang"
    daemon.start()
    assert server.hanging.wait(LATE_S)
    return workspace


def test_a_search_waits_for_a_model_that_loads(loading, server):
    answers: list[dict[str, Any]] = []
    asked = [
        threading.Thread(
            target=lambda name=name, more=more: answers.append(
                loading.call(name, query="heron", **more)
            )
        )
        for name, more in (
            ("search", {}), ("search", {"sync": True}), ("search", {"explain": True}), ("recall", {}),
            ("search_memory", {}), ("why", {"path": "heron.md"}),
        )
    ]  # fmt: skip
    for thread in asked:
        thread.start()
    time.sleep(1.0)
    server.answer_again()
    for thread in asked:
        thread.join(LATE_S)
    assert [(answer["mode"], answer["degraded"]) for answer in answers] == [("hybrid", [])] * len(asked)
    assert all(answer["timings_ms"]["wait"] > 100 for answer in answers)


def test_while_a_model_does_not_come_there_is_what_words_find(loading):
    began = time.monotonic()
    for more in ({"sync": True}, {"wait": False}):
        answer = loading.call("search", query="heron", **more)
        assert [hit["path"] for hit in answer["hits"]] == ["heron.md"]
        assert (answer["mode"], answer["degraded"]) == ("keyword", ["model-loading"])
    assert answer["timings_ms"]["wait"] < 1000
    assert time.monotonic() - began < LATE_S
    for form in ("--json", "--files", "--color=never"):
        done = loading.memctl("search", "--no-wait", form, "grebe")
        assert done.returncode == exits.INCOMPLETE
    assert "model-loading" in done.stderr
    assert loading.memctl("recall", "--no-wait", "grebe").returncode == exits.INCOMPLETE
    assert loading.memctl("search", "--mode", "keyword", "grebe").returncode == exits.NONE


@pytest.fixture
def unembedded(daemon: Daemon, server: ModelServer, tmp_path: Path) -> Workspace:
    """A daemon with a new workspace of 200 notes, none of which the model embeds."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    for number in range(200):
        note = root / f"{number:03}.md"
        note.write_text(f"bird number{number}\n")
        os.utime(note, (1e9 + number * 7 % 200, 1e9 + number * 7 % 200))
    server.answers = 0
    daemon.call("workspace.add", path=str(root))
    return Workspace(daemon, root)


def test_the_words_of_a_first_index_are_waited_for_and_its_vectors_are_not(unembedded):
    indexed = unembedded.call("index", vectors=False)
    assert (indexed["sources"], indexed["vectors"]) == (200, 0)
    answer = unembedded.call("search", query="number77")
    assert answer["hits"][0]["path"] == "077.md"
    index = answer["index"]
    assert (index["first"], index["first_words"], index["embedded"]) == (True, False, 0.0)
    with pytest.raises(RpcError, match="indexing continues"):
        unembedded.call("index", timeout_ms=300)


def test_a_first_search_says_how_much_is_found_by_meaning(unembedded, server):
    done = unembedded.memctl("search", "--files", "number77")
    assert (done.returncode, done.stdout.split()[0]) == (0, "077.md")
    assert "meaning: 0 % of the notes" in done.stderr
    server.answer_again()
    done = unembedded.memctl("search", "--wait", "--files", "number77")
    assert (done.returncode, done.stdout.split()[0]) == (0, "077.md")
    assert "meaning:" not in done.stderr
    assert unembedded.status()["vectors"] == 200


def test_what_was_changed_last_is_embedded_first(unembedded, server):
    unembedded.call("index", vectors=False)
    # What was asked for, perhaps again, and the next batch: taken before all notes were known.
    taken = len(server.documents) + EMBED_BATCH
    server.answer_again()
    unembedded.call("index")
    by_change = sorted(unembedded.root.glob("*.md"), key=lambda note: -note.stat().st_mtime)
    place = {note.read_text().split()[-1]: rank for rank, note in enumerate(by_change)}
    ranks = [place[text.split()[-1]] for text in server.documents]
    assert set(ranks) == set(range(200))
    known = list(dict.fromkeys(ranks[taken:]))
    assert len(known) > 100
    # In pieces that several threads take, so that neighbours may overtake each other.
    assert all(abs(sorted(known).index(rank) - at) < 40 for at, rank in enumerate(known)), ranks


def test_a_first_search_of_a_small_folder_waits_for_its_few_vectors(daemon, server, tmp_path):
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    for name in ("heron", "otter"):
        (root / f"{name}.md").write_text(f"# {name}\n")
    server.answers = 0
    daemon.call("workspace.add", path=str(root))
    daemon.call("index", workspace=str(root), vectors=False)
    release = threading.Timer(0.5, server.answer_again)
    server.answers = 1000  # of what comes from now on; what hangs is let go later
    release.start()
    answer = daemon.call("search", workspace=str(root), query="heron")
    release.join()
    assert (answer["index"]["embedded"], answer["index"]["pending_vectors"]) == (1.0, 0)
    assert all(hit["arms"]["vector"]["rank"] for hit in answer["hits"])


OWN_MS = 500  # a deadline for what has none


@pytest.fixture
def hung(daemon: Daemon, server: ModelServer, tmp_path: Path) -> Iterator[Workspace]:
    """A daemon with a workspace that is whole, and a saved note that the model has hung on."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    workspace = daemon.workspace(root, {"heron.md": HERON})
    server.behaviour = "hang"
    (root / "otter.md").write_text("# Otter\n\nIt slides.\n")
    assert server.hanging.wait(20 * PATIENCE)
    yield workspace
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
    late: list[tuple[str, float]] = []
    wrong: list[tuple[str, str]] = []

    def ask(method: str, params: dict[str, Any]) -> None:
        most_s = params.get("timeout_ms", 1000 * (METHODS[method].deadline_s or 0)) / 1000
        began = time.monotonic()
        try:
            with hung.daemon.client() as client:
                client.call(method, params, timeout_s=None)
        except RpcError as error:
            if error.code != "MEMD_TIMEOUT":
                wrong.append((method, str(error)))
        if (took_s := time.monotonic() - began) > most_s + LATE_S:
            late.append((method, took_s))

    threads = [threading.Thread(target=ask, args=one) for one in asked(hung.root)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert (late, wrong) == ([], [])
    answer = hung.call("search", query="otter")
    assert [hit["path"] for hit in answer["hits"]] == ["otter.md"]
    assert answer["mode"] == "keyword"
    assert answer["degraded"] == ["model-slow"]


def test_a_rebuild_that_nobody_waits_for_goes_on_and_says_so(hung, server):
    error = hung.error("index", rebuild=True, timeout_ms=1500)
    assert error.code == "MEMD_TIMEOUT"
    assert "index did not end within 1.5 s: the rebuild continues" in error.message
    assert "memctl status" in error.message
    seen = hung.status()
    assert seen["rebuilding"] == {"stage": "embed", "done": 0, "total": 2}
    assert "rebuilding" in hung.daemon.memctl("status").stdout
    server.answer_again()
    until(lambda: hung.status().get("rebuilding") is None, 60)

    def whole() -> bool:
        seen = hung.status()
        return (seen["state"], seen.get("sources"), seen.get("vectors")) == ("ready", 2, 2)

    until(whole, 60)


def test_an_index_that_nobody_waits_for_says_that_indexing_goes_on(hung):
    with pytest.raises(RpcError, match="indexing continues, and `memctl status` shows its progress"):
        hung.call("index", timeout_ms=300)
    with pytest.raises(RpcError, match="nothing is purged yet"):
        hung.call("index", purge=True, timeout_ms=300)


def test_a_second_signal_ends_it_at_once(hung):
    daemon, _ = hung
    before = daemon.log().count("stopping")
    daemon.process.send_signal(signal.SIGTERM)
    until(lambda: daemon.log().count("stopping") > before)
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(timeout=20 * PATIENCE) == 1
