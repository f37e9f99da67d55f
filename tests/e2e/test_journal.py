"""Who did what with entries, over the socket and with memctl; and how an entry is forgotten."""

import json
import subprocess

import pytest
from agent_session import in_a_session
from daemon_process import HERON, folder_of
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


def journal(notes, **params):
    return notes.call("journal", **params)["records"]


def write(notes, client="mcp:tester", session="c-1", origin="agent"):
    source = {"origin": origin, "client": client, "session": session}
    return notes.call("extract_memory", source=source, **FACT)


def test_the_journal_says_who_wrote_and_forgot_what(own_daemon, tmp_path):
    heron = own_daemon.workspace(tmp_path / "notes", HERON)
    written = write(heron)
    [one] = journal(heron)
    assert (one["action"], one["id"], one["path"]) == ("write", written["id"], written["path"])
    assert (one["client"], one["conversation"], one["origin"]) == ("mcp:tester", "c-1", "agent")
    assert one["title"] == FACT["title"]
    by = {"origin": "human", "client": "memctl"}
    heron.call("forget", id=written["id"], source=by)
    forgot, wrote = journal(heron)
    assert (forgot["action"], forgot["id"], forgot["hash"]) == ("forget", written["id"], one["hash"])
    assert (forgot["client"], forgot["origin"]) == ("memctl", "human")
    assert {wrote["path"], wrote["title"], forgot["path"], forgot["title"]} == {None}
    kept = b"".join(path.read_bytes() for path in own_daemon.state.rglob("*.jsonl"))
    assert kept.count(b"\n") == 2
    assert CANARY.encode() not in kept.lower()
    assert b"memory/" not in kept


def test_the_journal_says_who_revised_and_superseded_what(heron):
    old = write(heron)
    by = {"origin": "agent", "client": "mcp:other"}
    new = heron.call("extract_memory", source=by, **FACT | {"title": "Newer"}, supersedes=[old["id"]])
    revised = heron.call("extract_memory", source=by, update=new["id"], content="It hums.", hash=new["hash"])
    told = [(one["action"], one["id"], one["client"]) for one in journal(heron)]
    assert told == [
        ("revise", new["id"], "mcp:other"), ("supersede", old["id"], "mcp:other"),
        ("write", new["id"], "mcp:other"), ("write", old["id"], "mcp:tester"),
    ]  # fmt: skip
    hashes = [one["hash"] for one in journal(heron)]
    assert hashes == [revised["hash"], old["hash"], new["hash"], old["hash"]]


def test_the_journal_is_asked_by_client_conversation_and_day(heron):
    for client, session in (("one", "a"), ("one", "b"), ("two", "a")):
        write(heron, client, session)
    assert [one["client"] for one in journal(heron)] == ["two", "one", "one"]
    assert [one["conversation"] for one in journal(heron, client="one")] == ["b", "a"]
    assert len(journal(heron, client="one", conversation="a")) == 1
    assert len(journal(heron, limit=2)) == 2
    assert len(journal(heron, since="today")) == 3
    assert journal(heron, since="2999-01-01") == []
    with pytest.raises(RpcError, match="since"):
        journal(heron, since="someday")


def test_the_journal_says_how_much_of_it_is_shown(heron):
    done = heron.memctl("journal")
    assert (done.returncode, done.stdout, done.stderr) == (exits.NONE, "", "memctl: the journal is empty\n")
    for client in ("one", "two", "", "two"):
        write(heron, client)
    answer = heron.call("journal", client="two", limit=1)
    assert (len(answer["records"]), answer["records_total"]) == (1, 2)
    done = heron.memctl("journal", "--limit", "3")
    assert (done.returncode, done.stdout.count("\n")) == (exits.OK, 3)
    assert done.stderr == "memctl: the newest 3 of 4 (--limit 4 shows all)\n"
    done = heron.memctl("journal")
    assert (done.stdout.count("\n"), done.stderr) == (4, "")
    done = heron.memctl("journal", "--client", "nobody")
    assert (done.stdout, done.stderr) == ("", "memctl: nothing in the journal matches\n")
    lines = heron.memctl("journal", "--client", "agent").stdout.splitlines()
    assert {line.split()[3] for line in lines} == {"agent"}


def test_the_journal_outlives_index_and_daemon(heron):
    """It is no part of the index: a rebuild, a new start and kill -9 leave it as it is."""
    written = write(heron)
    heron.daemon.process.kill()
    heron.daemon.process.wait()
    heron.daemon.start()
    heron.call("index", rebuild=True)
    assert [one["path"] for one in journal(heron)] == [written["path"]]


def test_a_write_stands_where_the_journal_cannot_be_written(own_daemon, tmp_path):
    """What stands in its way costs the record alone, and the log says so."""
    heron = own_daemon.workspace(tmp_path / "notes", HERON)
    [index] = [path.parent for path in own_daemon.state.rglob("index.db")]
    (index.parent / "journal").write_text("in the way")
    written = write(heron)
    assert (heron.root / written["path"]).exists()
    assert journal(heron) == []
    assert "journal_not_written" in own_daemon.log()


def test_memctl_shows_the_journal(heron):
    assert heron.memctl("journal").returncode == exits.NONE
    (stored,) = in_a_session(heron, ("extract_memory", FACT))
    shown = heron.memctl("journal", "--client", "mcp:tester")
    assert stored.structured_content["path"] in shown.stdout
    assert "write" in shown.stdout
    heron.memctl("forget", stored.structured_content["id"])
    [forgot, _] = heron.memctl("journal", "--json").stdout.splitlines()
    assert json.loads(forgot)["client"] == "memctl"
    assert stored.structured_content["id"][:6] in heron.memctl("journal").stdout


