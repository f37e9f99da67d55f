"""How are a million chunks scored? With numpy: one pass over an array each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAME = "numpy"
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]
DEAD = 0  # no source has the id 0


@dataclass(frozen=True, slots=True)
class Postings:
    """In which chunks a term stands, and how often."""

    ids: NDArray[np.int64]
    counts: NDArray[np.float32]

    @property
    def document_frequency(self) -> int:
        """In how many chunks it stands."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Columns:
    """What scoring needs of every chunk, at the position of its id."""

    source: NDArray[np.int32]  # the source's id; DEAD where there is no such chunk (any more)
    row: NDArray[np.int32]  # row of the matrix; -1 while its vector is not there
    length: NDArray[np.int32]  # in terms
    count: int  # of live chunks
    total_length: int  # of live chunks, in terms

    @staticmethod
    def empty() -> "Columns":
        """Return the columns of an index without chunks."""
        nothing = np.zeros(0, np.int32)
        return Columns(nothing, nothing, nothing, 0, 0)

    def changed(
        self,
        *,
        removed: Sequence[int],
        added: Sequence[tuple[int, int, int, int]],
        embedded: Sequence[tuple[int, int]],
    ) -> "Columns":
        """Return a copy without *removed* ids, with *added* (id, source, row, length) and new (id, row)."""
        size = max((chunk[0] + 1 for chunk in added), default=0)
        grown = [_grown(column, size) for column in (self.source, self.row, self.length)]
        source, row, length = grown
        gone = np.asarray(removed, np.int64)
        lost = int(length[gone].sum())
        source[gone] = DEAD
        row[gone] = -1
        length[gone] = 0
        if added:
            table = np.asarray(added, np.int64)
            source[table[:, 0]], row[table[:, 0]], length[table[:, 0]] = table[:, 1], table[:, 2], table[:, 3]
            lost -= int(table[:, 3].sum())
        if embedded:
            table = np.asarray(embedded, np.int64)
            row[table[:, 0]] = table[:, 1]
        return Columns(source, row, length, self.count - len(gone) + len(added), self.total_length - lost)


def postings(documents: str, columns: Columns) -> Postings:
    """Return postings from chunk ids joined by commas, an id as often as the term stands there.

    What is not live in *columns* is left out: the full-text tables also know sources that are gone.
    """
    ids, counts = np.unique(np.fromstring(documents, np.int64, sep=","), return_counts=True)
    live = _live(ids, columns)
    return Postings(ids[live], counts[live].astype(np.float32))


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
    wanted = np.fromiter(sources, np.int32)
    return np.isin(columns.source, wanted[wanted != DEAD])


def restrict(mask: Mask, ids: Iterable[int], *, keep: bool) -> Mask:
    """Return *mask* with only these ids left (*keep*), or without them."""
    listed = np.zeros(len(mask), np.bool_)
    listed[np.fromiter(ids, np.int64)] = True
    narrowed: Mask = np.logical_and(mask, listed if keep else ~listed)
    return narrowed


def cosines(matrix: Any, rows: int, dim: int, query_vec: bytes) -> Scores:
    """Return each row's cosine with the query: a matrix-vector product of unit vectors."""
    table = np.frombuffer(matrix, np.float32, rows * dim).reshape(rows, dim)
    return table @ np.frombuffer(query_vec, np.float32)


def by_chunk(row_scores: Scores, columns: Columns) -> Scores:
    """Return each chunk's score from its row's; -1 where it has no row."""
    if len(row_scores) == 0:
        return np.full(len(columns.row), -1, np.float32)
    return np.where(columns.row >= 0, row_scores[columns.row], np.float32(-1))


def bm25(terms: Sequence[tuple[float, Postings]], columns: Columns, k1: float, b: float) -> Scores:
    """Return each chunk's Σ weight · tf / (tf + k1 (1 - b + b · length / average length))."""
    scores = np.zeros(len(columns.length), np.float32)
    average = columns.total_length / max(columns.count, 1)
    for weight, term in terms:
        norm = k1 * (1 - b + b * columns.length[term.ids] / max(average, 1))
        scores[term.ids] += weight * term.counts / (term.counts + norm)
    return scores


def take(values: NDArray[Any], ids: Sequence[int]) -> list[Any]:
    """Return the values at *ids* as plain Python numbers."""
    taken: list[Any] = values[np.asarray(ids, np.int64)].tolist()
    return taken


def count_above(scores: Scores, mask: Mask, limit: float) -> int:
    """Return how many scores under *mask* are higher than *limit*."""
    return int(np.count_nonzero(mask & (scores > np.float32(limit))))


def best(scores: Scores, mask: Mask, limit: int) -> list[int]:
    """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
    ids = np.flatnonzero(mask & (scores > 0))
    if len(ids) > limit:
        found = scores[ids]
        threshold = np.partition(found, len(found) - limit)[len(found) - limit]
        ids = ids[found >= threshold]
    order = np.lexsort((ids, -scores[ids]))
    return [int(i) for i in ids[order][:limit]]


def _live(ids: NDArray[np.int64], columns: Columns) -> Mask:
    known = (ids >= 0) & (ids < len(columns.source))
    live: Mask = columns.source[np.where(known, ids, 0)] != DEAD if len(columns.source) else known
    return known & live


def _grown(column: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    grown = np.zeros(max(size, len(column)), np.int32)
    grown[: len(column)] = column
    return grown
