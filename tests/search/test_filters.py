"""Filters from one table, and conditions on the front matter."""

import inspect
from datetime import date
from pathlib import Path

import pytest

from memctl.mcp import tools
from memd.api import params
from memd.index.source_rows import MAX_FIELDS, fields_of
from memd.records import Source
from memd.search import fields
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
def test_a_minus_leaves_out_what_a_filter_keeps(indexed_once, typed, left_out):
    notes = indexed_once(NOTES)
    for words in ("heron ", ""):
        assert set(notes.found(words + typed, limit=9)) == NOTES.keys() - left_out, words


def test_a_minus_before_another_key_is_a_word():
    """Days are limits on both sides already; the text is searched as before."""
    query = parse("heron -since:2026-05-01")
    assert (query.filters, query.excluded) == ((), ("since:2026-05-01",))


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("heron tag:none", ["tag:none"]),
        ("heron path:archive/ since:2030-01-01 field:x=1", ["field:x=1", "since:2030-01-01"]),
        ("heron path:archive/ tag:draft", ["path:archive/ tag:draft"]),
        ("wren tag:draft", []),
        ("wren", []),
    ],
)
def test_without_hits_the_filters_are_named_that_no_note_meets(indexed_once, typed, named):
    notes = indexed_once(NOTES)
    assert list(notes.search(typed, mode="keyword").unmatched) == named


TODAY = date(2026, 6, 10)
FRONT_MATTER_FILTERS_NOTES = {
    "a.md": "---\nstatus: Published\npriority: 3\ndue: 2026-06-01\nowner: [Ann, Bob]\n---\nA heron.\n",
    "b.md": "---\nstatus: draft\npriority: '10'\ndue: 2026-06-20T08:00\nsource: {origin: agent}\n"
    "---\nA heron in May.\n",
    "c.md": "---\nStatus: in review\npriority: low\ndue: soon\n---\nA heron in Paris.\n",
    "d.md": "A heron without front matter.\n",
}


@pytest.fixture
def four(notes):
    """Four notes about a heron."""
    notes.save(FRONT_MATTER_FILTERS_NOTES)
    return notes


def found(notes, condition):
    """Return the notes that meet a condition, as letters."""
    query = parse(f"heron {condition}", TODAY)
    assert query.text == "heron"
    hits = notes.search(f"heron {condition}", query=query, min_score=0.0).hits
    return "".join(sorted(hit.source.path[0] for hit in hits))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("field:status=published", "a"), ("field:STATUS=draft", "b"), ('field:status="in review"', "c"),
        ('field:"status=in review"', "c"), ("field:status!=draft", "acd"), ("field:status", "abc"),
        ("field:!status", "d"), ("field:priority>=3", "ab"), ("field:priority<=3", "a"),
        ("field:priority=3.0", ""), ("field:priority=low", "c"), ("field:due<=2026-06-01", "a"),
        ("field:due>=2026-06-02", "b"), ("field:due=2026-06-20", "b"), ("field:due<=2026-06", "ab"),
        ("field:due<=today", "a"), ("field:owner=bob", "a"), ("field:owner!=bob", "bcd"),
        ("field:source.origin=agent", "b"), ("field:status field:priority>=4", "b"),
        ("field:nothing=x", ""),
    ],
)  # fmt: skip
def test_a_condition_keeps_the_notes_that_meet_it(four, condition, kept):
    assert found(four, condition) == kept


@pytest.mark.parametrize(
    ("condition", "passing", "failing"),
    [
        ("v=1.1", ["1.1"], ["1.10", "1.1.0", "01.1"]),
        ("v=1234", ["1234"], ["01234", "1_234", "1234.0", "１２３４"]),
        ("v=Ann Lee", ["[[ann lee]]", "[[people/ann|Ann Lee]]"], ["[[Ann]]", "Ann Lee Heron"]),
        ("v=12000", ["12000"], ["12e3", "+12000"]),
        ("v!=1.1", ["1.1"], ["1.10"]),  # the notes that pass are left out
        ("v>=1.9", ["1.9", "1.10", "2", "1.9.1", "v1.10"], ["1.8", "1.8.9", "1_9", "beta"]),
        ("v<=v1.2.3", ["1.2.3", "1.2", "1.0"], ["1.2.10", "1.3"]),
        ("v>=2.0", ["2", "2.0.0"], ["1.99"]),
        ("v>=-1.5", ["-1.25", "0", "1"], ["-2"]),
        ("v<=-1.25", ["-1.5", "-2"], ["-1", "0"]),
        ("v=2026-05-01", ["2026-05-01T08:00", "1. Mai 2026", "01.05.2026"], ["2026-05-02", "May 2025"]),
        ("v>4", ["5", "4.1", "1,200", "$900", "90 %"], ["4", "3.9", "1,2", "x"]),
        ("v<1,500", ["1,499.50", "1 200 \u20ac", "900"], ["1500", "1,600"]),
        ("v>2026-05", ["2026-06-01"], ["2026-05-31"]),
        ("v<2026-05-31", ["2026-05-30"], ["2026-05-31"]),
        ("v<=2026-05", ["May 1, 2026", "[[2026-05-31]]"], ["2026/6/1", "soon"]),
    ],
)
def test_values_are_equal_by_text_and_bounded_by_components(condition, passing, failing):
    test = fields.parse(condition, TODAY)
    assert [value for value in [*passing, *failing] if test.passes(value)] == passing


