import unicodedata

import pytest

from memd.text import clean, pieces_of, prepare, trigrams


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("plain words", "plain words"),
        ("会議", "会議 議"),
        ("会", "会"),
        ("データbase分析", "デー ータ タ base 分析 析"),
        ("a\0b", "a b"),
        ("heron🦩weir – ₿1 é", "heron 🦩 weir ₿ 1 é"),
    ],
)
def test_spaceless_runs_become_pairs_and_their_last_character(text, prepared):
    assert prepare(text) == prepared


@pytest.mark.parametrize("text", ["café", "й", "한국어", "ガギグ", "Ωμέγα"])
def test_decomposed_and_composed_text_have_the_same_terms(text):
    assert prepare(unicodedata.normalize("NFD", text)) == prepare(text)


def test_pieces_part_runs_from_words():
    assert pieces_of("AI会議, 2026-05 C++!") == ["AI", "会議", "2026", "05", "C"]


def test_lone_surrogates_are_replaced():
    assert clean("a\ud800b") == "a?b"


def test_trigrams_stand_inside_of_words():
    ascii_ones = {"get", "et2", "use", "ser"}
    assert trigrams("GET2 user_id, user; ab c_d (a-b)") == ascii_ones
    assert trigrams("GET2 user_id, user; ab c_d (a-b) \u00e9") == ascii_ones
    assert trigrams("\u00c9t\u00e9s \u0436\u0443\u043a \u91d1\u95a3\u5bfa\u3078") == {
        "ete",
        "tes",
        "\u0436\u0443\u043a",
    }
