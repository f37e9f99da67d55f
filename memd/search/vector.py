"""The vector arm: exact cosines of all chunks, or in a large index of candidates.

Every score is an exact cosine, on the scale of the shipped model's (`CosineScale`). The number of chunks that
meet the filters decides which chunks are compared: all, only those under the mask, or the candidates of a
coarse search over the codes of the vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Literal

from memd.index.columns import Mask, Scores, best, best_of, mask_size, spread
from memd.index.snapshot import Snapshot, View
from memd.index.vectors import FLOAT_BYTES, Ids, by_chunk, cosines, cosines_at
from memd.records import KNEE, PER_SOURCE, CosineScale
from memd.search.keyword import POOL

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np

Way = Literal["all", "few", "codes"]

# A gathered row costs 0.4 µs, a scanned row 0.04: so rows are gathered if the mask passes less than a tenth.
# With codes, rows are gathered up to the number that takes as long as reading the codes.
GATHERED_SHARE = 1 / 10
GATHERED = 8_192


class VectorArm:
    """The vector arm's judgement of every chunk under a mask."""

    def __init__(  # noqa: PLR0917 - the query, then what may answer it
        self,
        snapshot: Snapshot,
        query_vec: bytes,
        mask: Mask,
        compare: Callable[[Sequence[int]], object],
        corrected_vec: bytes | None = None,
        per_source: int = PER_SOURCE,
    ) -> None:
        """Find the nearest chunks under *mask*; the query is of the snapshot's model.

        *compare* verifies the checksums of the vectors that affect scores; if one is wrong, the caller must
        discard the arm's result. If the query was corrected, a chunk's cosine is the higher of its cosines
        with both texts.
        """
        self._snapshot = snapshot
        self._compare = compare
        self._verified: set[int] = set()  # ids
        self._query_vecs = (query_vec,) if corrected_vec is None else (query_vec, corrected_vec)
        self.mask = mask  # which chunks may answer
        self._all: Scores | None = None  # each chunk's cosine, if all were computed
        self._per_source = per_source  # hits of one source, at most
        codes = snapshot.codes
        few = GATHERED_SHARE * snapshot.rows.count if codes is None else GATHERED
        # How the pool is found.
        self.way: Way = "few" if mask_size(mask) <= few else "all" if codes is None else "codes"
        self.pool = self._nearest()  # ids, best first
        if len(self.pool) < POOL:
            # The other scores are at most 0, or NaN if the matrix was overwritten with zeros or noise.
            self.verify(np.flatnonzero(mask)[:POOL])

    def scores_of(self, ids: Sequence[int] | Ids) -> list[float]:
        """Return each chunk's cosine; below 0 for a chunk without a vector."""
        self.verify(ids)
        found: list[float] = self.cosines_of(np.asarray(ids, np.int64)).tolist()
        return found

    def cosines_of(self, ids: Ids) -> Scores:
        """Return each chunk's cosine without verifying checksums."""
        return self._cosines_at(ids) if self._all is None else self._all[ids]

    def verify(self, ids: Sequence[int] | Ids) -> None:
        """Verify the checksums of the chunks' vectors, unless this arm has verified them."""
        wanted = set(np.asarray(ids, np.int64).tolist()) - self._verified
        self._verified |= wanted
        if wanted:
            self._compare(list(wanted))

    def every(self) -> Scores:
        """Return each chunk's cosine, which may scan all vectors."""
        return self._scan() if self._all is None else self._all

    def _nearest(self) -> Ids:
        if self.way == "all":
            self._all = self._scan()
            every = self._all
            return self._spread(lambda mask: best(every, mask, POOL))
        if self.way == "few":
            ids = np.flatnonzero(self.mask)
        else:
            snapshot, codes = self._snapshot, self._snapshot.codes
            assert codes is not None
            rows, columns = snapshot.rows, snapshot.columns
            each = (
                codes.nearest_chunks(rows, query_vec, columns=columns, mask=self.mask, limit=POOL)
                for query_vec in self._query_vecs
            )
            ids = reduce(np.union1d, each)
        scores = self._cosines_at(ids)
        return self._spread(lambda mask: best_of(ids[mask[ids]], scores[mask[ids]], POOL))

    def _spread(self, find: Callable[[Mask], Ids]) -> Ids:
        return spread(find, self.cosines_of, self.mask, self._snapshot.columns, POOL, self._per_source)

    def _scan(self) -> Scores:
        rows = self._snapshot.rows
        each = (cosines(rows.buffer, rows.count, rows.dim, one) for one in self._query_vecs)
        return by_chunk(scored(reduce(np.maximum, each), self._snapshot.cosines), self._snapshot.columns)

    def _cosines_at(self, ids: Sequence[int] | Ids) -> Scores:
        rows, columns = self._snapshot.rows, self._snapshot.columns
        each = (
            cosines_at(rows.buffer, rows.count, rows.dim, query_vec, columns=columns, ids=ids)
            for query_vec in self._query_vecs
        )
        return scored(reduce(np.maximum, each), self._snapshot.cosines)


def scored(found: Scores, cosines: CosineScale) -> Scores:
    """Return the scores of a model's cosines; those of the shipped model unchanged."""
    if (cosines.zero, cosines.scale) == (0, 1):
        return found
    linear = (found - np.float32(cosines.zero)) * np.float32(cosines.scale)
    bent = np.float32(KNEE) + (linear - np.float32(KNEE)) * np.float32(cosines.bend)
    scores: Scores = np.minimum(linear, bent)
    return scores


def vector_arm(  # noqa: PLR0917 - the query, then what may answer it
    view: View,
    query_vec: bytes,
    model_id: str,
    mask: Mask,
    corrected_vec: bytes | None = None,
    per_source: int = PER_SOURCE,
) -> VectorArm | None:
    """Score every chunk under *mask* by its cosine with *query_vec*; None if that is from another model."""
    snapshot = view.snapshot
    # The index switched models after the query was embedded, or a server changed its model.
    if snapshot.model_id != model_id or len(query_vec) != snapshot.rows.dim * FLOAT_BYTES:
        return None
    if corrected_vec is not None and len(corrected_vec) != len(query_vec):
        corrected_vec = None
    return VectorArm(snapshot, query_vec, mask, view.has_damaged, corrected_vec, per_source)
