"""Agents get memd's tools, notes and prompts, through the SDK's own client over stdio."""

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import Implementation
from sample_answers import found, hit
from scripted_peer import Peer, Refusal

from memctl import exits
from memctl.versions import own

SOURCE = {"id": 1, "path": "a.md", "start_line": 1, "end_line": 2, "score": 0.5, "origin": "human",
          "superseded_by": []}  # fmt: skip
RECALLED = {
    "text": "## a.md:1-2\nfact", "tokens": 6, "budget_tokens": 500, "estimator": "ceil(UTF-8 bytes / 4)",
    "sources": [SOURCE], "omitted": [SOURCE | {"reason": "budget"}], "confidence": "strong", "degraded": [],
    "index": {"first": False}, "workspace": "/home/ada/work",
}  # fmt: skip
WHY = {
    "path": "a.md", "stage": "outranked", "text": "a.md:1-2 would be hit 23, and the limit is 10",
    "advice": "memctl search --limit 23", "facts": {}, "degraded": [], "index": {"first": False},
}  # fmt: skip


@pytest.fixture
def root(tmp_path):
    """A workspace folder."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "config.toml").write_text("")
    return tmp_path


@pytest.fixture
def daemon(root):
    """A scripted peer with one answer a tool; tests may replace them."""
    answers = {
        "search_memory": lambda _: found(hit()),
        "recall": lambda _: RECALLED,
        "why": lambda _: WHY,
        "get": lambda _: {"path": "a.md", "start_line": 1, "end_line": 1, "lines": 1, "text": "fact"},
        "extract_memory": lambda _: {
            "path": "memory/t/x-1.md", "id": "x-1", "created": "now", "indexed": True, "similar": [],
        },
        "forget": lambda asked: {"path": asked["path"], "title": "T", "forgotten": True, "took_ms": 1.0},
    }  # fmt: skip
    peer = Peer(root / "s", answers)
    peer.answers = answers
    yield peer
    peer.close()


@asynccontextmanager
async def agent(root, mode="auto"):
    """Connect the SDK's client to `memctl mcp`, spawned as an agent's program does it."""
    environment = {"MEMD_SOCKET": str(root / "s"), "PYTHONPATH": str(Path(exits.__file__).parent.parent)}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "memctl", "mcp"], env=environment, cwd=root
    )
    named = Implementation(name="tester", version="1")
    async with Client(server, client_info=named, mode=mode) as client:
        yield client


def in_session(root, say, mode="auto"):
    """Return what *say* returns of a session of its own."""

    async def session():
        async with agent(root, mode) as client:
            return await say(client)

    return anyio.run(session)


def ask(root, tool, **arguments):
    """Call one tool in a session of its own."""
    return in_session(root, lambda client: client.call_tool(tool, arguments))


def test_server_and_tools_say_what_they_are_for_and_what_they_do_to_the_memory(root, daemon):
    """Schemas of answers would cost tokens. A client may call what only reads without asking."""

    async def look(client):
        return (await client.list_tools()).tools, client.instructions, client.server_info

    tools, instructions, info = in_session(root, look)
    assert (info.name, info.version) == ("memd", own())
    assert "never as instructions" in instructions
    for tool in tools:
        assert tool.title
        assert len(tool.description) > 50
        assert all("description" in field for field in tool.input_schema["properties"].values())
        assert tool.output_schema is None
    hints = {tool.name: tool.annotations for tool in tools}
    reading = {"search_memory", "recall", "get", "why_memory"}
    assert {name for name, one in hints.items() if one.read_only_hint} == reading
    assert {name for name, one in hints.items() if one.destructive_hint} == {
        "extract_memory",
        "forget_memory",
    }
    assert hints.keys() == reading | {"extract_memory", "forget_memory"}
    assert {name for name, one in hints.items() if one.idempotent_hint} == {"forget_memory"}
    assert not any(one.open_world_hint for one in hints.values())


def test_a_search_gives_hits_as_data(root, daemon):
    place = {"path": "b.md", "start_line": 3, "end_line": 9}
    daemon.answers["search_memory"] = lambda _: found(hit(folded=[place]))
    answer = ask(root, "search_memory", query="breast cancer", limit=3, tag=["x"])
    assert not answer.is_error
    assert answer.structured_content["complete"] is True
    assert answer.structured_content["hits"] == [
        {
            "path": "notes/genetics.md", "start_line": 12, "end_line": 18,
            "heading": "Genetics > BRCA1 mutation analysis", "title": "Genetics",
            "snippet": hit()["snippet"], "score": 0.8312, "date": "2026-05-01",
            "source": {"origin": "human"}, "folded": [place], "superseded_by": [],
        }
    ]  # fmt: skip
    assert answer.structured_content["confidence"] == "strong"
    assert answer.structured_content["note"] == ""
    assert json.loads(answer.content[0].text) == answer.structured_content
    sent = daemon.asked[0][1]
    assert (sent["workspace"], sent["query"], sent["limit"], sent["tag"]) == (
        str(root), "breast cancer", 3, ["x"],
    )  # fmt: skip
    assert "path" not in sent
    assert "sync" not in sent


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_program_learns_the_model_of_an_answer(root, daemon, mode):
    """Beside the content: no agent reads it."""
    daemon.answers["search_memory"] = lambda _: found(hit(), model_id="0123456789abcdef")
    answer = in_session(root, lambda client: client.call_tool("search_memory", {"query": "x"}), mode)
    assert answer.meta["memd/model_id"] == "0123456789abcdef"
    assert "0123456789abcdef" not in answer.content[0].text
    assert ("io.modelcontextprotocol/serverInfo" in answer.meta) == (mode == "2026-07-28")


def test_an_agent_is_told_that_there_is_no_good_match(root, daemon):
    daemon.answers["search_memory"] = lambda _: found(hit(), confidence="none")
    answer = ask(root, "search_memory", query="x").structured_content
    assert (answer["confidence"], answer["note"][:13]) == ("none", "no good match")
    daemon.answers["recall"] = lambda _: RECALLED | {"confidence": "none"}
    answer = ask(root, "recall", query="x", budget_tokens=500)
    assert answer.structured_content["confidence"] == "none"
    assert [part.text for part in answer.content] == [
        RECALLED["text"],
        "memd: Nothing in memory is about this.",
    ]
    daemon.answers["recall"] = lambda _: RECALLED | {"confidence": "none", "tokens": 495}
    [text] = ask(root, "recall", query="x", budget_tokens=500).content
    assert text.text == RECALLED["text"]
    daemon.answers["recall"] = lambda _: RECALLED | {"confidence": "none", "text": "", "sources": []}
    [text] = ask(root, "recall", query="x", budget_tokens=500).content
    assert text.text == "Nothing in memory is about this."
    assert daemon.asked[-1][1]["nearest"] is False


@pytest.mark.parametrize("tool", ["search_memory", "recall"])
def test_an_agent_is_told_which_words_were_corrected(root, daemon, tool):
    """In the data and in words: the hits are not only for what it typed."""
    answers = {"search_memory": found(hit()), "recall": RECALLED}
    daemon.answers[tool] = lambda _: answers[tool] | {"corrected": {"breats": "breast"}}
    answer = ask(root, tool, query="breats").structured_content
    assert answer["corrected"] == {"breats": "breast"}
    assert answer["note"] == "also searched for breast (breats)"


def test_an_agent_is_told_what_an_answer_lacks(root, daemon):
    index = {
        "first": True, "pending": 66, "pending_vectors": 66, "embedded": 0.34, "left_s": {"vectors": 118},
    }  # fmt: skip
    daemon.answers["search_memory"] = lambda _: found(hit(), index=index)
    note = ask(root, "search_memory", query="x").structured_content["note"]
    assert note == "meaning: 34 % of the notes, about 2 min left"


def test_an_unknown_argument_is_refused_with_its_name(root, daemon):
    """One that was dropped would be obeyed in the agent's mind alone; the schema says so, too."""
    given = {
        "search_memory": {"query": "x"}, "recall": {"query": "x"}, "get": {"path": "a.md"},
        "why_memory": {"query": "x", "path": "a.md"}, "forget_memory": {"path": "a.md"},
        "extract_memory": {"topic": "t", "title": "T", "content": "c"},
    }  # fmt: skip

    async def say(client):
        for tool, arguments in given.items():
            answer = await client.call_tool(tool, arguments | {"budget": 5})
            assert answer.is_error, tool
            assert "unknown argument 'budget'; there are " in answer.content[0].text
        assert daemon.asked == []
        for tool, arguments in given.items():
            assert not (await client.call_tool(tool, arguments)).is_error, tool

    in_session(root, say)


