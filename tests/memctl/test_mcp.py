"""The tools of agents: what they ask of memd for a call, and what an agent gets of its answer."""

import json

import pytest
from sample_answers import found, hit
from scripted_peer import refuse

from memctl.mcp import tools
from memctl.mcp.asking import Asking

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
ANSWERS = {
    "search_memory": found(hit()), "recall": RECALLED, "why": WHY,
    "get": {"path": "a.md", "start_line": 1, "end_line": 1, "lines": 1, "text": "fact"},
    "extract_memory": {"path": "memory/t/x-1.md", "id": "x-1", "indexed": True, "similar": []},
    "forget": {"path": "a.md", "title": "T", "forgotten": True, "took_ms": 1.0},
}  # fmt: skip


@pytest.fixture
def daemon(peer):
    """A scripted peer with an answer for each tool, unless it is told of others."""
    return lambda **answers: peer(**ANSWERS | answers)


@pytest.fixture
def ask(root):
    """Return a function that calls a tool of a server in the workspace."""
    return lambda tool, **arguments: tools.call(
        {"name": tool, "arguments": arguments}, Asking(str(root.resolve()))
    )


def texts(result):
    return [part["text"] for part in result["content"]]


def test_server_and_tools_say_what_they_are_for_and_what_they_do_to_the_memory():
    """Schemas of answers would cost tokens. A client may call what only reads without asking."""
    listed = tools.listed()
    for tool in listed:
        assert tool["title"]
        assert len(tool["description"]) > 50
        assert all("description" in field for field in tool["inputSchema"]["properties"].values())
        assert "outputSchema" not in tool
    hints = {tool["name"]: tool["annotations"] for tool in listed}
    reading = {"search_memory", "recall", "get", "why_memory"}
    writing = {"extract_memory", "forget_memory"}
    assert hints.keys() == reading | writing
    for hint, those in (("readOnlyHint", reading), ("destructiveHint", writing),
                        ("idempotentHint", {"forget_memory"}), ("openWorldHint", set())):  # fmt: skip
        assert {name for name, one in hints.items() if one.get(hint)} == those


def test_a_search_gives_hits_as_data_and_its_model_to_programs(root, daemon, ask):
    """The model stands beside the content: no agent reads it."""
    place = {"path": "b.md", "start_line": 3, "end_line": 9}
    asked = daemon(search_memory=found(hit(folded=[place]), model_id="0123456789abcdef")).asked
    answer = ask("search_memory", query="breast cancer", limit=3, tag=["x"])
    assert not answer["isError"]
    told = answer["structuredContent"]
    assert told["complete"] is True
    assert told["hits"] == [
        {
            "path": "notes/genetics.md", "start_line": 12, "end_line": 18,
            "heading": "Genetics > BRCA1 mutation analysis", "title": "Genetics",
            "snippet": hit()["snippet"], "score": 0.8312, "date": "2026-05-01",
            "source": {"origin": "human"}, "folded": [place], "superseded_by": [],
        }
    ]  # fmt: skip
    assert (told["confidence"], told["note"]) == ("strong", "")
    assert [json.loads(text) for text in texts(answer)] == [told]
    assert answer["_meta"] == {"memd/model_id": "0123456789abcdef"}
    assert "0123456789abcdef" not in texts(answer)[0]
    sent = asked[0][1]
    assert (sent["workspace"], sent["query"], sent["limit"], sent["tag"], sent["agent"]) == (
        str(root), "breast cancer", 3, ["x"], True,
    )  # fmt: skip
    assert {"path", "sync"}.isdisjoint(sent)


INDEX = {"first": True, "pending": 66, "pending_vectors": 66, "embedded": 0.34, "left_s": {"vectors": 118}}


CORRECTED = {"corrected": {"breats": "breast"}}


@pytest.mark.parametrize(
    ("tool", "changes", "said"),
    [
        ("search_memory", {"confidence": "none"}, {"note": "no good match: these are only the closest hits"}),
        ("search_memory", CORRECTED, CORRECTED | {"note": "also searched for breast (breats)"}),
        ("recall", CORRECTED, CORRECTED | {"note": "also searched for breast (breats)"}),
        ("search_memory", {"index": INDEX}, {"note": "meaning: 34 % of the notes, about 2 min left"}),
    ],
)
def test_an_agent_is_told_what_an_answer_lacks(daemon, ask, tool, changes, said):
    daemon(**{tool: ANSWERS[tool] | changes})
    assert said.items() <= ask(tool, query="x")["structuredContent"].items()


@pytest.mark.parametrize(
    ("changes", "content"),
    [
        ({}, [RECALLED["text"]]),
        ({"confidence": "none"}, [RECALLED["text"], "memd: Nothing in memory is about this."]),
        ({"confidence": "none", "tokens": 495}, [RECALLED["text"]]),  # there is no room for more
        ({"confidence": "none", "text": "", "sources": []}, ["Nothing in memory is about this."]),
    ],
)
def test_recall_gives_text_to_read_and_its_sources_as_data(daemon, ask, changes, content):
    asked = daemon(recall=RECALLED | changes).asked
    answer = ask("recall", query="x", budget_tokens=500)
    assert texts(answer) == content
    assert answer["structuredContent"]["omitted"][0]["reason"] == "budget"
    assert (asked[0][1]["budget_tokens"], asked[0][1]["nearest"]) == (500, False)


GIVEN = {
    "search_memory": {"query": "x"}, "recall": {"query": "x"}, "get": {"path": "a.md"},
    "why_memory": {"query": "x", "path": "a.md"}, "forget_memory": {"path": "a.md"},
    "extract_memory": {"topic": "t", "title": "T", "content": "c"},
}  # fmt: skip


