"""What was forgotten is really gone."""

from contextlib import closing

import apsw
import pytest
from daemon_process import HERON, hurried, until
from patience import PATIENCE
from traces import traces

from memctl import exits
from memd.index.database import READ_ONLY

pytestmark = pytest.mark.usefixtures("shared_daemon")

# Full text stores a word without what it shares with the word before it: the end of each is looked for, too.
CANARY = "xylophantasm"
TAIL = "ophantasm"
SIDECARS = {"memory/config.toml": "sidecars = true\n"}


@pytest.fixture
def notes(daemon, tmp_path):
    return daemon.workspace(tmp_path / "notes", SIDECARS | HERON)


def write(notes, title="A thing"):
    return notes.call("extract_memory", topic="odd", title=title, content=f"The {CANARY} sings.\n")


def test_no_file_holds_a_trace_of_a_forgotten_entry(notes):
    other = notes.call("extract_memory", topic="odd", title="Otter", content="An otter.")
    written = write(notes)
    until(lambda: notes.status()["state"] == "ready")
    assert notes.found(CANARY)[0] == written["path"]
    assert traces(TAIL, notes.daemon.state, notes.root)
    vectors = notes.status()["vectors"]
    answer = notes.call("forget", path=written["path"])
    assert (answer["path"], answer["forgotten"]) == (written["path"], True)
    assert traces(TAIL, notes.daemon.state, notes.root) == []
    assert CANARY not in notes.daemon.log()
    assert notes.found(CANARY, mode="keyword") == []
    assert notes.found("otter")[0] == other["path"]
    assert notes.status()["vectors"] == vectors - 1


def test_what_a_long_reader_holds_is_erased_when_it_ends(unstarted, tmp_path):
    """`forget` does not claim what is not true yet; another program reads the index, as a check does."""
    daemon = unstarted.start(under=hurried("memd.api.entries.ERASED_TIMEOUT_S = 1.0"))
    notes = daemon.workspace(tmp_path / "notes", SIDECARS | HERON)
    path = write(notes)["path"]
    until(lambda: notes.status()["state"] == "ready")
    [database] = daemon.state.glob("*/index.db")
    with closing(apsw.Connection(f"file:{database}?mode=ro", flags=READ_ONLY)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM sources").get
        done = notes.memctl("forget", str(notes.root / path))
        assert done.returncode == exits.OK
        assert "memctl index --purge waits until it is erased" in done.stderr
        assert traces(TAIL, daemon.state)
    until(lambda: traces(TAIL, daemon.state) == [], timeout_s=5)  # before the housekeeping, a minute later


def test_what_is_gone_and_not_forgotten_is_kept_for_its_day(notes):
    """To forget one entry purges no other file that happens to be away."""
    (notes.root / "heron.md").rename(notes.root.parent / "heron.md")
    until(lambda: notes.status()["gone"] == 1)
    notes.call("forget", path=write(notes)["path"])
    assert notes.status()["gone"] == 1


def test_what_the_index_holds_of_a_deleted_entry_is_forgotten(notes):
    path = write(notes)["path"]
    (notes.root / path).unlink()
    until(lambda: notes.found(CANARY, mode="keyword") == [])
    assert traces(TAIL, notes.daemon.state)
    assert notes.call("forget", path=path)["forgotten"]
    assert traces(TAIL, notes.daemon.state) == []


def test_what_was_set_aside_goes_with_what_is_forgotten(notes):
    """A damaged index holds what the notes said: `status` names it, `forget` and a purge delete it."""
    for ending in ("forget", "purge"):
        path = write(notes)["path"]
        notes.daemon.stop()
        [database] = notes.daemon.state.glob("*/index.db")
        database.write_bytes(b"damaged " + database.read_bytes())
        notes.daemon.start()
        notes.call("index")
        [aside] = notes.status()["set_aside"]
        assert ".damaged-" in aside
        assert aside in notes.daemon.memctl("status").stdout
        if ending == "forget":
            assert notes.call("forget", path=path)["indexed"]
        else:
            (notes.root / path).unlink()
            notes.call("index", purge=True)
        assert traces(TAIL, notes.daemon.state) == []
        assert notes.status()["set_aside"] == []


def test_an_index_that_is_being_built_holds_nothing_of_what_is_forgotten(daemon, server, tmp_path):
    server.make_workspace(daemon, tmp_path / "served")
    notes = daemon.workspace(tmp_path / "served")
    path = write(notes)["path"]
    until(lambda: notes.status()["state"] == "ready")
    server.behaviour = "hang"
    notes.call("index", rebuild=True, wait=False)
    until(lambda: (notes.status()["rebuilding"] or {}).get("stage") == "embed")
    assert any(".building" in file for file in traces(TAIL, daemon.state))
    assert notes.call("forget", path=path)["indexed"]
    server.answer_again()
    with daemon.client() as client:  # it joins the rebuild that runs
        client.call("index", {"workspace": str(notes.root), "rebuild": True}, timeout_s=60 * PATIENCE)
    assert traces(TAIL, daemon.state) == []


def test_entries_are_forgotten_while_indexes_take_each_others_place(notes):
    paths = [write(notes, f"Thing {number}")["path"] for number in range(5)]
    for path in paths:
        notes.call("index", rebuild=True, wait=False)
        assert notes.call("forget", path=path)["forgotten"]
    notes.call("index", rebuild=True)
    assert traces(TAIL, notes.daemon.state, notes.root) == []
    actions = [one["action"] for one in notes.call("journal")["records"]]
    assert actions.count("forget") == len(paths)
