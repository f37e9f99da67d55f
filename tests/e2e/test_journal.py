"""Who did what with entries, over the socket and with memctl; and how an entry is forgotten."""

import json
import subprocess

import pytest
from agent_session import in_a_session
from daemon_process import Workspace, folder_of
from traces import traces

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

CANARY = "xylophantasm"
FACT = {
    "topic": "odd",
    "title": f"The {CANARY}",
    "content": f"The {CANARY} sings at the weir each evening.\n",
}


@pytest.fixture
def root(tmp_path):
    root = folder_of(tmp_path / "notes", {"heron.md": "# Heron\n\nA grey bird that stands by the weir.\n"})
    folder_of(root / "memory")
    return root


def journal(daemon, workspace, **params):
    return daemon.call("journal", workspace=workspace, **params)["records"]


def write(daemon, workspace, client="mcp:tester", session="c-1", origin="agent"):
    source = {"origin": origin, "client": client, "session": session}
    return daemon.call("extract_memory", workspace=workspace, source=source, **FACT)


def test_the_journal_says_who_wrote_and_forgot_what(own_daemon, root):
    workspace = own_daemon.add(root)
    written = write(own_daemon, workspace)
    [one] = journal(own_daemon, workspace)
    assert (one["action"], one["id"], one["path"]) == ("write", written["id"], written["path"])
    assert (one["client"], one["conversation"], one["origin"]) == ("mcp:tester", "c-1", "agent")
    assert one["title"] == FACT["title"]
    by = {"origin": "human", "client": "memctl"}
    own_daemon.call("forget", workspace=workspace, id=written["id"], source=by)
    forgot, wrote = journal(own_daemon, workspace)
    assert (forgot["action"], forgot["id"], forgot["hash"]) == ("forget", written["id"], one["hash"])
    assert (forgot["client"], forgot["origin"]) == ("memctl", "human")
    assert {wrote["path"], wrote["title"], forgot["path"], forgot["title"]} == {None}
    kept = b"".join(path.read_bytes() for path in own_daemon.state.rglob("*.jsonl"))
    assert kept.count(b"\n") == 2
    assert CANARY.encode() not in kept.lower()
    assert b"memory/" not in kept


def test_the_journal_says_who_revised_and_superseded_what(daemon, root):
    workspace = daemon.add(root)
    old = write(daemon, workspace)
    by = {"origin": "agent", "client": "mcp:other"}
    new = daemon.call(
        "extract_memory", workspace=workspace, source=by, **FACT | {"title": "Newer"}, supersedes=[old["id"]]
    )
    revised = daemon.call(
        "extract_memory", workspace=workspace, source=by, update=new["id"], content="It hums.",
        hash=new["hash"],
    )  # fmt: skip
    told = [(one["action"], one["id"], one["client"]) for one in journal(daemon, workspace)]
    assert told == [
        ("revise", new["id"], "mcp:other"), ("supersede", old["id"], "mcp:other"),
        ("write", new["id"], "mcp:other"), ("write", old["id"], "mcp:tester"),
    ]  # fmt: skip
    hashes = [one["hash"] for one in journal(daemon, workspace)]
    assert hashes == [revised["hash"], old["hash"], new["hash"], old["hash"]]


def test_the_journal_is_asked_by_client_conversation_and_day(daemon, root):
    workspace = daemon.add(root)
    for client, session in (("one", "a"), ("one", "b"), ("two", "a")):
        write(daemon, workspace, client, session)
    assert [one["client"] for one in journal(daemon, workspace)] == ["two", "one", "one"]
    assert [one["conversation"] for one in journal(daemon, workspace, client="one")] == ["b", "a"]
    assert len(journal(daemon, workspace, client="one", conversation="a")) == 1
    assert len(journal(daemon, workspace, limit=2)) == 2
    assert len(journal(daemon, workspace, since="today")) == 3
    assert journal(daemon, workspace, since="2999-01-01") == []
    with pytest.raises(RpcError, match="since"):
        journal(daemon, workspace, since="someday")


