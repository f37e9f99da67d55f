"""How does a caller see a record? Pure conversions to what travels over the wire."""

from typing import Any

from memd.search.ranking import Candidate
from memd.search.recall import ESTIMATOR, Recalled
from memd.search.search import Hit

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
    }


def _arms(candidate: Candidate) -> dict[str, Any]:
    return {
        "vector": {"rank": candidate.vector_rank, "score": _rounded(candidate.vector_score)},
        "keyword": {
            "rank": candidate.keyword_rank,
            "score": _rounded(candidate.keyword_score),
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
        "sources": [_place(one) for one in result.used],
        "omitted": [_place(one) | {"reason": reason} for one, reason in result.omitted],
    }


def _place(found: Hit) -> dict[str, Any]:
    return {
        "id": found.candidate.id,
        "path": found.source.path,
        "start_line": found.chunk.start_line,
        "end_line": found.chunk.end_line,
        "score": round(found.candidate.score, SCORE_DIGITS),
        "origin": found.source.origin,
    }


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, SCORE_DIGITS)
