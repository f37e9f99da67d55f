"""The daemon embeds notes at low priority, and answers at its own."""

import sys
from pathlib import Path

import pytest
from daemon_process import Daemon

from memd.embedding.queue import NOTES_NICENESS

NICE_FIELD = 16  # of /proc/PID/task/TID/stat behind the name: the 19th, as proc(5) counts


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no priority of its own")
def test_only_the_threads_that_embed_notes_are_niced(workspace: tuple[Daemon, Path]) -> None:
    daemon, root = workspace
    for number in range(20):
        (root / f"more{number}.md").write_text(f"# Day {number}\n\nThe heron stood by weir {number}.\n")
    daemon.call("index", workspace=str(root))
    daemon.call("search", query="heron", workspace=str(root))
    assert daemon.process is not None
    tasks = Path(f"/proc/{daemon.process.pid}/task")
    found = {
        int(task.name): int(
            (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[NICE_FIELD]
        )
        for task in tasks.iterdir()
    }
    niced = [thread for thread, nice in found.items() if nice == NOTES_NICENESS]
    assert 1 <= len(niced) <= 2, found
    assert found[daemon.process.pid] < NOTES_NICENESS
