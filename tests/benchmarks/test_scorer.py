import pytest

from benchmarks.scorer import evaluate


def test_means_are_over_the_judged_queries_answered_or_not():
    figures = evaluate({"q1": ["a"], "other": ["z"]}, {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 0}})
    assert figures == {"ndcg@10": 0.5, "recall@10": 0.5, "recall@100": 0.5, "mrr@10": 0.5}


def test_judgements_without_a_relevant_document_are_an_error():
    """An empty qrels file is said to be one, instead of a mean over nothing."""
    with pytest.raises(ValueError, match="relevant"):
        evaluate({}, {})
