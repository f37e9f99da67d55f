"""A note that is made to be slow costs nobody else anything: saves, pings, searches, a stop."""

import os
import signal
import time
from pathlib import Path

import pytest
from daemon_process import NO_MODEL, Daemon, hurried, until
from patience import PATIENCE

from benchmarks.pathological import text
from memd.workspace.embed_loop import EMBED_BATCH

MIB = 1024 * 1024  # an eighth of it takes the parser as long as any text: then its work is given up
EMBEDDED = 200  # parts of a note, in place of 1,500


@pytest.fixture
def hostile(daemon, tmp_path):
    """A workspace with one small note; without a model, which would embed 1,500 parts of a hostile one."""
    return daemon.workspace(tmp_path / "notes", NO_MODEL | {"calm.md": "The heron stands still.\n"})


def worker(daemon: Daemon) -> int | None:
    """Return the process that parses for the daemon."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            ours = int(entry.read_text().rpartition(")")[2].split()[1]) == daemon.process.pid
            if ours and b"parse_worker" in (entry.parent / "cmdline").read_bytes():
                return int(entry.parent.name)
        except OSError:
            continue
    return None


def test_beside_a_hostile_note_saves_pings_and_searches_go_on(hostile):
    daemon, root = hostile
    (root / "hostile.md").write_text(text("changing lists", MIB // 8) + "\nzebra\n")
    until(lambda: daemon.status()["pending_files"] == 1 and worker(daemon))
    slowest = 0.0
    for number in range(5):
        began = time.monotonic()
        daemon.call("ping")
        slowest = max(slowest, time.monotonic() - began)
        (root / f"new{number}.md").write_text(f"The kingfisher number{number}.\n")
        until(lambda number=number: daemon.found(f"number{number}", mode="keyword"))
    assert slowest < PATIENCE
    until(lambda: daemon.found("zebra", mode="keyword"), timeout_s=60)


def test_a_short_note_of_many_lines_is_parsed_apart(hostile):
    """Thousands of list items in 32 kB take half a second, which no save should wait for."""
    (hostile.root / "prose.md").write_text("The heron stands still. " * 1_300 + "\n\nwagtail\n")
    until(lambda: hostile.found("wagtail", mode="keyword"))
    assert worker(hostile.daemon) is None
    (hostile.root / "hostile.md").write_text(text("changing lists", 32_000) + "\nzebra\n")
    until(lambda: hostile.found("zebra", mode="keyword"))
    assert worker(hostile.daemon) is not None


def test_what_is_too_complex_is_plain_text_and_named(hostile):
    (hostile.root / "hostile.md").write_text(text("lazy quotes", MIB // 16) + "\nzebra\n")
    assert until(lambda: hostile.found("zebra", mode="keyword"), timeout_s=60) == ["hostile.md"]
    [warning] = until(lambda: hostile.status()["warnings"])
    assert warning["path"] == "hostile.md"
    assert warning["warning"].startswith("too-complex")
    assert "hostile.md" in hostile.daemon.memctl("status").stdout
    hostile.daemon.stop()
    hostile.daemon.start()
    assert until(lambda: hostile.status().get("warnings")) == [warning]  # not known until it is open
    (hostile.root / "hostile.md").write_text("calm again\n")
    until(lambda: not hostile.status()["warnings"])


def test_a_parser_that_dies_costs_the_note_its_structure_at_most(hostile):
    (hostile.root / "hostile.md").write_text(text("changing lists", MIB // 8) + "\nzebra\n")
    os.kill(until(lambda: worker(hostile.daemon)), signal.SIGKILL)
    until(lambda: hostile.found("zebra", mode="keyword"), timeout_s=60)
    [warning] = until(lambda: hostile.status()["warnings"])
    assert warning["warning"] == "too-complex: all is indexed as plain text"


def test_of_a_very_long_note_the_first_parts_are_embedded(unstarted, server, tmp_path):
    daemon = unstarted.start(under=hurried(f"memd.index.source_rows.EMBEDDED_CHUNKS = {EMBEDDED}"))
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    with (root / "memory" / "config.toml").open("a") as config:
        config.write("chunk_words = 20\nchunk_overlap = 0\n")
    parts = [f"{f'h{number} ' * 20}\n\n" for number in range(EMBEDDED + 90)] + ["zebra " * 20]
    (root / "long.md").write_text("".join(parts))
    daemon.add(root)
    known = until(
        lambda: (now := daemon.status()).get("beyond") and not now["pending"] and now, timeout_s=120
    )
    asked = len(server.documents)
    assert known["vectors"] == len(set(server.documents)) == EMBEDDED
    assert known["beyond"] == known["chunks"] - EMBEDDED > 0
    assert (known["state"], known["embedded"], known["degraded"]) == ("ready", 1.0, [])
    [warning] = known["warnings"]
    assert warning["warning"].startswith("long-note: from line ")
    page = daemon.memctl("status").stdout
    assert f"beyond      {known['beyond']} chunks: beyond the first parts of a long note" in page
    hit = daemon.call("search", query="zebra", explain=True)["hits"][0]
    assert (hit["start_line"], hit["explanation"]["unseen"]) == (2 * len(parts) - 1, ["long"])
    told = daemon.call("why", query="kingfisher", path="long.md", line=2 * len(parts) - 1)
    assert told["facts"]["explanation"]["unseen"] == ["long"]
    assert told["text"].endswith(f"beyond the first {EMBEDDED} parts of a long note")
    answer = daemon.call("similar", path="long.md", line=2 * len(parts) - 1)
    assert (answer["mode"], answer["degraded"]) == ("keyword", [])
    assert daemon.memctl("check", cwd=root).returncode == 0
    (root / "long.md").write_text("".join(parts).replace("h7 ", "otter "))
    until(lambda: len(server.documents) > asked and not daemon.status()["pending"], timeout_s=60)
    # What did not change is not embedded again, but for a batch whose answer failed to come.
    assert len(server.documents) <= asked + 3 + EMBED_BATCH
    assert daemon.memctl("index", "--rebuild", cwd=root).returncode == 0
    until(lambda: daemon.status().get("embedded") == 1.0 and not daemon.status()["rebuilding"], timeout_s=120)
    assert (daemon.status()["beyond"], daemon.status()["degraded"]) == (known["beyond"], [])


def test_a_stop_does_not_wait_for_a_hostile_note(hostile):
    (hostile.root / "hostile.md").write_text(text("changing lists", 3 * MIB) + "\nzebra\n")
    parser = until(lambda: worker(hostile.daemon))
    began = time.monotonic()
    assert hostile.daemon.stop() == 0
    assert time.monotonic() - began < 5 * PATIENCE
    assert not Path(f"/proc/{parser}").exists()
    (hostile.root / "hostile.md").unlink()


def test_what_was_being_parsed_when_the_daemon_died_comes_last(hostile):
    daemon, root = hostile
    (root / "hostile.md").write_text(text("changing lists", MIB // 8) + "\nzebra\n")
    until(lambda: list(daemon.state.rglob("parsing.large")))
    parser = worker(daemon)
    daemon.process.kill()
    daemon.process.wait()
    for number in range(50):
        (root / f"new{number}.md").write_text(f"The kingfisher number{number}.\n")
    daemon.start()
    until(lambda: len(daemon.found("kingfisher", mode="keyword", limit=50)) == 50, timeout_s=30)
    until(lambda: daemon.found("zebra", mode="keyword"), timeout_s=60)
    assert not list(daemon.state.rglob("parsing.*"))
    until(lambda: parser is None or not Path(f"/proc/{parser}").exists(), timeout_s=40)


def test_the_daemon_holds_no_more_after_a_hostile_note(hostile):
    """Its memory grows by less than the 150 MB that a note may cost."""
    before = hostile.daemon.call("status")["server"]["memory_mb"]
    (hostile.root / "hostile.md").write_text(text("tables of the report", MIB) + "\nzebra\n")
    until(lambda: hostile.found("zebra", mode="keyword"), timeout_s=120)
    assert hostile.daemon.call("status")["server"]["memory_mb"] - before < 150
