"""The confidence of an answer, strong, weak or none, with the same meaning in every mode. Pure.

It is said of all candidates, from their scores before decay: an old note is no worse a match, and the order
of an answer (``rrf``) says nothing. `benchmarks/calibration.py` measures what the words are worth with the
shipped model, docs/confidence.md has the figures:

* ``none``: nothing here answers: no chunk has a word of the question, and what is nearest in meaning is as
  far away as chance, or the model cannot read the question either. Said of no question in a note's own
  words, and of 3 in 100 that put it in quite other words, to a folder of short notes.
* ``strong``: in 8 of 10 such answers one of the first three hits is right, where there is a right one.
* ``weak``: all else, also most questions about another field altogether. No limit on what a search knows
  parts these from a short note's question in other words.

It says whether something here is about the question, not that it is true: where the answer is missing and
its neighbours are there, these match nearly as well.
"""

from collections.abc import Callable
from typing import Literal

from memd.search.ranking import Candidates

Confidence = Literal["strong", "weak", "none"]

STRONG = 0.6
# Cosine that two texts which have nothing to do with each other often reach. With .3, 6 of 100 questions in
# other words are called none; with .25 it is 3.
NEAR = 0.25


def confidence(
    candidates: Candidates, alive: Callable[[str], bool], *, knows: bool, reads: bool
) -> Confidence:
    """
    Return how good the best match is.

    Args:
        candidates: all of them, so that it does not depend on a limit.
        alive: whether a source is still on the disk.
        knows: whether a chunk that may answer has a word of the query.
        reads: whether the model reads some of the query.
    """
    if any(alive(one.path) for one in candidates.floor(STRONG)):
        return "strong"
    near = candidates if knows else candidates.near(NEAR) if reads else ()
    return "weak" if any(alive(one.path) for one in near) else "none"
