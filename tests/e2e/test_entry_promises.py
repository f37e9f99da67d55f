"""What extract_memory and forget said stays true, while the index is busy and however memd ends."""

import contextlib
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import NO_MODEL, Daemon, Workspace, until
from patience import PATIENCE
from traces import traces

from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

FACT = {"topic": "birds", "title": "Storks", "content": "They come in April."}
LATE_S = 25.0  # below the deadline of 30 s, after which there was no honest answer


@pytest.fixture
def workspace(daemon: Daemon, tmp_path: Path) -> Workspace:
    """A workspace without a model, which each of two daemons would load."""
    return daemon.workspace(tmp_path / "notes", NO_MODEL | {"weir.md": "The weir was mended in May.\n"})


@contextlib.contextmanager
def busy_writer(daemon: Daemon) -> Iterator[None]:
    """Keep the index from being written, as long work does: another connection has SQLite's write lock."""
    [path] = daemon.state.glob("*/index.db")
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=20 * PATIENCE)
    try:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")
    finally:
        database.close()


def count(root) -> int:
    return len(list((root / "memory").glob("*/*.md")))


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_an_entry_does_not_wait_for_the_index(workspace, end):
    daemon, root = workspace
    with busy_writer(daemon):
        began = time.monotonic()
        written = daemon.call("extract_memory", workspace=str(root), **FACT)
        assert time.monotonic() - began < LATE_S
        assert (written["indexed"], written["similar"]) == (False, [])
        assert "They come in April." in (root / written["path"]).read_text()
        getattr(daemon.process, end)()
        daemon.process.wait(timeout=30 * PATIENCE)
    daemon.start()
    until(lambda: daemon.found("storks", workspace=str(root), mode="keyword") == [written["path"]])
    assert count(root) == 1


def test_an_entry_that_was_late_is_indexed_without_a_word_more(workspace):
    with busy_writer(workspace.daemon):
        done = workspace.daemon.memctl(
            "add", "-w", str(workspace.root), "--topic", "birds", "--title", "Storks", "In April."
        )
        assert done.returncode == 0
        assert "not fully searchable yet" in done.stderr
    path = done.stdout.strip().removeprefix(f"{workspace.root}/")
    until(lambda: workspace.found("storks", mode="keyword") == [path], 30)


def test_a_client_in_a_hurry_hears_of_what_was_written(workspace):
    """A deadline that the index misses is no failure of the write, which waits for nothing of it."""
    with busy_writer(workspace.daemon):  # for 5 s at a time: so long SQLite waits for its lock
        (workspace.root / "otter.md").write_text("# Otter\n\nIt slides.\n")
        until(lambda: workspace.status()["pending_files"])
        time.sleep(0.5)
        written = workspace.call("extract_memory", timeout_ms=3000, **FACT)
    assert written["indexed"] is False
    assert (workspace.root / written["path"]).exists()


def test_a_stop_tells_the_agents_that_wait_what_was_written(workspace):
    """Nobody is told to try again whose entry is on the disk."""
    daemon, root = workspace
    answers: list[dict] = []

    def write(number: int) -> None:
        with contextlib.suppress(RpcError):
            answers.append(
                daemon.call(
                    "extract_memory", workspace=str(root), topic="t", title=f"n {number}", content="x"
                )
            )

    with busy_writer(daemon):
        agents = [threading.Thread(target=write, args=(number,)) for number in range(6)]
        for agent in agents:
            agent.start()
        until(lambda: count(root) == 6)
        daemon.process.send_signal(signal.SIGTERM)
        for agent in agents:
            agent.join(30 * PATIENCE)
    assert daemon.process.wait(timeout=30 * PATIENCE) == 0
    assert sorted(answer["path"] for answer in answers) == sorted(
        str(path.relative_to(root)) for path in (root / "memory").glob("*/*.md")
    )
    assert not any(answer["indexed"] for answer in answers)
    daemon.start()


def test_a_forgotten_file_is_deleted_before_the_index_hears_of_it(workspace):
    """Who gives up waiting is told so, and that stays true after a kill; a second call takes the traces."""
    path = workspace.call("extract_memory", **FACT)["path"]
    with busy_writer(workspace.daemon):
        with pytest.raises(RpcError, match="the entry's file is deleted") as caught:
            workspace.call("forget", path=path, timeout_ms=4000)
        assert caught.value.code == "MEMD_TIMEOUT"
        workspace.daemon.process.kill()
        workspace.daemon.process.wait()
    workspace.daemon.start()
    assert not (workspace.root / path).exists()
    until(lambda: workspace.found("storks", mode="keyword") == [])
    workspace.call("forget", path=path)
    assert not [one for one in traces("storks", workspace.daemon.state) if "index.db" in one]


def test_settings_are_saved_while_the_index_is_busy(workspace):
    """Who gives up waiting is told that they are written, and so it is after a kill."""
    with busy_writer(workspace.daemon):
        with contextlib.suppress(RpcError):  # the writer has work
            workspace.call("extract_memory", timeout_ms=800, **FACT)
        with contextlib.suppress(RpcError):
            workspace.call("workspace.configure", settings={"max_results": 3}, timeout_ms=1500)
        until(lambda: "\nmax_results = 3\n" in (workspace.root / "memory" / "config.toml").read_text())
        workspace.daemon.process.kill()
        workspace.daemon.process.wait()
    workspace.daemon.start()
    until(lambda: workspace.call("workspace.configure")["config"]["max_results"] == 3)
