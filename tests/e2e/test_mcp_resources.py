"""Resources and prompts of `memctl mcp`: notes as an agent's client lists and reads them."""

import anyio
import pytest
from agent_session import agent
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.usefixtures("shared_daemon")

NAMES = ["a.md", "b c/d & é.md", "b c/100%.md", "MEMORY.md", "plain.txt", "q?#.md"]
OUTSIDE = [
    "../outside.md", "%2e%2e/outside.md", "..%2Foutside.md", "b%20c/../../outside.md", "/etc/passwd",
    "%2Fetc%2Fpasswd", ".env", "memory/config.toml", "link.md", "a.md%00", "nothing.md", "b%20c",
]  # fmt: skip


@pytest.fixture
def notes(daemon, tmp_path):
    """A workspace with notes of awkward names, and with files that are none."""
    root = tmp_path / "outer" / "notes"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\nsources = ["**/*.md", "*.txt"]\n')
    (root / "b c").mkdir()
    for name in NAMES:
        (root / name).write_text(f"# About {name}\n\nThe heron of {name}.\n")
    (root.parent / "outside.md").write_text("badger")
    (root / ".env").write_text("KEY=badger")
    (root / "link.md").symlink_to(root.parent / "outside.md")
    daemon.add(root)
    return daemon, root


def in_session(notes, say, mode="auto"):
    async def session():
        async with agent(*notes, mode=mode) as client:
            return await say(client)

    return anyio.run(session)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_note_is_listed_and_read_by_its_uri(notes, mode):
    """Whatever its name holds; as Markdown, or as text where it is that."""

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
    daemon, root = notes
    for number in range(250):
        (root / f"n{number:03}.md").write_text(f"Note {number}.\n")
    daemon.add(root)

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
    """With its sources, framed as information; its arguments are text, as forms give them."""

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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "needs a query"),
        ({"query": "x", "budget_tokens": "many"}, "whole number, not 'many'"),
        ({"query": "x", "colour": "red"}, "unknown argument 'colour'"),
        ({"query": "x", "budget_tokens": "99999999"}, "budget_tokens"),
    ],
)
def test_a_prompt_says_which_argument_it_cannot_take(notes, arguments, told):
    async def look(client):
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("recall", arguments)
        return caught.value.error.message

    assert told in in_session(notes, look)
