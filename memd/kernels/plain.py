"""How are chunks scored without numpy? Row by row, with the same results up to rounding."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from operator import mul
from typing import Any

from memd.kernels.plain_columns import DEAD, Columns
from memd.kernels.plain_sources import evidence, meaning
from memd.kernels.plain_vectors import Ids, best_of, by_chunk, cosines, cosines_at, ids_of, with_newest
from memd.kernels.plain_words import (
    COUNT_BITS,
    NO_PART,
    Part,
    Postings,
    agree,
    bm25,
    bm25_of_sources,
    count_between,
    counted,
    decoded,
    encoded,
    joined,
    live_up_to,
    living,
    mask_of_ids,
    only,
    part_of,
    stretches,
    up_to,
)

__all__ = [
    "COUNT_BITS",
    "NO_PART",
    "Columns",
    "Ids",
    "Part",
    "Postings",
    "agree",
    "best_of",
    "bm25",
    "bm25_of_sources",
    "by_chunk",
    "cosines",
    "cosines_at",
    "count_between",
    "counted",
    "decoded",
    "encoded",
    "evidence",
    "ids_of",
    "joined",
    "live_up_to",
    "living",
    "mask_of_ids",
    "meaning",
    "only",
    "part_of",
    "stretches",
    "up_to",
    "with_newest",
]  # and what stands here

NAME = "plain"
Scores = list[float]
Mask = list[bool]


def only_living(ids: Sequence[int], columns: Columns) -> list[int]:
    """Return those of *ids* that are live."""
    source = columns.source
    return [number for number in ids if 0 <= number < len(source) and source[number] != DEAD]


def mask_of(columns: Columns, sources: Iterable[int] | None) -> Mask:
    """Return which chunks are live and, unless None, of one of *sources*."""
    if sources is None:
        return [source != DEAD for source in columns.source]
    wanted = set(sources) - {DEAD}
    return [source in wanted for source in columns.source]


def restrict(mask: Mask, ids: Iterable[int], *, keep: bool) -> Mask:
    """Return *mask* with only these ids left (*keep*), or without them."""
    listed = set(ids)
    return [allowed and (number in listed) == keep for number, allowed in enumerate(mask)]


def take(values: Sequence[Any], ids: Sequence[int]) -> list[Any]:
    """Return the values at *ids*."""
    return [values[number] for number in ids]


def count(mask: Mask) -> int:
    """Return how many chunks are under *mask*."""
    return sum(mask)


def count_above(scores: Scores, mask: Mask, limit: float) -> int:
    """Return how many scores under *mask* are higher than *limit*."""
    return sum(score > limit and allowed for score, allowed in zip(scores, mask, strict=True))


def best(scores: Scores, mask: Mask, limit: int) -> list[int]:
    """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
    found = (number for number, score in enumerate(scores) if score > 0 and mask[number])
    return sorted(found, key=lambda number: (-scores[number], number))[:limit]


def near(
    matrix: Any, rows: int, dim: int, columns: Columns, ids: Sequence[int], *, cosine: float, share: float
) -> list[tuple[int, int]]:
    """Return pairs of places in *ids*, the lower first, of chunks of two sources that may be alike.

    Those that have the same row; and those of which the shorter has at least *share* of the longer's length
    and, where both have a row, these have at least that *cosine*.
    """
    found = []
    with memoryview(matrix) as view, view[: rows * dim * 4].cast("f") as table:
        for (one, first), (two, second) in combinations(enumerate(ids), 2):
            if columns.source[first] == columns.source[second]:
                continue
            left, right = columns.row[first] * dim, columns.row[second] * dim
            shorter, longer = sorted((columns.length[first], columns.length[second]))
            alike = left == right >= 0
            if not alike and shorter >= share * longer:
                alike = min(left, right) < 0 or cosine <= sum(
                    map(mul, table[left : left + dim], table[right : right + dim])
                )
            if alike:
                found.append((one, two))
    return found


def places(columns: Columns, ids: Sequence[int], count: int) -> list[int]:
    """Return *count* ids for each of *ids*, spread evenly over the chunks of its source, some twice."""
    return [
        first + (2 * step + 1) * (end - first) // (2 * count)
        for first, end in zip(*stretches(columns, ids), strict=True)
        for step in range(count)
    ]
