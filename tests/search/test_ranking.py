import pytest

from memd.config import Weights
from memd.search import confidence, ranking
from memd.search.ranking import Candidate


def candidate(number: int, merged: float, *, path: str = "a.md", source: int = 1) -> Candidate:
    return Candidate(number, source, path, 1, merged, 1, merged, "fts", 1.0, Weights(), merged, merged)


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        # A chunk without a vector is judged by its words alone, with full weight.
        (ranking.weights_seen(Weights(0.7, 0.3), vector=False, keyword=True), Weights(0.0, 1.0)),
        (ranking.weights_seen(Weights(0.4, 0.4), vector=True, keyword=True), Weights(0.5, 0.5)),
        (ranking.weights_seen(Weights(1.0, 0.0), vector=False, keyword=True), Weights(0.0, 1.0)),
        (ranking.weighted(0.5, 1.0, Weights(0.7, 0.3)), 0.65),
        (ranking.reciprocal_rank([1, 1]), 2 / 61), (ranking.reciprocal_rank([None, 3]), 1 / 63),
        (ranking.half_life_decay(30, 30, 0), 0.5), (ranking.half_life_decay(60, 30, 0), 0.25),
        # Age leaves the floor, and the future does not decay.
        (ranking.half_life_decay(30, 30, 0.5), 0.75), (ranking.half_life_decay(36_500, 30, 0.4), 0.4),
        (ranking.half_life_decay(36_500, 30, 1), 1.0), (ranking.half_life_decay(-3, 30, 0.5), 1.0),
    ],
)  # fmt: skip
def test_a_formula(computed, expected):
    assert computed == pytest.approx(expected)


def test_ties_are_ordered_by_path_and_line():
    tied = [candidate(1, 0.5, path="b.md"), candidate(3, 0.5), candidate(2, 0.5)]
    assert [one.id for one in ranking.ordered(tied)] == [2, 3, 1]


def judged(merged, vector, keyword, *, ranks=(1, 1), weights=None):
    """A candidate with the scores and ranks of both arms."""
    return candidate(1, merged)._replace(
        vector_score=vector, keyword_score=keyword, vector_rank=ranks[0], keyword_rank=ranks[1],
        weights=weights or Weights(0.7, 0.3),
    )  # fmt: skip


WORDS = Weights(0.0, 1.0)


@pytest.mark.parametrize(
    ("first", "lead", "shared", "sure"),
    [
        (judged(0.5, 0.3, 0.5), 0.075, "roof tile red", True),
        (judged(0.5, 0.3, 0.5), 0.07, "roof tile red", False),
        (judged(0.5, 0.29, 0.5), 0.2, "roof tile red", False),
        (judged(0.19, 0.3, 0.0), 0.9, "roof tile red", True),
        (judged(-0.01, 0.3, 0.0), 0.9, "roof tile red", False),
        (judged(0.5, 0.45, 0.5), 0.125, "roof tile el avec", True),
        (judged(0.5, 0.44, 0.5), 0.125, "roof tile el avec", False),
        (judged(0.5, 0.45, 0.5), 0.12, "roof tile el avec", False),
        (judged(0.5, 0.45, 0.5), 0.125, "", True),
        (judged(0.7, 0.7, 0.9), 0.3, "le avec c", False),
        (judged(0.7, 0.7, 0.9), 0.0, "le avec c", False),
        (judged(0.55, 0.54, 0.6, ranks=(2, 2)), 0.0, "roof", True),
        (judged(0.44, None, 0.44, weights=WORDS), 0.01, "le", True),
    ],
)
def test_the_first_hit_is_sure_by_its_lead_and_no_other_without_it(first, lead, shared, sure):
    """A lead counts for at most .2; where words judge, or the first leads nothing, old limits stay.

    Function words of any language are no reason for a note, and alone they are one against it.
    """
    second = judged(0.55, 0.54, 0.6, ranks=(9, 2))
    assert confidence.sure_ones([first, second], lead, shared.split()) == [sure, sure]
    assert confidence.sure_ones([], None, []) == []


def test_a_newer_note_in_first_place_does_not_keep_back_the_older_one_that_is_sure():
    newer, older = judged(0.1, 0.1, 0.1), judged(0.55, 0.54, 0.6)
    first = newer._replace(path="b.md")
    assert confidence.sure_ones([first, older], 0.0, ["roof"], newer={"b.md"}) == [False, True]


@pytest.mark.parametrize(
    ("one", "read", "is_sure"),
    [
        (judged(0.55, 0.54, 0.6, ranks=(9, 2)), 1.0, True),
        (judged(0.54, 0.7, 0.2, ranks=(1, 1)), 1.0, False),
        (judged(0.9, 0.53, 0.9, ranks=(1, 2)), 1.0, False),
        (judged(0.9, 0.53, 0.9, ranks=(2, 1)), 1.0, False),
        (judged(0.55, 0.42, 0.9), 1.0, True),
        (judged(0.55, 0.41, 0.9), 1.0, False),
        (judged(0.44, None, 0.44, weights=WORDS), 1.0, True),
        (judged(0.9, None, 0.9, ranks=(None, 2), weights=WORDS), 1.0, False),
        (judged(0.43, None, 0.43, weights=WORDS), 1.0, False),
        (judged(0.4, 0.1, 0.44, weights=Weights(0.3, 0.7)), 0.4, True),
        (judged(0.4, 0.1, 0.44, weights=Weights(0.45, 0.55)), 0.9, False),
        (judged(0.0, None, None, ranks=(None, None), weights=WORDS), 1.0, False),
    ],
)
def test_a_note_is_sure_by_its_meaning_by_both_arms_or_by_words_alone(one, read, is_sure):
    """By score and meaning, less of it if both arms have it first; by words, if the model reads little."""
    assert confidence.is_sure(one, read) == is_sure


@pytest.mark.parametrize(
    ("matched", "has_all", "keyword"),
    [(0, False, 0.3), (0.5, False, 0), (1, False, 0.075), (2, False, 0.225), (3, False, 0.375),
     (4, False, 0.5), (9, True, 0.5), (1, True, 0.3), (0.5, True, 0.3), (3, True, 0.375)],
)  # fmt: skip
def test_the_more_words_match_the_more_they_weigh(matched, has_all, keyword):
    """At most as much as the meaning; no less than .3 where a note has every word."""
    found = ranking.weights_matched(matched, has_all=has_all)
    assert (found.vector, found.keyword) == (pytest.approx(1 - keyword), pytest.approx(keyword))
