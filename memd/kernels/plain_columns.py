"""What does scoring need of every chunk? Lists with a place for each id that was ever given."""

from collections.abc import Sequence
from dataclasses import dataclass

DEAD = 0  # no source has the id 0


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

    def norm(self, length: float, k1: float, b: float) -> float:
        """Return BM25's k1 (1 - b + b · length / average length)."""
        average = max(self.total_length / max(self.count, 1), 1)
        return k1 * (1 - b + b * length / average)
