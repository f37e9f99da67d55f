"""Measures of a ranking, as defined by trec_eval and BEIR, and confidence intervals of their means. Pure.

Shared by eval and the benchmarks, so that both can be compared with published figures of document rankings.
"""

import math
import random
from collections.abc import Collection, Mapping, Sequence

Grades = Mapping[str, int]  # document → grade; 0 means judged and not relevant

DEPTH = 10  # what a user looks at: one page of hits
MEASURES = ("ndcg@10", "recall@1", "recall@5", "recall@10", "mrr@10")

# With 2,000, the ends of a 95 % interval vary by about a hundredth of its width, in less than a second.
RESAMPLES = 2000
TAIL = 0.025  # on each side of a 95 % interval
MIN_FOR_INTERVAL = 10  # arbitrary: with fewer queries, resampling shows too little


def measures(ranking: Sequence[str], relevant: frozenset[str]) -> dict[str, float]:
    """Return each of MEASURES for one query, in [0, 1].

    Args:
        ranking: documents, best first, each once.
        relevant: the correct documents; at least one.
    """
    grades = dict.fromkeys(relevant, 1)
    return {
        "ndcg@10": ndcg(ranking, grades, depth=DEPTH),
        "recall@1": recall(ranking, grades, depth=1),
        "recall@5": recall(ranking, grades, depth=5),
        "recall@10": recall(ranking, grades, depth=DEPTH),
        "mrr@10": reciprocal_rank(ranking, grades, depth=DEPTH),
    }


def ndcg(ranking: Sequence[str], grades: Grades, *, depth: int) -> float:
    """Return the discounted gain divided by that of the best possible ranking (nDCG).

    Järvelin & Kekäläinen, ACM TOIS 20(4), 2002, in trec_eval's form: all documents are discounted, and the
    gain is the grade.
    """
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return _gain([grades.get(document, 0) for document in ranking[:depth]]) / _gain(best[:depth])


def recall(ranking: Sequence[str], grades: Grades, *, depth: int) -> float:
    """Return the share of the relevant documents that occur among the first *depth*."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:depth])) / len(relevant)


def reciprocal_rank(ranking: Sequence[str], grades: Grades, *, depth: int) -> float:
    """Return one over the rank of the first relevant document, 0 if none is among the first *depth*."""
    rank = first_rank(ranking[:depth], {document for document, grade in grades.items() if grade > 0})
    return 1 / rank if rank else 0.0


def first_rank(ranking: Sequence[str], relevant: Collection[str]) -> int | None:
    """Return the rank of the first relevant document, from 1; None if there is none."""
    return next((rank for rank, source in enumerate(ranking, 1) if source in relevant), None)


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return math.fsum(values) / len(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least *share* of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def interval(values: Sequence[float], *, seed: int) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean, None for fewer than MIN_FOR_INTERVAL values.

    Percentile bootstrap over the queries (Efron, Annals of Statistics 7(1), 1979). To compare two arms, pass
    their differences query by query: this paired interval is much narrower.
    """
    if len(values) < MIN_FOR_INTERVAL:
        return None
    draw = random.Random(seed)  # noqa: S311 (sampling, not cryptography)
    means = [mean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)]
    return quantile(means, TAIL), quantile(means, 1 - TAIL)


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))
