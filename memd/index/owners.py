"""The chunks that have a row's vector: what the first pass over codes needs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray


Mask: TypeAlias = "NDArray[np.bool_]"
Ids: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Owners:
    """The live chunks of every row: one of them in an array, the others, of texts that repeat, in a list."""

    first: (
        Ids  # by row: one of its chunks; 0, which no chunk has, where there is none. In the width of an index
    )
    used: Mask  # by row: whether it has a chunk
    more_rows: Ids  # of the other chunks, in order
    more_ids: Ids

    @staticmethod
    def of(row: NDArray[np.int32], rows: int) -> Owners:
        """Turn each chunk's *row*, -1 for none, around, for the first so many *rows*: 6 ms for a million."""
        ids = np.flatnonzero((row >= 0) & (row < rows))
        theirs = row[ids].astype(np.int64)
        first = np.zeros(rows, np.int64)
        first[theirs] = ids
        others = first[theirs] != ids
        order = np.argsort(theirs[others], kind="stable")
        return Owners(first, first > 0, theirs[others][order], ids[others][order])

    def allowed(self, mask: Mask) -> Mask:
        """Return which rows have a chunk under *mask*."""
        rows: Mask = mask[self.first]
        rows[self.more_rows[mask[self.more_ids]]] = True
        return rows

    def chunks(self, rows: Ids, mask: Mask) -> Ids:
        """Return the chunks of *rows* under *mask*, in any order."""
        starts = np.searchsorted(self.more_rows, rows)
        counts = np.searchsorted(self.more_rows, rows, side="right") - starts
        before = np.cumsum(counts) - counts
        places = np.repeat(starts - before, counts) + np.arange(counts.sum())
        ids = np.concatenate([self.first[rows], self.more_ids[places]])
        under: Ids = ids[mask[ids]]
        return under
