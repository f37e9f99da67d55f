"""The confidence of an answer, strong, weak or none, with the same meaning in every mode. Pure.

It is said of all candidates, from their scores before decay: an old note is no worse a match, and the order
of an answer (``rrf``) says nothing. `benchmarks/calibration.py` measures what the words are worth with the
shipped model, docs/confidence.md has the figures:

* ``none``: nothing here answers: no chunk has a word of the question, and what is nearest in meaning is
  farther away than chance, or the model cannot read the question either. Said of no question whose note is
  among the hits, however other its words are.
* ``strong``: in 8 of 10 such answers one of the first three hits is right, where there is a right one.
* ``weak``: all else, also most questions about another field altogether. No limit on what a search knows
  parts these from a short note's question in other words.

It says whether something here is about the question, not that it is true: where the answer is missing and
its neighbours are there, these match nearly as well.
"""

from collections.abc import Callable

from memd.records import Confidence
from memd.search.identifiers import Reading
from memd.search.ranking import Candidates

STRONG = 0.6
# The highest limit with which no question of tests/pairs.jsonl whose note is among the hits is called none:
# with .25 these are 5 of 336. Two texts which have nothing to do with each other often reach it.
NEAR = 0.18
# The limit where the model has no word of the question whole: its vector says less. With .18, 7 of 100
# questions of made-up syllables are called none, with .25 half; those of the pairs stay right up to .29.
NEAR_IN_PIECES = 0.25


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