def test_an_agent_can_ask_why_a_note_is_not_found(root, daemon):
    answer = ask(root, "why_memory", path="a.md", query="x", line=3)
    assert answer.structured_content == {
        key: WHY[key] for key in ("path", "stage", "text", "advice", "degraded")
    } | {"note": "", "complete": True}
    sent = daemon.asked[0][1]
    assert (sent["path"], sent["query"], sent["line"]) == ("a.md", "x", 3)


def test_a_text_that_begins_as_json_of_any_depth_is_a_text(root, daemon):
    deep = "[" * 100_000
    assert not ask(root, "get", path=deep).is_error
    assert daemon.asked[0][1]["path"] == deep


def test_recall_gives_text_to_read_and_its_sources_as_data(root, daemon):
    answer = ask(root, "recall", query="x", budget_tokens=500)
    assert answer.content[0].text == RECALLED["text"]
    assert answer.structured_content["omitted"][0]["reason"] == "budget"
    assert daemon.asked[0][1]["budget_tokens"] == 500


UNDERSTOOD = [
    ("search_memory", {"limit": "5"}, {"limit": 5}), ("search_memory", {"limit": 5.0}, {"limit": 5}),
    ("search_memory", {"path": '["a.md"]'}, {"path": ["a.md"]}),
    ("search_memory", {"path": "[a].md"}, {"path": "[a].md"}),
    ("search_memory", {"tag": "infra, db"}, {"tag": ["infra", "db"]}),
    ("extract_memory", {"tags": "infra, db", "content": "x"}, {"tags": ["infra", "db"], "content": "x"}),
    ("search_memory", {"sync": "true"}, {"sync": True}),
    ("search_memory", {"query": "[5]"}, {"query": "[5]"}),
    ("search_memory", {"limit": "five"}, {"limit": "five"}), ("search_memory", {"tag": None}, {}),
    ("search_memory", {"sync": True}, {"sync": True}), ("recall", {"sync": True}, {"sync": True}),
    ("search_memory", {"limit": "", "mode": "", "since": "", "where": {}, "return": ""}, {}),
    ("recall", {"budget_tokens": "500"}, {"budget_tokens": 500}),
    ("get", {"path": "5", "start_line": "1"}, {"path": "5", "start_line": 1}),
    ("get", {"filePath": "a.md", "endLine": 3}, {"path": "a.md", "end_line": 3}),
    ("search_memory", {"where": [{"a": 1, "b": "x"}, "c"]}, {"field": ["a=1", "b=x", "c"]}),
    ("search_memory", {"path": ["ROOT/a", "ROOT", "/b"]}, {"path": ["a/", "", "/b/"]}),
]  # fmt: skip


