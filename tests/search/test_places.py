"""One hit a place: the best chunk with its neighbours, no line in two hits."""

import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import many

from memd.search.recall import piece_of, recall
from memd.search.snippet import section

FEW = settings(max_examples=many(40))
HOW = st.fixed_dictionaries(
    {"mode": st.sampled_from(["keyword", "vector", "hybrid"]), "fusion": st.sampled_from(["weighted", "rrf"])}
)
QUERIES = ("heron", "heron weir", "pond reed sluice", "delta")
WORDS = ("heron", "weir", "pond", "reed", "sluice", "delta", "river", "spring", "käfer", "the", "and", "by")


def lines(seed, name, count):
    """Return lines of a note, no two of them the same, in paragraphs and some sections."""
    made = []
    for number in range(count):
        words = " ".join(seed.choices(WORDS, k=seed.randint(4, 14)))
        made.append(f"{words} {name}x{number}")
        if seed.random() < 0.15:
            made.append("")
        if seed.random() < 0.04:
            made += ["", f"## Part {number}", ""]
    return made


def fill(notes):
    """Save a few long notes, once a folder."""
    if not notes.index.snapshot.sources:
        seed = random.Random(7)
        texts = {f"n{number}.md": "\n".join(lines(seed, f"n{number}", 120)) for number in range(6)}
        notes.save({**texts, "one-line.md": " ".join(lines(seed, "flat", 120))})


@FEW
@given(how=HOW, query=st.sampled_from(QUERIES))
def test_no_line_is_in_two_hits(notes, how, query):
    fill(notes)
    shown = {}
    for hit in notes.search(query, limit=100, min_score=0.0, **how).hits:
        passage = hit.passage
        text = (notes.root / hit.source.path).read_text()
        assert passage.text in text
        assert passage.text.strip()
        is_inside = passage.start_line <= hit.snippet.match_line <= passage.end_line
        assert is_inside or hit.snippet.match_text in hit.heading, "a heading above has the only word"
        if hit.source.path != "one-line.md":
            numbers = set(range(passage.start_line, passage.end_line + 1))
            assert "\n".join(text.split("\n")[passage.start_line - 1 : passage.end_line]) == passage.text
            assert not numbers & shown.setdefault(hit.source.path, set())
            shown[hit.source.path] |= numbers


@FEW
@given(how=HOW, query=st.sampled_from(QUERIES), budget=st.integers(50, 20_000))
def test_recall_has_no_line_twice(notes, how, query, budget):
    """Nor a part of a line that is split over chunks; it stays within its budget."""
    fill(notes)
    hits = notes.search(query, limit=50, min_score=0.0, **how).hits
    with notes.index.view() as view:
        found = recall(
            [], [piece_of(hit, "strong", partial(section, view, hit.chunk)) for hit in hits], budget
        )
    named = [word for word in found.text.split() if "x" in word and word[-1].isdigit()]
    assert len(named) == len(set(named))
    assert found.tokens <= budget


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_at_most_one_neighbour_on_each_side_is_merged(notes, limit):
    """A chunk further away is a place of its own; score and snippet are those of the best chunk."""
    parts = [f"# Part {n}\n\n{'heron ' * (20 + 30 * (n == 3))}{'other ' * 150}end{n}" for n in range(7)]
    notes.save({"a.md": "\n\n".join(parts)})
    first, *others = notes.search("heron", mode="keyword", min_score=0.0, limit=limit).hits
    assert (first.passage.start_line, first.passage.end_line) == (2 * 4 + 1, 4 * 4 + 3)
    assert first.chunk.heading == "Part 3"
    assert first.snippet.match_line == 3 * 4 + 3
    assert len(others) == min(2, limit - 1)
    assert all(hit.passage.end_line < 9 or hit.passage.start_line > 19 for hit in others)


