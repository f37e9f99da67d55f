"""Ranking of candidates: fusion of the arms, decay by age, the floor, the order. Pure functions on lists."""

from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

from memd.config import Weights
from memd.records import Source

# k of Cormack, Clarke & Büttcher, SIGIR 2009: softens the lead of rank 1.
RRF_K = 60
PER_SOURCE = 3  # hits of one source in an answer; a long file must not fill it


class Candidate(NamedTuple):
    """A chunk that at least one arm's pool holds, judged by both.

    A named tuple and not a dataclass: hundreds are made for each query, at a quarter of the cost.
    """

    id: int
    source: int
    path: str
    vector_rank: int | None  # in the arm's pool, from 1; None where the chunk was outside of it
    vector_score: float | None  # in [0, 1]; None where the arm could not see the chunk
    file_similarity: float | None  # mean cosine of its source, which has a share in that
    keyword_rank: int | None
    keyword_score: float | None
    file_score: float | None  # what that would be by the words of the whole source alone
    tier: str | None  # of the keyword arm; None where that did not run
    decay: float  # in (0, 1]
    weights: Weights  # those used for it
    merged: float  # in [0, 1], before decay
    order: float  # what it is sorted by; 1 more for each word that names it

    @property
    def score(self) -> float:
        """The score that the answer shows."""
        return self.merged * self.decay


def weights_seen(weights: Weights, *, vector: bool, keyword: bool) -> Weights:
    """Renormalise *weights* over the arms that could see a chunk: not seeing is not disliking."""
    v = weights.vector if vector else 0.0
    k = weights.keyword if keyword else 0.0
    if v + k == 0:  # only an arm without weight saw it: then that arm decides
        v, k = float(vector), float(keyword)
    total = v + k
    return Weights(v / total, k / total) if total else Weights()


def weights_read(weights: Weights, read: float) -> Weights:
    """Give the words the weight of the meaning that is noise: the model reads a share *read* of the query."""
    return Weights(weights.vector * read, weights.keyword + weights.vector * (1 - read))


def weighted(vector: float | None, keyword: float | None, weights: Weights) -> float:
    """Return the weighted sum of the scores; an arm that saw nothing has weight 0."""
    return weights.vector * (vector or 0.0) + weights.keyword * (keyword or 0.0)


def reciprocal_rank(ranks: Iterable[int | None]) -> float:
    """Return Σ 1 / (k + rank) over the arms that ranked the chunk. It orders; it is not a score."""
    return sum([1 / (RRF_K + rank) for rank in ranks if rank is not None])


def half_life_decay(age_days: float, half_life_days: float) -> float:
    """Return the share that is left after *age_days*: a half for every half-life; 1 for the future."""
    return float(0.5 ** (max(age_days, 0.0) / half_life_days))


def decay_of(source: Source, today: date, half_life_days: float) -> float:
    """Return what age leaves of the score of a source's chunks; only a source that is dated decays."""
    return half_life_decay((today - source.day).days, half_life_days) if source.dated else 1.0


def floor(candidates: Iterable[Candidate], min_score: float) -> list[Candidate]:
    """Drop what scores below *min_score* before decay: a note does not vanish because it is old."""
    return [candidate for candidate in candidates if candidate.merged >= min_score]


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the best first; ties by path and line: the ids of a source's chunks rise with their lines."""
    return sorted(candidates, key=lambda one: (-one.order, one.path, one.id))
