"""The first moments of a daemon: who comes while it loads waits in the socket, and is answered."""

import subprocess
import sys
import time

from daemon_process import START_TIMEOUT_S, Daemon, until

from memctl.client import Client, Unreachable

NOTES = {"heron": "A heron stands by the weir.", "badger": "Badgers dig setts.", "otter": "An otter slides."}


def started(daemon: Daemon, **environment: str) -> Client:
    """Start it and return a connection as soon as its socket takes one, which nothing has been asked on."""
    with daemon.log_path.open("wb") as log:
        daemon.process = subprocess.Popen(
            [sys.executable, "-m", "memd"], env=daemon.environment | environment, stderr=log, stdout=log
        )
    stop = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < stop:
        try:
            return daemon.client()
        except Unreachable:
            time.sleep(0.001)
    raise AssertionError(daemon.log())


def workspaces(daemon: Daemon, folder) -> list[str]:
    """Make a workspace of one note for each of NOTES, wholly indexed."""
    roots = []
    for name, text in NOTES.items():
        root = folder / name
        root.mkdir()
        (root / f"{name}.md").write_text(f"{text}\n")
        roots.append(daemon.add(root))
    return roots


def test_who_comes_while_it_loads_is_answered(daemon, tmp_path):
    roots = workspaces(daemon, tmp_path)
    daemon.stop()
    with started(daemon) as client:
        state = client.call("status")["workspaces"]
        assert {one["root"] for one in state} == set(roots)
        assert {one["state"] for one in state} <= {"starting", "scanning", "busy", "ready"}
        for name, root in reversed(list(zip(NOTES, roots, strict=True))):
            found = client.call("search", {"query": name, "workspace": root, "mode": "keyword"})
            assert [hit["path"] for hit in found["hits"]] == [f"{name}.md"]
    until(lambda: {one["state"] for one in daemon.call("status")["workspaces"]} == {"ready"})


def test_it_listens_before_it_loads_what_takes_long(daemon, tmp_path):
    """The line of the log that follows the socket comes before numpy, SQLite and the model's runtime."""
    roots = workspaces(daemon, tmp_path)
    daemon.stop()
    started(daemon, PYTHONPROFILEIMPORTTIME="1").close()
    until(lambda: daemon.found("heron", workspace=roots[0], mode="vector") == ["heron.md"])
    lines = [line.rpartition("|")[2].strip() for line in daemon.log().splitlines()]
    listens = next(number for number, line in enumerate(lines) if '"event": "start"' in line)
    for library in ("numpy", "tokenizers", "onnxruntime", "memd.workspace.workspaces"):
        assert listens < lines.index(library), library


def test_a_stop_while_it_loads_is_a_stop(daemon, tmp_path):
    roots = workspaces(daemon, tmp_path)
    daemon.stop()
    for _ in range(3):
        started(daemon).close()
        assert daemon.stop() == 0
    daemon.start()
    assert daemon.found("otter", workspace=roots[2], mode="keyword") == ["otter.md"]
