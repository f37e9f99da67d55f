"""Lines of chunks become a passage, as in the file."""

import pytest

from memd.index.reader import StoredChunk
from memd.search.snippet import Part, Passage, lines_of, passage


def chunk(number, start_line, text, start_byte=0):
    """Return a chunk as it is stored."""
    end_line = start_line + text.count("\n")
    return StoredChunk(number, 1, start_line, end_line, start_byte, "", text)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([chunk(1, 3, "a\nb"), chunk(2, 4, "b\nc")], Passage(3, 5, 0, "a\nb\nc")),  # overlapping
        ([chunk(1, 3, "a\n\nb"), chunk(2, 8, "c")], Passage(3, 8, 0, "a\n\nb\n\n\nc")),  # blank lines between
        ([chunk(1, 3, "a\r\nb\r"), chunk(2, 5, "c\r")], Passage(3, 5, 0, "a\r\nb\r\nc\r")),
        ([chunk(1, 3, "one two"), chunk(2, 3, "three", 8)], Passage(3, 3, 0, "one two three")),  # of one line
        ([chunk(1, 3, "é東", 4), chunk(2, 3, "京", 9)], Passage(3, 3, 4, "é東京")),  # of one without spaces
    ],
)
def test_chunks_that_follow_each_other_are_joined(chunks, expected):
    for given in (chunks, chunks[::-1]):
        assert passage([Part(0, lines_of(one)) for one in given]) == expected


def test_lines_of_others_are_left_out():
    """Together with blank lines that would then be at an end; nothing may be left."""
    one = chunk(1, 3, "a\n\n  b\n\nc")
    assert passage([Part(0, lines_of(one, without={(3, 0), (7, 0)}))]) == Passage(5, 5, 0, "  b")
    assert passage([Part(0, lines_of(one, without={(3, 0), (5, 0), (7, 0)}))]) is None
