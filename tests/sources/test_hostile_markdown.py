"""Hostile Markdown costs little, and loses no word."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests_support import WordTokenizer

from benchmarks import fuzz_notes
from benchmarks.pathological import SHAPES, text
from memd.records import ChunkLimits
from memd.sources import chunk, markdown
from memd.sources.chunk import parse
from memd.sources.markdown import Block, plain_title, read_blocks, split_lines

LIMITS = ChunkLimits(200, 50, 254)
PLAIN = MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])


def parsed(note: str, **settings):
    return parse(note, tokenizer=WordTokenizer(), limits=LIMITS, **settings)


class CountingTokenizer(WordTokenizer):
    """Counts the characters that it is given."""

    given = 0

    def spans(self, text):
        self.given += len(text)
        return super().spans(text)

    def count(self, text):
        self.given += len(text)
        return super().count(text)


@pytest.mark.parametrize("name", SHAPES)
def test_the_work_of_a_shape_grows_with_its_size_alone_and_no_line_is_lost(name, monkeypatch):
    """What a text's chunks have is known from then on; only headings and cut lines are looked at again."""
    made = Counter()
    real = markdown._State.push

    def push(state, *args):
        made["tokens"] += 1
        return real(state, *args)

    monkeypatch.setattr(markdown._State, "push", push)
    tokenizer, note = CountingTokenizer(), text(name, 4_000)
    document = parse(note, tokenizer=tokenizer, limits=LIMITS)
    assert fuzz_notes.lost_lines(note, document) == []
    assert made["tokens"] <= 2 * len(note) + 100
    # A part behind a cut inside a line is counted with the words before the cut.
    assert tokenizer.given <= (3.1 if "headings" not in name else 4) * len(note) + 400


@given(st.integers(0, 10**9), st.integers(1, 3_000))
def test_no_document_at_random_loses_a_line(seed, size):
    note = fuzz_notes.made(random.Random(seed), size)
    assert fuzz_notes.lost_lines(note, parsed(note)) == []
    assert fuzz_notes.lost_lines(note, parsed(note, plain=True)) == []


@given(st.integers(0, 10**9), st.integers(1, 2_000))
def test_tables_are_those_of_the_library(seed, size):
    """Rows without cells begin and end where markdown-it's rows do, in any surroundings."""
    chance = random.Random(seed)
    lines = [
        "|a|b|", "|-|-|", "|c|", "c", "> |d|", "- |e|", "", "    f", "# g", "  |h|i|j|", ":-|-:", "\\|k|",
    ]  # fmt: skip
    # Without blank lines at the end: the library counts them, and no block has them.
    note = "\n".join(chance.choices([*lines, *lines[:3] * 3], k=size % 60 + 1)).rstrip("\n")
    ours, _ = markdown._parsed(split_lines(note), 0, len(split_lines(note)), 10**9)
    assert ours == markdown._tree(PLAIN.parse(note), 0)


def test_beyond_its_budget_the_rest_is_plain_text(monkeypatch):
    monkeypatch.setattr(markdown, "WORK", 20_000)
    monkeypatch.setattr(markdown, "SLICE_LINES", 100)
    note = "# Title\n\ncalm words\n" + "\ncalm\n" * 60 + text("lazy quotes", 20_000) + "\n\nzebra\n"
    document = parsed(note)
    assert document.title == "Title"
    assert any("zebra" in chunk.text for chunk in document.chunks)
    [warning] = document.warnings
    assert warning.startswith("too-complex: from line ")
    assert fuzz_notes.lost_lines(note, document) == []


def test_long_lists_of_short_words_are_no_attack():
    found, warnings = read_blocks(split_lines("- milk\n" * 20_000), 0)
    assert warnings == ()
    assert {block.kind for block in found} == {"bullet_list"}


def test_a_text_of_too_many_lines_says_so():
    """More than 100,000 lines are plain text, and no longer in silence."""
    found, warnings = read_blocks(split_lines("- a\n" * 100_001), 0)
    assert warnings == (markdown.TOO_LONG,)
    assert isinstance(found[0], Block)
    assert found[0].kind == "paragraph"


def test_where_the_parser_itself_fails_the_lines_are_plain_text(monkeypatch):
    """A fault of the library keeps no note out: the words are found, and the warning names the lines."""

    def fails(*_):
        raise IndexError

    monkeypatch.setattr(markdown, "_tree", fails)
    document = parsed("# Title\n\nzebra\n")
    assert document.warnings == ("too-complex: lines 1 to 3 are indexed as plain text",)
    assert "zebra" in document.chunks[0].text


def test_a_heading_of_brackets_keeps_its_markup():
    """Brackets that are never closed are read once; links show their text."""
    assert plain_title("[`a`](b) " * 13).startswith("[`a`](b)")
    assert plain_title("[`a`](b) " * 12).startswith("a a")
    assert plain_title("See [the **manual**](a) and [b](c)") == "See the manual and b"
    assert plain_title("See [[note|the manual]] and [[b]]") == "See the manual and b"


def test_dense_text_is_counted_in_part(monkeypatch):
    """Behind so many pieces each character counts as one: chunks stay within the limit and lose no line."""
    monkeypatch.setattr(chunk, "MAX_DENSE_PIECES", 5_000)
    tokenizer = CountingTokenizer()
    note = "calm words\n\n" + "|-|-|\n" * 10_000 + "\nzebra\n"
    document = parse(note, tokenizer=tokenizer, limits=LIMITS)
    assert tokenizer.given < 50_000
    assert any(warning.endswith("on it is cut into short chunks") for warning in document.warnings)
    assert fuzz_notes.lost_lines(note, document) == []
    assert max(tokenizer.count(chunk.embed_text) for chunk in document.chunks) <= LIMITS.max_tokens
    assert any("zebra" in chunk.text for chunk in document.chunks)
