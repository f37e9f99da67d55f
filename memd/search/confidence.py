"""Is there a good match? One word for an answer, with the same meaning in every mode; pure.

It is said of the best candidate, from its score before decay: an old note is no worse a match, and the order
of an answer (``rrf``) says nothing. `benchmarks/calibration.py` measures what the words are worth, with the
shipped model:

* ``none``: "no good match". Said of 9 in 10 questions about another field altogether (hybrid, vector), and
  of 1 in 100 that have an answer in their own words; but of 1 in 3 that put it in quite other words, to a
  folder of short notes.
* ``strong``: in 8 of 10 such answers one of the first three hits is right, where there is a right one.
* ``weak``: between the two.

It says whether something here is about the question, not that it is true: where the answer is missing and
its neighbours are there, these match nearly as well.
"""

from collections.abc import Callable, Iterable
from typing import Literal

from memd.search.ranking import Candidate

Confidence = Literal["strong", "weak", "none"]

STRONG = 0.6
WEAK = 0.3  # lower ones are none


def band_of(candidate: Candidate) -> Confidence:
    """Return how good a match one candidate is."""
    if candidate.merged >= STRONG:
        return "strong"
    # Where no word of the question stands anywhere, its meaning is all there is: a share of that must not
    # count as less than the whole would.
    meaning = candidate.vector_score if candidate.weights.vector > 0 else None
    return "weak" if max(candidate.merged, meaning or 0.0) >= WEAK else "none"


def confidence(candidates: Iterable[Candidate], alive: Callable[[str], bool]) -> Confidence:
    """Return how good the best match is.

    Args:
        candidates: all of them, so that it does not depend on a limit.
        alive: whether a source is still on the disk.
    """
    found = list(candidates)
    if any(one.merged >= STRONG and alive(one.path) for one in found):
        return "strong"
    return "weak" if any(band_of(one) != "none" and alive(one.path) for one in found) else "none"
