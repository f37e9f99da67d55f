"""What agents wrote as people go through it: `memctl review`, and hits in archived conversations."""

import json
import time
from datetime import datetime
from pathlib import Path

import pytest
from agent_session import TREE, in_a_session
from daemon_process import NO_MODEL, folder_of

from memctl import exits

pytestmark = pytest.mark.usefixtures("shared_daemon")

OLD = {
    "topic": "relay",
    "title": "Port of the heron relay",
    "content": "The heron relay listens on port 4711.",
}
AGAIN = {"topic": "relay", "title": "Heron relay port", "content": "The heron relay listens on port 4712."}
OTHER = {"topic": "tea", "title": "Tea", "content": "The user drinks tea without milk."}


def write(workspace, fact, **more):
    """Write an entry in another second than those before, of whose time only whole seconds are kept."""
    newest = max((int(file.stat().st_mtime) for file in workspace.root.rglob("memory/*/*.md")), default=0)
    while int(time.time()) <= newest:
        time.sleep(0.02)
    written = workspace.call("extract_memory", **fact, **more)
    assert written["indexed"]
    return written


def today():
    return datetime.now().astimezone().date().isoformat()


def review(workspace, **params):
    return workspace.call("review", **params)["entries"]


def test_entries_come_by_age_with_a_newer_similar_one(workspace):
    first, second = write(workspace, OLD), write(workspace, AGAIN)
    write(workspace, OTHER | {"title": "By a person"}, source={"origin": "human"})
    third = write(workspace, OTHER, derived_from="external")
    page = "---\nid: 0123456789abcdef\nsource: {origin: agent}\n---\nThe heron relay listens on port 4711.\n"
    folder_of(workspace.root, {"memory/archives/claude-code/2026/2026-05-01-talk-123456.md": page})
    workspace.call("index")
    found = review(workspace)
    assert [one["path"] for one in found] == [first["path"], second["path"], third["path"]]
    assert [one["id"] for one in found] == [first["id"], second["id"], third["id"]]
    assert found[0]["similar"]["path"] == second["path"]
    assert "similar" not in found[1]
    assert [one.get("derived_from") for one in found] == [None, None, "external"]
    assert [one["path"] for one in review(workspace, field="derived_from=external")] == [third["path"]]
    workspace.call("extract_memory", content=AGAIN["content"], update=second["id"],
                supersedes=first["path"])  # fmt: skip
    found = {one["path"]: one for one in review(workspace)}
    assert found[first["path"]]["superseded_by"] == [second["path"]]
    assert "similar" not in found[first["path"]]
    assert all(Path(workspace.root, one["path"]).exists() for one in (first, second, third))


def test_what_an_agent_got_is_not_unused(workspace):
    relay, tea = write(workspace, OLD), write(workspace, OTHER)
    workspace.call("search", query="heron relay port")
    assert [one["recalled"] for one in review(workspace)] == [None, None]
    workspace.call("recall", query="heron relay port", mode="keyword")
    assert {one["path"]: one["recalled"] for one in review(workspace)} == {
        relay["path"]: today(),
        tea["path"]: None,
    }
    assert [one["path"] for one in review(workspace, unused=True)] == [tea["path"]]
    in_a_session(workspace, ("search_memory", {"query": "tea milk", "mode": "keyword"}))
    assert review(workspace, unused=True) == []


def test_the_record_of_recalls_has_days_and_ids(workspace):
    relay = write(workspace, OLD)
    for _ in range(3):
        workspace.call("recall", query="heron relay port", mode="keyword")
    lines = [line for file in workspace.daemon.state.rglob("*.recalls") for line in
             file.read_text().splitlines() if relay["id"] in line]  # fmt: skip
    assert lines == [f"{today()} {relay['id']}"]
    workspace.daemon.stop()
    workspace.daemon.start()
    workspace.call("index", rebuild=True)
    assert review(workspace)[0]["recalled"] == today()


def test_the_command_prints_a_line_for_each(workspace):
    done = workspace.memctl("review")
    assert (done.returncode, "no such entry was written by an agent" in done.stderr) == (exits.NONE, True)
    first, second = write(workspace, OLD), write(workspace, AGAIN, derived_from="external")
    done = workspace.memctl("review")
    lines = done.stdout.splitlines()
    assert lines[0] == f"{first['created'][:10]}  never recalled       {first['path']}  {OLD['title']}"
    assert lines[1].startswith("    newer and similar (")
    assert lines[1].endswith(f": {second['path']}")
    assert lines[3] == "    from an external source"
    short = workspace.memctl("review", "--limit", "1", "--unused")
    assert "1 newer ones: --limit N shows them" in short.stderr
    assert json.loads(workspace.memctl("review", "--json").stdout)["entries_total"] == 2


def test_a_session_is_reviewed_by_what_it_stored_superseded_and_got(workspace):
    before = write(workspace, OTHER)
    kept = write(workspace, OLD, source={"client": "mcp:x", "session": "s-1"})
    own = Path(workspace.root, "relay.md")
    own.write_text("The relay listens on port 4710.\n")
    workspace.call("sync")
    old = [kept["id"], "relay.md"]
    write(workspace, AGAIN, source={"client": "mcp:x", "session": "s-1"}, supersedes=old)
    asked = "Does the user drink tea without milk?"
    told = {"cwd": str(workspace.root), "prompt": asked, "session_id": "s-1"}
    hook = ("hook", "claude-code", "UserPromptSubmit")
    assert workspace.daemon.memctl(*hook, input=json.dumps(told), env={"MEMD_HOOK_MS": "5000"}).stdout
    done = workspace.memctl("review", "--session")
    rows = [line.split()[:2] for line in done.stdout.splitlines()]
    assert [action for action, _ in rows] == ["write", "write", "supersede", "supersede", "got"]
    assert [path for _, path in rows[2:4]] == [kept["path"], "relay.md"], "a person's note has no id"
    assert rows[-1][1] == before["path"]
    assert "conversation s-1" in done.stderr
    told = json.loads(workspace.memctl("review", "--session", "s-1", "--json").stdout)
    assert ([one["path"] for one in told["got"]], len(told["records"])) == ([before["path"]], 4)
    nobody = workspace.memctl("review", "--session", "nobody")
    assert (nobody.returncode, nobody.stdout) == (exits.NONE, "")


