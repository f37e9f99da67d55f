"""A daemon in a network namespace without interfaces: nothing is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from daemon_process import Daemon, until

# A namespace of its own has the loopback alone, and that is down.
NAMESPACE = ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-Urn")


def is_possible() -> bool:
    """Tell whether a namespace can be made here."""
    if shutil.which(NAMESPACE[0]) is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not is_possible(), reason="needs a network namespace: unshare -n")
def test_everything_works_without_a_network(tmp_path):
    home, root = tmp_path / "home", tmp_path / "notes"
    home.mkdir()
    root.mkdir()
    (root / "heron.md").write_text("A heron stands by the weir.\n")
    daemon = Daemon(home)
    try:
        daemon.start(under=NAMESPACE)
        assert daemon.process is not None
        interfaces = Path(f"/proc/{daemon.process.pid}/net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]
        workspace = daemon.add(root)
        fact = {"topic": "birds", "title": "Storks", "content": "They come in April."}
        assert daemon.call("extract_memory", workspace=workspace, **fact)["indexed"]
        until(lambda: daemon.found("bird at a dam", workspace=workspace, mode="vector")[:1] == ["heron.md"])
        assert daemon.stop() == 0
    finally:
        daemon.close()
