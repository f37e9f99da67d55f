"""Positions of LSP: lines and columns against a reference that encodes, and long runs of edits."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.lsp.documents import path_of, uri_of
from memctl.lsp.positions import Text, index, split, units

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
CHARS = "ab \r\n\té語😀\u0301\u2028\x0c\x85"
texts = st.text(alphabet=CHARS, max_size=30)
encodings = st.sampled_from(list(CODECS))
positions = st.builds(
    lambda line, character: {"line": line, "character": character}, st.integers(0, 12), st.integers(0, 20)
)


def offset_by_reference(text, position, encoding):
    """Walk through the lines of the whole text and encode each."""
    codec, size = CODECS[encoding]
    start = 0
    for number, line in enumerate(re.split(r"(\r\n|\n|\r)", text)):
        if number % 2:
            start += len(line)
        elif number // 2 == position["line"]:
            raw = line.encode(codec)[: position["character"] * size]
            return start + len(raw.decode(codec, "ignore"))
        else:
            start += len(line)
    return len(text)


@given(texts, positions, encodings)
def test_an_offset_is_that_of_the_reference(text, position, encoding):
    made = Text(text, encoding)
    offset = made.offset(position)
    assert offset == offset_by_reference(text, position, encoding)
    assert made.offset(made.position(offset)) == offset


@given(texts, st.lists(st.tuples(positions, positions, texts), max_size=6), encodings)
def test_edits_give_the_text_that_the_editor_has(text, edits, encoding):
    made = Text(text, encoding)
    for start, end, new in edits:
        first, last = sorted(offset_by_reference(text, one, encoding) for one in (start, end))
        text = text[:first] + new + text[last:]
        made.change({"start": start, "end": end}, new)
        assert made.text == text
        assert made.lines == split(text)


@pytest.mark.parametrize(("encoding", "length"), [("utf-8", 11), ("utf-16", 6), ("utf-32", 5)])
def test_a_column_inside_of_a_character_is_its_start(encoding, length):
    """Lengths of one emoji, one ideograph, and e with its accent apart, a letter."""
    line = "😀語e\u0301x"
    assert units(line, encoding) == length
    assert index("😀", 1, encoding) == (1 if encoding == "utf-32" else 0)
    assert index(line + "\r\n", 99, encoding) == 5


@pytest.mark.parametrize("path", ["/a b/ü#1%20.md", "/語/😀.md", "/plain.md", "/bytes\udcff.md"])
def test_a_path_returns_from_its_uri(path):
    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "https://a/b.md", "file:///a%00b"])
def test_what_is_no_file_has_no_path(uri):
    assert path_of(uri) is None
