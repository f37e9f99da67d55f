"""How are chunks scored without numpy? Row by row, with the same results up to rounding."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

NAME = "plain"
Scores = list[float]
Mask = list[bool]
DEAD = 0


@dataclass(frozen=True, slots=True)
class Postings:
    """In which chunks a term stands, and how often."""

    ids: list[int]
    counts: list[int]

    @property
    def document_frequency(self) -> int:
        """In how many chunks it stands."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Columns:
    """What scoring needs of every chunk, at the position of its id."""

    source: list[int]
    row: list[int]
    length: list[int]
    count: int
    total_length: int

    @staticmethod
    def empty() -> "Columns":
        """Return the columns of an index without chunks."""
        return Columns([], [], [], 0, 0)

    def changed(
        self,
        *,
        removed: Sequence[int],
        added: Sequence[tuple[int, int, int, int]],
        embedded: Sequence[tuple[int, int]],
    ) -> "Columns":
        """Return a copy without *removed* ids, with *added* (id, source, row, length) and new (id, row)."""
        size = max((chunk[0] + 1 for chunk in added), default=0)
        source, row, length = (
            column + [0] * (size - len(column)) for column in (self.source, self.row, self.length)
        )
        total = self.total_length
        for chunk_id in removed:
            total -= length[chunk_id]
            source[chunk_id], row[chunk_id], length[chunk_id] = DEAD, -1, 0
        for chunk_id, *values in added:
            source[chunk_id], row[chunk_id], length[chunk_id] = values
            total += length[chunk_id]
        for chunk_id, number in embedded:
            row[chunk_id] = number
        return Columns(source, row, length, self.count - len(removed) + len(added), total)


def postings(documents: str, columns: Columns) -> Postings:
    """Return postings from chunk ids joined by commas, an id as often as the term stands there.

    What is not live in *columns* is left out: the full-text tables also know sources that are gone.
    """
    counts = Counter(only_living([int(number) for number in documents.split(",") if number], columns))
    return Postings(list(counts), list(counts.values()))


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


def cosines(matrix: Any, rows: int, dim: int, query_vec: bytes) -> Scores:
    """Return each row's cosine with the query: a matrix-vector product of unit vectors."""
    query = memoryview(query_vec).cast("f").tolist()
    with memoryview(matrix) as view, view[: rows * dim * 4].cast("f") as table:
        return [sum(map(mul, table[row * dim : (row + 1) * dim], query)) for row in range(rows)]


def by_chunk(row_scores: Scores, columns: Columns) -> Scores:
    """Return each chunk's score from its row's; -1 where it has no row."""
    if not row_scores:
        return [-1.0] * len(columns.row)
    return [row_scores[row] if row >= 0 else -1.0 for row in columns.row]


def bm25(terms: Sequence[tuple[float, Postings]], columns: Columns, k1: float, b: float) -> Scores:
    """Return each chunk's Σ weight · tf / (tf + k1 (1 - b + b · length / average length))."""
    scores = [0.0] * len(columns.length)
    average = max(columns.total_length / max(columns.count, 1), 1)
    for weight, term in terms:
        for chunk_id, count in zip(term.ids, term.counts, strict=True):
            norm = k1 * (1 - b + b * columns.length[chunk_id] / average)
            scores[chunk_id] += weight * count / (count + norm)
    return scores


def take(values: Sequence[Any], ids: Sequence[int]) -> list[Any]:
    """Return the values at *ids*."""
    return [values[number] for number in ids]


def count_above(scores: Scores, mask: Mask, limit: float) -> int:
    """Return how many scores under *mask* are higher than *limit*."""
    return sum(score > limit and allowed for score, allowed in zip(scores, mask, strict=True))


def best(scores: Scores, mask: Mask, limit: int) -> list[int]:
    """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
    found = (number for number, score in enumerate(scores) if score > 0 and mask[number])
    return sorted(found, key=lambda number: (-scores[number], number))[:limit]
