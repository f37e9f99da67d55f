"""The text for a prompt: within its budget, framed, in whole sections, without repetitions."""

import dataclasses
import math
import re
import xml.etree.ElementTree as ET
from datetime import date
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests_support import many

from memd.search.recall import CORE_SHARE, Piece, piece_of, recall
from memd.search.snippet import Part, beginning, passage, section

DAY = date(2026, 5, 1)


def hits(notes, texts):
    notes.save({f"n{number}.md": f"{text} zebra\n" for number, text in enumerate(texts)})
    return pieces(notes)


def pieces(notes, query="zebra"):
    """Return the pieces that the hits of a query may send."""
    found = notes.search(query, min_score=0.0, limit=50).hits
    with notes.index.view() as view:
        made = [piece_of(hit, "strong", partial(section, view, hit.chunk)) for hit in found]
        # Read now: a test has no view any more.
        return [dataclasses.replace(one, section=partial(dict, one.section())) for one in made]


def lines(text, first=1):
    """Return the lines of a text that begins at a line of its source."""
    return {(first + number, 0): line for number, line in enumerate(text.split("\n"))}


def piece(text, path="a.md", about="About", **more):
    """Return a piece of *text*, from its first line on."""
    shown = lines(text)
    facts = {"id": hash(text), "about": about, "day": DAY, "origin": "agent", "score": 0.5, "own": shown}
    facts["confidence"] = "strong"
    return Piece(path=path, **{**facts, **more})


def core_piece(text, path="MEMORY.md", **more):
    """Return a piece of the core."""
    return piece(text, path, score=None, confidence=None, **more)


def test_one_hit_that_is_too_long_does_not_end_it(notes):
    """It is cut at the end of a sentence and marked; shorter hits after it are sent while there is room."""
    long = "Zebra zebra are many. " * 30
    found = hits(notes, [long, "short"])
    result = recall([], found, 160)
    assert [(one.piece.path, one.is_cut) for one in result.sent] == [("n0.md", True)]
    assert re.search(r"Source: n0.md:1-1 \([^)]*, cut\)", result.text)
    assert re.search(r"many\.\n```$", result.text)
    assert recall([], found, 1000).sent[1].piece.path == "n1.md"


def test_the_first_piece_is_never_too_long(notes):
    """However little room there is beside the frame, some words are sent."""
    found = hits(notes, ["zebra " * 300])
    for budget in range(30, 400, 10):
        result = recall([], found, budget)
        assert result.sent
        assert result.tokens <= budget


def test_what_is_cut_shows_the_line_that_matches(notes):
    """Rather than the beginning of a long text, where nothing was found."""
    notes.save({"a.md": "grass is green.\n" * 100 + "The zebra stands here.\n"})
    result = recall([], pieces(notes), 100)
    assert "The zebra stands here." in result.text
    [sent] = result.sent
    assert sent.passage.start_line <= 101 <= sent.passage.end_line


def test_a_section_is_sent_whole_where_it_leaves_room(notes):
    """With the chunks around a hit that match nothing; otherwise the hit alone, with its own lines."""
    parts = [
        f"# Part {n}\n\n" + "\n\n".join(f"{word * 120}" for word in ("zebra ", "grass ", "water "))
        for n in (1, 2)
    ]
    notes.save({"a.md": "\n\n".join(parts)})
    wide = recall([], pieces(notes)[:1], 4000)
    assert wide.text.count("grass") == wide.text.count("water") == wide.text.count("zebra") == 120
    narrow = recall([], pieces(notes)[:1], 500)
    assert narrow.text.count("water") < 120
    assert "zebra" in narrow.text


def test_no_line_is_sent_twice(notes):
    text = "# One\n\n" + "\n\n".join(
        f"zebra {word} {f'{word} ' * 90}" for word in ("grass", "water", "stone")
    )
    notes.save({"a.md": text})
    result = recall([], pieces(notes), 4000)
    assert result.text.count("grass") == text.count("grass")
    assert {reason for _, reason in result.omitted} <= {"its lines are sent with another hit, or known"}
    assert len(result.sent) == 1


