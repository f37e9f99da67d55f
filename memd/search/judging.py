"""What do both arms say of the chunks that may answer? Mask, two arms, fusion; nothing is dropped yet.

It reads no clock and no configuration: `Request` says what is wanted and which day it is.
"""

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from memd.config import Weights
from memd.index.view import View
from memd.kernels import kernel
from memd.records import Source
from memd.search import ranking
from memd.search.keyword import KeywordArm, keyword_arm, phrase_expression
from memd.search.query import Filters, Query
from memd.search.ranking import Candidate
from memd.search.vector import VectorArm, vector_arm

Mode = Literal["hybrid", "keyword", "vector"]
Fusion = Literal["weighted", "rrf"]
Lap = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
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


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of the chunks that may answer."""

    mask: kernel.Mask  # which may
    vector: VectorArm | None  # None: the arm did not run
    keyword: KeywordArm | None
    candidates: list[Candidate]  # of either arm's pool, best first


def judge(view: View, request: Request, lap: Lap) -> Judgement:
    """Ask both arms; *lap* is told when each step ends, and may raise to give up."""
    mask = _mask(view, request.query)
    vector = None
    if request.query_vec is not None and request.mode != "keyword":
        vector = vector_arm(view, request.query_vec, request.model_id, mask)
    lap("vector")
    alone = request.mode == "vector" and vector is not None
    keyword = None if alone else keyword_arm(view, request.query, mask)
    lap("keyword")
    return Judgement(mask, vector, keyword, ranking.ordered(_candidates(view, request, vector, keyword)))


def _mask(view: View, query: Query) -> kernel.Mask:
    """Return which chunks may answer: filters come before every cut."""
    filters = query.filters
    narrowed = filters != Filters()
    sources = [s.id for s in view.snapshot.sources.values() if _passes(s, filters)] if narrowed else None
    mask = kernel.mask_of(view.snapshot.columns, sources)
    for phrase in query.phrases:
        mask = kernel.restrict(mask, view.matching("words", phrase_expression(phrase)), keep=True)
    for word in query.excluded:
        mask = kernel.restrict(mask, view.matching("words", phrase_expression(word)), keep=False)
    return mask


def _passes(source: Source, filters: Filters) -> bool:
    for patterns in (filters.paths, filters.also_paths):
        if patterns and not any(_path_matches(source.path, pattern) for pattern in patterns):
            return False
    tags = {tag.casefold() for tag in source.tags}
    if not all(tag.casefold() in tags for tag in filters.tags):
        return False
    return (filters.since is None or source.day >= filters.since) and (
        filters.until is None or source.day <= filters.until
    )


def _path_matches(path: str, pattern: str) -> bool:
    """Match a glob against the whole path, or name a folder or file by its path."""
    plain = pattern.strip("/")
    return fnmatch.fnmatchcase(path, plain) or path == plain or path.startswith(plain + "/")


def _candidates(
    view: View, request: Request, vector: VectorArm | None, keyword: KeywordArm | None
) -> list[Candidate]:
    """Judge every chunk of either pool by both arms: the rows are there, a pool's edge costs nothing."""
    vector_ranks = _ranks(vector)
    keyword_ranks = _ranks(keyword)
    ids = sorted(vector_ranks.keys() | keyword_ranks.keys())
    cosines = [None] * len(ids) if vector is None else vector.scores_of(ids)
    words = [None] * len(ids) if keyword is None else keyword.scores_of(ids)
    sources = kernel.take(view.snapshot.columns.source, ids)
    rows = kernel.take(view.snapshot.columns.row, ids)
    judge = _Judge(view.snapshot.sources, request, keyword)
    return [
        judge.candidate(
            number,
            source_id,
            None if cosine is None or row < 0 else max(0.0, cosine),
            word,
            (vector_ranks.get(number), keyword_ranks.get(number)),
        )
        for number, source_id, row, cosine, word in zip(ids, sources, rows, cosines, words, strict=True)
    ]


def _ranks(arm: VectorArm | KeywordArm | None) -> dict[int, int]:
    return {} if arm is None else {number: rank for rank, number in enumerate(arm.pool, 1)}


class _Judge:
    """Merges what both arms say of a chunk; keeps what is the same for many of them."""

    def __init__(self, sources: Mapping[int, Source], request: Request, keyword: KeywordArm | None) -> None:
        self._sources = sources
        self._request = request
        self._keyword = keyword
        self._weights = {
            seen: ranking.weights_seen(request.weights, vector=seen, keyword=keyword is not None)
            for seen in (True, False)
        }
        self._decays: dict[int, float] = {}

    def candidate(
        self,
        number: int,
        source_id: int,
        similarity: float | None,
        word: float | None,
        ranks: tuple[int | None, int | None],
    ) -> Candidate:
        source = self._sources[source_id]
        if source_id not in self._decays:
            self._decays[source_id] = _decay(source, self._request)
        decay = self._decays[source_id]
        weights = self._weights[similarity is not None]
        merged = min(1.0, ranking.weighted(similarity, word, weights))
        order = merged if self._request.fusion == "weighted" else ranking.reciprocal_rank(ranks)
        return Candidate(
            id=number,
            source=source_id,
            path=source.path,
            vector_rank=ranks[0],
            vector_score=similarity,
            keyword_rank=ranks[1],
            keyword_score=word,
            tier=self._keyword.tier_of(number) if self._keyword else None,
            decay=decay,
            weights=weights,
            merged=merged,
            order=order * decay,
        )


def _decay(source: Source, request: Request) -> float:
    if not source.dated:
        return 1.0
    return ranking.half_life_decay((request.today - source.day).days, request.half_life_days)
