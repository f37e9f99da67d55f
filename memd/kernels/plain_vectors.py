"""How near is every vector to a query? Without numpy, row by row."""

from collections.abc import Sequence
from operator import mul
from typing import Any

from memd.kernels.plain_columns import Columns

Scores = list[float]
Mask = list[bool]
Ids = list[int]


def cosines(matrix: Any, rows: int, dim: int, query_vec: bytes, first: int = 0) -> Scores:
    """Return the cosine with the query of each row from *first* on: a product of unit vectors."""
    query = memoryview(query_vec).cast("f").tolist()
    with memoryview(matrix) as view, view[: rows * dim * 4].cast("f") as table:
        return [sum(map(mul, table[row * dim : (row + 1) * dim], query)) for row in range(first, rows)]


def by_chunk(row_scores: Scores, columns: Columns) -> Scores:
    """Return each chunk's score from its row's; -1 where it has no row."""
    if not row_scores:
        return [-1.0] * len(columns.row)
    return [row_scores[row] if row >= 0 else -1.0 for row in columns.row]


def cosines_at(
    matrix: Any, rows: int, dim: int, query_vec: bytes, *, columns: Columns, ids: Sequence[int] | Ids
) -> Scores:
    """Return the cosines of a few chunks, each the same whichever others are asked for; -1 without a row."""
    query = memoryview(query_vec).cast("f").tolist()
    found = []
    with memoryview(matrix) as view, view[: rows * dim * 4].cast("f") as table:
        for number in ids:
            at = columns.row[number] * dim
            found.append(sum(map(mul, table[at : at + dim], query)) if at >= 0 else -1.0)
    return found


def ids_of(mask: Mask) -> Ids:
    """Return the ids under *mask*, in order."""
    return [number for number, allowed in enumerate(mask) if allowed]


def best_of(ids: Ids, scores: Scores, limit: int) -> list[int]:
    """Return the *limit* ids of the highest *scores* above 0, best first, ties by id."""
    found = sorted((-score, number) for number, score in zip(ids, scores, strict=True) if score > 0)
    return [number for _, number in found[:limit]]


def with_newest(ids: Ids, row_scores: Scores, columns: Columns, mask: Mask, *, first: int, limit: int) -> Ids:
    """Return *ids* and the *limit* best chunks under *mask* whose rows have *row_scores*, from *first* on."""
    newer = [number for number, row in enumerate(columns.row) if row >= first and mask[number]]
    return [*ids, *best_of(newer, [row_scores[columns.row[number] - first] for number in newer], limit)]
