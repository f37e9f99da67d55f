"""Notes of an Obsidian vault: tags in the text, nested tags, aliases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests_support import WordHashEmbedder

from memd.records import ChunkLimits
from memd.sources import chunk

LIMITS = ChunkLimits(200, 50, 254)


def parse(text, **settings):
    return chunk.parse(text, tokenizer=WordHashEmbedder.tokenizer, limits=LIMITS, **settings)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("About #alpha and #beta_2, then #gamma-3.", ("alpha", "beta_2", "gamma-3")),
        ("#project/alpha\n\n- #todo one\n> #quoted\n\n| #cell | x |\n|---|---|\n| #row | y |",
         ("project/alpha", "todo", "quoted", "cell", "row")),
        ("# Title #tagged\n\n## Other ##", ("tagged",)),
        ("#Alpha and #alpha are one.", ("Alpha",)),
        ("#Über #日本語。#", ("Über", "日本語")),
        ("see issue #1984, or #12/3", ()),
        ("# Title\n\n## Next\n#\n# # #", ()),
        ("https://x.org/#frag <https://x.org/ #no> [a](#anchor) [[note#heading]] a#b (#c) \\#d", ("no",)),
        ("`#code` and ``a ` #b`` but #c, `#open", ("c",)),
        ("`a\n#in a span` #out", ("out",)),
        ("```css\n#fence { color: #fff }\n```\n\n    #indented\n\n- x\n\n  ```\n  #nested\n  ```\n", ()),
        ("<div>\n#html\n</div>", ()),
        ("#fff #FFFFFF #09f #1a2b3c #A1B2C3D4 #000000", ()),
        ("#e2e #bad #facade #decade #abcd", ("e2e", "bad", "facade", "decade", "abcd")),
        ("---\ntags: [alpha]\n---\n#Alpha #beta", ("alpha", "beta")),
        ("---\ntags: '#a/b'\nx: '#no'\n---\ntext", ("a/b",)),
        ("#[[two words]] and #[[one/two]], #[[1984]] #[[a|b]] x#[[c]]", ("two words", "one/two")),
        ("A #grey heron# and #one#, #a/b c-d#: #so it ends#", ("grey heron", "one", "a/b c-d", "so it ends")),
        ("#a and #b\n#c\nd# #e f #g, #h i#j k# #learning C# now", ("a", "b", "c", "e", "g", "h", "learning")),
        ("#" + "x" * 201, ()),
    ],
)  # fmt: skip
def test_tags_are_read_from_the_text(text, tags):
    """Behind white space, not in code, HTML and links; no numbers, no colours; each once."""
    assert parse(text).tags == tags


def test_a_note_that_is_too_complex_has_the_tags_of_no_text():
    assert parse("#alpha", plain=True).tags == ()


def test_so_many_tags_are_read_and_no_more():
    many = " ".join(f"#tag{number}" for number in range(5_000))
    assert len(parse(many).tags) == 1_000
    assert parse("`" * 20_000 + " #a " + "` `` ``` " * 5_000).tags is not None


@pytest.mark.parametrize("aliases", ["[Grey Bird, Ardea]", "Grey Bird, Ardea", "\n  - Grey Bird\n  - Ardea"])
@pytest.mark.parametrize("text", ["It waits in the reeds.\n", ""])
def test_aliases_are_read_with_the_first_chunk(aliases, text):
    document = parse(f"---\naliases: {aliases}\ntags: [bird]\n---\n{text}")
    assert document.chunks[0].context.startswith("Grey Bird, Ardea, bird")
    assert document.tags == ("bird",)


@given(st.text(alphabet="#`a1/ \n>-f|", max_size=60))
def test_any_text_has_tags(text):
    assert all(tag.strip() == tag != "" for tag in parse(text).tags)
