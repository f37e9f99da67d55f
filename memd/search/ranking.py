"""Ranking of candidates: weights, decay by age, floor, order, and the confidence of an answer. Pure.

Confidence is strong, weak or none, with the same meaning in every mode. It is computed over all candidates,
from their scores before decay: an old note is no worse a match, and the sort key of ``rrf`` is not a score.
`benchmarks/calibration.py` measures its reliability with the shipped model; docs/confidence.md has the
figures:

* ``none``: nothing in the index answers. No chunk has a word of the question, and the nearest chunk in
  meaning is farther away than chance, or the model cannot read the question either. Never given to a question
  whose note is among the hits, however different the note's words are.
* ``strong``: in 8 of 10 such answers one of the first three hits is right, if the notes have a right one.
* ``weak``: all other answers, including most questions about another field altogether. No threshold on the
  scores separates these from a question about a short note in other words.

Confidence tells whether a note is about the question, not whether it is true: if the answer itself is
missing, related notes match nearly as well.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import NamedTuple

from memd.config import Weights
from memd.records import SHIPPED_COSINES, Confidence, CosineScale, Source
from memd.search.identifiers import Reading

# Weight of the words for each matched word beyond the half of one, and its bound.
WORDS_A_MATCH, MOST_WORDS = 0.15, 0.5
# k of Cormack, Clarke & Büttcher, SIGIR 2009: softens the lead of rank 1.
RRF_K = 60

# Factor on the sort key of a note past its last day: a note that holds and matches half as well comes first,
# and the expired note is still found where it alone answers. Its score is unchanged. Arbitrary.
EXPIRED_SHARE = 0.5

STRONG = 0.6
# The highest threshold at which no question of tests/pairs.jsonl whose note is among the hits is called none:
# at .25, 5 of 336 are. Two unrelated texts often reach it.
NEAR = 0.18
# The threshold if the model has no word of the question whole, so that its vector is less reliable. At .18, 7
# of 100 questions of made-up syllables are called none, at .25 half; the pairs' questions stay right up to
# .29.
NEAR_IN_PIECES = 0.25

# The gate for notes that nobody asked for, as in a hook (`is_sure`). Chosen by benchmarks/injection.py on the
# even prompts: questions to scifact, psdocs-en and the headings of 1,864 notes, each with two foreign
# questions, and talk. On the odd ones .79 of the injections begin with a relevant note (the goal was .8), .99
# of the prompts without a relevant note get nothing, and .75 of the prompts whose note the search has first
# get it. A score of .3 alone, the gate before, has .53, .75 and 1: most prompts share words with some note.
# The odd half was looked at while kinds of gates were compared, so it is no clean test.
# The price is questions in quite other words than those of a short note (tests/pairs.jsonl): of these .01
# get their note, .38 before, with .51 of the injections right. docs/agents.md has the table.
SURE_SCORE = 0.55  # before decay
SURE_MEANING = 0.54  # of the vector arm
SURE_MEANING_OF_FIRST = 0.42  # if both arms have the passage first
# Of the keyword arm, for its first passage, where words have more weight than the meaning: the model does not
# read the prompt, or is not there. On cjk-dev .73, .96 and .71; in English without a model .62, .90 and .65.
# No limit reaches the goal there: a higher one loses found notes and gains no precision.
SURE_WORDS = 0.44


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


def above_floor(candidates: Iterable[Candidate], min_score: float) -> list[Candidate]:
    """Return the candidates with *min_score* before decay: a note does not vanish because it is old."""
    return [candidate for candidate in candidates if candidate.merged >= min_score]


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


def reciprocal_rank(ranks: Iterable[int | None]) -> float:
    """Return Σ 1 / (k + rank) over the arms that ranked the chunk. This is a sort key, not a score."""
    return sum([1 / (RRF_K + rank) for rank in ranks if rank is not None])


def half_life_decay(age_days: float, half_life_days: float, floor: float) -> float:
    """Return the share of a score that is left after *age_days*; 1 for the future.

    Only the part above *floor* halves every half-life, so that an old note is found if it alone answers.
    """
    return float(floor + (1 - floor) * 0.5 ** (max(age_days, 0.0) / half_life_days))


def decay_of(source: Source, today: date, half_life_days: float, floor: float) -> float:
    """Return the decay factor of a source's chunks; 1 for an undated source."""
    return half_life_decay((today - source.day).days, half_life_days, floor) if source.dated else 1.0


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort best first, ties by path and line: the ids of a source's chunks rise with their lines."""
    return sorted(candidates, key=lambda candidate: (-candidate.order, candidate.path, candidate.id))


def is_sure(candidate: Candidate, read: float = 1.0) -> bool:
    """Return whether a candidate is so probably about the query that a hook may show it unasked.

    *read*: the share of the query that the model reads. Below a half, or without a vector, words judge.
    """
    if (candidate.vector_score is None or read < 0.5) and candidate.keyword_rank == 1:  # noqa: PLR2004 - a half
        return (candidate.keyword_score or 0.0) >= SURE_WORDS
    is_first = candidate.vector_rank == candidate.keyword_rank == 1
    least = SURE_MEANING_OF_FIRST if is_first else SURE_MEANING
    return candidate.merged >= SURE_SCORE and (candidate.vector_score or 0.0) >= least


def of_hit(hit: Candidate, answer: Confidence, cosines: CosineScale) -> Confidence:
    """Return the confidence of a hit by its score before decay and the confidence of its *answer*."""
    if answer == "none":
        return "none"
    return "strong" if (hit.merged if cosines.is_measured else hit.worded) >= STRONG else "weak"


def confidence(
    candidates: Sequence[Candidate],
    alive: Callable[[str], bool],
    *,
    knows: bool,
    reads: Reading,
    cosines: CosineScale = SHIPPED_COSINES,
) -> Confidence:
    """
    Return the confidence of an answer.

    Args:
        candidates: all candidates, so that the result does not depend on a limit.
        alive: whether a source is still on the disk.
        knows: whether a chunk that meets the filters has a word of the query.
        reads: how well the model reads the query.
        cosines: of the model. Until it is measured, only words make an answer strong.
    """
    good = (one for one in candidates if (one.merged if cosines.is_measured else one.worded) >= STRONG)
    if any(alive(one.path) for one in good):
        return "strong"
    near: Iterable[Candidate] = candidates
    if not knows:
        if reads == "nothing":
            return "none"
        least = cosines.near(NEAR if reads == "whole" else NEAR_IN_PIECES)
        near = (one for one in candidates if one.weights.vector > 0 and (one.vector_score or 0.0) >= least)
    return "weak" if any(alive(one.path) for one in near) else "none"
