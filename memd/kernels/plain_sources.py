"""What do the sources of some chunks add to what the chunks say? Without numpy: one after the other."""

import math
from collections.abc import Sequence

Said = tuple[float, float] | tuple[None, None]


def meaning(
    cosines: Sequence[float], rows: Sequence[int], group: Sequence[int], *, share: float
) -> Sequence[Said]:
    """Return each chunk's vector score and the mean cosine of its source: as `dense_sources.meaning`."""
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
    """Return each chunk's keyword score and that of its whole source: as `dense_sources.evidence`."""
    scale = 2 / reachable if reachable else 0.0
    found = []
    for score, source in zip(own, group, strict=True):
        of_chunk, of_first, of_file = shares[source]
        bm25 = of_chunk * score + of_first * first[source] + of_file * file[source]
        found.append((math.tanh(scale * bm25), math.tanh(scale * file[source])))
    return found
