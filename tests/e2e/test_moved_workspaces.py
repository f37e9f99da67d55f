"""`memctl workspaces move`: the index of a moved folder follows it, and nothing is embedded again."""

import json

import pytest
from daemon_process import until
from model_server import ModelServer

from memctl import exits
from memd.registry import workspace_at

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def server():
    """A server with a model, which lists what it embedded."""
    server = ModelServer()
    yield server
    server.stop()


@pytest.fixture
def notes(daemon, server, tmp_path):
    """A workspace with twenty notes and an entry."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    for number in range(20):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nThe heron has {number} feathers.\n")
    daemon.add(root)
    daemon.call("extract_memory", topic="t", title="Port", content="It is 5433.", workspace=str(root))
    daemon.call("index", workspace=str(root))
    return root


def test_vectors_and_the_journal_follow_a_moved_folder(daemon, server, notes, tmp_path):
    new = tmp_path / "texts"
    notes.rename(new)
    server.documents.clear()
    done = daemon.memctl("workspaces", "move", str(notes), str(new), "--json")
    assert done.returncode == exits.OK, done.stderr
    assert json.loads(done.stdout) == {"moved": [{"from": str(notes), "root": str(new)}]}
    daemon.call("index", workspace=str(new))
    assert daemon.found("heron 7 feathers", workspace=str(new), mode="vector")
    assert server.documents == []
    assert [one["root"] for one in daemon.call("workspace.list")["workspaces"]] == [str(new)]
    assert len(daemon.call("journal", workspace=str(new))["records"]) == 1
    assert not list(daemon.state.glob(f"**/{workspace_at(notes, daemon.state).index_dir.name}*"))


def test_a_workspace_inside_of_it_follows_too(daemon, server, notes, tmp_path):
    inner = notes / "inner"
    server.make_workspace(daemon, inner)
    (inner / "otter.md").write_text("An otter.\n")
    daemon.add(inner, nested=True)
    new = tmp_path / "texts"
    notes.rename(new)
    done = daemon.memctl("workspaces", "move", str(notes), str(new))
    assert done.returncode == exits.OK, done.stderr
    until(lambda: daemon.found("otter", workspace=str(new / "inner"), mode="keyword") == ["otter.md"])


def test_a_folder_that_was_not_moved_is_refused(daemon, notes, tmp_path):
    pid = daemon.call("memd.hello")["pid"]
    for old, new, said in (
        (notes, tmp_path / "texts", "Move the folder first: mv "),
        (tmp_path / "texts", notes, "is not in a registered workspace"),
    ):
        done = daemon.memctl("workspaces", "move", str(old), str(new))
        assert done.returncode == exits.WORKSPACE, done.stderr
        assert said in done.stderr
    gone = tmp_path / "gone"
    notes.rename(gone)
    (tmp_path / "texts").mkdir()
    done = daemon.memctl("workspaces", "move", str(notes), str(tmp_path / "texts"))
    assert (done.returncode, "it is not the folder" in done.stderr) == (exits.WORKSPACE, True)
    assert daemon.call("memd.hello")["pid"] == pid
    gone.rename(notes)
    assert daemon.memctl("search", "heron", cwd=notes).returncode == exits.OK


def test_a_second_run_ends_what_a_killed_one_began(daemon, server, notes, tmp_path):
    """The folder of the index was renamed, and the registry was not yet written."""
    daemon.stop()
    new = tmp_path / "texts"
    notes.rename(new)
    before, after = (workspace_at(root, daemon.state).index_dir for root in (notes, new))
    before.rename(after)
    server.documents.clear()
    done = daemon.memctl("workspaces", "move", str(notes), str(new))
    assert done.returncode == exits.OK, done.stderr
    daemon.call("index", workspace=str(new))
    assert daemon.found("heron 7 feathers", workspace=str(new), mode="vector")
    assert server.documents == []
