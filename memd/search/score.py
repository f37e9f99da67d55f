"""The scores of both arms for all chunks under the filters, fused; nothing is dropped yet.

It reads no clock and no configuration: `SearchRequest` says what is wanted and which day it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from memd.config import Weights
from memd.index.columns import Mask, mask_of, require_numpy, restrict
from memd.index.snapshot import View
from memd.records import Mode
from memd.search import filters, newest
from memd.search.explanation import Word
from memd.search.fusion import fused
from memd.search.identifiers import NOTHING, Named, named
from memd.search.keyword import KeywordArm, keyword_arm, knows_a_word, phrase_expression
from memd.search.query import Query
from memd.search.ranking import PER_SOURCE, Candidates
from memd.search.supersession import lifted
from memd.search.vector import VectorArm, vector_arm

Fusion = Literal["weighted", "rrf"]
Lap = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search, with every decision made."""

    query: Query
    query_vec: bytes | None  # of the text as it was typed; None: keyword only
    model_id: str  # whose vector that is
    mode: Mode
    fusion: Fusion
    weights: Weights
    half_life_days: float
    decay_floor: float  # share of a score that age leaves
    min_score: float
    limit: int
    today: date
    alive: Callable[[str], bool]  # whether a source is still on the disk
    expired: Callable[[], bool]  # whether the caller's deadline has passed
    without: tuple[int, ...] = ()  # ids of chunks that may not answer
    spelled: tuple[Word, ...] = ()  # words of the query that the model reads by pieces
    corrected_vec: bytes | None = None  # of the query's text, where words of it were corrected
    per_source: int = PER_SOURCE  # hits of one source, at most


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of the chunks that may answer."""

    mask: Mask  # which may
    vector: VectorArm | None  # None: the arm did not run
    keyword: KeywordArm | None
    named: Named  # by words that the model reads by pieces
    knows: bool  # whether a chunk that may answer has a word of the query
    candidates: Candidates  # of either arm's pool, best first; what is superseded behind what holds
    ahead_of: Mapping[int, int]  # chunk → that of a source it supersedes, whose place it took


@dataclass(frozen=True, slots=True)
class Words:
    """What is judged without the query's vector, which may be made meanwhile."""

    mask: Mask  # which chunks may answer
    keyword: KeywordArm | None  # None: only the vector arm is asked


def judge_words(view: View, request: SearchRequest) -> Words:
    """Ask what needs no vector. Raises as `judge` does."""
    require_numpy("an explanation")
    mask = _mask(view, request.query)
    if request.without:
        mask = restrict(mask, request.without, keep=False)
    return Words(mask, None if request.mode == "vector" else keyword_arm(view, request.query, mask))


def judge(view: View, request: SearchRequest, lap: Lap, words: Words | None = None) -> Judgement:
    """Ask both arms; *lap* is told when each step ends, and may raise to give up.

    *words* is what `judge_words` returned of the same request; None: they are asked now.

    Where a vector that counts is not what was written, words alone are asked: a score by it says nothing, and
    others may have the place of what it stood for.

    Raises:
        NumpyMissingError: a search is answered without numpy, but not explained.
    """
    if words is None:
        words = judge_words(view, request)
        lap("keyword")
    judged = _judged(view, request, words, lap)
    if judged.vector is not None and view.damaged:
        return _judged(view, request, words, lap)
    return judged


def _judged(view: View, request: SearchRequest, words: Words, lap: Lap) -> Judgement:
    mask, keyword = words.mask, words.keyword
    vector = None
    if request.query_vec is not None and request.mode != "keyword" and not view.damaged:
        vector = vector_arm(view, request.query_vec, request.model_id, mask, request.corrected_vec)
    lap("vector")
    if vector is None and keyword is None:
        keyword = keyword_arm(view, request.query, mask)
    # Who asked for one arm alone, or has but one, gets its judgement as it is.
    names = (
        named(view, request.spelled, keyword, vector) if vector and keyword and request.spelled else NOTHING
    )
    knows = len(keyword.pool) > 0 if keyword else knows_a_word(view, request.query)
    candidates: Candidates = fused(view.snapshot, request, vector, keyword, names)
    if newest.is_asked(request.query):
        candidates = newest.candidates(view, request.query)
    ranked = lifted(candidates, view.snapshot)
    return Judgement(mask, vector, keyword, names, knows, ranked.candidates, ranked.ahead_of)


def _mask(view: View, query: Query) -> Mask:
    """Return which chunks may answer: filters come before every cut."""
    every = view.snapshot.sources.values()
    sources = [one.id for one in filters.matching(every, query.filters)] if query.filters else None
    mask = mask_of(view.snapshot.columns, sources)
    for phrase in query.phrases:
        mask = restrict(mask, view.matching("words", phrase_expression(phrase)), keep=True)
    for word in query.excluded:
        mask = restrict(mask, view.matching("words", phrase_expression(word)), keep=False)
    return mask
