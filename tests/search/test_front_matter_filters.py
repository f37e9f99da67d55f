"""The filter `field:`: conditions on the front matter, their values, and what agents learn by them."""

from datetime import date

import pytest

from memd.index.source_rows import MAX_FIELDS, fields_of
from memd.search import fields
from memd.search.filters import missed
from memd.search.query import parse

TODAY = date(2026, 6, 10)
NOTES = {
    "a.md": "---\nstatus: Published\npriority: 3\ndue: 2026-06-01\nowner: [Ann, Bob]\n---\nA heron.\n",
    "b.md": "---\nstatus: draft\npriority: '10'\ndue: 2026-06-20T08:00\nsource: {origin: agent}\n"
    "---\nA heron in May.\n",
    "c.md": "---\nStatus: in review\npriority: low\ndue: soon\n---\nA heron in Paris.\n",
    "d.md": "A heron without front matter.\n",
}


@pytest.fixture
def four(notes):
    """Four notes about a heron."""
    notes.save(NOTES)
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
        ("field:status=published", "a"),
        ("field:STATUS=draft", "b"),
        ('field:status="in review"', "c"),
        ('field:"status=in review"', "c"),
        ("field:status!=draft", "acd"),
        ("field:status", "abc"),
        ("field:!status", "d"),
        ("field:priority>=3", "ab"),
        ("field:priority<=3", "a"),
        ("field:priority=3.0", ""),
        ("field:priority=low", "c"),
        ("field:due<=2026-06-01", "a"),
        ("field:due>=2026-06-02", "b"),
        ("field:due=2026-06-20", "b"),
        ("field:due<=2026-06", "ab"),
        ("field:due<=today", "a"),
        ("field:owner=bob", "a"),
        ("field:owner!=bob", "bcd"),
        ("field:source.origin=agent", "b"),
        ("field:status field:priority>=4", "b"),
        ("field:nothing=x", ""),
    ],
)
def test_a_condition_keeps_the_notes_that_meet_it(four, condition, kept):
    assert found(four, condition) == kept


@pytest.mark.parametrize(
    ("condition", "passing", "failing"),
    [
        ("v=1.1", ["1.1"], ["1.10", "1.1.0", "01.1"]),
        ("v=1234", ["1234"], ["01234", "1_234", "1234.0", "１２３４"]),
        ("v=12000", ["12000"], ["12e3", "+12000"]),
        ("v!=1.1", ["1.1"], ["1.10"]),  # the notes that pass are left out
        ("v>=1.9", ["1.9", "1.10", "2", "1.9.1"], ["1.8", "1.8.9", "1_9", "beta"]),
        ("v<=1.2.3", ["1.2.3", "1.2", "1.0"], ["1.2.10", "1.3"]),
        ("v>=2.0", ["2", "2.0.0"], ["1.99"]),
        ("v>=-1.5", ["-1.25", "0", "1"], ["-2"]),
        ("v<=-1.25", ["-1.5", "-2"], ["-1", "0"]),
        ("v=2026-05-01", ["2026-05-01T08:00"], ["2026-05-02"]),
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


@pytest.mark.parametrize("text", ["field:=x", "field:priority>=soon", "field:status>3"])
def test_what_is_no_condition_is_words(text):
    assert parse(text, TODAY).words == (text,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("=x", "no condition"),
        ("!a=b", "no condition"),
        ("p>=soon", "numbers and days"),
        ("a>3", "no condition"),
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
