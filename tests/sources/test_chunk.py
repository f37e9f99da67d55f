"""Chunks cover the text, at the lines they name, within the limits."""

import re
import unicodedata
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import many

import memd.embedding
from memd.embedding.tokenizer import WordPieces
from memd.records import ChunkLimits
from memd.sources.chunk import MAX_CHARS_PER_PIECE, parse
from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines

MODEL = Path(memd.embedding.__file__).parent / "model" / "tokenizer.json"
SAMPLE = Path(__file__).parent.parent / "sample"


class ShortPieces:
    """Cuts words into pieces of four characters and takes words of over 100 for one, as the model does."""

    parts_at_spaces = True

    def spans(self, text):
        pieces = re.compile(r"\w{101,}|\w{1,4}|[^\w\s]")
        return [match.span() for match in pieces.finditer(text)]

    def count(self, text):
        return len(self.spans(text))


@cache
def tokenizer(name):
    return WordPieces(MODEL) if name == "model" else ShortPieces()


LIMITS = ChunkLimits(words=200, overlap_words=50, max_tokens=254)
SMALL = ChunkLimits(words=12, overlap_words=4, max_tokens=24)
TOKENIZERS = ["short pieces", "model"]


def chunked(text, limits=LIMITS, name="short pieces"):
    return parse(text, tokenizer=tokenizer(name), limits=limits)


def words(count, word="w"):
    return " ".join(f"{word}{number}" for number in range(count))


def check(text, limits, name="short pieces"):
    """Assert everything that is promised of any text; return its document."""
    document = chunked(text, limits, name)
    lines = split_lines(text)
    front = read_front_matter(lines)
    shown = {}
    for chunk in document.chunks:
        assert chunk.text.strip()
        assert len(chunk.text) <= limits.max_tokens * MAX_CHARS_PER_PIECE
        assert tokenizer(name).count(chunk.embed_text) <= limits.max_tokens
        assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
        begin, stop = lines.starts[chunk.start_line - 1], lines.ends[chunk.end_line - 1]
        whole = text[begin:stop]
        assert chunk.text in whole
        if chunk.text == whole:
            shown |= dict.fromkeys(range(chunk.start_line, chunk.end_line + 1))
            continue
        # A part of one line, with or without its headings in front.
        head, _, part = chunk.text.rpartition("\n")
        assert not head or whole.startswith(head)
        assert part.strip() in lines.line(chunk.end_line - 1)
        shown |= dict.fromkeys(range(chunk.start_line, chunk.end_line))
        if shown.get(chunk.end_line, "") is not None:
            shown[chunk.end_line] = shown.get(chunk.end_line, "") + "".join(part.split())
    for number in range(front.lines if not front.is_text else 0, len(lines)):
        if not lines.is_blank(number):
            assert number + 1 in shown
            parts = shown[number + 1]
            assert parts is None or parts == "".join(lines.line(number).split())
    order = [(chunk.start_line, chunk.end_line) for chunk in document.chunks]
    assert order == sorted(order)
    return document


# Any document

LETTERS = (
    "abc é\u0301 Ωж 漢字かなカ 한글 \u1112\u1161 🎉 \u00a0\u2028\x0b\x0c\x85\u200b\ufeff*_`#>|-=[]()<!&\\:\"'"
)
inline = st.text(LETTERS, max_size=60) | st.sampled_from(
    ["word", "a longer line of words. And more.", "x" * 300]
)
long_line = st.builds(
    lambda unit, n: unit * n, st.sampled_from(["words and ", "漢字", "xyz", "End. "]), st.integers(1, 90)
)
fence = st.builds(lambda lines: "```\n" + "\n".join(lines) + "\n```", st.lists(inline, max_size=12))
open_fence = st.builds(lambda line: "~~~ py\n" + line, inline)
table = st.integers(1, 12).map(lambda n: "| a | b |\n|---|---|\n" + "| cell one | two |\n" * n)
items = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["-", "1.", "* [ ]", ">"]), inline), min_size=1, max_size=10
)
nested = items.map(lambda rows: "\n".join("  " * depth + f"{mark} {text}" for depth, mark, text in rows))
heading = st.builds(lambda level, text: "#" * level + " " + text, st.integers(1, 6), inline)
setext = st.builds(lambda text, line: f"{text}\n{line * 5}", inline, st.sampled_from("=-"))
html = st.builds(lambda text: f"<div>\n{text}\n</div>", inline)
definition = st.just("[ref]: https://example.org 'title'")
front_matter = st.sampled_from(["", "", "---\ntitle: A\ntags: [b]\n---\n", "---\nbad: [\n---\n", "---\n"])
block = st.one_of(
    inline, long_line, fence, open_fence, table, nested, heading, heading, setext, html, definition,
    st.just("---"),
)  # fmt: skip
line_break = st.sampled_from(["\n", "\n", "\r\n"])


