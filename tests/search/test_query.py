from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.search.filters import Condition
from memd.search.query import content_words, parse


def test_words_are_looked_for():
    assert parse("breast cancer gene").pieces == ("breast", "cancer", "gene")


def test_a_quoted_phrase_is_required_and_read():
    query = parse('notes "status code" page')
    assert query.phrases == ("status code",)
    assert query.text == "notes status code page"


def test_a_minus_excludes_a_word_or_a_phrase():
    assert parse('pasta -tomato -"olive oil"').excluded == ("tomato", "olive oil")


@pytest.mark.parametrize(
    "raw",
    ["lsof -i", "rm -rf tmp", "rm -rf, then", "kill -9", "-j4 make", "head -n10", "find --name", "a -X. B"],
)
def test_a_flag_of_a_command_is_a_word(raw):
    """One or two letters of ASCII, a number, and whatever begins with two signs."""
    query = parse(raw)
    assert (query.excluded, query.words) == ((), tuple(raw.split()))


@pytest.mark.parametrize("word", ["foo", "foo-bar", "C++", "é", "会", "会議", "ab_"])
def test_another_word_with_a_minus_is_excluded_wherever_it_stands(word):
    """Three letters or more, or none of ASCII; at the beginning, too."""
    assert parse(f"x -{word}").excluded == parse(f"-{word} x").excluded == (word,)


def test_a_minus_that_the_notes_know_is_no_operator():
    """The caller of the parser decides; then the word or phrase is searched."""
    asked: list[str] = []
    query = parse('find -name -"a b" -i', excludes=lambda typed: bool(asked.append(typed)))
    assert asked == ["-name", '-"a b"']
    assert (query.words, query.phrases, query.excluded) == (("find", "-name", "-i"), ("a b",), ())


def test_a_minus_inside_a_word_is_no_operator():
    assert parse("foo-bar").excluded == ()
    assert parse("foo-bar").pieces == ("foo", "bar")


def test_only_excluded_words_are_looked_for_after_all():
    query = parse("-neg")
    assert (query.pieces, query.excluded) == (("neg",), ())


def test_filters_are_taken_out_of_the_words():
    query = parse('deploy path:ops/** tag:prod since:2026-01-02 until:"2026-03-04"')
    assert query.text == "deploy"
    assert query.filters == (
        Condition("path", ("ops/**",)),
        Condition("tag", ("prod",)),
        Condition("since", (date(2026, 1, 2),)),
        Condition("until", (date(2026, 3, 4),)),
    )


def test_a_filter_without_a_usable_value_is_words():
    assert parse("since:yesterday").pieces == ("since", "yesterday")


@pytest.mark.parametrize(
    "raw", ["a:b", "C++", "20.04", '"open', "AND", "*", "(", "NEAR(a b)", "a OR", "^x", "{a}:b"]
)
def test_operators_of_fts5_are_words(raw):
    query = parse(raw)
    assert (query.phrases, query.excluded, query.filters) == ((), (), ())


def test_stop_words_go_unless_nothing_else_is_left():
    """The question's function words are no content, but "to be or not to be" is all there is."""
    assert content_words(("run", "the", "analysis")) == ("run", "analysis")
    assert content_words(("to", "be")) == ("to", "be")


@given(st.text())
def test_any_text_is_a_query(raw):
    parse(raw)
