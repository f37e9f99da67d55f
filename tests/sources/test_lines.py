"""Lines are those that an editor counts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memd.sources.markdown import split_lines


def lines_of(text):
    lines = split_lines(text)
    return [lines.line(number) for number in range(len(lines))]


def test_a_line_break_at_the_end_opens_no_line():
    assert lines_of("a\nb\n") == ["a", "b"]
    assert lines_of("a\nb") == ["a", "b"]
    assert lines_of("") == []
    assert lines_of("\n") == [""]


def test_crlf_is_one_line_break():
    assert lines_of("a\r\n\r\nb\r\n") == ["a", "", "b"]


def test_only_line_feeds_end_lines():
    assert lines_of("a\fb\vc\u2028d\x85e\rf\n") == ["a\fb\vc\u2028d\x85e\rf"]


@given(st.text(st.sampled_from("ab\r\n\u2028")))
def test_lines_and_their_breaks_are_the_whole_text(text):
    lines = split_lines(text)
    expected = [
        line.removesuffix("\r\n").removesuffix("\n") for line in re.findall(r".*?\n|.+", text, re.DOTALL)
    ]
    assert lines_of(text) == expected
    assert all(lines.number_at(at) == number for number, at in enumerate(lines.starts))
