"""What a client hears of a daemon: events, a pause, and what a bug report needs."""

import json
import subprocess
import sys
import time

import pytest
from daemon_process import NO_MODEL, Daemon, until
from patience import PATIENCE

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def notes(daemon: Daemon, tmp_path):
    """A daemon and a workspace that is found by words alone, with one note in it."""
    return daemon.workspace(
        tmp_path / "notes", NO_MODEL | {"first.md": "# Weirs\n\nThe weir was mended in May.\n"}
    )


def of_kind(happening, kind, path=""):
    """Return the next event of this kind that names *path*."""
    return next(
        event for event in happening if event["event"] == kind and (not path or path in event["paths"])
    )


def test_a_save_and_a_deletion_are_told(notes):
    daemon, root = notes
    with daemon.client() as client:
        assert client.call("subscribe", {"workspace": str(root / "memory")}) == {
            "subscribed": True,
            "workspaces": [str(root)],
        }
        happening = client.events(str(root))
        (root / "new.md").write_text("# Sourdough\n")
        saved = of_kind(happening, "indexed", "new.md")
        (root / "new.md").unlink()
        removed = of_kind(happening, "removed", "new.md")
    assert (saved["workspace"], saved["count"], removed["count"]) == (str(root), 1, 1)
    assert removed["generation"] > saved["generation"]
    assert removed["at"] >= saved["at"]


def test_what_an_event_names_is_searchable(notes):
    with notes.daemon.client() as client:
        happening = client.events()
        for number in range(10):
            (notes.root / f"{number}.md").write_text(f"# Note\n\nkettleword{number}\n")
            of_kind(happening, "indexed", f"{number}.md")
            answer = client.call("search", {"workspace": str(notes.root), "query": f"kettleword{number}"})
            assert [hit["path"] for hit in answer["hits"]] == [f"{number}.md"]


def test_many_files_are_told_as_how_many(notes):
    with notes.daemon.client() as client:
        happening = client.events(str(notes.root))
        for number in range(300):
            (notes.root / f"{number}.md").write_text(f"# Note {number}\n")
        told = 0
        while told < 300:
            event = of_kind(happening, "indexed")
            assert 0 < len(event["paths"]) <= 100
            assert event["count"] >= len(event["paths"])
            told += event["count"]


def test_what_is_not_registered_cannot_be_followed(notes):
    assert notes.daemon.error("subscribe", workspace=str(notes.root.parent)).code == "MEMD_WORKSPACE"


def test_memctl_watch_prints_a_save_and_ends_with_the_daemon(notes):
    watching = subprocess.Popen(
        [sys.executable, "-m", "memctl", "watch", "--workspace", str(notes.root)],
        env=notes.daemon.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stderr.readline() == f"memctl: following {notes.root}, Ctrl-C ends\n"
    (notes.root / "new.md").write_text("# Sourdough\n")
    assert any(line.endswith("  indexed   new.md\n") for line in watching.stdout)
    notes.daemon.stop()
    _, said = watching.communicate(timeout=20 * PATIENCE)
    assert (watching.returncode, "closed the connection" in said) == (exits.UNREACHABLE, True)


def test_a_note_saved_in_a_pause_is_found_by_words_and_embedded_after_it(heron):
    said = heron.daemon.memctl("pause", "--for", "30m").stdout
    assert said.startswith("embedding is paused until ")
    (heron.root / "otter.md").write_text("# Otter\n\nIt slides into the river.\n")
    answer = heron.call("search", query="otter slides", sync=True)
    assert answer["hits"][0]["path"] == "otter.md"
    assert answer["degraded"] == ["embedding-paused"]

    for words in (["index"], ["search", "--wait", "otter"], ["index", "--json"]):
        ended = heron.memctl(*words)
        assert ended.returncode == 0, ended.stderr
        assert "paused" in ended.stderr
    assert json.loads(ended.stdout)["paused_until"] > time.time() + 1000
    known = heron.daemon.call("status")
    assert known["server"]["paused_until"] > time.time() + 1000
    assert known["workspaces"][0]["degraded"] == ["embedding-paused"]
    assert "paused until" in heron.daemon.memctl("status").stdout
    assert heron.daemon.call("health")["ok"]
    assert heron.status()["pending_vectors"] == 1
    began_s = time.monotonic()
    coot = {"topic": "birds", "title": "Coot", "content": "A coot has a white shield."}
    assert not heron.call("extract_memory", **coot)["indexed"]
    assert time.monotonic() - began_s < 4  # of the five for which a vector is awaited outside of a pause

    assert heron.daemon.memctl("pause", "--off").stdout == "embedding resumed\n"
    heron.call("index")
    assert heron.status()["pending_vectors"] == 0
    answer = heron.call("search", query="otter")
    assert answer["degraded"] == []
    assert heron.daemon.call("status")["server"]["paused_until"] is None
    assert heron.daemon.memctl("pause", "--off").stdout == "embedding was not paused\n"


def test_a_pause_ends_by_itself(heron):
    heron.daemon.call("pause", duration_s=2.0)
    (heron.root / "otter.md").write_text("# Otter\n\nIt slides into the river.\n")
    heron.call("sync")
    until(lambda: heron.daemon.call("status")["server"]["paused_until"] is None)
    until(lambda: heron.status()["pending_vectors"] == 0)
    assert heron.status()["vectors"] == 2


def test_a_pause_ends_with_the_daemon(heron):
    heron.daemon.call("pause")
    (heron.root / "otter.md").write_text("# Otter\n\nIt slides into the river.\n")
    heron.call("sync")
    assert heron.status()["pending_vectors"] == 1
    heron.daemon.stop()
    heron.daemon.start()
    until(lambda: (known := heron.daemon.call("status")["workspaces"]) and known[0].get("vectors") == 2)


def test_a_rebuild_in_a_pause_keeps_the_vectors_there_are(heron):
    heron.daemon.call("pause")
    with pytest.raises(RpcError, match="paused"):
        heron.call("index", rebuild=True)
    assert heron.status()["vectors"] == 1


def test_a_report_tells_versions_lag_requests_and_file_events_in_lines_that_can_be_read(heron):
    (heron.root / "otter.md").write_text("An otter.\n")
    until(lambda: heron.found("otter", mode="keyword"))
    lines = heron.memctl("status", "--debug", "-w", str(heron.root)).stdout.splitlines()
    assert max(map(len, lines)) < 2_000
    told = json.loads("\n".join(lines))
    assert told["telemetry_disabled"] is True
    assert {"apsw", "msgpack", "numpy", "onnxruntime"} <= told["packages"].keys()
    assert 0 <= told["loop_lag_ms"]["p50"] <= told["loop_lag_ms"]["p99"] <= told["loop_lag_ms"]["max"]
    assert {"search", "workspace.add"} <= {one["method"] for one in told["requests"]}
    for request in told["requests"]:
        assert any(line.strip().rstrip(",") == json.dumps(request) for line in lines)
    assert any(path.endswith("otter.md") for batch in told["watched"] for path in batch["paths"])
    assert told["descriptors"] > 3


def test_it_names_no_file_unless_one_workspace_is_asked_about(heron):
    """Nor a word of a query or a note, ever."""
    heron.call("search", query="weir heron")
    (heron.root / "secretname.md").write_text("secretword\n")
    until(lambda: heron.found("secretword", mode="keyword"))
    everything = heron.daemon.memctl("status", "--debug").stdout
    assert "secretname" not in everything
    assert '"watched": [' in everything
    for word in ("secretword", "weir"):
        assert word not in everything + heron.memctl("status", "--debug", "-w", str(heron.root)).stdout
