"""What was forgotten is really gone."""

import json

import pytest
from daemon_process import until

from memctl import exits
from memctl.client import RpcError

# Full text stores a word without what it shares with the word before it: the end of each is looked for, too.
CANARY = "xylophantasm"
TAIL = "ophantasm"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    (root / "memory").mkdir()
    (root / "memory" / "config.toml").write_text("sidecars = true\n")
    return root


def traces(*folders):
    """Return the files that hold a part of the canary."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if TAIL.encode() in path.read_bytes().lower()]


def write(daemon, workspace, title="A thing"):
    return daemon.call(
        "extract_memory", workspace=workspace, topic="odd", title=title, content=f"The {CANARY} sings.\n"
    )


def test_no_file_holds_a_trace_of_a_forgotten_entry(daemon, root):
    """Database, log of the database, full text, matrix, sidecars, logs; other entries are whole."""
    workspace = daemon.add(root)
    other = daemon.call(
        "extract_memory", workspace=workspace, topic="odd", title="Otter", content="An otter."
    )
    written = write(daemon, workspace)
    until(lambda: daemon.call("status")["workspaces"][0]["state"] == "ready")
    assert daemon.found(CANARY, workspace=workspace)[0] == written["path"]
    assert traces(daemon.state, root)
    vectors = daemon.call("status")["workspaces"][0]["vectors"]
    answer = daemon.call("forget", workspace=workspace, path=written["path"])
    assert (answer["path"], answer["forgotten"]) == (written["path"], True)
    assert traces(daemon.state, root) == []
    assert CANARY not in daemon.log()
    assert daemon.found(CANARY, workspace=workspace, mode="keyword") == []
    assert daemon.found("otter", workspace=workspace)[0] == other["path"]
    assert daemon.call("status")["workspaces"][0]["vectors"] == vectors - 1


def test_a_note_of_a_person_is_not_deleted(daemon, root):
    """The error says what to do; the file stays as it is."""
    workspace = daemon.add(root)
    with pytest.raises(RpcError, match="Delete the file yourself"):
        daemon.call("forget", workspace=workspace, path="heron.md")
    (root / "memory" / "odd").mkdir()
    with pytest.raises(RpcError, match="memctl search finds entries"):
        daemon.call("forget", workspace=workspace, path="memory/odd/none.md")
    assert (root / "heron.md").exists()


def test_what_is_gone_and_not_forgotten_is_kept_for_its_day(daemon, root):
    """To forget one entry purges no other file that happens to be away."""
    workspace = daemon.add(root)
    (root / "heron.md").rename(root.parent / "heron.md")
    until(lambda: daemon.call("status")["workspaces"][0]["gone"] == 1)
    daemon.call("forget", workspace=workspace, path=write(daemon, workspace)["path"])
    assert daemon.call("status")["workspaces"][0]["gone"] == 1


def test_memctl_forgets_by_the_path_that_add_printed(daemon, root):
    """And says what it was; a second time it says that there is none."""
    workspace = daemon.add(root)
    added = daemon.memctl("add", "-w", workspace, "--topic", "odd", "--title", "Thing", f"A {CANARY}.")
    path = added.stdout.strip()
    done = daemon.memctl("forget", "-w", workspace, "--json", path)
    assert path == f"{workspace}/{json.loads(done.stdout)['path']}"
    again = daemon.memctl("forget", "-w", workspace, path)
    assert again.returncode != 0
    assert "memctl search finds entries" in again.stderr


def test_an_entry_that_its_owner_replaced_is_kept(daemon, root):
    """MEMD_CHANGED says what to do; nothing but `--force` deletes it, and that wholly."""
    workspace = daemon.add(root)
    path = write(daemon, workspace)["path"]
    (root / path).write_text(f"---\nsource:\n  origin: agent\n---\nMy own {CANARY}.\n")
    with pytest.raises(RpcError, match="memctl forget --force") as caught:
        daemon.call("forget", workspace=workspace, path=path)
    assert caught.value.code == "MEMD_CHANGED"
    assert (root / path).exists()
    refused = daemon.memctl("forget", "-w", workspace, str(root / path))
    assert refused.returncode == exits.REFUSED
    assert (root / path).exists()
    assert daemon.memctl("forget", "-w", workspace, "--force", str(root / path)).returncode == 0
    assert traces(daemon.state, root) == []


def test_an_entry_is_forgotten_by_a_daemon_that_did_not_write_it(daemon, root):
    """The file alone tells that memd wrote it: a new index, or another machine's, knows it too."""
    workspace = daemon.add(root)
    path = write(daemon, workspace)["path"]
    daemon.call("workspace.remove", path=workspace)
    daemon.add(root)
    daemon.call("forget", workspace=workspace, path=path)
    assert traces(daemon.state, root) == []


def test_what_the_index_holds_of_a_deleted_entry_is_forgotten(daemon, root):
    """Its file is gone, by hand or by a request that was cut short: the traces are not."""
    workspace = daemon.add(root)
    path = write(daemon, workspace)["path"]
    (root / path).unlink()
    until(lambda: daemon.found(CANARY, workspace=workspace, mode="keyword") == [])
    assert traces(daemon.state)
    assert daemon.call("forget", workspace=workspace, path=path)["forgotten"]
    assert traces(daemon.state) == []
