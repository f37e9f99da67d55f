"""How good is a ranking, and how sure is that? Pure.

Measures as trec_eval and BEIR define them, with two grades: a document answers or it does not. So they
can be compared with published figures of document rankings.
"""

import math
import random
from collections.abc import Sequence

DEPTH = 10  # what a person looks at: one page of hits
MEASURES = ("ndcg@10", "recall@1", "recall@5", "recall@10", "mrr@10")

# 2,000: the ends of a 95 % interval stand still to about a hundredth of its width, in less than a second.
RESAMPLES = 2000
TAIL = 0.025  # on each side of a 95 % interval
MIN_FOR_INTERVAL = 10  # arbitrary: of fewer queries, resampling knows too little to say anything


def measures(ranking: Sequence[str], relevant: frozenset[str]) -> dict[str, float]:
    """
    Return each of MEASURES for one query, in [0, 1].

    Args:
        ranking: documents, best first, each once.
        relevant: those that answer; at least one.
    """
    return {
        "ndcg@10": ndcg(ranking, relevant, depth=DEPTH),
        "recall@1": recall(ranking, relevant, depth=1),
        "recall@5": recall(ranking, relevant, depth=5),
        "recall@10": recall(ranking, relevant, depth=DEPTH),
        "mrr@10": 1 / rank if (rank := first_rank(ranking, relevant)) and rank <= DEPTH else 0.0,
    }


def ndcg(ranking: Sequence[str], relevant: frozenset[str], *, depth: int) -> float:
    """Gain 1/log2(rank + 1) of each relevant document over that of the best ranking.

    Järvelin & Kekäläinen, ACM TOIS 20(4), 2002, in trec_eval's form: all documents are discounted, the
    gain is the grade.
    """
    found = sum(1 / math.log2(rank + 1) for rank, one in enumerate(ranking[:depth], 1) if one in relevant)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(depth, len(relevant)) + 1))
    return found / best


def recall(ranking: Sequence[str], relevant: frozenset[str], *, depth: int) -> float:
    """Share of the relevant documents among the first *depth*."""
    return len(relevant.intersection(ranking[:depth])) / len(relevant)


def first_rank(ranking: Sequence[str], relevant: frozenset[str]) -> int | None:
    """Return the rank of the first relevant document, from 1; None where there is none."""
    return next((rank for rank, one in enumerate(ranking, 1) if one in relevant), None)


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return math.fsum(values) / len(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least *share* of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def interval(values: Sequence[float], *, seed: int) -> tuple[float, float] | None:
    """
    Return where the mean lies with 95 % confidence, None for fewer than MIN_FOR_INTERVAL values.

    Percentile bootstrap over the queries (Efron, Annals of Statistics 7(1), 1979). For a difference of two
    arms give the differences query by query: that is the paired comparison, and far narrower.
    """
    if len(values) < MIN_FOR_INTERVAL:
        return None
    draw = random.Random(seed)  # noqa: S311 (sampling, not cryptography)
    means = [mean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)]
    return quantile(means, TAIL), quantile(means, 1 - TAIL)
