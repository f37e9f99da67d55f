"""How good is a ranking? Pure; the definitions are those of trec_eval and BEIR."""

import math
from collections.abc import Mapping, Sequence

Run = Mapping[str, Sequence[str]]  # query → documents, best first, each once
Judgements = Mapping[str, Mapping[str, int]]  # query → document → grade; 0 is judged and not relevant
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


def ndcg(ranking: Sequence[str], grades: Mapping[str, int], *, depth: int) -> float:
    """Discounted gain over that of the best possible ranking; the gain is the grade itself."""
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return _gain([grades.get(document, 0) for document in ranking[:depth]]) / _gain(best[:depth])


def recall(ranking: Sequence[str], grades: Mapping[str, int], *, depth: int) -> float:
    """Share of the relevant documents among the first *depth*."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:depth])) / len(relevant)


def reciprocal_rank(ranking: Sequence[str], grades: Mapping[str, int], *, depth: int) -> float:
    """One over the rank of the first relevant document, 0 if none is among the first *depth*."""
    for rank, document in enumerate(ranking[:depth], start=1):
        if grades.get(document, 0) > 0:
            return 1 / rank
    return 0.0


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))