SESSION = "2937150d-7ca7-4ca4-87ce-1c96abd092c3"
PAGE = "memory/archives/claude-code/2026/2026-05-01-relay-730859.md"
TALK = f"""\
---
title: Which port does the relay use?
created: '2026-05-01T10:52:53+02:00'
source:
  origin: agent
  client: claude-code
  session: {SESSION}
---

## User · 2026-05-01 10:52

Which port does the heron relay use? It uses 4711.
"""
FACT = {
    "topic": "relay",
    "title": "The port of the heron relay",
    "content": "The heron relay uses port 4711.",
}
NEWER = {"topic": "relay", "title": "The heron relay has moved", "content": "The relay uses port 4712 now."}
QUERY = "which port does the heron relay use"


@pytest.fixture
def talk(daemon, tmp_path):
    """A workspace without a model, with one conversation in its archive."""
    return daemon.workspace(tmp_path / "notes", NO_MODEL | {PAGE: TALK})


def write_of_archived_talk(talk, *, session=SESSION, **fact):
    written = talk.call("extract_memory", **fact, source={"session": session})
    assert written["indexed"]
    return written["path"]


def named(talk, **params):
    """Return path → the entries that a hit names."""
    hits = talk.call("search", query=QUERY, min_score=0.0, **params)["hits"]
    return {hit["path"]: hit.get("entries") for hit in hits}


def test_the_page_names_the_entry_written_from_it_and_then_what_supersedes_that(talk):
    assert named(talk) == {PAGE: None}
    entry = write_of_archived_talk(talk, **FACT)
    write_of_archived_talk(
        talk, session="another", topic="other", title="The kettle", content="The kettle of the heron relay."
    )
    assert named(talk)[PAGE] == [entry]
    assert named(talk)[entry] is None
    newer = write_of_archived_talk(talk, session="a later one", **NEWER, supersedes=entry)
    newest = write_of_archived_talk(
        talk, session="", topic="relay", title="4713", content="Port 4713 of the relay.", supersedes=newer
    )
    assert named(talk)[PAGE] == [newest]
    assert talk.call("get", path=PAGE)["entries"] == [newest]
    recalled = talk.call("recall", query=QUERY)
    assert f", see {newest})" in recalled["text"]
    assert {one["path"]: one.get("entries") for one in recalled["sources"]}[PAGE] == [newest]
    assert f'see="{newest}"' in talk.call("recall", query=QUERY, format="xml")["text"]
    shown = talk.memctl("search", QUERY).stdout
    assert f"written from this conversation: {newest}" in shown
    assert f"written from this conversation: {newest}" in talk.memctl("get", PAGE).stderr


def test_a_daily_entry_is_named_by_its_file(talk):
    said = {"title": "Relay", "content": "The heron relay: 4711.", "source": {"session": SESSION}}
    written = talk.call("extract_memory", **said, daily=True)
    assert named(talk)[PAGE] == [written["path"]]


def test_superseded_entries_come_first_and_five_are_named(talk):
    """Of a long conversation, what it says wrongly is what matters."""
    first = write_of_archived_talk(talk, **FACT)
    for number in range(6):
        write_of_archived_talk(
            talk, topic="relay", title=f"Fact {number}", content=f"Another fact of the relay, {number}."
        )
    newer = write_of_archived_talk(talk, session="", **NEWER, supersedes=first)
    entries = named(talk)[PAGE]
    assert (entries[0], len(entries)) == (newer, 5)


def test_an_agent_is_not_told_of_an_entry_that_is_hidden_from_it(talk):
    entry = Path(talk.root, write_of_archived_talk(talk, **FACT))
    entry.write_text(entry.read_text().replace("---\n", "---\nprivate: true\n", 1))
    assert list(named(talk, sync=True)[PAGE]) == [str(entry.relative_to(talk.root))]
    assert named(talk, agent=True) == {PAGE: None}


@pytest.mark.parametrize("by", ["meta", "variable", "memctl"])
def test_an_entry_has_the_conversation_that_its_client_names(talk, by):
    variable = {"CLAUDE_CODE_SESSION_ID": SESSION}
    if by == "memctl":
        done = talk.memctl("add", "--topic", "relay", "--title", "Port", "Port 4711.", "--json", env=variable)
        path = json.loads(done.stdout)["path"]
    else:
        lines = [
            {"method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
            {"method": "tools/call", "params": {"name": "extract_memory", "arguments": FACT} | (
                {"_meta": {"x-codex-turn-metadata": {"session_id": SESSION}}} if by == "meta" else {})},
        ]  # fmt: skip
        sent = "".join(
            json.dumps({"jsonrpc": "2.0", "id": number, **line}) + "\n" for number, line in enumerate(lines)
        )
        around = variable if by == "variable" else {"CLAUDE_CODE_SESSION_ID": "the one around"}
        done = talk.memctl("mcp", env=around | {"PYTHONPATH": str(TREE)}, input=sent)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        path = answers[-1]["result"]["structuredContent"]["path"]
    assert f"session: {SESSION}\n" in Path(talk.root, path).read_text()
    talk.call("sync")
    assert named(talk)[PAGE] == [path]
