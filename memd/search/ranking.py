"""Ranking of candidates: weights, decay by age, floor and order. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from memd.config import Weights

# Weight of the words for each matched word beyond the half of one, and its bound.
WORDS_A_MATCH, MOST_WORDS = 0.15, 0.5
# k of Cormack, Clarke & Büttcher, SIGIR 2009: softens the lead of rank 1.
RRF_K = 60

# Factor on the sort key of a note past its last day: a note that holds and matches half as well comes first,
# and the expired note is still found where it alone answers. Its score is unchanged. Arbitrary.
EXPIRED_SHARE = 0.5


class Candidate(NamedTuple):
    """A chunk in the pool of at least one arm, with the scores of both arms."""

    id: int
    source: int
    path: str
    vector_rank: int | None  # in the arm's pool, from 1; None outside the pool
    vector_score: float | None  # in [0, 1]; None if the arm could not score the chunk
    keyword_rank: int | None
    keyword_score: float | None
    tier: str | None  # of the keyword arm; None if it did not run
    decay: float  # in (0, 1]
    weights: Weights  # used for this chunk
    merged: float  # in [0, 1], before decay
    order: float  # the sort key; includes 1 for each word that names the chunk

    @property
    def score(self) -> float:
        """The score that the answer shows."""
        return self.merged * self.decay

    @property
    def worded(self) -> float:
        """Its score before decay if that of the vector arm means nothing."""
        return self.merged if self.vector_score is None else self.keyword_score or 0.0


def weights_matched(matched: float, *, has_all: bool) -> Weights:
    """Return the weights where none are named, by the words that the best-matching candidate has.

    On long pages asked in their own words the words alone are better than both arms at .7 and .3, on short
    notes asked in other words the meaning alone is. No constant serves both; the number of distinct query
    words in the best-matching chunk tells them apart. It is flat: .12 to .15 a word and caps of .45 to .6 are
    within .002 of nDCG@10.

    Args:
        matched: distinct words of the query in that candidate; a form counts as its word, stop words do not.
        has_all: a candidate has every word of the query.
    """
    if (
        not matched
    ):  # nothing to weigh: the scores keep the scale that `none` and the floor were calibrated on
        return Weights()
    keyword = min(WORDS_A_MATCH * max(matched - 0.5, 0.0), MOST_WORDS)
    keyword = max(keyword, Weights().keyword) if has_all else keyword
    return Weights(1 - keyword, keyword)


def weights_seen(weights: Weights, *, vector: bool, keyword: bool) -> Weights:
    """Renormalise *weights* over the arms that scored a chunk: a missing score is not a low score."""
    v = weights.vector if vector else 0.0
    k = weights.keyword if keyword else 0.0
    if v + k == 0:  # only an arm with weight 0 scored it: then that arm decides
        v, k = float(vector), float(keyword)
    total = v + k
    return Weights(v / total, k / total) if total else Weights()


def weights_read(weights: Weights, read: float) -> Weights:
    """Move vector weight to the keyword arm: the model reads only a share *read* of the query."""
    return Weights(weights.vector * read, weights.keyword + weights.vector * (1 - read))


def weighted(vector: float | None, keyword: float | None, weights: Weights) -> float:
    """Return the weighted sum of the scores; an arm without a score has weight 0."""
    return weights.vector * (vector or 0.0) + weights.keyword * (keyword or 0.0)


def ranks(scores: Mapping[int, float]) -> dict[int, int]:
    """Return the rank of each number by its score, the highest first, ties by number."""
    ordered = sorted(scores, key=lambda number: (-scores[number], number))
    return {number: rank for rank, number in enumerate(ordered, 1)}


def reciprocal_rank(ranks: Iterable[int | None]) -> float:
    """Return Σ 1 / (k + rank) over the arms that ranked the chunk. This is a sort key, not a score."""
    return sum([1 / (RRF_K + rank) for rank in ranks if rank is not None])


def half_life_decay(age_days: float, half_life_days: float, floor: float) -> float:
    """Return the share of a score that is left after *age_days*; 1 for the future.

    Only the part above *floor* halves every half-life, so that an old note is found if it alone answers.
    """
    return float(floor + (1 - floor) * 0.5 ** (max(age_days, 0.0) / half_life_days))


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort best first, ties by path and line: the ids of a source's chunks rise with their lines."""
    return sorted(candidates, key=lambda candidate: (-candidate.order, candidate.path, candidate.id))
