"""The figures are those of the textbooks."""

import math

import pytest

from memd.eval import scores


def test_ndcg_of_one_answer_is_its_discount():
    """At rank 3 the only answer gains 1/log2(4), of 1 that was possible."""
    assert scores.ndcg(["x", "y", "a"], {"a": 1}, depth=10) == pytest.approx(0.5)


def test_ndcg_of_two_answers_is_over_the_best_order():
    """Ranks 1 and 4 gain 1 + 1/log2(5), of 1 + 1/log2(3)."""
    found = scores.ndcg(["a", "x", "y", "b"], {"a": 1, "b": 1}, depth=10)
    assert found == pytest.approx((1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))


def test_ndcg_uses_grades_as_gains_and_the_best_order_as_its_measure():
    """Grades 2 and 1 at ranks 3 and 1 give (1 + 2/2) over (2 + 1/log2 3)."""
    found = scores.ndcg(["b", "x", "a"], {"a": 2, "b": 1}, depth=10)
    assert found == pytest.approx((1 + 2 / 2) / (2 + 1 / math.log2(3)))


def test_recall_counts_relevant_documents_once():
    grades = {"a": 1, "b": 2, "c": 1, "d": 3, "e": 0}
    assert scores.recall(["a", "e", "b"], grades, depth=10) == 0.5
    assert scores.recall(["e", "x", "a"], grades, depth=2) == 0


def test_the_reciprocal_rank_is_that_of_the_first_relevant_document():
    assert scores.reciprocal_rank(["x", "e", "y", "a", "b"], {"a": 1, "b": 1, "e": 0}, depth=10) == 0.25
    assert scores.reciprocal_rank(["x"], {"a": 1}, depth=10) == 0


def test_more_answers_than_ranks_can_still_be_perfect():
    relevant = [f"d{number}" for number in range(12)]
    assert scores.ndcg(relevant, dict.fromkeys(relevant, 1), depth=10) == pytest.approx(1)


def test_what_stands_below_its_depth_counts_nothing():
    ranking = [f"x{number}" for number in range(10)] + ["a"]
    assert set(scores.measures(ranking, frozenset("a")).values()) == {0.0}


def test_recall_is_a_share_of_the_right_sources():
    figures = scores.measures(["a", "x", "b"], frozenset("ab"))
    assert (figures["recall@1"], figures["recall@5"], figures["recall@10"]) == (0.5, 1, 1)


def test_the_reciprocal_rank_is_that_of_the_first_right_source():
    assert scores.measures(["x", "a", "b"], frozenset("ab"))["mrr@10"] == 0.5


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.51, 3), (0.95, 4), (1.0, 4), (0.0, 1)])
def test_a_quantile_is_a_value_that_was_measured(share, value):
    assert scores.quantile([3, 1, 4, 2], share) == value


def test_an_interval_holds_the_mean_and_narrows_with_the_number():
    """By about the root of the number, as a standard error does."""
    few = scores.interval([0.0, 1.0] * 20, seed=1)
    many = scores.interval([0.0, 1.0] * 500, seed=1)
    assert few[0] < 0.5 < few[1]
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(5, rel=0.2)


def test_an_interval_has_the_width_that_theory_says():
    """Of 400 values of a fair coin: 1.96 standard errors of 0.025 on each side."""
    low, high = scores.interval([0.0, 1.0] * 200, seed=1)
    assert (low, high) == pytest.approx((0.5 - 0.049, 0.5 + 0.049), abs=0.006)


def test_an_interval_is_the_same_for_the_same_seed():
    values = [number / 30 for number in range(30)]
    assert scores.interval(values, seed=3) == scores.interval(values, seed=3)
    assert scores.interval(values, seed=3) != scores.interval(values, seed=4)


def test_a_handful_of_values_has_no_interval():
    """Nine questions say nothing of how sure a mean is."""
    assert scores.interval([0.5] * 9, seed=1) is None
    assert scores.interval([0.5] * 10, seed=1) == (0.5, 0.5)
