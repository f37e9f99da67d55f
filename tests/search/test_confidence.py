"""The word for an answer is the same however it is asked for, and right at the ends."""

from datetime import timedelta

import pytest
from tests_support import DAY

from memd.config import Weights
from memd.search.confidence import (
    FAIR,
    LEAD,
    NEAR,
    NEAR_IN_PIECES,
    POINT_AHEAD,
    POINT_MEANING,
    STRONG,
    Sureness,
    confidence,
    led,
    pointer,
)
from memd.search.ranking import Candidate

FILLER = {f"filler/{number}.md": f"nothing of interest number{number} stands here\n" for number in range(60)}
BOTH, WORDS, MEANING = Weights(0.7, 0.3), Weights(0.0, 1.0), Weights(1.0, 0.0)


def candidate(merged: float, *, weights: Weights = BOTH, meaning: float | None = None, path: str = "a.md"):
    return Candidate(1, 1, path, 1, meaning, 1, 0.0, "fts", 1.0, weights, merged, merged)


def said(*candidates, knows=True, reads="whole"):
    return confidence(candidates, lambda _: True, knows=knows, reads=reads)


@pytest.mark.parametrize("weights", [BOTH, WORDS, MEANING])
def test_a_high_score_is_strong_in_every_mode(weights):
    assert said(candidate(STRONG, weights=weights)) == "strong"
    assert said(candidate(STRONG - 0.01, weights=weights)) == "weak"


def test_one_word_of_the_question_is_enough_for_weak():
    """Even an unimportant one, because a short note that answers in other words has no more."""
    assert said(candidate(0.01)) == "weak"


def of_note(source: int, meaning: float):
    return candidate(0.1, meaning=meaning)._replace(source=source, id=10 * source)


def test_the_note_is_named_that_is_ahead_of_the_others_in_meaning():
    """Wherever it ranks, by its best passage; a passage that words alone found is not."""
    far = of_note(9, POINT_MEANING - POINT_AHEAD - 0.001)
    ahead = of_note(1, POINT_MEANING)
    assert pointer([far, of_note(1, 0.1), ahead]) == ahead
    assert pointer([ahead, of_note(9, POINT_MEANING - POINT_AHEAD + 0.01)]) is None
    assert pointer([of_note(1, POINT_MEANING - 0.01)]) is None
    assert pointer([of_note(1, 0.9), of_note(2, 0.9)]) is None
    assert pointer([candidate(0.9, meaning=None)]) is None
    assert pointer([]) is None


def test_without_a_word_the_meaning_must_be_near():
    """A share of the weights does not count as less than all of it would."""
    assert said(candidate(0.7 * NEAR, meaning=NEAR), knows=False) == "weak"
    assert said(candidate(0.2, meaning=NEAR - 0.01), knows=False) == "none"
    assert said(candidate(0.2, meaning=0.9, weights=WORDS), knows=False) == "none", "that arm has no say"


def test_what_the_model_reads_by_pieces_must_be_nearer():
    """Its vector tells less than that of words which the model knows."""
    below, at = (candidate(0.1, meaning=NEAR_IN_PIECES - less) for less in (0.01, 0.0))
    assert said(below, knows=False) == said(at, knows=False, reads="pieces") == "weak"
    assert said(below, knows=False, reads="pieces") == "none"


def test_what_nobody_can_read_is_no_match():
    """Letters that no note has and that mean nothing to the model have a neighbour by chance alone."""
    assert said(candidate(0.3, meaning=0.45), knows=False, reads="nothing") == "none"


def test_an_answer_is_as_good_as_its_best_candidate():
    assert said(candidate(0.1), candidate(0.7), candidate(0.4)) == "strong"
    assert said() == "none"


def test_what_left_the_disk_is_no_match():
    found = [candidate(0.9, path="gone.md"), candidate(0.4)]
    assert confidence(found, lambda path: path != "gone.md", knows=True, reads="whole") == "weak"
    assert confidence(found[:1], lambda path: path != "gone.md", knows=True, reads="whole") == "none"


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_the_word_does_not_depend_on_limit_or_order(notes, mode, fusion):
    """It does not depend on the age of the note either, which is no worse a match."""
    old = (DAY - timedelta(days=400)).isoformat()
    notes.save({f"{old}.md": "the heron nests by the weir\n", "other.md": "heron pond lake\n", **FILLER})
    settings = {"mode": mode, "fusion": fusion}
    said = {notes.search("heron nests weir", limit=limit, **settings).confidence for limit in (1, 5, 50)}
    assert said == {"strong"}


def test_hits_are_given_although_none_is_a_good_match(notes):
    """The word is said of them; whoever shows them decides."""
    notes.save({"a.md": "heron in passing\n"})
    answer = notes.search("10.4.23.7", mode="hybrid", min_score=0.0)
    assert (answer.confidence, [hit.source.path for hit in answer.hits]) == ("none", ["a.md"])


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_a_known_word_is_weak_in_every_mode(notes, mode):
    notes.save({"a.md": "heron in passing " + "and very much else besides " * 30 + "\n", **FILLER})
    assert notes.search("heron weir sluice pond", mode=mode, min_score=0.0).confidence == "weak"


def test_nothing_found_is_none(notes):
    assert notes.search("heron").confidence == "none"


# The lead


def sure(*candidates, answer="weak", alike=(), gone=()):
    return led(answer, candidates, lambda path: path not in gone, alike)


def of(number, merged, source=None):
    return candidate(merged, path=f"{number}.md")._replace(id=number, source=source or number)


def test_a_fair_score_with_a_lead_is_strong():
    assert sure(of(1, FAIR), of(2, FAIR - LEAD - 0.01)) == Sureness("strong", pytest.approx(LEAD + 0.01), 1)
    assert sure(of(1, FAIR), of(2, FAIR - LEAD + 0.01)).confidence == "weak"
    assert sure(of(1, FAIR - 0.01), of(2, 0.0)).confidence == "weak"
    assert sure(of(1, 0.5), of(2, 0.1), answer="none").confidence == "none"


def test_the_lead_is_over_another_note_that_is_there_and_no_copy():
    found = of(1, 0.5), of(2, 0.49, source=1), of(3, 0.48), of(4, 0.47), of(5, 0.2)
    assert sure(*found, alike={3}, gone={"4.md"}).lead == pytest.approx(0.3)
    assert sure(of(1, 0.3), of(2, 0.4)).lead == 0.0, "a name put it first"
    assert sure().lead is None


def test_a_single_word_in_the_title_is_never_weak(notes):
    """Of several notes that have the word, too, none leads."""
    talk = {f"talk/{number}.md": f"The heron, heron and heron {number}.\n" for number in range(5)}
    notes.save({"heron.md": f"# Heron\n\n{'It stands by the water. ' * 60}\n", **talk})
    answer = notes.search("heron", mode="hybrid", min_score=0.0)
    assert (answer.hits[0].source.path, answer.confidence) == ("heron.md", "strong")
    assert answer.said_of(answer.hits[0]) == "strong"
