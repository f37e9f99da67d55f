"""What is meant alike is written alike, in notes and in queries, and nothing is lost on the way."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.entries.entry import slug
from memd.index.database import open_scratch, terms_of
from memd.text import is_ignorable, is_spaceless, pairs_of, pieces_of, prepare, searched_text

CUT = terms_of(open_scratch(), of_query=True)
# Words of many scripts, marks, and what stands between them: plain st.text() rarely puts these together.
ATOMS = st.one_of(
    st.sampled_from(
        ["heron", "résumé", "мир", "会議", "ガス", "회의", "שלום", "كتاب", "फिल्म", "ปลา", "λόγος", "ß"]
    ),
    st.sampled_from(
        [" ", "-", "\n", "\u200b", "\u200c", "\u200d", "\ufe0f", "\u00ad", "\u2066", "🦩", "₿", "1", "_", "'"]
    ),
    st.characters(categories=["L", "N"]),
    st.characters(categories=["M"]),
    st.characters(),
)
TEXTS = st.lists(ATOMS, max_size=12).map("".join)


@given(TEXTS)
def test_either_normal_form_is_searched_alike(text):
    forms = {searched_text(unicodedata.normalize(form, text)) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert forms == {searched_text(text)}


@given(TEXTS)
def test_every_word_that_is_asked_for_is_a_word_that_was_indexed(text):
    """What FTS5 makes of the query's words, it makes of the note's: a note is found by all of its words."""
    indexed = CUT(prepare(text))
    words = [piece for piece in pieces_of(text) if not is_spaceless(piece)]
    runs = [pair for piece in pieces_of(text) if is_spaceless(piece) for pair in pairs_of(piece)]
    assert set(CUT(" ".join([*words, *runs]))) <= set(indexed)


@given(TEXTS)
def test_nothing_but_words_is_given_to_fts5(text):
    """FTS5 takes every character that is younger than its tables for a letter: it sees none."""
    for piece in prepare(text).split():
        for character in piece:
            category = unicodedata.category(character)
            assert character.isascii() or category[0] in "LNM" or (len(piece) == 1 and category[0] == "S")


@pytest.mark.parametrize(
    ("note", "words"),
    [
        ("heron🦩weir", ["heron", "🦩", "weir"]), ("❤️love", ["❤", "love"]), ("₿100", ["₿", "100"]),
        ("👍🏽 👩\u200d💻", ["👍", "👩", "💻"]), ("├── a │ ██", ["a"]),
        ("x≤y → 50€", ["x", "≤", "y", "→", "50", "€"]), ("\u2066heron\u2069", ["heron"]),
        ("Zeit\u00adung", ["Zeitung"]), ("zero\u200bwidth", ["zero", "width"]), ("הAPI", ["ה", "API"]),
        ("APIдля", ["API", "для"]), ("TGFβ", ["TGFβ"]), ("می‌خواهم", ["مي", "خواهم"]), ("\u0301", []),
    ],
)  # fmt: skip
def test_where_words_end(note, words):
    """At everything that is no part of a word, and at a seam between Latin and another script."""
    assert pieces_of(note) == words


def test_text_of_ascii_alone_stays_as_it_is():
    """Nothing is done to what most notes are."""
    text = "What's up? foo-bar C++ 20.04 a:b \t\n" + "".join(map(chr, range(1, 128)))
    assert searched_text(text) == text


@pytest.mark.parametrize("char", "\u061c\u200d\u115f\u1160\u3164\uffa0\ufeff\U000e0041")
def test_what_nobody_sees_is_no_part_of_a_word(char):
    """A pasted mark of direction or a filler of Hangul hides nothing from a search, and names no file."""
    assert pieces_of(f"he{char}ron") == ["heron"]
    assert is_ignorable(char)
    assert slug(f"he-{char}ron", kind="title") == "he-ron"
