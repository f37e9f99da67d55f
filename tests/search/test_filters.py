"""All parts that name the filters of a query take them from one table."""

import inspect
from datetime import date
from pathlib import Path

import pytest

from memctl.mcp import tools
from memd.api import params
from memd.records import Source
from memd.search.filters import BY_NAME, FILTER_KEYS, OF_WORDS, missed, told
from memd.search.query import parse

ROOT = Path(__file__).parents[2]
OPTIONS = {one.key for one in FILTER_KEYS if one.option}


@pytest.mark.parametrize("page", ["docs/searching.md", "memctl/editors/nvim/doc/memd.txt"])
def test_every_key_is_explained_to_users(page):
    """On the page about the syntax of queries."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [one.key for one in FILTER_KEYS if f"{one.key}:" not in text] == []


def test_every_filter_of_an_explanation_is_documented():
    text = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.startswith("| `filters` | `filter` (")]
    assert [name for name in (*BY_NAME, *OF_WORDS) if f"`{name}`" not in line] == []


def test_every_option_is_a_parameter_of_requests_and_of_the_tools():
    """Programs and agents can narrow a search as users can."""
    for takes in (params.SearchParams, params.RecallParams):
        assert set(inspect.signature(takes).parameters) >= OPTIONS
    given = {tool["name"]: tool["inputSchema"]["properties"].keys() for tool in tools.listed()}
    for name in ("search_memory", "recall"):
        assert given[name] >= OPTIONS - {"field"} | {"where"}


@pytest.mark.parametrize("one", FILTER_KEYS, ids=lambda one: one.key)
def test_each_filter_says_what_it_keeps_out(notes, one):
    """By the name of the filter that the key makes, with the value that it asks for."""
    notes.save({"a.md": "heron\n"})
    excluded_by = {"-path": "*.md", "-tag": "b", "-field": "!none-such"}
    value = "2026-05-01" if one.value == "DATE" else excluded_by.get(one.key, "none-such")
    note = date(2026, 1, 1) if BY_NAME[one.name].several == "latest" else date(2026, 12, 31)
    source = Source(1, "a.md", "A", ("b",), note, day_of="name", origin="")
    with notes.index.view() as view:
        [condition] = missed(view, source, parse(f"x {one.key}:{value}").filters)
    sentence = told(condition.name, condition.shown, source)
    assert condition.name == one.name
    assert condition.shown in sentence
    assert "{" not in sentence


NOTES = {
    "archive/old.md": "heron\n",
    "draft.md": "---\ntags: [draft/one]\nstatus: open\n---\nheron\n",
    "my notes/plan.md": "---\nstatus: [open, In Review]\n---\nheron\n",
    "fact.md": "---\nstatus: done\n---\nheron\n",
}


@pytest.mark.parametrize(
    ("typed", "left_out"),
    [
        ("-path:archive/", {"archive/old.md"}),
        ('-path:"my notes/"', {"my notes/plan.md"}),
        ("-path:archive/ -path:draft.md", {"archive/old.md", "draft.md"}),
        ("-tag:draft", {"draft.md"}),
        ("-field:status=open", {"draft.md", "my notes/plan.md"}),
        ('-field:"status=in review"', {"my notes/plan.md"}),
        ("-field:status", NOTES.keys() - {"archive/old.md"}),
        ("-field:!status", {"archive/old.md"}),
        ("-field:status=open -field:status=done", NOTES.keys() - {"archive/old.md"}),
        ("path:*.md -tag:draft field:status", {"archive/old.md", "draft.md"}),
        ("-tag:none", set()),
    ],
)
def test_a_minus_leaves_out_what_a_filter_keeps(notes, typed, left_out):
    notes.save(NOTES)
    for words in ("heron ", ""):
        assert set(notes.found(words + typed, limit=9)) == NOTES.keys() - left_out, words


def test_a_minus_before_another_key_is_a_word():
    """Days are limits on both sides already; the text is searched as before."""
    query = parse("heron -since:2026-05-01")
    assert (query.filters, query.excluded) == ((), ("since:2026-05-01",))
