"""Which chunks are nearest in meaning? The exact scan of all vectors."""

from collections.abc import Sequence

from memd.index.vectors import FLOAT_BYTES
from memd.index.view import View
from memd.kernels import kernel
from memd.search.keyword import POOL


class VectorArm:
    """The vector arm's judgement of every chunk under a mask."""

    def __init__(self, pool: list[int], scores: kernel.Scores, mask: kernel.Mask) -> None:
        self.pool = pool  # ids, best first
        self._scores = scores
        self._mask = mask

    def scores_of(self, ids: Sequence[int]) -> list[float]:
        """Return each chunk's cosine; below 0 also where it has no vector."""
        found: list[float] = kernel.take(self._scores, ids)
        return found

    def place(self, chunk_id: int) -> tuple[int, float]:
        """Return a chunk's rank among all that may answer, from 1, and its cosine."""
        [score] = self.scores_of([chunk_id])
        return 1 + kernel.count_above(self._scores, self._mask, score), score


def vector_arm(view: View, query_vec: bytes, model_id: str, mask: kernel.Mask) -> VectorArm | None:
    """Score every chunk under *mask* by its cosine with *query_vec*; None where that is of another space."""
    rows = view.snapshot.rows
    # Switched since the query was embedded, or a server that changed its mind.
    if view.snapshot.model_id != model_id or len(query_vec) != rows.dim * FLOAT_BYTES:
        return None
    by_row = kernel.cosines(rows.buffer, rows.count, rows.dim, query_vec)
    scores = kernel.by_chunk(by_row, view.snapshot.columns)
    return VectorArm(kernel.best(scores, mask, POOL), scores, mask)
