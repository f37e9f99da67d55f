"""What do the sources of some chunks add to what the chunks say? With numpy: all at once."""

from collections.abc import Sequence

import numpy as np

Said = tuple[float, float] | tuple[None, None]


def meaning(
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


def evidence(
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
