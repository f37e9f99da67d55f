"""What was forgotten is really gone."""

from contextlib import closing

import apsw
import pytest
from daemon_process import folder_of, hurried, until
from patience import PATIENCE
from traces import traces

from memctl import exits
from memd.index.database import READ_ONLY

pytestmark = pytest.mark.usefixtures("shared_daemon")

# Full text stores a word without what it shares with the word before it: the end of each is looked for, too.
CANARY = "xylophantasm"
TAIL = "ophantasm"


@pytest.fixture
def root(tmp_path):
    heron = "# Heron\n\nA grey bird that stands by the weir.\n"
    return folder_of(tmp_path / "notes", {"memory/config.toml": "sidecars = true\n", "heron.md": heron})


def write(daemon, workspace, title="A thing"):
    return daemon.call(
        "extract_memory", workspace=workspace, topic="odd", title=title, content=f"The {CANARY} sings.\n"
    )


def test_no_file_holds_a_trace_of_a_forgotten_entry(daemon, root):
    workspace = daemon.add(root)
    other = daemon.call(
        "extract_memory", workspace=workspace, topic="odd", title="Otter", content="An otter."
    )
    written = write(daemon, workspace)
    until(lambda: daemon.status()["state"] == "ready")
    assert daemon.found(CANARY, workspace=workspace)[0] == written["path"]
    assert traces(TAIL, daemon.state, root)
    vectors = daemon.status()["vectors"]
    answer = daemon.call("forget", workspace=workspace, path=written["path"])
    assert (answer["path"], answer["forgotten"]) == (written["path"], True)
    assert traces(TAIL, daemon.state, root) == []
    assert CANARY not in daemon.log()
    assert daemon.found(CANARY, workspace=workspace, mode="keyword") == []
    assert daemon.found("otter", workspace=workspace)[0] == other["path"]
    assert daemon.status()["vectors"] == vectors - 1


def test_what_a_long_reader_holds_is_erased_when_it_ends(unstarted, root):
    """`forget` does not claim what is not true yet; another program reads the index, as a check does."""
    daemon = unstarted.start(under=hurried("memd.api.entries.ERASED_TIMEOUT_S = 1.0"))
    workspace = daemon.add(root)
    path = write(daemon, workspace)["path"]
    until(lambda: daemon.status()["state"] == "ready")
    [database] = daemon.state.glob("*/index.db")
    with closing(apsw.Connection(f"file:{database}?mode=ro", flags=READ_ONLY)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM sources").get
        done = daemon.memctl("forget", "-w", workspace, str(root / path))
        assert done.returncode == exits.OK
        assert "memctl index --purge waits until it is erased" in done.stderr
        assert traces(TAIL, daemon.state)
    until(lambda: traces(TAIL, daemon.state) == [], timeout_s=5)  # before the housekeeping, a minute later


def test_what_is_gone_and_not_forgotten_is_kept_for_its_day(daemon, root):
    """To forget one entry purges no other file that happens to be away."""
    workspace = daemon.add(root)
    (root / "heron.md").rename(root.parent / "heron.md")
    until(lambda: daemon.status()["gone"] == 1)
    daemon.call("forget", workspace=workspace, path=write(daemon, workspace)["path"])
    assert daemon.status()["gone"] == 1


def test_what_the_index_holds_of_a_deleted_entry_is_forgotten(daemon, root):
    workspace = daemon.add(root)
    path = write(daemon, workspace)["path"]
    (root / path).unlink()
    until(lambda: daemon.found(CANARY, workspace=workspace, mode="keyword") == [])
    assert traces(TAIL, daemon.state)
    assert daemon.call("forget", workspace=workspace, path=path)["forgotten"]
    assert traces(TAIL, daemon.state) == []


def test_what_was_set_aside_goes_with_what_is_forgotten(daemon, root):
    """A damaged index holds what the notes said: `status` names it, `forget` and a purge delete it."""
    workspace = daemon.add(root)
    for ending in ("forget", "purge"):
        path = write(daemon, workspace)["path"]
        daemon.stop()
        [database] = daemon.state.glob("*/index.db")
        database.write_bytes(b"damaged " + database.read_bytes())
        daemon.start()
        daemon.call("index", workspace=workspace)
        [aside] = daemon.status(workspace)["set_aside"]
        assert ".damaged-" in aside
        assert aside in daemon.memctl("status").stdout
        if ending == "forget":
            assert daemon.call("forget", workspace=workspace, path=path)["indexed"]
        else:
            (root / path).unlink()
            daemon.call("index", workspace=workspace, purge=True)
        assert traces(TAIL, daemon.state) == []
        assert daemon.status(workspace)["set_aside"] == []


def test_an_index_that_is_being_built_holds_nothing_of_what_is_forgotten(daemon, server, tmp_path):
    server.make_workspace(daemon, tmp_path / "served")
    workspace = daemon.add(tmp_path / "served")
    path = write(daemon, workspace)["path"]
    until(lambda: daemon.status()["state"] == "ready")
    server.behaviour = "hang"
    daemon.call("index", workspace=workspace, rebuild=True, wait=False)
    until(lambda: (daemon.status()["rebuilding"] or {}).get("stage") == "embed")
    assert any(".building" in file for file in traces(TAIL, daemon.state))
    assert daemon.call("forget", workspace=workspace, path=path)["indexed"]
    server.answer_again()
    with daemon.client() as client:  # it joins the rebuild that runs
        client.call("index", {"workspace": workspace, "rebuild": True}, timeout_s=60 * PATIENCE)
    assert traces(TAIL, daemon.state) == []


def test_entries_are_forgotten_while_indexes_take_each_others_place(daemon, root):
    workspace = daemon.add(root)
    paths = [write(daemon, workspace, f"Thing {number}")["path"] for number in range(5)]
    for path in paths:
        daemon.call("index", workspace=workspace, rebuild=True, wait=False)
        assert daemon.call("forget", workspace=workspace, path=path)["forgotten"]
    daemon.call("index", workspace=workspace, rebuild=True)
    assert traces(TAIL, daemon.state, root) == []
    actions = [one["action"] for one in daemon.call("journal", workspace=workspace)["records"]]
    assert actions.count("forget") == len(paths)