def test_the_journal_says_how_much_of_it_is_shown(daemon, root):
    workspace = daemon.add(root)
    done = daemon.memctl("journal", cwd=root)
    assert (done.returncode, done.stdout, done.stderr) == (exits.NONE, "", "memctl: the journal is empty\n")
    for client in ("one", "two", "", "two"):
        write(daemon, workspace, client)
    answer = daemon.call("journal", workspace=workspace, client="two", limit=1)
    assert (len(answer["records"]), answer["records_total"]) == (1, 2)
    done = daemon.memctl("journal", "--limit", "3", cwd=root)
    assert (done.returncode, done.stdout.count("\n")) == (exits.OK, 3)
    assert done.stderr == "memctl: the newest 3 of 4 (--limit 4 shows all)\n"
    done = daemon.memctl("journal", cwd=root)
    assert (done.stdout.count("\n"), done.stderr) == (4, "")
    done = daemon.memctl("journal", "--client", "nobody", cwd=root)
    assert (done.stdout, done.stderr) == ("", "memctl: nothing in the journal matches\n")
    [column] = {
        line.split()[3]
        for line in daemon.memctl("journal", "--client", "agent", cwd=root).stdout.splitlines()
    }
    assert column == "agent"


def test_the_journal_outlives_index_and_daemon(daemon, root):
    """It is no part of the index: a rebuild, a new start and kill -9 leave it as it is."""
    workspace = daemon.add(root)
    written = write(daemon, workspace)
    daemon.process.kill()
    daemon.process.wait()
    daemon.start()
    daemon.call("index", workspace=workspace, rebuild=True)
    assert [one["path"] for one in journal(daemon, workspace)] == [written["path"]]


def test_a_write_stands_where_the_journal_cannot_be_written(own_daemon, root):
    """What stands in its way costs the record alone, and the log says so."""
    workspace = own_daemon.add(root)
    [index] = [path.parent for path in own_daemon.state.rglob("index.db")]
    (index.parent / "journal").write_text("in the way")
    written = write(own_daemon, workspace)
    assert (root / written["path"]).exists()
    assert journal(own_daemon, workspace) == []
    assert "journal_not_written" in own_daemon.log()


def test_memctl_shows_the_journal(daemon, root):
    workspace = daemon.add(root)
    assert daemon.memctl("journal", "-w", workspace).returncode == exits.NONE
    (stored,) = in_a_session(Workspace(daemon, root), ("extract_memory", FACT))
    shown = daemon.memctl("journal", "-w", workspace, "--client", "mcp:tester")
    assert stored.structured_content["path"] in shown.stdout
    assert "write" in shown.stdout
    daemon.memctl("forget", "-w", workspace, stored.structured_content["id"])
    [forgot, _] = daemon.memctl("journal", "-w", workspace, "--json").stdout.splitlines()
    assert json.loads(forgot)["client"] == "memctl"
    assert stored.structured_content["id"][:6] in daemon.memctl("journal", "-w", workspace).stdout


def test_forget_names_where_else_the_words_stand_and_leaves_them(daemon, root):
    folder_of(root, {
        "memory/2026-05-07.md": "# Thursday\n\nNothing else.\n\n" + FACT["content"],
        "archive/talk.md": f"**user**: Remember:\nthe {CANARY}  sings at the WEIR each evening.\n",
    })  # fmt: skip
    workspace = daemon.add(root)
    written = write(daemon, workspace)
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(["git", "-C", root, "add", "-A"], check=True)
    subprocess.run(["git", "-C", root, "update-index", "--index-version", "4"], check=True)
    before = {path: path.read_bytes() for path in root.rglob("*.md")}
    told = daemon.call("forget", workspace=workspace, path=written["path"])
    assert [one["path"] for one in told["elsewhere"]] == ["archive/talk.md", "memory/2026-05-07.md"]
    assert told["in_git"]
    assert {path: path.read_bytes() for path in root.rglob("*.md")} == {
        path: text for path, text in before.items() if path != root / written["path"]
    }
    alone = daemon.call(
        "extract_memory", workspace=workspace, topic="odd", title="Stork", content="It came back in April."
    )
    told = daemon.call("forget", workspace=workspace, path=alone["path"])
    assert (told["elsewhere"], told["in_git"]) == ([], False)


