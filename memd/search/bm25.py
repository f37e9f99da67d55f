"""BM25 of every chunk and of whole sources: one pass over an array for each term."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from memd.index.columns import Columns, Scores, stretches
from memd.index.postings import Ids, Part, Postings, known

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

# Chunks or postings scored at once: what each step makes stays in a core's second cache (1 MB).
BLOCK = 1 << 16


def bm25(terms: Sequence[tuple[float, Postings]], columns: Columns, k1: float, b: float) -> Scores:
    """Return each chunk's Σ weight · tf / (tf + k1 (1 - b + b · length / average length)).

    Each chunk's sum is made of the same float32 numbers in the same order, however the postings are held.
    """
    scores = np.zeros(len(columns.length), np.float32)
    norms = columns.norms(k1, b)
    for weight, term in terms:
        for part in term.parts:
            if part.ids is None:
                _add_dense(scores, norms, np.float32(weight), part)
            else:
                _add_sparse(scores, norms, np.float32(weight), *known(part, columns))
    return scores


def bm25_of_sources(
    terms: Sequence[tuple[float, Postings]], columns: Columns, ids: NDArray[np.int64], k1: float, b: float
) -> NDArray[np.float64]:
    """Return the BM25 of each id's source, taken as one long chunk of all that its chunks have.

    Counts and lengths are sums over its chunks; the average length is that of a chunk, as in `bm25`. What
    two chunks share is counted twice, in the counts as in the length. Its only chunk scores what it does.
    """
    first, end = stretches(columns, ids)
    average = max(columns.total_length / max(columns.count, 1), 1)
    norm = k1 * (1 - b + b * _sums(columns.length, first, end) / average)
    scores = np.zeros(len(first))
    for weight, term in terms:
        counts = sum((_between(part, first, end) for part in term.parts), start=np.zeros(len(first)))
        scores += weight * counts / (counts + norm)
    return scores


def count_between(term: Postings, first: int, end: int) -> int:
    """Return how often a term stands in the chunks from *first* to before *end*."""
    ends = np.array([first]), np.array([end])
    return int(sum(_between(part, *ends)[0] for part in term.parts))


def _add_dense(scores: Scores, norms: Scores, weight: np.float32, part: Part) -> None:
    size = min(part.size, len(scores))
    for start in range(0, size, BLOCK):
        block = slice(start, min(start + BLOCK, size))
        counts = part.counts[block].astype(np.float32)
        added = norms[block] + counts
        np.divide(counts, added, out=added)
        added *= weight
        scores[block] += added


def _add_sparse(
    scores: Scores, norms: Scores, weight: np.float32, ids: Ids, counted_there: NDArray[np.uint8]
) -> None:
    for start in range(0, len(ids), BLOCK):
        # With places of numpy's own type, and "clip", which never clips here, a gather takes half as long.
        at = ids[start : start + BLOCK].astype(np.intp)
        counts = counted_there[start : start + BLOCK].astype(np.float32)
        added = norms.take(at, mode="clip")
        added += counts
        np.divide(counts, added, out=added)
        added *= weight
        added += scores.take(at, mode="clip")
        scores[at] = added


def _between(part: Part, first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how often the term stands in the chunks from each *first* to before its *end*."""
    if part.ids is None:
        return _sums(part.counts, np.minimum(first, part.size), np.minimum(end, part.size))
    low, high = (np.searchsorted(part.ids, edge.astype(np.int32)) for edge in (first, end))
    return _sums(part.counts, low, high)


def _sums(values: NDArray[Any], first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of the values from each *first* to before its *end*."""
    sizes = end - first
    which = np.repeat(np.arange(len(first)), sizes)
    places = np.arange(len(which)) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    return np.bincount(which, values[places], len(first)).astype(np.float64, copy=False)
