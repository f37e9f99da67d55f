"""Cosines of rows and chunks with a query, as products of unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from memd.index.columns import Columns, Mask, Scores

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

Ids: TypeAlias = "NDArray[np.int64]"

SLAB_ROWS = 1_024  # gathered at once; 1.5 MB of 384 dimensions stay in a core's cache until they are used


def cosines(matrix: Any, rows: int, dim: int, query_vec: bytes, first: int = 0) -> Scores:
    """Return the cosine with the query of each row from *first* on: a product of unit vectors."""
    return _table(matrix, rows, dim)[first:] @ np.frombuffer(query_vec, np.float32)


def by_chunk(row_scores: Scores, columns: Columns) -> Scores:
    """Return each chunk's score from its row's; -1 where it has no row."""
    with_none = np.empty(len(row_scores) + 1, np.float32)  # the row -1 is the last one
    with_none[:-1] = row_scores
    with_none[-1] = -1
    return with_none[columns.row]


def cosines_at(
    matrix: Any, rows: int, dim: int, query_vec: bytes, *, columns: Columns, ids: Sequence[int] | Ids
) -> Scores:
    """Return the cosines of a few chunks, each the same whichever others are asked for; -1 without a row.

    Not by BLAS, whose last digit depends on where in a block a row stands, and which wakes a thread of
    every core for what one does in a millisecond.
    """
    asked, places = np.unique(columns.row[np.asarray(ids, np.int64)], return_inverse=True)
    table, query = _table(matrix, rows, dim), np.frombuffer(query_vec, np.float32)
    found = np.full(len(asked), -1, np.float32)
    slab = np.empty((min(SLAB_ROWS, len(asked)), dim), np.float32)
    for start in range(int(np.count_nonzero(asked < 0)), len(asked), SLAB_ROWS):
        part = asked[start : start + SLAB_ROWS]
        gathered = np.take(table, part, axis=0, out=slab[: len(part)], mode="clip")  # else it is buffered
        np.einsum("ij,j->i", gathered, query, out=found[start : start + len(part)])
    return found[places]


def ids_of(mask: Mask) -> Ids:
    """Return the ids under *mask*, in order."""
    return np.flatnonzero(mask)


def best_of(ids: Ids, scores: Scores, limit: int) -> Ids:
    """Return the *limit* ids of the highest *scores* above 0, best first, ties by id."""
    if len(ids) > limit:
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        chosen = scores >= least
        ids, scores = ids[chosen], scores[chosen]
    order = np.lexsort((ids, -scores))[:limit]
    found: Ids = ids[order][scores[order] > 0]
    return found


def with_newest(ids: Ids, row_scores: Scores, columns: Columns, mask: Mask, *, first: int, limit: int) -> Ids:
    """Return *ids* and the *limit* best chunks under *mask* whose rows have *row_scores*, from *first* on."""
    newer = np.flatnonzero(mask & (columns.row >= first))
    return np.concatenate([ids, best_of(newer, row_scores[columns.row[newer] - first], limit)])


def _table(matrix: Any, rows: int, dim: int) -> NDArray[np.float32]:
    return np.frombuffer(matrix, np.float32, rows * dim).reshape(rows, dim)
