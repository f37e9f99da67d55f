"""The confidence of an answer and of its hits, and what is sure enough to be shown unasked. Pure.

Confidence is strong, weak or none, with the same meaning in every mode. It is computed over all candidates,
from their scores before decay: an old note is no worse a match, and the sort key of ``rrf`` is not a score.
`benchmarks/calibration.py` measures its reliability with the shipped model; docs/confidence.md has the
figures:

* ``none``: nothing in the index answers. No chunk has a word of the question, and the nearest chunk in
  meaning is farther away than chance, or the model cannot read the question either. Never given to a question
  whose note is among the hits, however different the note's words are.
* ``strong``: a high score, or a fair one that leads the next note: the subject is there. In 8 of 10 such
  answers one of the first three hits is right, if the notes have a right one.
* ``weak``: all other answers, including most questions about another field altogether. No threshold on the
  scores separates these from a question about a short note in other words.

Confidence tells whether a note is about the question, not whether it is true: if the answer itself is
missing, related notes match nearly as well.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from memd.languages import is_telling
from memd.records import SHIPPED_COSINES, Confidence, CosineScale
from memd.search.identifiers import Reading
from memd.search.ranking import Candidate

STRONG = 0.6
# The highest threshold at which no question of tests/pairs.jsonl whose note is among the hits is called none:
# at .18, 1 of 100 is. Two unrelated texts often reach it.
NEAR = 0.149
# The threshold if the model has no word of the question whole, so that its vector is less reliable. At .18, 7
# of 100 questions of made-up syllables are called none, at .25 half; the pairs' questions stay right up to
# .29.
NEAR_IN_PIECES = 0.25

# The gate for notes that nobody asked for, as in a hook (`sure_ones`), chosen on the even prompts of
# benchmarks/injection.py; docs/agents.md has the figures of the odd ones. A score of .3 alone, the first
# gate, silenced three of four foreign prompts: most share words with some note.
SURE_SCORE = 0.55  # before decay
SURE_MEANING = 0.54  # of the vector arm
SURE_MEANING_OF_FIRST = 0.42  # if both arms have the passage first
# Of the keyword arm, for its first passage, where words have more weight than the meaning: the model does not
# read the prompt, or is not there. On cjk-dev .73, .96 and .71; in English without a model .62, .90 and .65.
# No limit reaches the goal there: a higher one loses found notes and gains no precision.
SURE_WORDS = 0.44


# Of the first hit instead: its score and so many times its lead, with less meaning, since the lead tells the
# own prompt whose first hit is wrong from the one whose first hit is right, which the score hardly does. With
# few telling words in common, a foreign prompt leads by chance.
LEAD_FACTOR, MOST_LEAD = 4, 0.2
LEADER_WORDS = 3
SURE_SUM, SURE_MEANING_OF_LEADER = 0.8, 0.3
SURE_SUM_WITH_FEW, SURE_MEANING_WITH_FEW = 1.0, 0.45


def sure_ones(
    hits: Sequence[Candidate],
    lead: float | None,
    shared: Sequence[str],
    read: float = 1.0,
    newer: Container[str] = (),
) -> list[bool]:
    """Return which hits of an answer a hook may show unasked: none if not the first.

    Args:
        hits: best first.
        lead: of the first one; at 0 a day or a newer note put it first, and the limits of the others hold.
        shared: words of the query that the first one has.
        read: as for `is_sure`.
        newer: paths of notes that may stand in the place of what they replace; the first that is not sure by
            itself is no reason against the note behind it.
    """
    sure = [is_sure(hit, read) for hit in hits]
    if hits and not _judged_by_words(hits[0], read):
        if is_by_language(shared):
            sure[0] = False
        elif lead:
            has_many = sum(map(is_telling, shared)) >= LEADER_WORDS
            least = SURE_MEANING_OF_LEADER if has_many else SURE_MEANING_WITH_FEW
            total = hits[0].merged + LEAD_FACTOR * min(lead, MOST_LEAD)
            is_far_ahead = total >= (SURE_SUM if has_many else SURE_SUM_WITH_FEW)
            sure[0] = is_far_ahead and (hits[0].vector_score or 0.0) >= least
    first = next((place for place, hit in enumerate(hits) if sure[place] or hit.path not in newer), 0)
    return sure if any(sure[first : first + 1]) else [False] * len(hits)


def is_by_language(shared: Sequence[str]) -> bool:
    """Return whether all words that a query has in common with its first hit are function words.

    A remark in a language in which there is a single note leads to that note, whatever it is about.
    """
    return bool(shared) and not any(map(is_telling, shared))


def is_sure(candidate: Candidate, read: float = 1.0) -> bool:
    """Return whether a candidate is so probably about the query that a hook may show it after the first.

    *read*: the share of the query that the model reads. Below a half, or without a vector, words judge.
    """
    if _judged_by_words(candidate, read):
        return (candidate.keyword_score or 0.0) >= SURE_WORDS
    is_first = candidate.vector_rank == candidate.keyword_rank == 1
    least = SURE_MEANING_OF_FIRST if is_first else SURE_MEANING
    return candidate.merged >= SURE_SCORE and (candidate.vector_score or 0.0) >= least


def _judged_by_words(candidate: Candidate, read: float) -> bool:
    return (candidate.vector_score is None or read < 0.5) and candidate.keyword_rank == 1  # noqa: PLR2004 - a half


# Below the gate a note is only named, as the title and path of a pointer: the one nearest in meaning, if no
# other comes near it. How near it is tells little: in German and French the nearest notes to a remark are as
# near as those to a question. Chosen on benchmarks/prompts-chosen.jsonl; docs/agents.md has other figures.
POINT_MEANING = 0.35  # of the vector arm
POINT_AHEAD = 0.15


def pointer(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the one to name to a reader who did not ask; *candidates*: best first."""
    if not candidates:
        return None
    nearest = max(candidates, key=lambda one: one.vector_score or 0.0)
    others = [one.vector_score or 0.0 for one in candidates if one.source != nearest.source]
    least = max(POINT_MEANING, max(others, default=0.0) + POINT_AHEAD)
    return nearest if (nearest.vector_score or 0.0) >= least else None