@st.composite
def documents(draw):
    """Mix Markdown structures, with a blank line between them or not, and either line break."""
    parts = draw(st.lists(st.tuples(block, st.sampled_from(["\n\n", "\n", "\n\n\n", "\r"])), max_size=12))
    text = draw(front_matter) + "".join(text + gap for text, gap in parts)
    return text.replace("\n", draw(line_break))


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("limits", [SMALL, LIMITS], ids=["small", "default"])
def test_chunks_cover_any_document_within_the_limits(name, limits):
    @settings(max_examples=many(150))
    @given(documents())
    def holds(text):
        check(text, limits, name)

    holds()


@settings(max_examples=many(200), deadline=None)
@given(st.text(max_size=300), st.integers(1, 40), st.integers(0, 20), st.integers(4, 60))
def test_chunks_cover_any_text_under_any_limits(text, size, overlap, pieces):
    text = text.encode("utf-8", "ignore").decode()
    check(text, ChunkLimits(size, overlap, pieces))


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000, "some words. " * 90_000, "漢字かな交じり文。" * 60_000, "a" + "\u0301" * 10_000,
        "a" + " " * 100_000 + "b", "# " + "x" * 50_000 + "\ntext", "# h\n" + "\n" * 50_000 + "text",
        "- a\n" * 5_000, "| a | b |\n" * 8_000, "```\n" + "code = 1\n" * 8_000, "> " * 5_000 + "a",
        "#\n" * 300 + "***", "a\n\n" * 60_000, "---\ntitle: " + "x y " * 9_000 + "\n---\ntext",
        "---\ntags: [" + "a, " * 9_000 + "b]\n---\n",
    ],
    ids=range(15),
)  # fmt: skip
def test_huge_texts_are_cut_within_the_limits(text):
    check(text, LIMITS)


def test_pieces_that_do_not_add_up_are_counted_in_the_end():
    """Where a text has more pieces than its parts promised, its chunks are cut again until they fit."""

    class Deceptive(ShortPieces):
        parts_at_spaces = False

        def count(self, text):
            return 3 * len(self.spans(text))

    text = f"# A\n\n{words(400)}\n\n" + "\n".join(words(20) for _ in range(20))
    chunks = parse(text, tokenizer=Deceptive(), limits=LIMITS).chunks
    assert all(Deceptive().count(chunk.embed_text) <= LIMITS.max_tokens for chunk in chunks)
    assert {number for chunk in chunks for number in range(chunk.start_line, chunk.end_line + 1)} >= {
        1, 3, 5, 24,
    }  # fmt: skip


@pytest.mark.parametrize("path", sorted(SAMPLE.rglob("*.md")), ids=lambda path: path.name)
def test_chunks_of_real_notes_are_found_at_their_lines(path):
    check(path.read_bytes().decode(), LIMITS, "model")


# What belongs together


def test_a_note_of_one_line_is_one_chunk():
    (chunk,) = chunked("Only this line.\n").chunks
    assert (chunk.start_line, chunk.end_line, chunk.text, chunk.heading) == (1, 1, "Only this line.", "")


@pytest.mark.parametrize("text", ["", "\n\n \t\n", "\u00a0\n\u3000", "---\n---\n"])
def test_a_note_without_text_has_no_chunk(text):
    assert chunked(text).chunks == ()


def test_front_matter_alone_is_found_by_its_title():
    (chunk,) = chunked("---\ntitle: Tea\ntags: green\n---\n").chunks
    assert (chunk.start_line, chunk.end_line) == (1, 4)
    assert "Tea" in chunk.embed_text
    assert "green" in chunk.embed_text


SECTIONS = f"## One\n\n{words(150)}\n\n## Two\n\n{words(150)}"
NAMED = ("", "Tea time")
BELOW = ("Home", "", "Tea", "Green")


