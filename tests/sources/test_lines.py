"""Lines are those that an editor counts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memd.sources.markdown import split_lines


def lines_of(text):
    lines = split_lines(text)
    return [lines.line(number) for number in range(len(lines))]


@given(st.text(st.sampled_from("ab\r\n\n\f\v\u2028\x85")))
def test_lines_end_at_line_feeds_alone_and_with_their_breaks_are_the_whole_text(text):
    lines = split_lines(text)
    expected = [
        line.removesuffix("\r\n").removesuffix("\n") for line in re.findall(r".*?\n|.+", text, re.DOTALL)
    ]
    assert lines_of(text) == expected
    assert all(lines.number_at(at) == number for number, at in enumerate(lines.starts))