def test_where_the_best_chunk_has_no_word_of_the_query_a_neighbours_snippet_is_shown(notes):
    parts = [f"# Part {n}\n\n{'weir pond ' * 80}\n\n{'kettle' if n == 1 else 'reed'} n{n}" for n in range(2)]
    notes.save({"a.md": "\n\n".join(parts), "b.md": "heron\n"})
    vector = notes.embedder.embed_query(parts[0])
    [hit] = notes.search("kettle", mode="vector", query_vec=vector, min_score=0.5).hits
    assert (hit.chunk.heading, hit.snippet.match_line, hit.snippet.match_text) == ("Part 0", 11, "kettle n1")


def test_a_copy_of_a_long_file_is_folded_with_all_that_is_shown(notes):
    """Also what is like a neighbour of a hit's chunk, and of the copy, too, each place is named once."""
    text = "\n\n".join(f"# Part {n}\n\n{'heron weir ' * (9 - n)}{f'pond{n} ' * 150}" for n in range(2))
    notes.save({"a.md": text, "copy/a.md": text})
    [hit] = notes.search("heron", limit=10).hits
    assert (hit.passage.start_line, hit.passage.end_line) == (1, 7)
    assert [(one.path, one.start_line, one.end_line) for one in hit.folded] == [("copy/a.md", 1, 7)]


def test_chunks_of_other_files_are_no_neighbours(notes):
    notes.save({f"n{number}.md": f"heron {'weir ' * number}pond{number}\n" for number in range(5)})
    hits = notes.search("heron", mode="keyword", min_score=0.0).hits
    assert len(hits) == 5
    assert all(hit.passage.text == hit.chunk.text for hit in hits)


LONG = "reed pond sedge " * 60
PAGE = f"""# Boats

{LONG}

## Copper kettle

{LONG}

{LONG}

### Small one

Brief.

### Small two

The gasket is here.
"""


@pytest.mark.parametrize(
    ("query", "line", "heading"),
    [
        ("gasket", 17, "Boats > Copper kettle > Small two"),
        ("brief", 13, "Boats > Copper kettle > Small one"),
        ("kettle", 5, "Boats > Copper kettle"),
        ("boats", 1, "Boats"),
    ],
)
def test_the_heading_is_that_of_the_named_line(notes, query, line, heading):
    """Short sections share a chunk, whose headings are those of its first section."""
    notes.save({"a.md": PAGE})
    first = notes.search(query, mode="keyword").hits[0]
    assert (first.snippet.match_line, first.heading) == (line, heading)


def test_words_that_only_a_heading_has_name_its_line(notes):
    notes.save({"a.md": f"# Weir\n\n## Copper kettle\n\n{LONG}\n\n{LONG}\n\nThe end is a heron.\n"})
    vector = notes.embedder.embed_query("The end is a heron.")
    for hit in notes.search("kettle", mode="vector", query_vec=vector, min_score=0.0).hits:
        assert (hit.snippet.match_line, hit.heading) == (3, "Weir > Copper kettle")
        assert "opper kettle" in hit.snippet.match_text


@pytest.mark.parametrize(
    ("text", "query", "start"),
    [
        ("# A\n\nText\n\n```bash\nls\nmake otter\n```\n\nheron\n", "otter", "```bash\nmake otter"),
        ("# A\n\nText\n\n```bash\nls\nmake otter\n```\n\nheron\n", "heron", "heron"),
        ("- item\n  ~~~~ py\n  ```\n  ls\n  otter\n  ~~~~\n", "otter", "~~~~py\notter"),
        (
            "# A\n\n```sh\n" + "filler ls -la; cd x\n" * 400 + "make otter\n```\n\nheron\n",
            "otter",
            "```sh\nmake otter",
        ),
        ("# A\n\n```sh\n" + "filler ls -la; cd x\n" * 400 + "make otter\n```\n\nheron\n", "heron", "heron"),
    ],
)
def test_a_snippet_within_code_begins_with_the_line_that_opens_it(notes, text, query, start):
    notes.save({"a.md": text})
    first = notes.search(query, mode="keyword").hits[0]
    assert first.snippet.text.startswith(start)