def test_a_note_is_found_by_its_name_in_another_normal_form(notes):
    notes.save({"cafe\u0301.md": "Coffee.\n", "zwei\u0308.md": "NFD.\n", "zwe\u00ef.md": "NFC.\n"})
    with notes.index.view() as view:
        assert view.snapshot.source_at("caf\u00e9.md").path == "cafe\u0301.md"
        assert view.snapshot.source_at("zwe\u00ef.md").path == "zwe\u00ef.md"
        assert view.snapshot.source_at("caf\u00ea.md") is None


def test_conditions_apply_before_any_cut(four):
    """The only note that meets a condition is found among many better ones."""
    four.save({f"many/{number}.md": "heron heron heron\n" for number in range(80)})
    hits = four.search("heron field:status=draft", limit=1, min_score=0.0).hits
    assert [hit.source.path for hit in hits] == ["b.md"]


def test_a_filter_alone_lists_the_notes(four):
    assert [hit.source.path for hit in four.search("field:owner=ann").hits] == ["a.md"]


def test_fields_follow_the_file(four):
    four.save({"a.md": "---\nstatus: draft\n---\nA heron.\n"})
    assert found(four, "field:status=published") == ""
    assert found(four, "field:status=draft") == "ab"
    four.remove("b.md")
    assert found(four, "field:status=draft") == "a"


@pytest.mark.parametrize("text", ["field:=x", "field:priority>=soon", "field:status>soon"])
def test_what_is_no_condition_is_words(text):
    assert parse(text, TODAY).words == (text,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("=x", "no condition"),
        ("!a=b", "no condition"),
        ("p>=soon", "numbers and days"),
        ("p>soon", "numbers and days"),
    ],
)
def test_an_error_says_what_a_condition_looks_like(text, why):
    with pytest.raises(ValueError, match=why) as error:
        fields.parse(text, TODAY)
    assert repr(text) in str(error.value)
    assert ">=2" in str(error.value)


def test_a_note_that_misses_a_condition_is_told_which(four):
    with four.index.view() as view:
        source = view.snapshot.source_at("a.md")
        conditions = parse("x field:status=draft field:priority>=3").filters
        assert [one.shown for one in missed(view, source, conditions)] == ["status=draft"]


def test_keys_and_values_are_counted(four):
    with four.index.view() as view:
        every = [source.id for source in view.snapshot.sources.values()]
        keys = {one.name: (one.notes, one.values) for one in fields.counts(view, None, every)}
        assert keys == {
            "status": (3, 3), "priority": (3, 3), "due": (3, 3), "owner": (1, 2), "source.origin": (1, 1),
        }  # fmt: skip
        assert [one.name for one in fields.counts(view, "Owner", every)] == ["Ann", "Bob"]
        assert fields.counts(view, "owner", []) == []


def test_a_front_matter_has_so_many_fields():
    """Maps in maps become keys with dots, and a hostile one is cut."""
    assert fields_of({"a": {"b": [{"c": "1"}, "2"]}, "e": "", "f": []}) == {
        ("a.b.c", "1"),
        ("a.b", "2"),
        ("e", ""),
    }
    assert len(fields_of({str(number): "x" for number in range(MAX_FIELDS * 2)})) == MAX_FIELDS
    deep: dict[str, object] = {}
    for _ in range(1000):
        deep = {"k": deep}
    assert fields_of(deep) == {("k.k.k.k", "")}
    assert max(map(len, next(iter(fields_of({"k" * 999: "v" * 999}))))) == 200
