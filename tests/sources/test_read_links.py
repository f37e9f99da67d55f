"""Links of a note: Obsidian's and Markdown's in the text, two keys of the front matter."""

import random
import time
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from tests_support import WordHashEmbedder

from memd.records import ChunkLimits, Link
from memd.sources import chunk
from memd.sources.front_matter import FrontMatter
from memd.sources.links import occurrences
from memd.sources.markdown import read_blocks, split_lines

LIMITS = ChunkLimits(200, 50, 254)


def links(text, **settings):
    parsed = chunk.parse(text, tokenizer=WordHashEmbedder.tokenizer, limits=LIMITS, **settings)
    return parsed.links


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("See [[heron]] and [[birds/Grey heron|the bird]].", ["heron", "birds/Grey heron"]),
        ("[[weir#Repairs]] [[weir#^block|x]] ![[map.png]]", ["weir", "weir", "map.png"]),
        ("[[ spaced  ]] [[heron]] [[heron#again]]", ["spaced", "heron", "heron"]),
        ("[[a [b] c]] [[[d]]] [[1]](https://x.org) [[see]] (x)", ["a [b] c", "[d]", "see"]),
        ("[[#here]] [[]] [[|x]] [[ ]] [not] [[un\nclosed]] \\[[escaped]]", []),
        ("# About [[heron]]\n\n- [[item]]\n> [[quoted]]\n", ["heron", "item", "quoted"]),
        ("| [[cell\\|shown]] | x |\n|---|---|\n| [[row]] | y |", ["cell", "row"]),
        ("`[[code]]` and ``[[a]] ` [[b]]`` but [[c]]", ["c"]),
        ("```\n[[fence]]\n```\n\n    [[indented]]\n\n<div>\n[[html]]\n</div>", []),
        ("[[会議の記録]] [[Übersicht]] [[a.b]] [[note.md]]", ["会議の記録", "Übersicht", "a.b", "note.md"]),
        ("[[" + "x" * 1_001 + "]] [[" + "y" * 1_000 + "]]", ["y" * 1_000]),
    ],
)  # fmt: skip
def test_wikilinks_are_read_from_the_text(text, targets):
    assert [link.target for link in links(text)] == targets
    assert {link.kind for link in links(text)} <= {"text"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[x](git/x.md) [y](<a b.md>) [z](a%20b.md#The%20end)", ["git/x.md", "a b.md", "a b.md#The end"]),
        ("[a](<Plan: x.md>) [b](Plan:%20x.md) [c](Plan:x.md)", ["Plan: x.md", "Plan: x.md"]),
        ("[up](../x.md 'title') [root](/x.md) [same](#here) [q](x.md?plain=1)", ["../x.md", "/x.md", "x.md"]),
        ("[over\nlines](x.md) and [one](\nx.md)", ["x.md", "x.md"]),
        ("> [in a\n> quote](x.md)\n\n- [item](y.md)", ["x.md", "y.md"]),
        ("| [cell](x.md) | a |\n|---|---|\n| [b](y.md) | c |", ["x.md", "y.md"]),
        ("[ref] and [text][Ref] and [ref][]\n\n[ref]: x.md#part 'title'", ["x.md#part"] * 3),
        ("[none][ref]\n\n```\n[ref]: x.md\n```", []),
        ("[a](https://x.md) [b](mailto:a@b) [c](//x/y.md) <http://x.md> \\[d](x.md)", []),
        ("`[a](x.md)` <b title='[a](x.md)'> <!-- [a](x.md) -->", []),
        ("[outer [inner](x.md)](y.md)", ["x.md"]),
    ],
)
def test_markdown_links_are_read_from_the_text(text, found):
    """As CommonMark reads them: decoded, over line breaks, by reference; not those of other protocols."""
    read = [(one.kind, f"{one.target}#{one.part}".removesuffix("#")) for one in links(text)]
    assert read == [("markdown", one) for one in found]


def test_images_are_told_apart():
    read = [(one.kind, one.target) for one in links("![a](a.png) [![b](b.png)](c.md) ![[d.png]]")]
    assert read == [("image", "a.png"), ("markdown", "c.md"), ("image", "b.png"), ("text", "d.png")]


SYNTAX = ("[", "]", "(", ")", "<", ">", "!", "`", "\n", " ", "x.md", "a", "#b", "\\", '"', "* ")


