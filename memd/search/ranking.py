"""Ranking of candidates: weights, decay by age, floor, order, and the confidence of an answer. Pure.

Confidence is strong, weak or none, with the same meaning in every mode. It is said of all candidates, from
their scores before decay: an old note is no worse a match, and the order of an answer (``rrf``) says nothing.
`benchmarks/calibration.py` measures what the words are worth with the shipped model, docs/confidence.md has
the figures:

* ``none``: nothing here answers: no chunk has a word of the question, and what is nearest in meaning is
  farther away than chance, or the model cannot read the question either. Said of no question whose note is
  among the hits, however other its words are.
* ``strong``: in 8 of 10 such answers one of the first three hits is right, where there is a right one.
* ``weak``: all else, also most questions about another field altogether. No limit on what a search knows
  parts these from a short note's question in other words.

It says whether something here is about the question, not that it is true: where the answer is missing and
its neighbours are there, these match nearly as well.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple, Protocol

from memd.config import Weights
from memd.records import Confidence, Source
from memd.search.identifiers import Reading

# k of Cormack, Clarke & Büttcher, SIGIR 2009: softens the lead of rank 1.
RRF_K = 60

STRONG = 0.6
# The highest limit with which no question of tests/pairs.jsonl whose note is among the hits is called none:
# with .25 these are 5 of 336. Two texts which have nothing to do with each other often reach it.
NEAR = 0.18
# The limit where the model has no word of the question whole: its vector says less. With .18, 7 of 100
# questions of made-up syllables are called none, with .25 half; those of the pairs stay right up to .29.
NEAR_IN_PIECES = 0.25


class Candidate(NamedTuple):
    """A chunk that at least one arm's pool holds, judged by both."""

    id: int
    source: int
    path: str
    vector_rank: int | None  # in the arm's pool, from 1; None where the chunk was outside of it
    vector_score: float | None  # in [0, 1]; None where the arm could not see the chunk
    keyword_rank: int | None
    keyword_score: float | None
    tier: str | None  # of the keyword arm; None where that did not run
    decay: float  # in (0, 1]
    weights: Weights  # those used for it
    merged: float  # in [0, 1], before decay
    order: float  # what it is sorted by; 1 more for each word that names it

    @property
    def score(self) -> float:
        """The score that the answer shows."""
        return self.merged * self.decay


class Candidates(Protocol):
    """The candidates of a search, best first: in columns (`fusion`), or in a list where numpy is missing."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, place: int, /) -> Candidate:
        """Return the one at a place, the best first."""

    def __iter__(self) -> Iterator[Candidate]:
        """Yield all of them."""

    def numbers(self) -> tuple[list[int], list[int]]:
        """Return the ids, and the source of each."""

    def floor(self, min_score: float) -> "Candidates":
        """Drop what scores below *min_score* before decay: a note does not vanish because it is old."""

    def near(self, cosine: float) -> "Candidates":
        """Return those of which the vector arm has a say, and says at least *cosine*."""

    def placed(self, order: Sequence[int], places: Mapping[int, int]) -> "Candidates":
        """Return all of them in another *order*; those in *places* are sorted as the one at that place is."""


class CandidateList(list[Candidate]):
    """`Candidates`, each made."""

    def numbers(self) -> tuple[list[int], list[int]]:
        """Return the ids, and the source of each."""
        return [one.id for one in self], [one.source for one in self]

    def floor(self, min_score: float) -> "CandidateList":
        """Drop what scores below *min_score* before decay."""
        return CandidateList(one for one in self if one.merged >= min_score)

    def near(self, cosine: float) -> "CandidateList":
        """Return those of which the vector arm has a say, and says at least *cosine*."""
        return CandidateList(
            one for one in self if one.weights.vector > 0 and (one.vector_score or 0.0) >= cosine
        )

    def placed(self, order: Sequence[int], places: Mapping[int, int]) -> "CandidateList":
        """Return all of them in another *order*; those in *places* are sorted as the one at that place is."""
        return CandidateList(
            self[place]._replace(order=self[places.get(place, place)].order) for place in order
        )


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


def half_life_decay(age_days: float, half_life_days: float, floor: float) -> float:
    """Return the share that is left after *age_days*; 1 for the future.

    What is above *floor* halves every half-life: an old note that alone answers is found.
    """
    return float(floor + (1 - floor) * 0.5 ** (max(age_days, 0.0) / half_life_days))


def decay_of(source: Source, today: date, half_life_days: float, floor: float) -> float:
    """Return what age leaves of the score of a source's chunks; only a source that is dated decays."""
    return half_life_decay((today - source.day).days, half_life_days, floor) if source.dated else 1.0


def ordered(candidates: Iterable[Candidate]) -> CandidateList:
    """Return the best first; ties by path and line: the ids of a source's chunks rise with their lines."""
    return CandidateList(sorted(candidates, key=lambda one: (-one.order, one.path, one.id)))


def of_hit(merged: float, answer: Confidence) -> Confidence:
    """Return how good a hit with a score before decay is, among those of an *answer* that is as good."""
    if answer == "none":
        return "none"
    return "strong" if merged >= STRONG else "weak"


def confidence(
    candidates: Candidates, alive: Callable[[str], bool], *, knows: bool, reads: Reading
) -> Confidence:
    """
    Return how good the best match is.

    Args:
        candidates: all of them, so that it does not depend on a limit.
        alive: whether a source is still on the disk.
        knows: whether a chunk that may answer has a word of the query.
        reads: how well the model reads the query.
    """
    if any(alive(one.path) for one in candidates.floor(STRONG)):
        return "strong"
    if knows:
        near = candidates
    elif reads == "nothing":
        return "none"
    else:
        near = candidates.near(NEAR if reads == "whole" else NEAR_IN_PIECES)
    return "weak" if any(alive(one.path) for one in near) else "none"
