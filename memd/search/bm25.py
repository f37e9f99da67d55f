"""BM25 of chunks and of whole sources: one pass over an array for each term, or a look at some chunks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from memd.index.columns import Columns, Mask, Scores, mask_size, stretches
from memd.index.postings import Ids, Part, Postings, known
from memd.search.top_k import best, best_of, lower_bound

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids64 = NDArray[np.int64]

# Chunks or postings scored at once: what each step makes stays in a core's second cache (1 MB).
BLOCK = 1 << 16
# Looked at one by one rather than all together: a gathered chunk costs 20 ns a term, one of a row of them 1.
FEW = 1 / 64
ROUNDING = 1e-4  # of sums in float32, as a share; far above it


class ChunkScores:
    """BM25 of the chunks: Σ weight · tf / (tf + k1 (1 - b + b · length / average length)). For one thread.

    Rare terms say most and cost least, so they are added first. What the frequent ones can add is at most
    their weights, as MaxScore has it (Turtle & Flood 1995): once that cannot bring a chunk among the best,
    it is not looked for there. Each chunk's sum is made of the same float32 numbers in the same order, the
    rarest term's first, however postings are held and whichever chunks are asked for.
    """

    def __init__(
        self, terms: Sequence[tuple[float, Postings]], columns: Columns, k1: float, b: float
    ) -> None:
        """Add up the terms that are held as ids; the others when they are needed."""
        self._norms = columns.norms(k1, b)
        self._sums = np.zeros(len(self._norms), np.float32)  # of the terms that are added
        self._rest = sorted(terms, key=lambda one: -one[1].document_frequency)  # the next one last
        self._columns = columns
        while self._rest and all(part.ids is not None for part in self._rest[-1][1].parts):
            self._add_next()

    def best(self, mask: Mask, limit: int) -> NDArray[np.int64]:
        """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
        is_open = mask_size(mask) == self._columns.count  # all that have a score may be returned
        while self._rest:
            least = float(lower_bound(self._sums if is_open else np.where(mask, self._sums, 0), limit))
            least -= ROUNDING * least + sum(weight for weight, _ in self._rest)
            if least > 0:
                ids = np.flatnonzero(self._sums >= least)
                if len(ids) < FEW * len(self._sums):
                    return best_of(ids[mask[ids]], self.at(ids[mask[ids]]), limit)
            self._add_next()
        return best(self._sums, mask, limit)

    def at(self, ids: NDArray[np.int64]) -> Scores:
        """Return the scores of some chunks."""
        found: Scores = self._sums[ids]
        norms = self._norms[ids]
        for weight, term in reversed(self._rest):
            counts = sum((_counts_at(part, ids) for part in term.parts), start=np.zeros(len(ids), np.float32))
            found += counts / (norms + counts) * np.float32(weight)
        return found

    def every(self) -> Scores:
        """Return each chunk's score."""
        while self._rest:
            self._add_next()
        return self._sums

    def _add_next(self) -> None:
        weight, term = self._rest.pop()
        for part in term.parts:
            if part.ids is None:
                _add_dense(self._sums, self._norms, np.float32(weight), part)
            else:
                _add_sparse(self._sums, self._norms, np.float32(weight), *known(part, self._columns))


def bm25_of_sources(
    terms: Sequence[tuple[float, Postings]], columns: Columns, ids: NDArray[np.int64], k1: float, b: float
) -> NDArray[np.float64]:
    """Return the BM25 of each id's source, taken as one long chunk of all that its chunks have.

    Counts and lengths are sums over its chunks; the average length is that of a chunk, as in `bm25`. What
    two chunks share is counted twice, in the counts as in the length. Its only chunk scores what it does.
    """
    first, end = stretches(columns, ids)
    average = max(columns.total_length / max(columns.count, 1), 1)
    stretch = _Stretches(first, end)
    norm = k1 * (1 - b + b * stretch.sums(columns.length) / average)
    scores = np.zeros(len(first))
    for weight, term in terms:
        counts = sum(map(stretch.counts, term.parts), start=np.zeros(len(first)))
        scores += weight * counts / (counts + norm)
    return scores


def count_between(term: Postings, first: int, end: int) -> int:
    """Return how often a term stands in the chunks from *first* to before *end*."""
    stretch = _Stretches(np.array([first]), np.array([end]))
    return int(sum(stretch.counts(part)[0] for part in term.parts))


def _counts_at(part: Part, ids: NDArray[np.int64]) -> Scores:
    """Return how often the term stands in each of some chunks."""
    if not part.size:
        return np.zeros(len(ids), np.float32)
    if part.ids is None:
        at, is_there = np.minimum(ids, part.size - 1), ids < part.size
    else:
        at = np.minimum(np.searchsorted(part.ids, ids.astype(np.int32)), part.size - 1)
        is_there = part.ids[at] == ids
    found: Scores = np.where(is_there, part.counts[at], 0).astype(np.float32)
    return found


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


class _Stretches:
    """Stretches of ids: from each *first* to before its *end*."""

    def __init__(self, first: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        self._last = int(end.max(initial=0))
        self._first, self._end = first, end
        self._edges = np.concatenate([first, end]).astype(np.int32)
        self._ids = _spread(first, end)  # for all counts that are held by id

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum over each stretch of *values* that stand at the places of their ids."""
        if len(values) < self._last:  # of the ids from there on it has none
            spread = _spread(np.minimum(self._first, len(values)), np.minimum(self._end, len(values)))
        else:
            spread = self._ids
        return _summed(values, spread, len(self._first))

    def counts(self, part: Part) -> NDArray[np.float64]:
        """Return how often a term stands in each stretch."""
        if part.ids is None:
            return self.sums(part.counts)
        low, high = np.searchsorted(part.ids, self._edges).reshape(2, -1)
        return _summed(part.counts, _spread(low, high), len(low))


def _spread(first: Ids64, end: Ids64) -> tuple[Ids64, Ids64]:
    """Return of each place in some stretches which one it is in, and the place."""
    sizes = end - first
    which = np.repeat(np.arange(len(first)), sizes)
    return which, np.arange(len(which)) + (first - (np.cumsum(sizes) - sizes))[which]


def _summed(values: NDArray[Any], spread: tuple[Ids64, Ids64], count: int) -> NDArray[np.float64]:
    which, places = spread
    sums: NDArray[np.float64] = np.bincount(which, values[places], count).astype(np.float64, copy=False)
    return sums
