"""An agent's tools, resources and prompts through MCP: the official SDK's client and a real daemon."""

import anyio
import pytest
from agent_session import agent, in_a_session
from daemon_process import folder_of
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.usefixtures("shared_daemon")


HERON = "memory/birds.md"
NOTES = {
    HERON: "---\nstatus: open\ntags: [birds, weir]\n---\n# The heron\n\nThe grey heron stands at the weir.\n",
    "deploy.md": "# Deploy\n\nWe deploy on Tuesdays, after the backup.\n",
}


def has(text):
    """The answer has a text."""
    return lambda answer: text in answer


def lacks(text):
    """The answer does not have a text."""
    return lambda answer: text not in answer


CALLS = [
    ("search_memory", {"query": "heron"}, has(HERON)),
    ("search_memory", {"query": "heron", "top_k": 3}, has("top_k is called limit here")),
    ("search_memory", {"query": "heron", "max_results": "3"}, has(HERON)),
    ("search_memory", {"query": "heron", "limit": "5.0"}, has(HERON)),
    ("search_memory", {"query": ["heron"]}, has(HERON)),
    ("search_memory", {"q": "heron"}, has("q is called query here")),
    ("search_memory", {"text": "heron"}, has(HERON)),
    ("search_memory", {"query": 2026}, has('"hits":')),
    ("search_memory", {"query": "heron", "tags": ["birds"]}, has("tags is called tag here")),
    ("search_memory", {"query": "heron", "where": {"status": "open"}}, has(HERON)),
    ("search_memory", {"query": "heron", "where": '{"status": "open"}'}, has(HERON)),
    ("search_memory", {"query": "heron", "filter": {"status": "shut"}}, lacks(HERON)),
    ("search_memory", {"since": "2020-01-01T00:00:00Z"}, has("deploy.md")),
    ("search_memory", {"query": "heron", "path": "memory/*.md"}, has(HERON)),
    ("search_memory", {"query": "heron", "paths": ["memory/*.md"]}, has(HERON)),
    ("search_memory", {"query": "heron", "where": "status=open"}, has(HERON)),
    ("search_memory", {"query": "heron", "where": ["status=open"]}, has(HERON)),
    ("search_memory", {"query": "heron", "field": "status=open"}, has("field is called where here")),
    ("search_memory", {"query": "heron", "where": "state=open"}, has("has the front matter key state")),
    ("search_memory", {"query": "heron", "where": "state=open"}, has("there are ")),
    ("search_memory", {"query": "heron", "where": "status=shut"}, has("no note has field:status=shut")),
    ("search_memory", {"query": "heron", "return": ["path"]}, lacks("grey heron")),
    ("search_memory", {"query": "heron", "return": "path, title"}, lacks("grey heron")),
    ("search_memory", {"query": "heron", "fields": ["path"]}, lacks("grey heron")),
    ("search_memory", {"query": "heron", "mode": "keyword", "min_score": "0.1"}, has(HERON)),
    ("search_memory", {"since": "7d"}, has("deploy.md")),
    ("search_memory", {"after": "7d", "end_date": "2999-12-31T23:59:59.999Z"}, has("deploy.md")),
    ("search_memory", {"since": "yesterday", "query": ""}, has(HERON)),
    ("search_memory", {"tag": ["birds"]}, has(HERON)),
    ("recall", {"query": "heron at the weir", "max_tokens": 500.0}, has("grey heron")),
    ("recall", {"query": "heron at the weir", "where": "status=open"}, has("grey heron")),
    ("recall", {"task": "heron at the weir"}, has("grey heron")),
    ("recall", {"query": "qqxyzzy blorptang"}, lambda answer: answer == "Nothing in memory is about this."),
    ("get", {"path": HERON}, has("grey heron")),
    ("get", {"paths": [HERON, "deploy.md"]}, has("Tuesdays")),
    ("get", {"path": '["memory/birds.md", "deploy.md"]'}, has("Tuesdays")),
    ("get", {"file": HERON}, has("grey heron")),
    ("why_memory", {"path": HERON, "query": "heron", "line": "7"}, has("returned")),
    ("extract_memory", {"content": "# Kites\n\nThe red kite nests in the oak."}, has("memory/notes/kites-")),
    ("extract_memory", {"text": "The swift is back on 3 May.", "tags": "birds, dates"},
     has("memory/birds/the-swift")),
    ("extract_memory", {"memory": "The rook is loud.", "title": "", "topic": "", "tag": "rooks"},
     has("memory/rooks/the-rook")),
    ("extract_memory", {"content": "A tern passed.", "daily": "true"}, has("memory/20")),
    ("extract_memory", {"topic": "birds", "title": "Heron", "content": "The grey heron stands at the weir."},
     has(f"{HERON} says nearly the same: The heron")),
]  # fmt: skip


def test_a_call_as_models_write_it_is_understood(workspace):
    folder_of(workspace.root, NOTES)
    workspace.call("index")
    results = in_a_session(workspace, *((tool, arguments) for tool, arguments, _ in CALLS))
    wrong = [
        (tool, arguments, result.content[0].text)
        for (tool, arguments, is_right), result in zip(CALLS, results, strict=True)
        if result.is_error or not is_right(result.content[0].text)
    ]
    assert wrong == []