@pytest.mark.parametrize("tool", GIVEN)
def test_an_unknown_argument_is_refused_with_its_name(daemon, ask, tool):
    """One that was dropped would be obeyed in the agent's mind alone; the schema says so, too."""
    asked = daemon().asked
    answer = ask(tool, **GIVEN[tool], budget=5)
    assert answer["isError"]
    assert "unknown argument 'budget'; there are " in texts(answer)[0]
    assert asked == []
    assert not ask(tool, **GIVEN[tool])["isError"]


def test_an_agent_can_ask_why_a_note_is_not_found(daemon, ask):
    asked = daemon().asked
    told = ask("why_memory", path="a.md", query="x", line=3)["structuredContent"]
    assert told == {key: WHY[key] for key in ("path", "stage", "text", "advice", "degraded")} | {
        "note": "", "complete": True,
    }  # fmt: skip
    assert {"path": "a.md", "query": "x", "line": 3}.items() <= asked[0][1].items()


DEEP = "[" * 100_000
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
    ("get", {"path": DEEP}, {"path": DEEP}),
    ("get", {"filePath": "a.md", "endLine": 3}, {"path": "a.md", "end_line": 3}),
    ("search_memory", {"where": [{"a": 1, "b": "x"}, "c"]}, {"field": ["a=1", "b=x", "c"]}),
    ("search_memory", {"path": ["ROOT/a", "ROOT", "/b"]}, {"path": ["a/", "", "/b/"]}),
]  # fmt: skip


@pytest.mark.parametrize("row", UNDERSTOOD)
def test_an_argument_in_another_form_is_understood(root, daemon, ask, row):
    """As clients send them; text stays text, and what does not fit goes to the daemon."""
    (tool, given, understood), asked = row, daemon().asked
    query = {"query": "heron"} if tool in {"search_memory", "recall"} else {}
    ask(tool, **query | json.loads(json.dumps(given).replace("ROOT", str(root.resolve()))))
    sent = asked[-1][1]
    assert {key: value for key, value in sent.items() if key in given or key in understood} == understood


def test_memds_errors_are_the_tools_errors(daemon, ask):
    """The agent reads memd's own words with their code, and can mend its call."""
    daemon(extract_memory=refuse("MEMD_SECRET", "the content holds a GitHub token, which is not written"))
    answer = ask("extract_memory", topic="t", title="T", content="c")
    assert answer["isError"]
    assert "MEMD_SECRET: the content holds a GitHub token" in texts(answer)[0]


@pytest.mark.parametrize(("index", "hits"), [({}, 1), (refuse("MEMD_TIMEOUT", "not done yet"), 0)])
def test_a_first_search_waits_for_the_first_index_but_not_for_ever(daemon, ask, index, hits):
    answers = iter([found(index={"first": True, "first_words": True}), found(hit(), index={"first": True})])
    memd = daemon(search_memory=lambda _: next(answers), index=index)
    told = ask("search_memory", query="x")["structuredContent"]
    assert memd.methods == ["search_memory", "index", "search_memory"][: 2 + hits]
    assert memd.asked[1][1]["vectors"] is False
    assert (len(told["hits"]), told["complete"]) == (hits, False)


def test_without_a_workspace_each_answer_says_so(root, daemon):
    """Where one is registered, memd takes that one and the note names it; else the error says what to do."""
    (root / "memory" / "config.toml").unlink()
    answers = iter([lambda _: found(hit()), refuse("MEMD_WORKSPACE", "the request names no workspace")])

    def answer(asked):
        return next(answers)(asked)

    memd = daemon(search_memory=answer)
    one, none = (
        tools.call({"name": "search_memory", "arguments": {"query": "x"}}, Asking(None)) for _ in range(2)
    )
    assert "workspace" not in memd.asked[0][1]
    note = one["structuredContent"]["note"]
    assert note.startswith("from /home/ada/work, the only registered workspace.")
    assert "memctl mcp --workspace DIR" in note
    assert none["isError"]
    assert "MEMD_WORKSPACE: the request names no workspace" in texts(none)[0]
    assert "memctl mcp --workspace DIR" in texts(none)[0]


def test_a_search_has_only_the_keys_that_are_asked_for(daemon, ask):
    """An agent that lists first and reads some hits later pays for neither snippets nor tags."""
    daemon()
    told = ask("search_memory", query="x", **{"return": ["path", "score"]})["structuredContent"]
    assert [one.keys() for one in told["hits"]] == [{"path", "score"}]
    assert "confidence" in told
    for wrong in (["colour"], [], "colour", [1]):
        refused = ask("search_memory", query="x", **{"return": wrong})
        assert refused["isError"]
        assert "return must be a list of some of path, start_line," in texts(refused)[0]


def test_several_notes_are_read_in_one_call(daemon, ask):
    """In the order of the call; a note that is not there has its error in its place."""

    def read(asked):
        if asked["path"] == "gone.md":
            return refuse("MEMD_NOT_FOUND", "there is no gone.md")(asked)
        return {"path": asked["path"], "text": f"text of {asked['path']}", "id": 3}

    daemon(get=read)
    answer = ask("get", path=["b.md", "gone.md", "a.md"])
    assert not answer["isError"]
    first, missing, last = answer["structuredContent"]["notes"]
    assert (first["text"], last["text"]) == ("text of b.md", "text of a.md")
    assert "MEMD_NOT_FOUND" in missing["error"]
    for wrong in ({"path": ["gone.md"]}, {"path": []}, {"path": ["a.md"] * 21}, {"path": [1]},
                  {"path": ["a.md"], "start_line": 2}):  # fmt: skip
        assert ask("get", **wrong)["isError"]
