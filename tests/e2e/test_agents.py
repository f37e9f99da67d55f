"""An agent remembers through MCP: the official SDK's client and a real daemon."""

import anyio
import pytest
import yaml
from agent_session import agent, files_outside_memory, hostile_entries, in_a_session

pytestmark = pytest.mark.usefixtures("shared_daemon")

REASONS = (
    "is a path", "is reserved", "control character", "at most 512", "is empty", "no letter", "is a link",
)  # fmt: skip


def test_an_agent_finds_by_meaning_what_it_stored_a_call_ago(workspace):
    """The query shares no word with the fact, and nothing waits between the two calls."""
    daemon, root = workspace
    stored, found, recalled, read = in_a_session(
        daemon,
        root,
        (
            "extract_memory",
            {
                "topic": "code style",
                "title": "Tabs versus spaces",
                "content": "We settled on four blanks per level.",
                "tags": ["style"],
            },
        ),
        ("search_memory", {"query": "indentation width"}),
        ("recall", {"query": "indentation width", "budget_tokens": 200}),
        ("get", {"path": "memory/code-style"}),
    )
    assert not stored.is_error
    path = stored.structured_content["path"]
    assert path.startswith("memory/code-style/tabs-versus-spaces-")
    answer = found.structured_content
    assert (answer["mode"], answer["degraded"], answer["complete"]) == ("hybrid", [], True)
    assert (answer["hits"][0]["path"], answer["hits"][0]["source"]["origin"]) == (path, "agent")
    assert "four blanks" in recalled.content[0].text
    assert path in [one["path"] for one in recalled.structured_content["sources"]]
    assert read.is_error, "a folder is no note"
    front = yaml.safe_load((root / path).read_text().split("---\n")[1])
    assert (front["title"], front["tags"]) == ("Tabs versus spaces", ["style"])
    assert front["source"] == {"origin": "agent", "client": "mcp:tester"}


def test_a_session_outlives_the_daemon(workspace):
    daemon, root = workspace

    async def session():
        async with agent(daemon, root) as client:
            fact = {"topic": "birds", "title": "Storks", "content": "They come in April."}
            stored = await client.call_tool("extract_memory", fact)
            daemon.process.kill()
            daemon.process.wait()
            return stored, await client.call_tool("search_memory", {"query": "storks"})

    stored, found = anyio.run(session)
    assert not found.is_error
    assert found.structured_content["hits"][0]["path"] == stored.structured_content["path"]


def test_hostile_names_write_nothing_outside_memory_through_mcp(trapped):
    daemon, root = trapped
    before, memory = files_outside_memory(root), sorted((root / "memory").rglob("*"))
    facts = [fact for fact in hostile_entries() if "" not in fact.values()]  # the server finds these a name
    results = in_a_session(daemon, root, *(("extract_memory", fact) for fact in facts))
    for fact, result in zip(facts, results, strict=True):
        said = result.content[0].text
        assert result.is_error, fact
        assert any(reason in said for reason in REASONS), (fact, said)
        assert len(said) < 500, "an error repeats what it refuses only in short"
    assert files_outside_memory(root) == before
    assert sorted((root / "memory").rglob("*")) == memory


def test_what_an_agent_forgets_is_an_entry_that_nobody_changed(workspace):
    daemon, root = workspace
    facts = [{"topic": "birds", "title": title, "content": "In April."} for title in ("Storks", "Cranes")]
    stored = in_a_session(daemon, root, *(("extract_memory", fact) for fact in facts))
    gone, changed = (one.structured_content["path"] for one in stored)
    with (root / changed).open("a") as entry:
        entry.write("And in May.\n")
    paths = (gone, changed, "0.md", "memory/config.toml", gone)
    results = in_a_session(daemon, root, *(("forget_memory", {"path": path}) for path in paths))
    told = results[0].structured_content
    assert (told["path"], told["title"], told["forgotten"]) == (gone, "Storks", True)
    codes = [result.content[0].text.partition(":")[0] for result in results[1:]]
    assert codes == ["MEMD_CHANGED", "MEMD_INVALID", "MEMD_NOT_FOUND", "MEMD_NOT_FOUND"]
    assert not (root / gone).exists()
    assert "in May" in (root / changed).read_text()
    assert (root / "0.md").exists()