def test_markdown_links_are_those_of_a_full_parse():
    """Of texts made of syntax, and their places are those of the file."""
    full = MarkdownIt("commonmark").enable("table")
    made = random.Random(3)
    for _ in range(2_000):
        text = "".join(made.choices(SYNTAX, k=30))
        if "]]" in text or text.lstrip().startswith("<"):  # wikilinks; HTML
            continue
        lines = split_lines(text)
        blocks, _ = read_blocks(lines, 0)
        found = [
            one for one in occurrences(lines, blocks, FrontMatter({})) if one.kind in {"markdown", "image"}
        ]
        tokens = [leaf for token in full.parse(text) for leaf in token.children or ()]
        wanted = [token.attrs.get("href") or token.attrs.get("src") for token in tokens]
        named = [f"{one.target}#{one.part}".removesuffix("#") for one in found if one.target]
        assert named == [unquote(one) for one in wanted if one and not one.startswith("#")], text
        assert all(text[one.start] in "![" and text[one.stop - 1] == ")" for one in found), text


def test_what_a_link_writes_has_a_place():
    """It is what a rename replaces; a link by reference writes its target in the definition."""
    text = "x [[a#b|c]] [d](<e f.md#g>) [r]\n\n[r]: h.md\n"
    lines = split_lines(text)
    blocks, _ = read_blocks(lines, 0)
    found = list(occurrences(lines, blocks, FrontMatter({})))
    assert [one.written and text[slice(*one.written)] for one in found] == ["a#b", "<e f.md#g>", None, "h.md"]
    assert [text[one.start : one.stop] for one in found] == ["[[a#b|c]]", "[d](<e f.md#g>)", "[r]", "h.md"]


def test_a_link_knows_its_line():
    text = "---\ntitle: x\n---\nfirst [[a]]\n\n- item `with\n  [[code]]` and\n  [[b]]\n\n[[a]] again\n"
    assert links(text) == (Link("text", "a", 4, 7), Link("text", "b", 8, 3), Link("text", "a", 10, 1))
    blob = "data:image/png;base64," + "iVBORw0KGgo" * 100
    assert links(f"![]({blob}) [[a]]") == (Link("text", "a", 1, len(blob) + 7),)


@pytest.mark.parametrize(
    ("front", "targets"),
    [
        ("supersedes: memory/deploy/x-3f2a91.md", ["memory/deploy/x-3f2a91.md"]),
        ("supersedes: [a.md, 'b, c.md']", ["a.md", "b, c.md"]),
        ("supersedes:\n  - '[[old note|Old]]'\n  - \"[[older#part]]\"", ["old note", "older"]),
        ("supersedes: [[old note]]", ["old note"]),
        ("supersedes:\n  - [[old]]\n  - [[older|x]]", ["old", "older"]),
        ("supersedes: 3f2a915b7c80d1e4", ["3f2a915b7c80d1e4"]),
        ("supersedes: '[old](../a%20b.md#c)'", ["../a b.md"]),
        ("supersedes: '[old](<a b.md>)'", ["./a b.md"]),
        ("supersedes: ''", []),
        ("supersedes: {a: b}", []),
        ("supersedes:", []),
        ("Supersedes: a.md", []),
    ],
)
@pytest.mark.parametrize("key", ["supersedes", "related"])
def test_keys_of_the_front_matter_name_other_notes(front, targets, key):
    text = f"---\n{front.replace('supersedes', key)}\n---\nThe text.\n"
    assert links(text) == tuple(Link(key, target, None) for target in targets)


def test_what_is_plain_text_links_nothing():
    """A note that is too complex is taken for nothing else."""
    assert links("---\nsupersedes: a.md\n---\n[[b]]", plain=True) == ()


def test_so_many_links_are_read_and_no_more(monkeypatch):
    assert len(links(" ".join(f"[[note {number}]]" for number in range(5_000)))) == 5_000
    monkeypatch.setattr("memd.sources.links.MAX_LINKS", 30)  # as 20,000
    assert len(links("\n\n".join(f"[[note {number}]]" for number in range(40)))) == 30


@pytest.mark.parametrize("text", ["[[", "[[x](y)", "[", "[a](b ", "![", "[a][b", "<!-- ", "`["])
def test_hostile_text_costs_a_bounded_time(text):
    """What is read again from each bracket is counted; behind the budget no link is read."""
    began = time.process_time()
    links(f"[[a]] {text}" + text * (100_000 // len(text)))
    assert time.process_time() - began < 4
