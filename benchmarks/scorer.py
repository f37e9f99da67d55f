"""The means of a run's measures over the judged queries of a set. Pure."""

from collections.abc import Mapping, Sequence

from memd.eval.scores import Grades, ndcg, recall, reciprocal_rank

Run = Mapping[str, Sequence[str]]  # query → documents, best first, each once
Judgements = Mapping[str, Grades]
MEASURES = ("ndcg@10", "recall@10", "recall@100", "mrr@10")


def evaluate(run: Run, judgements: Judgements) -> dict[str, float]:
    """Return each of MEASURES as its mean over the judged queries; a query without an answer counts 0.

    Queries without a relevant document are left out: no ranking could answer them.
    """
    judged = {query: grades for query, grades in judgements.items() if any(g > 0 for g in grades.values())}
    if not judged:
        raise ValueError("no query has a relevant document: is this the right qrels.tsv?")
    sums = dict.fromkeys(MEASURES, 0.0)
    for query, grades in judged.items():
        ranking = run.get(query, ())
        sums["ndcg@10"] += ndcg(ranking, grades, depth=10)
        sums["recall@10"] += recall(ranking, grades, depth=10)
        sums["recall@100"] += recall(ranking, grades, depth=100)
        sums["mrr@10"] += reciprocal_rank(ranking, grades, depth=10)
    return {measure: total / len(judged) for measure, total in sums.items()}
