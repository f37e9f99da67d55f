"""A stop where the process may have no more memory than it has."""

import resource
from pathlib import Path

import pytest
from daemon_process import until


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux sets another's limit")
def test_a_stop_without_room_for_a_thread_is_an_orderly_one(daemon, tmp_path):
    """As under `ulimit -v`: everything is written and closed, and the exit code says so."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "heron.md").write_text("A grey bird.\n")
    daemon.add(root)
    until(lambda: daemon.call("search", query="heron")["mode"] == "hybrid")
    pid = daemon.process.pid
    size_bytes = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (size_bytes, size_bytes))
    code = daemon.stop()
    assert code == 0, daemon.log()[-3000:]