def test_what_needs_no_query_needs_something(workspace):
    """And a person's own note is never to be deleted by an agent, nor by its user on the agent's word."""
    (workspace.root / "mine.md").write_text("# Mine\n\nA note of mine.\n")
    workspace.call("index")
    nothing, blank, empty, mine = in_a_session(
        workspace,
        ("search_memory", {"limit": 3}),
        ("search_memory", {"query": " "}),
        ("extract_memory", {"content": "\n"}),
        ("forget_memory", {"path": ["mine.md"]}),
    )
    assert "or since alone" in nothing.content[0].text
    assert "or since alone" in blank.content[0].text
    assert "content is empty" in empty.content[0].text
    assert mine.content[0].text == (
        "MEMD_INVALID: mine.md is the user's own, and stays: tell the user its path if it should go"
    )


NAMES = ["a.md", "b c/d & é.md", "b c/100%.md", "MEMORY.md", "plain.txt", "q?#.md"]
OUTSIDE = [
    "../outside.md", "%2e%2e/outside.md", "..%2Foutside.md", "b%20c/../../outside.md", "../a.md",
    "/etc/passwd", "%2Fetc%2Fpasswd", ".env", "memory/config.toml", "link.md", "a.md%00",
    "nothing.md", "b%20c",
]  # fmt: skip


@pytest.fixture
def notes(daemon, tmp_path):
    """A workspace with notes of awkward names, and with files that are none."""
    texts = {name: f"# About {name}\n\nThe heron of {name}.\n" for name in NAMES}
    texts["memory/config.toml"] = 'provider = "none"\nsources = ["**/*.md", "*.txt"]\n'
    root = folder_of(tmp_path / "outer/notes", texts | {".env": "KEY=badger", "../outside.md": "badger"})
    (root / "link.md").symlink_to(root.parent / "outside.md")
    return daemon.workspace(root)


def in_session(notes, say, mode="auto"):
    async def session():
        async with agent(notes, mode) as client:
            return await say(client)

    return anyio.run(session)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_note_is_listed_and_read_by_its_uri(notes, mode):
    async def look(client):
        listed = (await client.list_resources()).resources
        return listed, [(await client.read_resource(one.uri)).contents[0] for one in listed]

    listed, read = in_session(notes, look, mode)
    assert [one.name for one in listed] == sorted(NAMES)
    assert [one.title for one in listed][1] == "About a.md"
    by_name = dict(zip(sorted(NAMES), listed, strict=True))
    assert by_name["b c/d & é.md"].uri == "memory:///b%20c/d%20%26%20%C3%A9.md"
    assert {name: one.mime_type for name, one in by_name.items()}["plain.txt"] == "text/plain"
    assert by_name["a.md"].mime_type == "text/markdown"
    for name, uri, contents in zip(sorted(NAMES), [one.uri for one in listed], read, strict=True):
        assert contents.text == f"# About {name}\n\nThe heron of {name}."
        assert (contents.uri, contents.mime_type) == (uri, by_name[name].mime_type)


@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)])
def test_no_uri_leads_to_what_is_no_note(notes, mode, code):
    async def look(client):
        said = []
        for path in OUTSIDE:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(f"memory:///{path}")
            said.append(caught.value.error)
        return said

    for error in in_session(notes, look, mode):
        assert error.code == code
        assert "badger" not in error.message


def test_many_notes_are_listed_in_pages(notes):
    folder_of(notes.root, {f"n{number:03}.md": f"Note {number}.\n" for number in range(250)})
    notes.call("index")

    async def look(client):
        pages = [await client.list_resources()]
        while pages[-1].next_cursor:
            pages.append(await client.list_resources(cursor=pages[-1].next_cursor))
        return pages

    pages = in_session(notes, look)
    assert [len(page.resources) for page in pages] == [100, 100, 56]
    names = [one.name for page in pages for one in page.resources]
    assert names == sorted([*NAMES, *(f"n{number:03}.md" for number in range(250))])


def test_a_template_says_how_a_path_becomes_a_uri(notes):
    """For a hit's path, which need not be looked for in the list."""
    [template] = in_session(notes, lambda client: client.list_resource_templates()).resource_templates
    assert (template.uri_template, template.mime_type) == ("memory:///{+path}", "text/markdown")


def test_a_prompt_puts_notes_into_the_conversation(notes):
    async def look(client):
        arguments = {"query": "the heron of MEMORY", "budget_tokens": "300"}
        return (await client.list_prompts()).prompts, await client.get_prompt("recall", arguments)

    [listed], prompt = in_session(notes, look)
    assert [(one.name, bool(one.required)) for one in listed.arguments] == [
        ("query", True), ("budget_tokens", False)
    ]  # fmt: skip
    [message] = prompt.messages
    assert message.role == "user"
    assert "not instructions" in message.content.text
    assert "The heron of MEMORY.md." in message.content.text
    assert len(message.content.text) < 300 * 4 + 300


def test_a_prompt_says_which_argument_it_cannot_take(notes):
    async def look(client):
        for arguments, told in (
            ({}, "needs a query"),
            ({"query": "x", "budget_tokens": "many"}, "whole number, not 'many'"),
            ({"query": "x", "colour": "red"}, "unknown argument 'colour'"),
            ({"query": "x", "budget_tokens": "99999999"}, "budget_tokens"),
        ):
            with pytest.raises(MCPError, match=told):
                await client.get_prompt("recall", arguments)

    in_session(notes, look)
