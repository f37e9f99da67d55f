"""Conversion of search records into parts of answers."""

from datetime import date
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from memd.api.results import (
    ArmEvidence,
    ChunkLines,
    HitSource,
    KeywordEvidence,
    SearchHit,
    VectorEvidence,
)
from memd.config import Weights
from memd.index.reader import StoredChunk
from memd.index.source_rows import EXTERNAL
from memd.records import Source
from memd.search import search
from memd.search.explanation import Explained

SCORE_DIGITS = 6  # float32 has no more exact digits


def search_hit(found: search.Hit, explanation: Explained | UnsetType = UNSET) -> SearchHit:
    """Convert a hit to its form in the answer."""
    candidate, source, passage, shown = found.candidate, found.source, found.passage, found.snippet
    return SearchHit(
        id=candidate.id,
        path=source.path,
        start_line=passage.start_line,
        end_line=passage.end_line,
        heading=found.heading,
        title=source.title,
        snippet=shown.text,
        score=round(candidate.score, SCORE_DIGITS),
        arms=ArmEvidence(
            vector=VectorEvidence(rank=candidate.vector_rank, score=rounded(candidate.vector_score)),
            keyword=KeywordEvidence(
                rank=candidate.keyword_rank,
                score=rounded(candidate.keyword_score),
                tier=candidate.tier if candidate.keyword_score else None,
            ),
        ),
        weights=Weights(
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
        folded=list(found.folded),
        superseded_by=list(found.superseded_by),
        expired=iso_day(found.expired),
        later=found.later or UNSET,
        entries=list(found.entries) or UNSET,
        explanation=explanation,
    )


def hit_source(found: search.Hit) -> HitSource:
    """Return the author of a hit; the entries of a daily file may have different authors."""
    return HitSource(
        origin=found.chunk.origin or found.source.origin,
        entry=found.chunk.entry or UNSET,
        derived_from=derived_from(found.source),
    )


def derived_from(source: Source) -> Literal["external"] | UnsetType:
    """Return what a source is derived from, if it is not its author's word."""
    return EXTERNAL if source.external else UNSET


def iso_day(day: date | None) -> str | UnsetType:
    """Return a day in ISO format; UNSET for None."""
    return UNSET if day is None else day.isoformat()


def chunk_lines(stored: StoredChunk) -> ChunkLines:
    """Return the id, lines and heading of a chunk."""
    return ChunkLines(
        id=stored.id, start_line=stored.start_line, end_line=stored.end_line, heading=stored.heading
    )


Facts = TypeVar("Facts")


def rounded_record(facts: Facts) -> Facts:
    """Return a record of the search with its numbers rounded like scores."""
    return msgspec.convert(_all_rounded(msgspec.to_builtins(facts)), type(facts))


def _all_rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, SCORE_DIGITS)
    if isinstance(value, dict):
        return {key: _all_rounded(item) for key, item in value.items()}
    return [_all_rounded(item) for item in value] if isinstance(value, list) else value


def rounded(score: float | None) -> float | None:
    """Round a score for the answer; None stays None."""
    return None if score is None else round(score, SCORE_DIGITS)
