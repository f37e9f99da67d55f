import math

import pytest

from benchmarks.scorer import evaluate, ndcg, recall, reciprocal_rank


def test_ndcg_uses_grades_as_gains_and_the_best_order_as_its_measure():
    """Grades 2 and 1 at ranks 3 and 1 give (1 + 2/2) over (2 + 1/log2 3)."""
    found = ndcg(["b", "x", "a"], {"a": 2, "b": 1}, depth=10)
    assert found == pytest.approx((1 + 2 / 2) / (2 + 1 / math.log2(3)))


def test_a_perfect_ranking_has_ndcg_one():
    """The best possible order scores 1, also with more relevant documents than ranks."""
    grades = {f"d{number}": 1 for number in range(15)}
    assert ndcg(sorted(grades)[:10], grades, depth=10) == pytest.approx(1)


def test_ndcg_does_not_look_below_its_depth():
    """A relevant document at rank 11 gains nothing, at rank 10 it gains 1/log2 11."""
    others = [f"x{number}" for number in range(10)]
    assert ndcg([*others, "a"], {"a": 1}, depth=10) == 0
    assert ndcg([*others[:9], "a"], {"a": 1}, depth=10) == pytest.approx(1 / math.log2(11))


def test_recall_counts_relevant_documents_once():
    """Two of four relevant documents found are a recall of one half, grade 0 is not relevant."""
    grades = {"a": 1, "b": 2, "c": 1, "d": 3, "e": 0}
    assert recall(["a", "e", "b"], grades, depth=10) == 0.5
    assert recall(["e", "x", "a"], grades, depth=2) == 0


def test_the_reciprocal_rank_is_that_of_the_first_relevant_document():
    """The first relevant document at rank 4 gives 1/4, none gives 0."""
    assert reciprocal_rank(["x", "e", "y", "a", "b"], {"a": 1, "b": 1, "e": 0}, depth=10) == 0.25
    assert reciprocal_rank(["x"], {"a": 1}, depth=10) == 0


def test_means_are_over_the_judged_queries_answered_or_not():
    """A judged query without an answer counts 0, one without judgements does not count at all."""
    figures = evaluate({"q1": ["a"], "other": ["z"]}, {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 0}})
    assert figures == {"ndcg@10": 0.5, "recall@10": 0.5, "recall@100": 0.5, "mrr@10": 0.5}


def test_judgements_without_a_relevant_document_are_an_error():
    """An empty qrels file is said to be one, instead of a mean over nothing."""
    with pytest.raises(ValueError, match="relevant"):
        evaluate({}, {})
