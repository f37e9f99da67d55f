"""Links of a note: Obsidian's in the text, two keys of the front matter."""

import pytest
from tests_support import WordHashEmbedder

from memd.records import ChunkLimits, Link
from memd.sources import chunk

LIMITS = ChunkLimits(200, 50, 254)


def links(text, **settings):
    parsed = chunk.parse(text, tokenizer=WordHashEmbedder.tokenizer, limits=LIMITS, **settings)
    return parsed.links


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("See [[heron]] and [[birds/Grey heron|the bird]].", ["heron", "birds/Grey heron"]),
        ("[[weir#Repairs]] [[weir#^block|x]] ![[map.png]]", ["weir", "map.png"]),
        ("[[ spaced  ]] [[heron]] [[heron#again]]", ["spaced", "heron"]),
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
    """Without alias, heading and block; none in code or HTML; each target once."""
    assert [link.target for link in links(text)] == targets
    assert {link.kind for link in links(text)} <= {"text"}


def test_a_link_knows_its_line():
    """Also behind front matter, and behind a code span that goes over lines."""
    text = "---\ntitle: x\n---\nfirst [[a]]\n\n- item `with\n  [[code]]` and\n  [[b]]\n\n[[a]] again\n"
    assert links(text) == (Link("text", "a", 4), Link("text", "b", 8))


@pytest.mark.parametrize(
    ("front", "targets"),
    [
        ("supersedes: memory/deploy/x-3f2a91.md", ["memory/deploy/x-3f2a91.md"]),
        ("supersedes: [a.md, 'b, c.md']", ["a.md", "b, c.md"]),
        ("supersedes:\n  - '[[old note|Old]]'\n  - \"[[older#part]]\"", ["old note", "older"]),
        ("supersedes: [[old note]]", ["old note"]),
        ("supersedes:\n  - [[old]]\n  - [[older|x]]", ["old", "older"]),
        ("supersedes: 3f2a915b7c80d1e4", ["3f2a915b7c80d1e4"]),
        ("supersedes: ''", []),
        ("supersedes: {a: b}", []),
        ("supersedes:", []),
        ("Supersedes: a.md", []),
    ],
)
@pytest.mark.parametrize("key", ["supersedes", "related"])
def test_keys_of_the_front_matter_name_other_notes(front, targets, key):
    """As a text, as a list, and as Obsidian writes links there, with quotes or without."""
    text = f"---\n{front.replace('supersedes', key)}\n---\nThe text.\n"
    assert links(text) == tuple(Link(key, target, None) for target in targets)


def test_what_is_plain_text_links_nothing():
    """A note that is too complex is taken for nothing else."""
    assert links("---\nsupersedes: a.md\n---\n[[b]]", plain=True) == ()


def test_so_many_links_are_read_and_no_more():
    """A page of them costs little, and is cut; so is a front matter."""
    assert len(links(" ".join(f"[[note {number}]]" for number in range(5_000)))) == 1_000
    assert (
        len(links("---\nrelated: [" + ", ".join(f"n{number}" for number in range(2_000)) + "]\n---\nx"))
        == 1_000
    )
    assert len(links("\n\n".join(f"[[note {number}]]" for number in range(5_000)))) == 1_000
    assert links("[[" * 50_000) == ()
