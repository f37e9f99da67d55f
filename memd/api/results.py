"""Conversion of records to what travels over the wire. Pure."""

from typing import Any

import msgspec

from memd.index.reader import StoredChunk
from memd.search.ranking import Candidate
from memd.search.recall import ESTIMATOR, Recalled
from memd.search.search import Hit, Place

SCORE_DIGITS = 6  # float32 is not exact beyond that


def hit(found: Hit) -> dict[str, Any]:
    """Return one hit."""
    candidate, source, chunk, shown = found.candidate, found.source, found.chunk, found.snippet
    return {
        "id": candidate.id,
        "path": source.path,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "heading": chunk.heading,
        "title": source.title,
        "snippet": shown.text,
        "score": round(candidate.score, SCORE_DIGITS),
        "arms": _arms(candidate),
        "weights": {
            "vector": round(candidate.weights.vector, SCORE_DIGITS),
            "keyword": round(candidate.weights.keyword, SCORE_DIGITS),
        },
        "decay": round(candidate.decay, SCORE_DIGITS),
        "date": source.day.isoformat(),
        "tags": list(source.tags),
        "source": {"origin": source.origin},
        "match_line": shown.match_line,
        "match_column": shown.match_column,
        "match_text": shown.match_text,
        "folded": [place(one) for one in found.folded],
    }


def place(where: Place) -> dict[str, Any]:
    """Return where a chunk stands."""
    return {"path": where.path, "start_line": where.start_line, "end_line": where.end_line}


def chunk(stored: StoredChunk) -> dict[str, Any]:
    """Return which chunk of a known source is meant."""
    return {
        "id": stored.id,
        "start_line": stored.start_line,
        "end_line": stored.end_line,
        "heading": stored.heading,
    }


def _arms(candidate: Candidate) -> dict[str, Any]:
    return {
        "vector": {"rank": candidate.vector_rank, "score": rounded(candidate.vector_score)},
        "keyword": {
            "rank": candidate.keyword_rank,
            "score": rounded(candidate.keyword_score),
            "tier": candidate.tier if candidate.keyword_score else None,
        },
    }


def recalled(result: Recalled, budget_tokens: int) -> dict[str, Any]:
    """Return what `recall` sends."""
    return {
        "text": result.text,
        "tokens": result.tokens,
        "budget_tokens": budget_tokens,
        "estimator": ESTIMATOR,
        "sources": [_excerpt(one) for one in result.used],
        "omitted": [_excerpt(one) | {"reason": reason} for one, reason in result.omitted],
    }


def _excerpt(found: Hit) -> dict[str, Any]:
    return {
        "id": found.candidate.id,
        "path": found.source.path,
        "start_line": found.chunk.start_line,
        "end_line": found.chunk.end_line,
        "score": round(found.candidate.score, SCORE_DIGITS),
        "origin": found.source.origin,
    }


def record(value: Any) -> Any:
    """Return a record of facts as it travels: maps, lists, texts, and numbers that are rounded as scores."""
    return _all_rounded(msgspec.to_builtins(value))


def _all_rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, SCORE_DIGITS)
    if isinstance(value, dict):
        return {key: _all_rounded(item) for key, item in value.items()}
    return [_all_rounded(item) for item in value] if isinstance(value, list) else value


def rounded(score: float | None) -> float | None:
    """Return a score as it travels."""
    return None if score is None else round(score, SCORE_DIGITS)
