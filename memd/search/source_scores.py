"""The evidence of a source for its chunks: which chunks belong together, and the shares of each part.

The paragraph that answers rarely repeats what its page is about. So a chunk is also judged by the first
chunk of its source, which has the title, and by all of the source. A source of one chunk is not changed by
that: all of these are the same there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from memd.index.columns import Columns, stretches, take

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np

Said = tuple[float, float] | tuple[None, None]

# Of cosines: the rest is the chunk's own. On manual pages worth .02 of nDCG@10, on abstracts nothing; where
# files are glued together from unrelated texts, it costs less than .003.
SOURCE_SHARE = 0.25
# Chunks that stand for a source, spread evenly over it: as good as all of them, and as quick for a book.
PLACES = 4


@dataclass(frozen=True, slots=True)
class Shares:
    """How much the words of each count for a chunk; they sum up to 1."""

    chunk: float
    first: float  # the first chunk of its source
    file: float  # its source, as one long chunk


EVERGREEN = Shares(chunk=0.5, first=0.2, file=0.3)
# A day's log begins with the first matter of that day, which says nothing of the others.
DATED = Shares(chunk=0.7, first=0.0, file=0.3)


def shares_of(*, dated: bool) -> Shares:
    """Return the shares for chunks of a dated source or of another one."""
    return DATED if dated else EVERGREEN


@dataclass(frozen=True, slots=True)
class Grouped:
    """Some chunks by their sources, which are numbered from 0 in the order in which they come."""

    ids: Sequence[int]
    sources: list[int]  # of each chunk
    group: list[int]  # of each chunk, the number of its source
    one_each: dict[int, int]  # source → one of its chunks


def grouped(columns: Columns, ids: Sequence[int]) -> Grouped:
    """Group the chunks of those *ids*."""
    sources = take(columns.source, ids)
    one_each = dict(zip(sources, ids, strict=True))
    numbers = {source: number for number, source in enumerate(one_each)}
    return Grouped(ids, sources, [numbers[source] for source in sources], one_each)


def vector_scores(
    cosines: Sequence[float], rows: Sequence[int], group: Sequence[int], *, share: float
) -> Sequence[Said]:
    """Return each chunk's vector score in [0, 1] and the mean cosine of its source; None without a vector.

    Args:
        cosines: first of the chunks, then of as many chunks of each source, one source after the other.
        rows: of the same; -1 where a chunk has no vector.
        group: each chunk's source, as a number from 0.
        share: of the mean in the score; the rest is the chunk's own cosine.
    """
    if not group:
        return []
    count, which = len(group), np.asarray(group)
    every, there = np.asarray(cosines, np.float64), np.asarray(rows) >= 0
    sources = int(which.max()) + 1
    known = there[count:].reshape(sources, -1)
    number = np.count_nonzero(known, axis=1)
    means = np.where(known, every[count:].reshape(sources, -1), 0.0).sum(axis=1) / np.maximum(number, 1)
    own = every[:count]
    mean = np.where(number[which] > 0, means[which], own)
    score = np.maximum(0.0, (1 - share) * own + share * mean)
    said = zip(score.tolist(), mean.tolist(), strict=True)
    return [pair if has_row else (None, None) for pair, has_row in zip(said, there.tolist(), strict=False)]


def keyword_scores(
    own: Sequence[float],
    group: Sequence[int],
    shares: Sequence[tuple[float, float, float]],
    first: Sequence[float],
    file: Sequence[float],
    *,
    reachable: float,
) -> list[tuple[float, float]]:
    """Return each chunk's keyword score in [0, 1), and what that of its whole source alone would be.

    BM25 is divided by what a chunk full of every term would reach, the sum of the query's idf: so the score
    means the same in a workspace of any size and keeps the arm's judgement, where r / (1 + r) throws it
    away. tanh(2 x) spreads the usual values of 0.1 to 0.4 over the range of a cosine.

    Args:
        own: BM25 of each chunk.
        group: each chunk's source, as a number from 0.
        shares: of each source, how much the chunk, the source's first chunk and all of the source count.
        first: BM25 of each source's first chunk.
        file: BM25 of each source, as one long chunk.
        reachable: the sum of the query's idf.
    """
    if not group:
        return []
    scale = 2 / reachable if reachable else 0.0
    which, table, whole = np.asarray(group), np.asarray(shares), np.asarray(file)
    by_source = table[:, 1] * np.asarray(first) + table[:, 2] * whole
    scores = np.tanh(scale * (table[which, 0] * np.asarray(own) + by_source[which]))
    return list(zip(scores.tolist(), np.tanh(scale * whole)[which].tolist(), strict=True))


def places(columns: Columns, ids: Sequence[int], count: int) -> list[int]:
    """Return *count* ids for each of *ids*, spread evenly over the chunks of its source, some twice."""
    first, end = stretches(columns, ids)
    steps = (2 * np.arange(count) + 1) * (end - first)[:, None] // (2 * count)
    spread: list[int] = (first[:, None] + steps).ravel().tolist()
    return spread
