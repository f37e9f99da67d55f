"""Is the word for an answer the same however it is asked for, and right at the ends?"""

from datetime import timedelta

import pytest
from tests_support import DAY

from memd.config import Weights
from memd.search.confidence import STRONG, WEAK, band_of, confidence
from memd.search.ranking import Candidate

FILLER = {f"filler/{number}.md": f"nothing of interest number{number} stands here\n" for number in range(60)}
BOTH, WORDS, MEANING = Weights(0.7, 0.3), Weights(0.0, 1.0), Weights(1.0, 0.0)


def candidate(merged: float, *, weights: Weights = BOTH, meaning: float | None = None, path: str = "a.md"):
    return Candidate(1, 1, path, 1, meaning, meaning, 1, 0.0, 0.0, "fts", 1.0, weights, merged, merged)


@pytest.mark.parametrize("weights", [BOTH, WORDS, MEANING])
def test_the_limits_are_the_same_in_every_mode(weights):
    """Whichever arms saw a chunk, the same score is the same word."""
    expected = {STRONG: "strong", STRONG - 0.01: "weak", WEAK: "weak", WEAK - 0.01: "none", 0.0: "none"}
    assert {score: band_of(candidate(score, weights=weights)) for score in expected} == expected


def test_a_meaning_without_its_words_is_weak_and_not_none():
    """A share of it does not count as less than all of it would."""
    assert band_of(candidate(0.7 * WEAK, meaning=WEAK)) == "weak"
    assert band_of(candidate(0.2, meaning=0.9, weights=WORDS)) == "none", "that arm has no say"


def test_an_answer_is_as_good_as_its_best_candidate():
    """In whatever order they stand."""
    assert confidence([candidate(0.1), candidate(0.7), candidate(0.4)], lambda _: True) == "strong"
    assert confidence([], lambda _: True) == "none"


def test_what_left_the_disk_is_no_match():
    """The word is that of what can be read."""
    found = [candidate(0.9, path="gone.md"), candidate(0.4)]
    assert confidence(found, lambda path: path != "gone.md") == "weak"


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_the_word_does_not_depend_on_limit_or_order(notes, mode, fusion):
    """Nor on how old the note is: it is no worse a match."""
    old = (DAY - timedelta(days=400)).isoformat()
    notes.save({f"{old}.md": "the heron nests by the weir\n", "other.md": "heron pond lake\n", **FILLER})
    settings = {"mode": mode, "fusion": fusion}
    said = {notes.search("heron nests weir", limit=limit, **settings).confidence for limit in (1, 5, 50)}
    assert said == {"strong"}


def test_hits_are_given_although_none_is_a_good_match(notes):
    """The word is said of them; they are not hidden."""
    notes.save({"a.md": "heron in passing " + "and very much else besides " * 30 + "\n", **FILLER})
    answer = notes.search("heron weir sluice pond", min_score=0.0)
    assert (answer.confidence, [hit.source.path for hit in answer.hits]) == ("none", ["a.md"])


def test_nothing_found_is_none(notes):
    """Also in an empty workspace."""
    assert notes.search("heron").confidence == "none"