def test_what_is_nearly_the_same_in_one_file_is_sent_once():
    """Such as two entries of a daily file; the reason names the lines that are sent."""
    said = "The staging machine is reached through the tunnel of the office in town"
    one, two = piece(said), piece(f"{said}!", id=2, own=lines(f"{said}!", 9))
    result = recall([], [one, two], 1000)
    assert [one.piece.id for one in result.sent] == [one.id]
    assert result.omitted == ((two, "nearly the same as a.md:1-1"),)
    other = piece(said.replace("tunnel", "tunnel of 7"), id=3, own=lines(f"{said} 7", 5))
    assert len(recall([], [one, other], 1000).sent) == 2


def test_the_core_goes_first_within_its_share():
    """If it is short, all of it; otherwise its beginning, and the hits have the rest."""
    short = core_piece("Tea, never coffee.")
    result = recall([short], [piece("A hit of some words.", "b.md")], 500)
    assert [one.piece.path for one in result.sent] == ["MEMORY.md", "b.md"]
    long = core_piece("Always tea. " * 500)
    result = recall(
        [long, core_piece("Second.", "memory/MEMORY.md", id=9)], [piece("x. " * 900, "b.md")], 800
    )
    [core, hit] = result.sent
    assert core.is_cut
    assert 0.7 * CORE_SHARE < len(core.passage.text.encode()) / 3200 < CORE_SHARE
    assert hit.piece.path == "b.md"
    assert result.tokens > 750
    assert result.omitted[0][0].path == "memory/MEMORY.md"
    assert recall([short], [], 500).text.endswith("Tea, never coffee.\n```")


def test_a_hit_that_stands_in_the_core_is_not_sent_again():
    """Neither its own lines nor a note with the same text; the part cut from the core may be found."""
    facts = "We deploy on Mondays at the office, and never on a Friday afternoon.\nTea, never coffee."
    core = core_piece(facts)
    own = piece("Tea, never coffee.", "MEMORY.md", id=2, own=lines("Tea, never coffee.", 2))
    same = piece("We deploy on Mondays at the office, and never on a Friday afternoon", "b.md", id=3)
    result = recall([core], [own, same], 1000)
    assert [one.piece.path for one in result.sent] == ["MEMORY.md"]
    assert [reason for _, reason in result.omitted] == [
        "its lines are sent with another hit, or known",
        "nearly the same as MEMORY.md:1-2",
    ]
    long = core_piece("Tea, never coffee.\n" * 300 + "The zebra stands here.")
    found = piece("", "MEMORY.md", id=2, own=lines("The zebra stands here.", 301))
    assert recall([long], [found], 600).text.count("The zebra stands here.") == 1


def test_every_piece_names_its_source(notes):
    one = piece("A fact.", "dir/a.md", superseded_by=("b.md",))
    text = recall([], [one], 500).text
    assert "Source: dir/a.md:1-1 (2026-05-01, written by an agent, superseded by b.md)" in text
    [note] = ET.fromstring(recall([], [one], 500, style="xml").text)
    assert note.attrib == {
        "path": "dir/a.md", "lines": "1-1", "date": "2026-05-01", "origin": "agent", "about": "About",
        "superseded_by": "b.md",
    }  # fmt: skip
    assert note.text.strip() == "A fact."


def test_a_weak_piece_says_so_in_either_form():
    found = [
        core_piece("Tea."),
        piece("A fact.", "b.md", id=2),
        piece("Else.", "c.md", id=3, confidence="weak"),
    ]
    markdown = recall(found[:1], found[1:], 1000).text
    assert [line for line in markdown.splitlines() if line.startswith("Source: ")] == [
        f"Source: {path}:1-1 (2026-05-01, written by an agent{weak})"
        for path, weak in (("MEMORY.md", ""), ("b.md", ""), ("c.md", ", weak match"))
    ]
    notes = ET.fromstring(recall(found[:1], found[1:], 1000, style="xml").text)
    assert [note.get("match") for note in notes] == [None, None, "weak"]


@pytest.mark.parametrize("style", ["markdown", "xml"])
def test_a_remark_stands_in_front_of_the_hits(style):
    """It takes room from them, comes after the core, and is left out if no hit is sent."""
    preface = "No good match: these are only the nearest notes."
    found = [piece("one two three " * 9, "b.md"), piece("four five six " * 9, "c.md", id=2)]
    for budget in (10, 14, 45, 60, 1000):
        result = recall([], found, budget, style=style, preface=preface)
        assert result.tokens == math.ceil(len(result.text.encode()) / 4) <= budget
        assert (preface in result.text) is bool(result.sent)
    text = recall([core_piece("Tea.")], found, 1000, style=style, preface=preface).text
    assert text.index("Tea.") < text.index(preface) < text.index("one two three")
    assert preface not in recall([core_piece("Tea.")], [], 1000, style=style, preface=preface).text