def test_forget_names_where_else_the_words_stand_and_leaves_them(heron):
    folder_of(heron.root, {
        "memory/2026-05-07.md": "# Thursday\n\nNothing else.\n\n" + FACT["content"],
        "archive/talk.md": f"**user**: Remember:\nthe {CANARY}  sings at the WEIR each evening.\n",
    })  # fmt: skip
    heron.call("sync")
    written = write(heron)
    for command in (["init", "-q"], ["add", "-A"], ["update-index", "--index-version", "4"]):
        subprocess.run(["git", "-C", heron.root, *command], check=True)
    before = {path: path.read_bytes() for path in heron.root.rglob("*.md")}
    told = heron.call("forget", path=written["path"])
    assert [one["path"] for one in told["elsewhere"]] == ["archive/talk.md", "memory/2026-05-07.md"]
    assert told["in_git"]
    assert {path: path.read_bytes() for path in heron.root.rglob("*.md")} == {
        path: text for path, text in before.items() if path != heron.root / written["path"]
    }
    alone = heron.call("extract_memory", topic="odd", title="Stork", content="It came back in April.")
    told = heron.call("forget", path=alone["path"])
    assert (told["elsewhere"], told["in_git"]) == ([], False)


def test_a_file_that_is_kept_leaves_the_index_for_good(own_daemon, tmp_path):
    name = "odd [1] *bird*! .md"
    birds = {
        name: f"# Bird\n\nThe {CANARY} is mine.\n", "odd 1 bird .md": "# Other bird\n\nAn ordinary bird.\n",
    }  # fmt: skip
    heron = own_daemon.workspace(tmp_path / "notes", HERON | birds)
    assert heron.found(CANARY, mode="keyword") == [name]
    told = heron.call("forget", path=name, keep_file=True)
    assert (told["path"], told["title"]) == (name, "Bird")
    assert CANARY in (heron.root / name).read_text()
    assert heron.found(CANARY, mode="keyword") == []
    assert traces("ophantasm", own_daemon.state) == []
    assert journal(heron)[0]["action"] == "unindex"
    (heron.root / name).write_text(f"# Bird\n\nThe {CANARY} is still mine.\n")
    heron.call("sync")
    heron.call("index", rebuild=True)
    assert heron.found(CANARY, mode="keyword") == []
    assert heron.found("ordinary") == ["odd 1 bird .md"]
    ignored = (heron.root / "memory" / ".memdignore").read_text()
    heron.call("forget", path="heron.md", keep_file=True)
    assert (heron.root / "memory" / ".memdignore").read_text() == f"{ignored}/heron.md\n"
    with pytest.raises(RpcError, match="is not an indexed source"):
        heron.call("forget", path="heron.md", keep_file=True)


@pytest.mark.parametrize("word", ["keep_file", "force"])
def test_an_agent_has_no_persons_word(heron, word):
    """Whatever program it uses: it forgets only entries that nobody changed, and unindexes nothing."""
    with pytest.raises(RpcError, match="for people, and this request is from an agent"):
        heron.call("forget", path="heron.md", agent=True, **{word: True})
    assert (heron.root / "heron.md").exists()
    assert heron.found("heron")


def test_an_agent_forgets_no_entry_that_was_changed(heron):
    entry = heron.root / write(heron)["path"]
    entry.write_text(entry.read_text() + "And in May.\n")
    with pytest.raises(RpcError, match="may have been changed since it was stored, and stays: tell the user"):
        heron.call("forget", path=str(entry), agent=True)
    assert "in May" in entry.read_text()


def test_what_cannot_be_named_by_a_pattern_or_is_taken_back_says_so(daemon, tmp_path):
    """Nothing is written for a name with a line feed; a pattern of the configuration that wins is named."""
    more = {"two\nlines.md": "A bittern.\n", "memory/config.toml": 'ignore = ["!heron.md"]\n'}
    heron = daemon.workspace(tmp_path / "notes", HERON | more)
    with pytest.raises(RpcError, match="Rename the file"):
        heron.call("forget", path="two\nlines.md", keep_file=True)
    assert not (heron.root / "memory" / ".memdignore").exists()
    with pytest.raises(RpcError, match=r"stays indexed: ignore in memory/config.toml"):
        heron.call("forget", path="heron.md", keep_file=True)


def test_an_agent_forgets_no_entry_that_is_kept_from_it(heron):
    heron.call("workspace.configure", settings={"agents_ignore": ["memory/odd/"]})
    written = write(heron, origin="human")
    for named in ({"path": written["path"]}, {"id": written["id"]}):
        with pytest.raises(RpcError, match="is not an indexed source") as caught:
            heron.call("forget", agent=True, **named)
        assert ("memory/odd" in caught.value.message) == ("path" in named)
    assert (heron.root / written["path"]).exists()
    [one] = journal(heron, agent=True)
    assert (one["path"], one["title"]) == (None, None)
    assert journal(heron)[0]["path"] == written["path"]


def test_a_query_asks_about_each_entry(heron):
    written = write(heron)
    refused = heron.memctl("forget", "--query", CANARY)
    assert refused.returncode != 0
    assert "which needs a terminal" in refused.stderr
    assert heron.daemon.at_a_terminal("\n", "forget", "-w", str(heron.root), "--query", CANARY)[1] == ""
    assert (heron.root / written["path"]).exists()
    asked = ("forget", "-w", str(heron.root), "--query", f"{CANARY} weir")
    _, printed, _ = heron.daemon.at_a_terminal("y\n", *asked)
    assert printed == f"forgot {written['path']}: {FACT['title']}\n"
    assert not (heron.root / written["path"]).exists()
    assert (heron.root / "heron.md").exists()