def test_a_file_that_is_kept_leaves_the_index_for_good(own_daemon, root):
    name = "odd [1] *bird*! .md"
    (root / name).write_text(f"# Bird\n\nThe {CANARY} is mine.\n")
    (root / "odd 1 bird .md").write_text("# Other bird\n\nAn ordinary bird.\n")
    workspace = own_daemon.add(root)
    assert own_daemon.found(CANARY, workspace=workspace, mode="keyword") == [name]
    told = own_daemon.call("forget", workspace=workspace, path=name, keep_file=True)
    assert (told["path"], told["title"]) == (name, "Bird")
    assert CANARY in (root / name).read_text()
    assert own_daemon.found(CANARY, workspace=workspace, mode="keyword") == []
    assert traces("ophantasm", own_daemon.state) == []
    assert journal(own_daemon, workspace)[0]["action"] == "unindex"
    (root / name).write_text(f"# Bird\n\nThe {CANARY} is still mine.\n")
    own_daemon.call("sync", workspace=workspace)
    own_daemon.call("index", workspace=workspace, rebuild=True)
    assert own_daemon.found(CANARY, workspace=workspace, mode="keyword") == []
    assert own_daemon.found("ordinary", workspace=workspace) == ["odd 1 bird .md"]
    ignored = (root / "memory" / ".memdignore").read_text()
    own_daemon.call("forget", workspace=workspace, path="heron.md", keep_file=True)
    assert (root / "memory" / ".memdignore").read_text() == f"{ignored}/heron.md\n"
    with pytest.raises(RpcError, match="is not an indexed source"):
        own_daemon.call("forget", workspace=workspace, path="heron.md", keep_file=True)


@pytest.mark.parametrize("word", ["keep_file", "force"])
def test_an_agent_has_no_persons_word(daemon, root, word):
    """Whatever program it uses: it forgets only entries that nobody changed, and unindexes nothing."""
    workspace = daemon.add(root)
    with pytest.raises(RpcError, match="for people, and this request is from an agent"):
        daemon.call("forget", workspace=workspace, path="heron.md", agent=True, **{word: True})
    assert (root / "heron.md").exists()
    assert daemon.found("heron", workspace=workspace)


def test_an_agent_forgets_no_entry_that_was_changed(daemon, root):
    workspace = daemon.add(root)
    entry = root / write(daemon, workspace)["path"]
    entry.write_text(entry.read_text() + "And in May.\n")
    with pytest.raises(RpcError, match="may have been changed since it was stored, and stays: tell the user"):
        daemon.call("forget", workspace=workspace, path=str(entry), agent=True)
    assert "in May" in entry.read_text()


def test_what_cannot_be_named_by_a_pattern_or_is_taken_back_says_so(daemon, root):
    """Nothing is written for a name with a line feed; a pattern of the configuration that wins is named."""
    (root / "two\nlines.md").write_text("A bittern.\n")
    (root / "memory" / "config.toml").write_text('ignore = ["!heron.md"]\n')
    workspace = daemon.add(root)
    with pytest.raises(RpcError, match="Rename the file"):
        daemon.call("forget", workspace=workspace, path="two\nlines.md", keep_file=True)
    assert not (root / "memory" / ".memdignore").exists()
    with pytest.raises(RpcError, match=r"stays indexed: ignore in memory/config.toml"):
        daemon.call("forget", workspace=workspace, path="heron.md", keep_file=True)


def test_an_agent_forgets_no_entry_that_is_kept_from_it(daemon, root):
    (root / "memory" / "config.toml").write_text('agents_ignore = ["memory/odd/"]\n')
    workspace = daemon.add(root)
    written = write(daemon, workspace, origin="human")
    for named in ({"path": written["path"]}, {"id": written["id"]}):
        with pytest.raises(RpcError, match="is not an indexed source") as caught:
            daemon.call("forget", workspace=workspace, agent=True, **named)
        assert ("memory/odd" in caught.value.message) == ("path" in named)
    assert (root / written["path"]).exists()
    [one] = journal(daemon, workspace, agent=True)
    assert (one["path"], one["title"]) == (None, None)
    assert journal(daemon, workspace)[0]["path"] == written["path"]


def test_a_query_asks_about_each_entry(daemon, root):
    workspace = daemon.add(root)
    written = write(daemon, workspace)
    refused = daemon.memctl("forget", "-w", workspace, "--query", CANARY)
    assert refused.returncode != 0
    assert "which needs a terminal" in refused.stderr
    assert daemon.at_a_terminal("\n", "forget", "-w", workspace, "--query", CANARY)[1] == ""
    assert (root / written["path"]).exists()
    _, printed, _ = daemon.at_a_terminal("y\n", "forget", "-w", workspace, "--query", f"{CANARY} weir")
    assert printed == f"forgot {written['path']}: {FACT['title']}\n"
    assert not (root / written["path"]).exists()
    assert (root / "heron.md").exists()