@pytest.mark.parametrize(
    ("place", "text", "contexts"),
    [
        # The title goes with each chunk, tags with the first; what the text shows is not said twice.
        ((), f"---\ntitle: Tea\ntags: [a, b]\n---\n{SECTIONS}", ["Tea\na, b\n\n", "Tea\n\n"]),
        ((), "---\ntitle: Tea\n---\n# Tea\n\nGreen.\n", [""]),
        # A note without a title has its name.
        (NAMED, SECTIONS, ["Tea time\n\n"] * 2),
        (NAMED, SECTIONS.replace("One", "Tea Time"), ["", "Tea time\n\n"]),
        (NAMED, SECTIONS.replace("## One", "# Tea").replace("##", "#"), ["", "Tea\n\n"]),
        (NAMED, f"---\ntitle: Tea\n---\n{SECTIONS}", ["Tea\n\n"] * 2),
        (NAMED, "---\ntags: green\n---\n", ["Tea time\ngreen\n\n"]),
        # Folders are named with the first chunk, and where the title is.
        (BELOW, SECTIONS, ["Home > Tea > Green\n\n"] * 2),
        (BELOW, f"# Green\n\n{SECTIONS}", ["Home > Tea\n\n", "Green\n\n"]),
    ],
)
def test_a_chunk_is_read_with_what_its_text_does_not_say(place, text, contexts):
    chunks = parse(text, tokenizer=ShortPieces(), limits=LIMITS, place=place).chunks
    assert [chunk.context for chunk in chunks] == contexts
    if text.count("## "):
        assert [chunk.embed_text for chunk in chunks] == [chunk.context + chunk.text for chunk in chunks]


def test_a_long_name_leaves_the_text_its_room():
    text = "\n\n".join(words(60, word) for word in "klmnop")
    document = parse(text, tokenizer=ShortPieces(), limits=SMALL, place=[words(300, "name")] * 2)
    assert all(ShortPieces().count(chunk.embed_text) <= SMALL.max_tokens for chunk in document.chunks)
    assert all(ShortPieces().count(chunk.context) <= SMALL.max_tokens // 2 for chunk in document.chunks)


def test_the_first_heading_of_level_1_is_the_title_without_front_matter():
    assert chunked("## Sub\n\n# A *bold* [title](https://example.org)\n").title == "A bold title"
    assert chunked("---\ntitle: B\n---\n# A\n").title == "B"
    assert chunked("text").title == ""


def test_a_chunk_knows_the_headings_above_it():
    text = f"# A\n\n{words(120)}\n\n## B\n\n{words(120)}\n\n### C\n\n{words(120)}\n\n## D\n\n{words(120)}\n"
    chunks = chunked(text).chunks
    assert [chunk.heading for chunk in chunks] == ["A", "A > B", "A > B > C", "A > D"]
    assert [chunk.context for chunk in chunks] == ["", "A\n\n", "A > B\n\n", "A\n\n"]


def test_later_chunks_of_a_section_carry_its_heading():
    text = "# A\n\n## B\n\n" + "\n\n".join(words(60, word) for word in "klmnop")
    chunks = chunked(text).chunks
    assert len(chunks) > 1
    assert all(chunk.heading == "A > B" for chunk in chunks)
    assert [chunk.context for chunk in chunks[1:]] == ["A > B\n\n"] * (len(chunks) - 1)


def test_chunks_of_an_archive_carry_the_day_of_their_turn():
    """A turn's heading has its day only if the day changed, and a heading inside a turn changes nothing."""
    turns = [
        f"## User · 2024-05-07 23:50\n\n{words(90)}\n\n### Seen · 2020-01-01 10:00\n\n{words(90)}",
        f"## Assistant · 23:59\n\n{words(200, 'k')}\n\n{words(200, 'l')}",
        f"## User · 2024-05-08 00:10\n\n{words(90)}",
        f"## User · 2024-13-08 00:10\n\n{words(90)}",
    ]
    text = "---\ntitle: Boat\n---\n" + "\n\n".join(turns)
    chunks = parse(text, tokenizer=ShortPieces(), limits=LIMITS, day=date(2024, 5, 7)).chunks
    days = [re.findall(r"^\d{4}-.*", chunk.context, re.MULTILINE) for chunk in chunks]
    assert days == [["2024-05-07, 7 May 2024"]] * 4 + [["2024-05-08, 8 May 2024"]] * 2
    assert chunks[0].context == "Boat\n2024-05-07, 7 May 2024\n\n"
    assert chunks[3].context == "2024-05-07, 7 May 2024\nAssistant · 23:59\n\n"
    assert all(ShortPieces().count(chunk.embed_text) <= LIMITS.max_tokens for chunk in chunks)


def test_chunks_of_an_archive_have_the_share_of_their_lines_that_an_assistant_said():
    turns = "## User\n\na\n\n## Assistant · 10:02\n\nb\n\nc\n\n## Assistant (thinking)\n\nd\n"
    front = "---\nassistants: [Assistant]\n---\n"
    shares = [
        [chunk.assistant for chunk in parse(text, tokenizer=ShortPieces(), limits=LIMITS, day=day).chunks]
        for text, day in (
            (front + turns, date(2024, 5, 7)), (front + turns, None), (turns, date(2024, 5, 7)),
            (f"---\nassistants: {{}}\n---\n{turns}", date(2024, 5, 7)),
        )
    ]  # fmt: skip
    assert shares == [[0.75], [0], [0], [0]]


def test_small_sections_of_one_parent_are_joined():
    text = "# Day\n\n" + "".join(f"## {n}\n\n{words(30)}\n\n" for n in range(9))
    first, *others = chunked(text).chunks
    assert others
    assert first.text.count("##") > 1


def test_sections_of_other_parents_are_not_joined():
    text = f"# One\n\n{words(196)}\n\n## Small\n\nfew words\n\n# Two\n\nmore words\n"
    assert not any("few" in chunk.text and "more" in chunk.text for chunk in chunked(text).chunks)


def test_long_sections_keep_chunks_of_their_own():
    assert len(chunked(f"# A\n\n{words(70)}\n\n# B\n\n{words(70)}\n").chunks) == 2


@pytest.mark.parametrize(
    "body", ["\n\n".join([words(90)] * 4), words(900), "```\n" + "code line\n" * 300 + "```"]
)
def test_no_chunk_is_a_bare_heading(body):
    """A heading goes with what follows it, also where that is cut."""
    for chunk in chunked(f"# Title\n\n## First\n\n{body}\n").chunks:
        assert re.search(r"w\d|code", chunk.text)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        ("fence", "```\n" + "code line = 1\n" * 20 + "```"),
        ("table", "| a | b |\n|---|---|\n" + "| cell one | cell two |\n" * 12),
        ("item", "- " + "\n  ".join(["a line of the same item"] * 16)),
    ],
)
def test_fences_tables_and_items_stay_whole_where_they_fit(kind, unit):
    """What the model can read in one is not cut, and no overlap begins inside."""
    text = "\n\n".join([words(80), unit.strip(), words(80), unit.strip(), words(80)])
    for chunk in check(text, LIMITS).chunks:
        rest = chunk.text.replace(unit.strip(), "")
        assert "```" not in rest
        assert "cell" not in rest
        assert "same item" not in rest


