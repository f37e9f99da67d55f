"""A hit in an archived conversation names the entries written from it, or what holds in their place."""

import json
from pathlib import Path

import pytest
from agent_session import TREE, in_a_session

pytestmark = pytest.mark.usefixtures("shared_daemon")

SESSION = "2937150d-7ca7-4ca4-87ce-1c96abd092c3"
PAGE = """\
---
title: Which port does the relay use?
created: '2026-05-01T10:52:53+02:00'
source:
  origin: agent
  client: claude-code
  session: {session}
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
    root = tmp_path / "notes"
    path = "memory/archives/claude-code/2026/2026-05-01-relay-730859.md"
    daemon.add_notes(root, {path: PAGE.format(session=SESSION)})
    return daemon, root, path


def write(talk, *, session=SESSION, **fact):
    daemon, root, _ = talk
    written = daemon.call("extract_memory", workspace=str(root), **fact, source={"session": session})
    assert written["indexed"]
    return written["path"]


def named(talk, **params):
    """Return path → the entries that a hit names."""
    daemon, root, _ = talk
    hits = daemon.call("search", workspace=str(root), query=QUERY, min_score=0.0, **params)["hits"]
    return {hit["path"]: hit.get("entries") for hit in hits}


def test_the_page_names_the_entry_written_from_it_and_then_what_supersedes_that(talk):
    daemon, root, page = talk
    assert named(talk) == {page: None}
    entry = write(talk, **FACT)
    write(
        talk, session="another", topic="other", title="The kettle", content="The kettle of the heron relay."
    )
    assert named(talk)[page] == [entry]
    assert named(talk)[entry] is None
    newer = write(talk, session="a later one", **NEWER, supersedes=entry)
    newest = write(
        talk, session="", topic="relay", title="4713", content="Port 4713 of the relay.", supersedes=newer
    )
    assert named(talk)[page] == [newest]
    assert daemon.call("get", workspace=str(root), path=page)["entries"] == [newest]
    recalled = daemon.call("recall", workspace=str(root), query=QUERY)
    assert f", see {newest})" in recalled["text"]
    assert {one["path"]: one.get("entries") for one in recalled["sources"]}[page] == [newest]
    assert f'see="{newest}"' in daemon.call("recall", workspace=str(root), query=QUERY, format="xml")["text"]
    shown = daemon.memctl("search", QUERY, cwd=root).stdout
    assert f"written from this conversation: {newest}" in shown
    assert f"written from this conversation: {newest}" in daemon.memctl("get", page, cwd=root).stderr


def test_a_daily_entry_is_named_by_its_file(talk):
    daemon, root, page = talk
    said = {"title": "Relay", "content": "The heron relay: 4711.", "source": {"session": SESSION}}
    written = daemon.call("extract_memory", workspace=str(root), **said, daily=True)
    assert named(talk)[page] == [written["path"]]


def test_superseded_entries_come_first_and_five_are_named(talk):
    """Of a long conversation, what it says wrongly is what matters."""
    _, _, page = talk
    first = write(talk, **FACT)
    for number in range(6):
        write(talk, topic="relay", title=f"Fact {number}", content=f"Another fact of the relay, {number}.")
    newer = write(talk, session="", **NEWER, supersedes=first)
    entries = named(talk)[page]
    assert (entries[0], len(entries)) == (newer, 5)


def test_an_agent_is_not_told_of_an_entry_that_is_hidden_from_it(talk):
    _, root, page = talk
    entry = Path(root, write(talk, **FACT))
    entry.write_text(entry.read_text().replace("---\n", "---\nprivate: true\n", 1))
    assert list(named(talk, sync=True)[page]) == [str(entry.relative_to(root))]
    assert named(talk, agent=True) == {page: None}


@pytest.mark.parametrize("by", ["meta", "variable", "memctl"])
def test_an_entry_has_the_conversation_that_its_client_names(talk, by):
    daemon, root, page = talk
    variable = {"CLAUDE_CODE_SESSION_ID": SESSION}
    if by == "memctl":
        done = daemon.memctl(
            "add", "--topic", "relay", "--title", "Port", "Port 4711.", "--json", cwd=root, env=variable
        )
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
        done = daemon.memctl("mcp", cwd=root, env=around | {"PYTHONPATH": str(TREE)}, input=sent)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        path = answers[-1]["result"]["structuredContent"]["path"]
    assert f"session: {SESSION}\n" in Path(root, path).read_text()
    daemon.call("sync", workspace=str(root))
    assert named(talk)[page] == [path]


def test_a_tool_tells_an_agent(talk):
    daemon, root, page = talk
    entry = write(talk, **FACT)
    [found] = in_a_session(daemon, root, ("search_memory", {"query": QUERY}))
    assert {hit["path"]: hit.get("entries") for hit in found.structured_content["hits"]}[page] == [entry]
