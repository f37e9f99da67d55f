"""Any text is a valid query. A share of the queries of ``python -m benchmarks.any_query``."""

import pytest
from search.any_query import FIRST_DAY, MAKERS, filled, queries, run
from search.any_query_model import Note, expected_of
from tests_support import LONG

QUERIES = 100_000 if LONG else 600


@pytest.fixture
def known(notes):
    """The notes that the model knows."""
    return filled(notes)


@pytest.mark.timeout(3600 if QUERIES > 10_000 else 120)
def test_any_text_finds_its_words_and_nothing_else(notes, known):
    """No error, no operator of FTS5 or SQL, no lost word: each answer equals that of the model."""
    outcome = run(notes, known, QUERIES, seed=7)
    assert outcome.faults == []
    assert outcome.answered["words"] > 0
    assert outcome.answered["words that stand nowhere"] == 0


def test_every_kind_of_query_is_asked():
    assert {kind for kind, _ in queries(QUERIES, seed=7)} == set(MAKERS)


@pytest.mark.parametrize(
    "raw",
    [
        "alpha OR beta", "alpha AND beta", "alpha NOT beta", "NEAR(alpha beta, 3)", "alpha NEAR/2 beta",
        "^alpha beta*", "words: alpha beta", "{words text} : alpha beta", "(alpha) {beta}",
        "alpha' OR 'beta", "alpha; beta --", "alpha + beta", "alpha - beta", "alpha%beta_", "alpha\0beta",
        "\u202ealpha \u200fbeta", "a\u0301lpha 🏳️‍🌈beta",
    ],
)  # fmt: skip
def test_operators_of_others_are_text(notes, raw):
    """The notes with one of the words are found; the text between requires and excludes nothing."""
    notes.save({"a.md": "alpha\n", "b.md": "beta\n", "c.md": "gamma near\n", "d.md": "gamma words text\n"})
    found = set(notes.found(raw, min_score=0.0))
    assert {"a.md", "b.md"} <= found
    assert ("c.md" in found) is ("NEAR" in raw)
    assert ("d.md" in found) is ("words" in raw)


def test_the_model_knows_an_injected_operator_from_a_word():
    """With NOT as an operator, other notes would be found than the model returns."""
    words = ("heron", "heron-weir", "not")
    notes = [Note(f"{word}.md", FIRST_DAY, (), tuple(word.split("-"))) for word in words]
    assert expected_of(notes, "heron NOT weir") == {"heron.md", "heron-weir.md"}
    assert expected_of(notes, "heron -weir") == {"heron.md"}
    assert expected_of(notes, "NEAR") == set()
    assert expected_of(notes, "er") == set()
    assert expected_of(notes, "ero") == {"heron.md", "heron-weir.md"}