def test_a_hash_in_a_fence_is_no_heading():
    (chunk,) = chunked("```sh\n# not a heading\nls\n```\n").chunks
    assert chunk.heading == ""


def test_about_50_words_are_repeated_where_a_section_is_cut():
    text = "# A\n\n" + "\n".join(words(10, "abcdefghijklmnop"[n % 16]) for n in range(60))
    chunks = check(text, LIMITS, "short pieces").chunks
    for before, after in pairwise(chunks):
        common = before.end_line - after.start_line + 1
        assert 1 <= common <= 7
    plain = parse(text, tokenizer=ShortPieces(), limits=ChunkLimits(200, 0, 254)).chunks
    assert all(a.end_line < b.start_line for a, b in pairwise(plain))


def test_a_long_line_is_cut_behind_sentences():
    sentence = "This sentence has a number of words in it. "
    chunks = check(sentence * 100, LIMITS).chunks
    assert len(chunks) > 1
    assert all(chunk.text.endswith(".") for chunk in chunks)
    assert {(chunk.start_line, chunk.end_line) for chunk in chunks} == {(1, 1)}


@pytest.mark.parametrize("count", [2, 7])
def test_very_long_heading_paths_are_cut(count):
    text = "".join(f"{'#' * level} Heading {level} {words(60)}\n\n" for level in range(1, count)) + words(300)
    for chunk in check(text, LIMITS, "short pieces").chunks[1:]:
        assert ShortPieces().count(chunk.context) <= LIMITS.max_tokens // 2


def test_crlf_and_lf_are_cut_alike():
    text = "---\ntitle: T\n---\n# A\n\n" + "\n\n".join(words(60) for _ in range(8)) + "\n```\na\n\nb\n```\n"
    unix, dos = chunked(text).chunks, chunked(text.replace("\n", "\r\n")).chunks
    assert [(c.start_line, c.end_line, c.text) for c in unix] == [
        (c.start_line, c.end_line, c.text.replace("\r\n", "\n")) for c in dos
    ]


def test_nfd_text_stays_and_the_model_reads_nfc():
    text = unicodedata.normalize("NFD", "# Café\n\nÜberraschung й 한글\n")
    (chunk,) = chunked(text).chunks
    assert chunk.text == text.strip()
    assert chunk.embed_text == unicodedata.normalize("NFC", text.strip())


def test_bad_front_matter_is_text_at_its_lines():
    """Broken YAML is found by its words, and the text behind it keeps its headings."""
    document = check("---\nby: a\n: [b\n---\n# Head\n\nBody\n", LIMITS)
    assert document.warnings
    assert document.chunks[0].start_line == 1
    assert "by: a" in document.chunks[0].text
    assert document.title == "Head"