# The score, and the lead over the best hit of another note, from which on an answer is strong, too. On chats
# that came after the rule the share of right first hits called strong rose from .22 to .56.
FAIR = 0.3
LEAD = 0.1


class Sureness(NamedTuple):
    """How sure an answer is."""

    confidence: Confidence
    lead: float | None  # of the first candidate over the best of another note; None without candidates
    first: int | None = None  # the chunk that is strong by its lead, or by a word in its title


def of_hit(hit: Candidate, answer: Confidence, cosines: CosineScale) -> Confidence:
    """Return the confidence of a hit by its score before decay and the confidence of its *answer*."""
    if answer == "none":
        return "none"
    return "strong" if _score(cosines)(hit) >= STRONG else "weak"


def _score(cosines: CosineScale) -> Callable[[Candidate], float]:
    """Return the score of a candidate that confidence counts, given the scale of its model."""
    return attrgetter("merged" if cosines.is_measured else "worded")


def led(
    answer: Confidence,
    candidates: Sequence[Candidate],
    alive: Callable[[str], bool],
    alike: Container[int],
    cosines: CosineScale = SHIPPED_COSINES,
    *,
    is_in_title: Callable[[Candidate], bool] = lambda _: False,
) -> Sureness:
    """Return the sureness of an answer that is *answer*, as `confidence` returns it, by its scores alone.

    *alive* returns whether a source is still on the disk. *alike*: near-duplicates of the first candidate,
    which it does not lead. *is_in_title*: the query is one word that is in the title of a candidate's note.
    """
    first = next((one for one in candidates if alive(one.path)), None)
    if first is None:
        return Sureness(answer, None)

    score = _score(cosines)
    others = [one for one in candidates if one.source != first.source and one.id not in alike]
    # By score, so that the disk is asked about one of them and not about all.
    second = next((one for one in sorted(others, key=score, reverse=True) if alive(one.path)), None)
    lead = max(0.0, score(first) - (score(second) if second else 0.0))
    if answer != "none" and ((score(first) >= FAIR and lead >= LEAD) or is_in_title(first)):
        return Sureness("strong", lead, first.id)
    return Sureness(answer, lead)


def confidence(
    candidates: Sequence[Candidate],
    alive: Callable[[str], bool],
    *,
    knows: bool,
    reads: Reading,
    cosines: CosineScale = SHIPPED_COSINES,
) -> Confidence:
    """Return the confidence of an answer.

    Args:
        candidates: all candidates, so that the result does not depend on a limit.
        alive: whether a source is still on the disk.
        knows: whether a chunk that meets the filters has a word of the query.
        reads: how well the model reads the query.
        cosines: of the model. Until it is measured, only words make an answer strong.
    """
    score = _score(cosines)
    good = (one for one in candidates if score(one) >= STRONG)
    if any(alive(one.path) for one in good):
        return "strong"
    near: Iterable[Candidate] = candidates
    if not knows:
        if reads == "nothing":
            return "none"
        least = cosines.near(NEAR if reads == "whole" else NEAR_IN_PIECES)
        near = (one for one in candidates if one.weights.vector > 0 and (one.vector_score or 0.0) >= least)
    return "weak" if any(alive(one.path) for one in near) else "none"
