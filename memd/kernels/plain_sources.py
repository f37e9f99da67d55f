"""What do the sources of some chunks add to what the chunks say? Without numpy: one after the other."""

import math
from collections.abc import Sequence

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
    count = len(group)
    sources = max(group, default=-1) + 1
    each = (len(cosines) - count) // max(sources, 1)
    means: list[float | None] = []
    for start in range(count, len(cosines), max(each, 1)):
        part = slice(start, start + each)
        there = [cosine for cosine, row in zip(cosines[part], rows[part], strict=True) if row >= 0]
        means.append(sum(there) / len(there) if there else None)
    found: list[Said] = []
    for cosine, row, source in zip(cosines, rows, group, strict=False):
        mean = means[source]
        mean = cosine if mean is None else mean
        found.append((max(0.0, (1 - share) * cosine + share * mean), mean) if row >= 0 else (None, None))
    return found


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
    scale = 2 / reachable if reachable else 0.0
    found = []
    for score, source in zip(own, group, strict=True):
        of_chunk, of_first, of_file = shares[source]
        bm25 = of_chunk * score + of_first * first[source] + of_file * file[source]
        found.append((math.tanh(scale * bm25), math.tanh(scale * file[source])))
    return found
