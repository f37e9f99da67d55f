"""Calls of the tools as models write them: each is understood, in one session with a real daemon."""

import pytest
from agent_session import in_a_session

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
    ("search_memory", {"query": "heron", "limit": 5.0}, has(HERON)),
    ("search_memory", {"query": "heron", "limit": "5"}, has(HERON)),
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
    ("search_memory", {"query": "heron", "limit": None, "tag": None, "return": None}, has(HERON)),
    ("search_memory", {"query": "heron", "path": '["memory/*.md"]'}, has(HERON)),
    ("search_memory", {"query": "heron", "path": "memory/*.md"}, has(HERON)),
    ("search_memory", {"query": "heron", "paths": ["memory/*.md"]}, has(HERON)),
    ("search_memory", {"query": "heron", "tag": "birds"}, has(HERON)),
    ("search_memory", {"query": "heron", "tag": "birds, weir"}, has(HERON)),
    ("search_memory", {"query": "heron", "tag": ["birds"]}, has(HERON)),
    ("search_memory", {"query": "heron", "where": "status=open"}, has(HERON)),
    ("search_memory", {"query": "heron", "where": ["status=open"]}, has(HERON)),
    ("search_memory", {"query": "heron", "where": '["status=open"]'}, has(HERON)),
    ("search_memory", {"query": "heron", "field": "status=open"}, has("field is called where here")),
    ("search_memory", {"query": "heron", "where": "state=open"}, has("has the front matter key state")),
    ("search_memory", {"query": "heron", "where": "state=open"}, has("there are ")),
    ("search_memory", {"query": "heron", "where": "status=shut"}, lacks("no note has")),
    ("search_memory", {"query": "heron", "return": ["path"]}, lacks("grey heron")),
    ("search_memory", {"query": "heron", "return": "path, title"}, lacks("grey heron")),
    ("search_memory", {"query": "heron", "fields": ["path"]}, lacks("grey heron")),
    ("search_memory", {"query": "heron", "sync": "true"}, has(HERON)),
    ("search_memory", {"query": "heron", "mode": "keyword", "min_score": "0.1"}, has(HERON)),
    ("search_memory", {"since": "7d"}, has("deploy.md")),
    ("search_memory", {"since": "yesterday", "query": ""}, has(HERON)),
    ("search_memory", {"tag": ["birds"]}, has(HERON)),
    ("recall", {"query": "heron at the weir", "budget_tokens": "500"}, has("grey heron")),
    ("recall", {"query": "heron at the weir", "max_tokens": 500.0}, has("grey heron")),
    ("recall", {"query": "heron at the weir", "where": "status=open"}, has("grey heron")),
    ("recall", {"task": "heron at the weir"}, has("grey heron")),
    ("recall", {"query": "qqxyzzy blorptang"}, lambda answer: answer == "Nothing in memory is about this."),
    ("get", {"path": HERON}, has("grey heron")),
    ("get", {"path": [HERON, "deploy.md"]}, has("Tuesdays")),
    ("get", {"paths": [HERON, "deploy.md"]}, has("Tuesdays")),
    ("get", {"path": '["memory/birds.md", "deploy.md"]'}, has("Tuesdays")),
    ("get", {"file": HERON}, has("grey heron")),
    ("get", {"path": HERON, "start_line": "5", "end_line": 7.0}, has("grey heron")),
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
    daemon, root = workspace
    for path, text in NOTES.items():
        (root / path).write_text(text)
    daemon.call("index", workspace=str(root))
    results = in_a_session(daemon, root, *((tool, arguments) for tool, arguments, _ in CALLS))
    wrong = [
        (tool, arguments, result.content[0].text)
        for (tool, arguments, is_right), result in zip(CALLS, results, strict=True)
        if result.is_error or not is_right(result.content[0].text)
    ]
    assert wrong == []
    assert len(CALLS) >= 40


def test_what_needs_no_query_needs_something(workspace):
    """And a person's own note is never to be deleted by an agent, nor by its user on the agent's word."""
    daemon, root = workspace
    (root / "mine.md").write_text("# Mine\n\nA note of mine.\n")
    daemon.call("index", workspace=str(root))
    nothing, blank, empty, mine = in_a_session(
        daemon,
        root,
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
