"""Parts of answers, made of the records of a search."""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from memd.api.results import (
    ArmEvidence,
    ChunkLines,
    HitSource,
    KeywordEvidence,
    Location,
    SearchHit,
    UsedWeights,
    VectorEvidence,
)
from memd.index.reader import StoredChunk
from memd.search import search
from memd.search.explanation import Explained
from memd.search.ranking import Candidate

SCORE_DIGITS = 6  # float32 is not exact beyond that


def search_hit(found: search.Hit, explanation: Explained | UnsetType = UNSET) -> SearchHit:
    """Return one hit."""
    candidate, source, passage, shown = found.candidate, found.source, found.passage, found.snippet
    return SearchHit(
        id=candidate.id,
        path=source.path,
        start_line=passage.start_line,
        end_line=passage.end_line,
        heading=found.chunk.heading,
        title=source.title,
        snippet=shown.text,
        score=round(candidate.score, SCORE_DIGITS),
        arms=_arms(candidate),
        weights=UsedWeights(
            vector=round(candidate.weights.vector, SCORE_DIGITS),
            keyword=round(candidate.weights.keyword, SCORE_DIGITS),
        ),
        decay=round(candidate.decay, SCORE_DIGITS),
        date=source.day.isoformat(),
        date_of=source.day_of,
        tags=list(source.tags),
        source=hit_source(found),
        match_line=shown.match_line,
        match_column=shown.match_column,
        match_text=shown.match_text,
        folded=[location(one) for one in found.folded],
        superseded_by=list(found.superseded_by),
        explanation=explanation,
    )


def hit_source(found: search.Hit) -> HitSource:
    """Return who wrote a hit: of a daily file not the same for all."""
    return HitSource(origin=found.chunk.origin or found.source.origin, entry=found.chunk.entry or UNSET)


def location(where: search.Place) -> Location:
    """Return where a chunk stands."""
    return Location(path=where.path, start_line=where.start_line, end_line=where.end_line)


def chunk_lines(stored: StoredChunk) -> ChunkLines:
    """Return which chunk of a known source is meant."""
    return ChunkLines(
        id=stored.id, start_line=stored.start_line, end_line=stored.end_line, heading=stored.heading
    )


def _arms(candidate: Candidate) -> ArmEvidence:
    return ArmEvidence(
        vector=VectorEvidence(rank=candidate.vector_rank, score=rounded(candidate.vector_score)),
        keyword=KeywordEvidence(
            rank=candidate.keyword_rank,
            score=rounded(candidate.keyword_score),
            tier=candidate.tier if candidate.keyword_score else None,
        ),
    )


Facts = TypeVar("Facts")


def rounded_record(facts: Facts) -> Facts:
    """Return a record of the search with numbers that are rounded as scores."""
    return msgspec.convert(_all_rounded(msgspec.to_builtins(facts)), type(facts))


def _all_rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, SCORE_DIGITS)
    if isinstance(value, dict):
        return {key: _all_rounded(item) for key, item in value.items()}
    return [_all_rounded(item) for item in value] if isinstance(value, list) else value


def rounded(score: float | None) -> float | None:
    """Return a score as it travels."""
    return None if score is None else round(score, SCORE_DIGITS)