def test_an_argument_in_another_form_is_understood(root, daemon):
    """As clients send them; text stays text, and what does not fit goes to the daemon."""

    async def say(client):
        for tool, sent, understood in UNDERSTOOD:
            query = {"query": "heron"} if tool in {"search_memory", "recall"} else {}
            given = json.loads(json.dumps(sent).replace("ROOT", str(root.resolve())))
            await client.call_tool(tool, query | given)
            asked = daemon.asked[-1][1]
            same = {key: value for key, value in asked.items() if key in sent or key in understood}
            assert same == understood, sent

    in_session(root, say)


def test_memds_errors_are_the_tools_errors(root, daemon):
    """The agent reads memd's own words with their code, and can mend its call."""

    def refuse(_):
        raise Refusal("MEMD_SECRET", "the content holds a GitHub token, which is not written")

    daemon.answers["extract_memory"] = refuse
    answer = ask(root, "extract_memory", topic="t", title="T", content="c")
    assert answer.is_error
    assert "MEMD_SECRET: the content holds a GitHub token" in answer.content[0].text


def test_a_first_search_waits_for_the_first_index(root, daemon):
    answers = iter([found(index={"first": True, "first_words": True}), found(hit(), index={"first": True})])
    daemon.answers["search_memory"] = lambda _: next(answers)
    daemon.answers["index"] = lambda _: {}
    answer = ask(root, "search_memory", query="x")
    assert daemon.methods == ["search_memory", "index", "search_memory"]
    assert daemon.asked[1][1]["vectors"] is False
    assert len(answer.structured_content["hits"]) == 1


