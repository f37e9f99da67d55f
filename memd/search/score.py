"""The scores of both arms for all chunks under the filters, fused; nothing is dropped yet.

It reads no clock and no configuration: `SearchRequest` says what is wanted and which day it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from memd.config import Weights
from memd.index.columns import Columns, Mask, mask_of, require_numpy, restrict, take
from memd.index.snapshot import View
from memd.records import Source
from memd.search import filters, ranking
from memd.search.identifiers import NOTHING, Named, Word, named
from memd.search.keyword import KeywordArm, keyword_arm, knows_a_word, phrase_expression
from memd.search.query import Query
from memd.search.ranking import Candidate
from memd.search.source_scores import PLACES, SOURCE_SHARE, Grouped, grouped, places, vector_scores
from memd.search.vector import VectorArm, vector_arm

Mode = Literal["hybrid", "keyword", "vector"]
Fusion = Literal["weighted", "rrf"]
Lap = Callable[[str], None]
# An arm's score of a chunk, and what its source says alone.
Evidence = tuple[float, float] | tuple[None, None]
NOT_SEEN: Evidence = (None, None)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search, with every decision made."""

    query: Query
    query_vec: bytes | None  # None: keyword only
    model_id: str  # whose vector that is
    mode: Mode
    fusion: Fusion
    weights: Weights
    half_life_days: float
    min_score: float
    limit: int
    today: date
    alive: Callable[[str], bool]  # whether a source is still on the disk
    expired: Callable[[], bool]  # whether the caller's deadline has passed
    without: tuple[int, ...] = ()  # ids of chunks that may not answer
    spelled: tuple[Word, ...] = ()  # words of the query that the model reads by pieces


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of the chunks that may answer."""

    mask: Mask  # which may
    vector: VectorArm | None  # None: the arm did not run
    keyword: KeywordArm | None
    named: Named  # by words that the model reads by pieces
    knows: bool  # whether a chunk that may answer has a word of the query
    candidates: list[Candidate]  # of either arm's pool, best first


def judge(view: View, request: SearchRequest, lap: Lap) -> Judgement:
    """Ask both arms; *lap* is told when each step ends, and may raise to give up.

    Where a vector that counts is not what was written, words alone are asked: a score by it says nothing, and
    others may have the place of what it stood for.

    Raises:
        NumpyMissingError: a search is answered without numpy, but not explained.
    """
    require_numpy("an explanation")
    judged = _judged(view, request, lap)
    if judged.vector is not None and view.damaged:
        return _judged(view, request, lap)
    return judged


def _judged(view: View, request: SearchRequest, lap: Lap) -> Judgement:
    mask = _mask(view, request.query)
    if request.without:
        mask = restrict(mask, request.without, keep=False)
    vector = None
    if request.query_vec is not None and request.mode != "keyword" and not view.damaged:
        vector = vector_arm(view, request.query_vec, request.model_id, mask)
    lap("vector")
    alone = request.mode == "vector" and vector is not None
    keyword = None if alone else keyword_arm(view, request.query, mask)
    # Who asked for one arm alone, or has but one, gets its judgement as it is.
    names = (
        named(view, request.spelled, keyword, vector) if vector and keyword and request.spelled else NOTHING
    )
    knows = bool(keyword.pool) if keyword else knows_a_word(view, request.query)
    lap("keyword")
    candidates = _candidates(view, request, vector, keyword, names)
    return Judgement(mask, vector, keyword, names, knows, ranking.ordered(candidates))


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


def _candidates(
    view: View,
    request: SearchRequest,
    vector: VectorArm | None,
    keyword: KeywordArm | None,
    names: Named,
) -> list[Candidate]:
    """Judge every chunk of either pool by both arms: the rows are there, a pool's edge costs nothing."""
    ids = sorted({*(vector.pool if vector else ()), *(keyword.pool if keyword else ()), *names.words})
    columns = view.snapshot.columns
    chunks = grouped(columns, ids)
    facts = {number: _facts(view.snapshot.sources[number], request) for number in chunks.one_each}
    paths = [facts[source][0] for source in chunks.sources]
    meaning = meaning_of(columns, vector, chunks) if vector else [NOT_SEEN] * len(ids)
    words = keyword.evidence_of(chunks) if keyword else [NOT_SEEN] * len(ids)
    vector_ranks = _ranked(vector, ids, paths, meaning).get
    keyword_ranks = _ranked(keyword, ids, paths, words).get
    weights = ranking.weights_read(request.weights, names.read)
    unseen, seen = (ranking.weights_seen(weights, vector=v, keyword=bool(keyword)) for v in (False, True))
    is_weighted, tier_of = request.fusion == "weighted", keyword.tier_of if keyword else _no_tier
    found = []
    for number, source, (cosine, mean), (said, of_file) in zip(
        ids, chunks.sources, meaning, words, strict=True
    ):
        used = unseen if cosine is None else seen
        merged = max(min(1.0, ranking.weighted(cosine, said, used)), names.scores.get(number, 0.0))
        path, decay = facts[source]
        v_rank, k_rank = vector_ranks(number), keyword_ranks(number)
        order = decay * (merged if is_weighted else ranking.reciprocal_rank((v_rank, k_rank)))
        order += len(names.words.get(number, ()))
        found.append(Candidate(
            number, source, path,
            v_rank, cosine, mean,
            k_rank, said, of_file,
            tier_of(number), decay, used, merged, order,
        ))  # fmt: skip
    return found


def _no_tier(_chunk_id: int) -> None:
    return None


def _facts(source: Source, request: SearchRequest) -> tuple[str, float]:
    """Return path and decay of a source."""
    return source.path, ranking.decay_of(source, request.today, request.half_life_days)


def meaning_of(columns: Columns, vector: VectorArm, chunks: Grouped) -> Sequence[Evidence]:
    """Return each chunk's vector score, and the mean cosine of its source; NOT_SEEN without a vector.

    Args:
        columns: of the snapshot that the arm looked at.
        vector: the arm.
        chunks: of that snapshot.
    """
    every = [*chunks.ids, *places(columns, list(chunks.one_each.values()), PLACES)]
    rows = take(columns.row, every)
    return vector_scores(vector.scores_of(every), rows, chunks.group, share=SOURCE_SHARE)


def _ranked(
    arm: VectorArm | KeywordArm | None,
    ids: Sequence[int],
    paths: Sequence[str],
    evidence: Sequence[Evidence],
) -> dict[int, int]:
    """Put an arm's pool into the order of the evidence, ties by path and line; return each one's rank."""
    if arm is None:
        return {}
    keys = {
        number: (-(score or 0.0), path, number)
        for number, path, (score, _) in zip(ids, paths, evidence, strict=True)
    }
    arm.pool.sort(key=keys.__getitem__)
    return {number: rank for rank, number in enumerate(arm.pool, 1)}
