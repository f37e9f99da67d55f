"""How does one query go through one snapshot? Mask, two arms, fusion, floor, decay, cut.

It reads no clock and no configuration: `Request` says what is wanted and which day it is.
"""

import fnmatch
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from memd.config import Weights
from memd.errors import DeadlineError
from memd.index.reader import StoredChunk
from memd.index.vectors import FLOAT_BYTES
from memd.index.view import View
from memd.kernels import kernel
from memd.records import Source
from memd.search import ranking
from memd.search.keyword import POOL, KeywordArm, keyword_arm, phrase_expression
from memd.search.query import Filters, Query
from memd.search.ranking import Candidate
from memd.search.snippet import Snippet, snippet

Mode = Literal["hybrid", "keyword", "vector"]
Fusion = Literal["weighted", "rrf"]


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
class Hit:
    """One chunk of an answer."""

    candidate: Candidate
    source: Source
    chunk: StoredChunk
    snippet: Snippet


@dataclass(slots=True)
class Answer:
    """The hits, best first, and how long each step took."""

    hits: list[Hit]
    mode: Mode
    generation: int
    timings_ms: dict[str, float] = field(default_factory=dict)


def search(view: View, request: Request) -> Answer:
    """Return the best chunks of one moment.

    Raises:
        DeadlineError: the caller's deadline passed between two steps.
    """
    timer = _Timer(request.expired)
    allowed = _mask(view, request.query)
    vector = _vector_scores(view, request)
    vector_pool = [] if vector is None else kernel.best(vector, allowed, POOL)
    timer.lap("vector")
    alone = request.mode == "vector" and vector is not None
    keyword = None if alone else keyword_arm(view, request.query, allowed)
    timer.lap("keyword")
    candidates = _candidates(view, request, (vector, vector_pool), keyword)
    kept = ranking.floor(candidates, request.min_score)
    timer.lap("fuse")
    hits = _load(view, request, ranking.ordered(kept))
    timer.lap("load")
    mode: Mode = "keyword" if vector is None else request.mode
    return Answer(hits, mode, view.snapshot.generation, timer.laps_ms)


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


def _vector_scores(view: View, request: Request) -> kernel.Scores | None:
    """Return each chunk's cosine, None where the vector arm does not run."""
    rows = view.snapshot.rows
    if request.query_vec is None or request.mode == "keyword":
        return None
    # Switched since the query was embedded, or a server that changed its mind: another space.
    if view.snapshot.model_id != request.model_id or len(request.query_vec) != rows.dim * FLOAT_BYTES:
        return None
    by_row = kernel.cosines(rows.buffer, rows.count, rows.dim, request.query_vec)
    return kernel.by_chunk(by_row, view.snapshot.columns)


def _candidates(
    view: View,
    request: Request,
    vector_arm: tuple[kernel.Scores | None, list[int]],
    keyword: KeywordArm | None,
) -> list[Candidate]:
    """Judge every chunk of either pool by both arms: the rows are there, a pool's edge costs nothing."""
    vector, vector_pool = vector_arm
    columns = view.snapshot.columns
    vector_ranks = {number: rank for rank, number in enumerate(vector_pool, 1)}
    keyword_ranks = {number: rank for rank, number in enumerate(keyword.pool, 1)} if keyword else {}
    ids = sorted(vector_ranks.keys() | keyword_ranks.keys())
    cosines = [None] * len(ids) if vector is None else kernel.take(vector, ids)
    words = [None] * len(ids) if keyword is None else keyword.scores_of(ids)
    sources = kernel.take(columns.source, ids)
    rows = kernel.take(columns.row, ids)
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


def _load(view: View, request: Request, candidates: list[Candidate]) -> list[Hit]:
    """Cut, and read what the answer shows; a source that is gone from the disk is never in it."""
    alive = functools.cache(request.alive)
    kept = ranking.cut((c for c in candidates if alive(c.path)), request.limit)
    chunks = view.chunks([candidate.id for candidate in kept])
    return [
        Hit(
            candidate,
            view.snapshot.sources[candidate.source],
            chunk := chunks[candidate.id],
            snippet(chunk.text, chunk.start_line, request.query.pieces, start_byte=chunk.start_byte),
        )
        for candidate in kept
    ]


class _Timer:
    """Laps in milliseconds; between two laps the deadline is looked at."""

    def __init__(self, expired: Callable[[], bool]) -> None:
        self.laps_ms: dict[str, float] = {}
        self._expired = expired
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps_ms[name] = round((now - self._last) * 1000, 3)
        self._last = now
        if self._expired():
            raise DeadlineError(f"the search took longer than its deadline (in step {name!r}); ask for less")