ANY = st.characters(exclude_categories=["Cs"])
TEXT = st.text(
    st.one_of(st.sampled_from("`<>&\"'\n .!。é語\x00\x1b\r\u2028~#"), ANY), min_size=1, max_size=600
)
PLACE = st.text(st.one_of(st.sampled_from('`"<&\n/ ）'), ANY), min_size=1, max_size=40)


@settings(max_examples=many(160))
@given(
    texts=st.lists(st.tuples(TEXT.filter(str.strip), PLACE, PLACE), max_size=5),
    core=st.lists(TEXT.filter(str.strip), max_size=2),
    budget=st.integers(1, 900),
    style=st.sampled_from(["markdown", "xml"]),
    preface=st.sampled_from(["", "No good match."]),
)
@example([("```\n" * 9, "a.md", "`" * 20)], [], 200, "markdown", "")
@example([("</note></memory>", 'a" b="c', "]]>")], ["&" * 300], 90, "xml", "")
def test_the_budget_holds_and_no_text_closes_its_frame(texts, core, budget, style, preface):
    """Counted on the bytes that are sent; each piece comes out of the text as it went in."""
    found = [piece(text, path, about, id=number) for number, (text, path, about) in enumerate(texts)]
    known = [core_piece(text, f"c{number}.md", id=100 + number) for number, text in enumerate(core)]
    result = recall(known, found, budget, style=style, preface=preface)
    assert result.tokens == math.ceil(len(result.text.encode(errors="replace")) / 4) <= budget
    assert len(result.sent) + len(result.omitted) == len(found) + len(known)
    shown = in_xml(result.text) if style == "xml" else in_markdown(result.text)
    assert shown == [plain(one.passage.text, style) for one in result.sent]


def plain(text, style):
    """Return a text in the form that its frame can hold."""
    if style == "xml":
        text = "".join(
            char if char in "\t\n\r" or (char >= " " and char not in "\ufffe\uffff") else "\ufffd"
            for char in text
        )
    return text


def in_xml(text):
    """Return the texts of the notes in it."""
    notes = ET.fromstring(text) if text else []
    return [note.text[1:-1] for note in notes if note.tag == "note"]


def in_markdown(text):
    """Return the content of the fences by CommonMark; outside of them are only lines of memd."""
    found, fence = [], ""
    for line in text.split("\n"):
        if not fence and re.fullmatch("`{3,}", line):
            fence, inside = line, []
        elif fence and re.fullmatch(f" {{0,3}}`{{{len(fence)},}}[ \t]*", line):
            found.append("\n".join(inside))
            fence = ""
        elif fence:
            inside.append(line)
        else:
            assert line.startswith(("### ", "Source: ", "No good match.")) or not line
    assert not fence
    return found


def test_the_beginning_of_a_note_is_what_the_core_sends(notes):
    text = "\n\n".join(f"Fact {n} {'word ' * 120}".strip() for n in range(9))
    notes.save({"MEMORY.md": f"---\ntitle: Mine\n---\n{text}\n"})
    with notes.index.view() as view:
        [source] = view.snapshot.sources.values()
        chunk, shown = beginning(view, source, 100_000)
    whole = passage([Part(0, shown)])
    assert whole.text == text
    assert (whole.start_line, chunk.start_line) == (4, 4)


@settings(deadline=None, max_examples=many(300))
@given(
    texts=st.lists(
        st.tuples(st.sampled_from(["", "# Own\n", "```\nx\n```\n"]), st.integers(1, 60)), max_size=8
    ),
    budget=st.integers(20, 400),
    style=st.sampled_from(["markdown", "xml"]),
)
def test_what_is_over_budget_needs_more_than_is_left(texts, budget, style):
    """Including its frame: a piece that fits is sent, however short it is."""
    given_pieces = [
        piece(f"{start}{number} {'word ' * count}", f"{number}.md", about=f"About {number}")
        for number, (start, count) in enumerate(texts)
    ]
    result = recall([], given_pieces, budget, style=style)
    for _, reason in result.omitted:
        needed, left = map(int, re.fullmatch(r"over budget: (\d+) tokens, (\d+) left", reason).groups())
        assert needed > left
