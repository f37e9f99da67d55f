"""Is there a good match? One word for an answer, with the same meaning in every mode; pure.

It is said of the best candidate, from its score before decay and the weights of the arms that saw it: an
old note is no worse a match, and the order of an answer (``rrf``) says nothing. What the words mean is
measured by `benchmarks/calibration.py`, with the shipped model:

* ``none``: "no good match". More than 95 of 100 questions that have an answer score higher, in each mode;
  questions about another field altogether do not (hybrid and vector: 1 to 3 in 100 do; keyword alone: up to
  3 in 10, where common words are shared).
* ``strong``: in 8 of 10 such answers one of the first three hits is right, where there is a right one.
* ``weak``: between the two.

It says whether something here is about the question, not that it is true: where the answer is missing and
its neighbours are there, these match nearly as well.
"""

from collections.abc import Callable, Iterable
from typing import Literal

from memd.config import Weights
from memd.search.ranking import Candidate

Confidence = Literal["strong", "weak", "none"]

STRONG = 0.6  # in every mode
WEAK_VECTOR = 0.35  # lower ones are none; where both arms saw the chunk, between the two by their weights
WEAK_KEYWORD = 0.3


def band_of(merged: float, weights: Weights, meaning: float | None = None) -> Confidence:
    """Return how good a match is.

    Args:
        merged: its score before decay.
        weights: those of the arms that saw it.
        meaning: its vector score; where no word of the question stands anywhere it is all there is, and
            a share of it must not count as less than the whole would.
    """
    if merged >= STRONG:
        return "strong"
    weak = weights.vector * WEAK_VECTOR + weights.keyword * WEAK_KEYWORD
    likely = meaning is not None and weights.vector > 0 and meaning >= WEAK_VECTOR
    return "weak" if likely or merged >= weak else "none"


def confidence(candidates: Iterable[Candidate], alive: Callable[[str], bool]) -> Confidence:
    """Return how good the best match is.

    Args:
        candidates: all of them, so that it does not depend on a limit.
        alive: whether a source is still on the disk.
    """
    bands = {one.id: band_of(one.merged, one.weights, one.vector_score) for one in candidates}
    for wanted in ("strong", "weak"):
        if any(bands[one.id] == wanted and alive(one.path) for one in candidates):
            return wanted
    return "none"
