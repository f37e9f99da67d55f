"""`pause` and `resume`: what is saved meanwhile is found by its words, and embedded afterwards."""

import json
import time
from pathlib import Path

import pytest
from daemon_process import Daemon, until

from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def root(daemon: Daemon, tmp_path: Path) -> Path:
    """A workspace with one note, wholly indexed."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    daemon.add(root)
    return root


def waiting(daemon: Daemon) -> int:
    return int(daemon.call("status")["workspaces"][0]["pending_vectors"])


def test_a_note_saved_in_a_pause_is_found_by_words_and_embedded_after_it(daemon: Daemon, root: Path) -> None:
    said = daemon.memctl("pause", "--for", "30m").stdout
    assert said.startswith("embedding is paused until ")
    (root / "otter.md").write_text("# Otter\n\nIt slides into the river.\n")
    answer = daemon.call("search", query="otter slides", sync=True, workspace=str(root))
    assert answer["hits"][0]["path"] == "otter.md"
    assert answer["degraded"] == ["embedding-paused"]

    for words in (["index"], ["search", "--wait", "otter"], ["index", "--json"]):
        ended = daemon.memctl(*words, "-w", str(root))
        assert ended.returncode == 0, ended.stderr
        assert "paused" in ended.stderr
    assert json.loads(ended.stdout)["paused_until"] > time.time() + 1000
    known = daemon.call("status")
    assert known["server"]["paused_until"] > time.time() + 1000
    assert known["workspaces"][0]["degraded"] == ["embedding-paused"]
    assert "paused until" in daemon.memctl("status").stdout
    assert daemon.call("health")["ok"]
    assert waiting(daemon) == 1

    assert daemon.memctl("pause", "--off").stdout == "embedding resumed\n"
    daemon.call("index", workspace=str(root))
    assert waiting(daemon) == 0
    answer = daemon.call("search", query="otter", workspace=str(root))
    assert answer["degraded"] == []
    assert daemon.call("status")["server"]["paused_until"] is None
    assert daemon.memctl("pause", "--off").stdout == "embedding was not paused\n"


def test_a_pause_ends_by_itself(daemon: Daemon, root: Path) -> None:
    daemon.call("pause", duration_s=2.0)
    (root / "otter.md").write_text("# Otter\n\nIt slides into the river.\n")
    daemon.call("sync", workspace=str(root))
    until(lambda: daemon.call("status")["server"]["paused_until"] is None)
    until(lambda: waiting(daemon) == 0)
    assert daemon.call("status")["workspaces"][0]["vectors"] == 2


def test_a_pause_ends_with_the_daemon(daemon: Daemon, root: Path) -> None:
    daemon.call("pause")
    (root / "otter.md").write_text("# Otter\n\nIt slides into the river.\n")
    daemon.call("sync", workspace=str(root))
    assert waiting(daemon) == 1
    daemon.stop()
    daemon.start()
    until(lambda: (known := daemon.call("status")["workspaces"]) and known[0].get("vectors") == 2)


def test_a_rebuild_in_a_pause_keeps_the_vectors_there_are(daemon: Daemon, root: Path) -> None:
    daemon.call("pause")
    with pytest.raises(RpcError, match="paused"):
        daemon.call("index", workspace=str(root), rebuild=True)
    assert daemon.call("status")["workspaces"][0]["vectors"] == 1