def test_an_index_that_takes_too_long_is_told_as_incomplete(root, daemon):
    def too_long(_):
        raise Refusal("MEMD_TIMEOUT", "not done yet")

    daemon.answers["search_memory"] = lambda _: found(hit(), index={"first": True, "first_words": True})
    daemon.answers["index"] = too_long
    answer = ask(root, "search_memory", query="x")
    assert answer.structured_content["complete"] is False


def test_without_a_workspace_each_answer_says_so(root, daemon):
    """Where one is registered, memd takes that one and the note names it; else the error says what to do."""
    (root / "memory" / "config.toml").unlink()
    answer = ask(root, "search_memory", query="x")
    assert "workspace" not in daemon.asked[0][1]
    assert answer.structured_content["hits"]
    note = answer.structured_content["note"]
    assert note.startswith("from /home/ada/work, the only registered workspace.")
    assert "memctl mcp --workspace DIR" in note

    def refuse(_):
        raise Refusal("MEMD_WORKSPACE", "the request names no workspace, and none is registered")

    daemon.answers["search_memory"] = refuse
    answer = ask(root, "search_memory", query="x")
    assert answer.is_error
    text = answer.content[0].text
    assert "MEMD_WORKSPACE: the request names no workspace" in text
    assert "memctl mcp --workspace DIR" in text


def test_a_search_has_only_the_keys_that_are_asked_for(root, daemon):
    """An agent that lists first and reads some hits later pays for neither snippets nor tags."""

    async def say(client):
        answer = await client.call_tool("search_memory", {"query": "x", "return": ["path", "score"]})
        assert [one.keys() for one in answer.structured_content["hits"]] == [{"path", "score"}]
        assert "confidence" in answer.structured_content
        for wrong in (["colour"], [], "colour", [1]):
            refused = await client.call_tool("search_memory", {"query": "x", "return": wrong})
            assert refused.is_error
            assert "return must be a list of some of path, start_line," in refused.content[0].text

    in_session(root, say)


def test_several_notes_are_read_in_one_call(root, daemon):
    """In the order of the call; a note that is not there has its error in its place."""

    def read(asked):
        if asked["path"] == "gone.md":
            raise Refusal("MEMD_NOT_FOUND", "there is no gone.md")
        return {"path": asked["path"], "text": f"text of {asked['path']}", "id": 3}

    daemon.answers["get"] = read
    wrong = [{"path": []}, {"path": ["a.md"] * 21}, {"path": [1]}, {"path": ["a.md"], "start_line": 2}]

    async def say(client):
        answer = await client.call_tool("get", {"path": ["b.md", "gone.md", "a.md"]})
        assert not answer.is_error
        first, missing, last = answer.structured_content["notes"]
        assert (first["text"], last["text"]) == ("text of b.md", "text of a.md")
        assert "MEMD_NOT_FOUND" in missing["error"]
        for arguments in ({"path": ["gone.md"]}, *wrong):
            assert (await client.call_tool("get", arguments)).is_error

    in_session(root, say)
