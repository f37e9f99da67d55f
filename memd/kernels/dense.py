"""How are a million chunks scored? With numpy: one pass over an array each."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.kernels.dense_columns import DEAD, Columns
from memd.kernels.dense_sources import evidence, meaning
from memd.kernels.dense_vectors import Ids, best_of, by_chunk, cosines, cosines_at, ids_of, with_newest
from memd.kernels.dense_words import (
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

NAME = "numpy"
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]

GROUP = 64  # scores of which only the best is compared at first; of a million 16,000 are left


def only_living(ids: Sequence[int], columns: Columns) -> list[int]:
    """Return those of *ids* that are live."""
    listed = np.asarray(ids, np.int64)
    living: list[int] = listed[_live(listed, columns)].tolist()
    return living


def mask_of(columns: Columns, sources: Iterable[int] | None) -> Mask:
    """Return which chunks are live and, unless None, of one of *sources*."""
    if sources is None:
        live: Mask = columns.source != DEAD
        return live
    passes = np.zeros(int(columns.source.max(initial=0)) + 1, np.bool_)  # by source: a look-up, no search
    wanted = np.fromiter(sources, np.int32)
    passes[wanted[wanted < len(passes)]] = True
    passes[DEAD] = False
    return passes[columns.source]


def restrict(mask: Mask, ids: Iterable[int], *, keep: bool) -> Mask:
    """Return *mask* with only these ids left (*keep*), or without them."""
    listed = np.zeros(len(mask), np.bool_)
    listed[np.fromiter(ids, np.int64)] = True
    narrowed: Mask = np.logical_and(mask, listed if keep else ~listed)
    return narrowed


def take(values: NDArray[Any], ids: Sequence[int]) -> list[Any]:
    """Return the values at *ids* as plain Python numbers."""
    taken: list[Any] = values[np.asarray(ids, np.int64)].tolist()
    return taken


def count(mask: Mask) -> int:
    """Return how many chunks are under *mask*."""
    return int(np.count_nonzero(mask))


def count_above(scores: Scores, mask: Mask, limit: float) -> int:
    """Return how many scores under *mask* are higher than *limit*."""
    return int(np.count_nonzero(mask & (scores > np.float32(limit))))


def best(scores: Scores, mask: Mask, limit: int) -> list[int]:
    """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
    least = _lower_bound(scores, limit)
    ids = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    ids = ids[mask[ids]]
    if least > 0 and len(ids) < limit:  # too few of those that reach it are under the mask
        allowed = np.where(mask, scores, np.float32(0))
        least = _lower_bound(allowed, limit)
        ids = np.flatnonzero(allowed >= least if least > 0 else allowed > 0)
    order = np.lexsort((ids, -scores[ids]))
    return [int(i) for i in ids[order][:limit]]


def _lower_bound(scores: Scores, limit: int) -> np.float32:
    """Return a score that at least *limit* reach, and not many more; 0 where there are few scores.

    That of the *limit*-th best group, each with the score of its best member: a maximum of a million takes
    a twentieth of a partition's time.
    """
    groups = len(scores) // GROUP
    if groups <= limit:
        return np.float32(0)
    best = np.maximum.reduce(scores[: groups * GROUP].reshape(GROUP, groups), axis=0)
    bound: np.float32 = np.partition(best, groups - limit)[groups - limit]
    return bound


def _live(ids: NDArray[np.int64], columns: Columns) -> Mask:
    known = (ids >= 0) & (ids < len(columns.source))
    live: Mask = columns.source[np.where(known, ids, 0)] != DEAD if len(columns.source) else known
    return known & live


def near(
    matrix: Any, rows: int, dim: int, columns: Columns, ids: Sequence[int], *, cosine: float, share: float
) -> list[tuple[int, int]]:
    """Return pairs of places in *ids*, the lower first, of chunks of two sources that may be alike.

    Those that have the same row; and those of which the shorter has at least *share* of the longer's length
    and, where both have a row, these have at least that *cosine*.
    """
    at = np.asarray(ids, np.int64)
    source, row, length = columns.source[at], columns.row[at], columns.length[at]
    alike = np.minimum(length[:, None], length) >= share * np.maximum(length[:, None], length)
    known = np.flatnonzero(row >= 0)
    vectors = np.frombuffer(matrix, np.float32, rows * dim).reshape(rows, dim)[row[known]]
    alike[np.ix_(known, known)] &= vectors @ vectors.T >= np.float32(cosine)
    alike |= (row[:, None] == row) & (row >= 0)
    alike &= source[:, None] != source
    return [(first, second) for first, second in np.argwhere(np.triu(alike, 1)).tolist()]


def places(columns: Columns, ids: Sequence[int], count: int) -> list[int]:
    """Return *count* ids for each of *ids*, spread evenly over the chunks of its source, some twice."""
    first, end = stretches(columns, ids)
    steps = (2 * np.arange(count) + 1) * (end - first)[:, None] // (2 * count)
    spread: list[int] = (first[:, None] + steps).ravel().tolist()
    return spread
