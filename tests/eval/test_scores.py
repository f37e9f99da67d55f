"""The figures are those of the textbooks."""

import math

import pytest

from memd.eval import scores

TWELVE = [f"d{number}" for number in range(12)]


@pytest.mark.parametrize(
    ("ranking", "grades", "figure"),
    [
        ("xya", {"a": 1}, 0.5),  # 1/log2(4), of 1 that was possible
        ("axyb", {"a": 1, "b": 1}, (1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3))),  # over the best order
        ("bxa", {"a": 2, "b": 1}, (1 + 2 / 2) / (2 + 1 / math.log2(3))),  # grades are gains
        (TWELVE, dict.fromkeys(TWELVE, 1), 1),  # more answers than ranks
    ],
)
def test_ndcg_is_the_gain_over_that_of_the_best_order(ranking, grades, figure):
    assert scores.ndcg([*ranking], grades, depth=10) == pytest.approx(figure)


GRADES = {"a": 1, "b": 2, "c": 1, "d": 3, "e": 0}
SHARE = scores.measures(["a", "x", "b"], frozenset("ab"))


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        # Recall is a share of the relevant documents, each of which counts once.
        (scores.recall(["a", "e", "b"], GRADES, depth=10), 0.5),
        (scores.recall(["e", "x", "a"], GRADES, depth=2), 0),
        ([SHARE["recall@1"], SHARE["recall@5"], SHARE["recall@10"]], [0.5, 1, 1]),
        # The reciprocal rank is that of the first of them.
        (scores.reciprocal_rank(["x", "e", "y", "a", "b"], GRADES, depth=10), 0.25),
        (scores.reciprocal_rank(["x"], GRADES, depth=10), 0),
        (scores.measures(["x", "a", "b"], frozenset("ab"))["mrr@10"], 0.5),
        # What stands below its depth counts nothing.
        (set(scores.measures([*map(str, range(10)), "a"], frozenset("a")).values()), {0.0}),
    ],
)  # fmt: skip
def test_a_figure_of_a_ranking(figure, expected):
    assert figure == expected


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
