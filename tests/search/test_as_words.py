"""What looks like an operator and is none is searched as words, and the answer says so."""

from datetime import date

import pytest

from memd.search.keyword import with_held_phrases
from memd.search.query import parse


@pytest.mark.parametrize(
    ("typed", "as_words"),
    [
        ("heron AND weir", ("AND",)),
        ("heron NOT weir OR pond", ("NOT", "OR")),
        ("heron and weir", ()),
        ("NOT", ()),
        ("heron since:whenever", ("since:whenever",)),
        ("heron since:2026-01-01", ()),
        ("since: heron", ("since:",)),
        ("heron before:", ("before:",)),
        ("since: 2026-01-01 heron", ("since:",)),
        ("heron: a bird", ()),
    ],
)
def test_operators_of_others_and_days_that_are_none(typed, as_words):
    assert parse(typed, date(2026, 6, 10)).as_words == as_words


def test_a_phrase_that_no_note_has_is_its_words(notes):
    notes.save({"a.md": "The quick fox\n", "b.md": "A brown fox\n"})
    assert notes.found('"quick fox"', mode="keyword") == ["a.md"]
    with notes.index.view() as view:
        query = with_held_phrases(view, parse('"fox brown" "quick fox"'))
    assert (query.phrases, query.as_words) == (("quick fox",), ('"fox brown"',))


def test_exclusions_alone_are_marked():
    assert parse("-heron").only_excluded
    assert not parse("-heron tag:x").only_excluded
    assert not parse("weir -heron").only_excluded
