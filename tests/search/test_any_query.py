"""Any text is a valid query. A share of the queries of ``python -m benchmarks.any_query``."""

import pytest
from search.any_query import MAKERS, filled, queries, run
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
