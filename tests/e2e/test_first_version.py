"""What the first version, 0.1.0, left behind is taken over: its index, its list of workspaces, its lock.

No index of it is kept: the test writes the tables that tell memd whose index it is. `tests/first_version` has
its systemd units, which `tests/test_units.py` starts.
"""

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from daemon_process import Daemon, until
from model_server import ModelServer

NOTES = {
    "heron.md": "# Heron\n\nA grey bird by the weir.\n",
    "port.md": "# Port\n\nThe staging database listens on 5433.\n",
}
INDEX = """
PRAGMA user_version = 1;
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE vectors (row INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, crc INTEGER NOT NULL) STRICT;
INSERT INTO meta VALUES ('dim', 384), ('generation', 3), ('matrix', 1), ('model_id', 'old:1');
INSERT INTO vectors VALUES (0, x'01', 1), (1, x'02', 2);
"""


@pytest.fixture
def server():
    """A server with a model, which embeds no note until it is told to."""
    server = ModelServer()
    server.only_queries = True
    yield server
    server.stop()


def test_its_index_is_rebuilt_and_its_workspace_is_known(daemon, server, tmp_path):
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
    assert (facts["sources"], facts["vectors"]) == (2, 2)
    until(lambda: [path.name for path in daemon.state.iterdir() if path.is_dir()] == [index.name])
    assert daemon.untruths() == []


def _put_back(daemon: Daemon, root: Path) -> Path:
    """Write what the first version left, for a workspace at *root*; return the folder of its index."""
    index = daemon.state / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    index.mkdir(mode=0o700)
    for name, text in NOTES.items():
        (root / name).write_text(text, encoding="utf-8")
    with closing(sqlite3.connect(index / "index.db")) as database:
        database.executescript(INDEX)
    (index / "vectors.1.f32").write_bytes(bytes(2 * 384 * 4))
    (daemon.state / "lock").write_text("pid 1\n", encoding="utf-8")
    for path in (*index.iterdir(), daemon.state / "lock"):
        path.chmod(0o600)
    registry = daemon.state / "workspaces.json"
    registry.write_text(json.dumps({"workspaces": [{"root": str(root)}]}), encoding="utf-8")
    registry.chmod(0o600)
    return index
