"""What the first version, 0.1.0, left behind is taken over: its index, its list of workspaces, its lock.

`tests/first_version.zip` is what memd 0.1.0 of commit ed191aa wrote: notes with an entry and a configuration,
the index of them, its lock file and its systemd units (`tests/test_units.py` starts those).
"""

import hashlib
import json
import os
import zipfile
from pathlib import Path

import pytest
from daemon_process import Daemon, until
from model_server import ModelServer

LEFT = Path(__file__).parents[1] / "first_version.zip"


@pytest.fixture
def server():
    """A server with a model, which embeds no note until it is told to."""
    server = ModelServer()
    server.only_queries = True
    yield server
    server.stop()


def test_its_index_is_rebuilt_and_its_workspace_is_known(daemon, server, tmp_path):
    """Words answer at once, status says why meaning follows, and nothing of the old index stays."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    daemon.stop()
    index = _put_back(daemon, root)
    assert (index / "index.db").is_file()
    daemon.start()
    assert [one["root"] for one in daemon.call("workspace.list")["workspaces"]] == [str(root)]
    until(lambda: daemon.found("weir", workspace=str(root), mode="keyword"))
    assert "memd was updated: the index is being rebuilt" in daemon.memctl("status").stdout
    server.only_queries = False
    server.answer_again()
    daemon.call("index", workspace=str(root))
    [facts] = daemon.call("status")["workspaces"]
    assert (facts["sources"], facts["vectors"]) == (3, 3)
    until(lambda: [path.name for path in daemon.state.iterdir() if path.is_dir()] == [index.name])
    assert daemon.untruths() == []


def _put_back(daemon: Daemon, root: Path) -> Path:
    """Write what the first version left, for a workspace at *root*; return the folder of its index."""
    index = daemon.state / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    index.mkdir(mode=0o700)
    with zipfile.ZipFile(LEFT) as left:
        for name in left.namelist():
            if name.startswith("notes/") and name != "notes/memory/config.toml":
                left.extract(name, root.parent)
            elif name in ("index.db", "vectors.1.f32"):
                left.extract(name, index)
        left.extract("lock", daemon.state)
    for path in (*index.iterdir(), daemon.state / "lock"):
        path.chmod(0o600)
    registry = daemon.state / "workspaces.json"
    registry.write_text(json.dumps({"workspaces": [{"root": str(root)}]}), encoding="utf-8")
    registry.chmod(0o600)
    return index
