"""A conversation of an agent with its memory, through the SDK's client and with the real model."""

import anyio
import pytest
from agent_session import agent
from traces import traces

CANARIES = ("zibelthurm", "quastenflug")  # a word of each entry that no other text has
TAILS = ("belthurm", "stenflug")  # full text stores a word without what it shares with the word before it


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_stores_finds_supersedes_and_forgets(workspace, mode):
    state, root = workspace.daemon.state, workspace.root

    async def conversation():
        async with agent(workspace, mode) as client:

            async def call(tool, **arguments):
                answer = await client.call_tool(tool, arguments)
                assert not answer.is_error, (tool, answer.content)
                return answer.structured_content

            old = await call("extract_memory", topic="code style", title="Tabs versus spaces",
                             content=f"We settled on a tab per level.\n\nSaid by {CANARIES[0]}.")  # fmt: skip
            assert old["indexed"]
            found = await call("search_memory", query="indentation width")
            assert (found["mode"], found["degraded"], found["complete"]) == ("hybrid", [], True)
            assert found["hits"][0]["path"] == old["path"]
            new = await call("extract_memory", topic="code style", title="Spaces instead of tabs",
                             content=f"We settled on four blanks per level.\n\nSaid by {CANARIES[1]}.",
                             supersedes=[old["id"]])  # fmt: skip
            assert "similar" not in new  # what it supersedes is no news
            for query in ("tabs versus spaces", CANARIES[0], "indentation width"):
                hits = (await call("search_memory", query=query, limit=5))["hits"]
                paths = [hit["path"] for hit in hits]
                assert old["path"] in paths, query
                if new["path"] in paths:
                    assert paths.index(new["path"]) < paths.index(old["path"]), query
                assert hits[paths.index(old["path"])]["superseded_by"] == [new["path"]]
            recalled = await call("recall", query="indentation width", budget_tokens=300)
            assert CANARIES[1] in recalled["text"]
            assert CANARIES[0] not in recalled["text"]
            assert all(traces(tail, state, root) for tail in TAILS)
            await call("forget_memory", path=new["path"])
            hits = (await call("search_memory", query="tabs versus spaces"))["hits"]
            assert (hits[0]["path"], hits[0]["superseded_by"]) == (old["path"], [])
            await call("forget_memory", path=old["path"])
            return await call("search_memory", query=f"indent {CANARIES[0]} {CANARIES[1]}")

    left = anyio.run(conversation)
    assert not any("code-style" in hit["path"] for hit in left["hits"])
    assert [traces(tail, state, root) for tail in TAILS] == [[], []]
    assert not any(canary in workspace.daemon.log() for canary in CANARIES)
