"""The columns of an index: what scoring needs of every chunk, at the place of its id; masks over chunks.

Without numpy they only count: search.fallback reads what it needs from the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from memd.errors import NumpyMissingError

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray


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


try:
    import numpy as np
except ImportError:
    HAS_NUMPY = False
else:
    HAS_NUMPY = True
if TYPE_CHECKING:
    from numpy.typing import NDArray

Scores: TypeAlias = "NDArray[np.float32]"
Mask: TypeAlias = "NDArray[np.bool_]"

DEAD = 0  # no source has the id 0


@dataclass(frozen=True, slots=True)
class Columns:
    """What scoring needs of every chunk, at the position of its id."""

    source: NDArray[np.int32]  # the source's id; DEAD where there is no such chunk (any more)
    row: NDArray[np.int32]  # row of the matrix; -1 while its vector is not there
    length: NDArray[np.int32]  # in terms
    count: int  # of live chunks
    total_length: int  # of live chunks, in terms
    _norms: dict[tuple[float, float], NDArray[np.float32]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _starts: list[NDArray[np.int64]] = field(default_factory=list, repr=False, compare=False)
    _owners: dict[int, Owners] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def empty() -> Columns:
        """Return the columns of an index without chunks."""
        if not HAS_NUMPY:
            return Columns([], [], [], 0, 0)  # type: ignore[arg-type]  # of which nothing is asked
        nothing = np.zeros(0, np.int32)
        return Columns(nothing, nothing, nothing, 0, 0)

    @staticmethod
    def of(source: NDArray[np.int32], row: NDArray[np.int32], length: NDArray[np.int32]) -> Columns:
        """Return columns of which a dead chunk has the length 0."""
        return Columns(source, row, length, int(np.count_nonzero(source)), int(length.sum()))

    def changed(
        self,
        *,
        removed: Sequence[int],
        added: Sequence[tuple[int, int, int, int]],
        embedded: Sequence[tuple[int, int]],
    ) -> Columns:
        """Return a copy without *removed* ids, with *added* (id, source, row, length) and new (id, row)."""
        if not HAS_NUMPY:
            return replace(self, count=self.count - len(removed) + len(added))
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

    def without(self, sources: AbstractSet[int]) -> Columns:
        """Return a copy in which the chunks of some sources are dead."""
        if not HAS_NUMPY or not sources:
            return self
        gone = mask_of(self, sources)
        source, row, length = self.source.copy(), self.row.copy(), self.length.copy()
        source[gone], row[gone], length[gone] = DEAD, -1, 0
        return Columns.of(source, row, length)

    def owners(self, rows: int) -> Owners:
        """Return which chunks each of so many rows has. Made once for all queries of a generation."""
        found = self._owners.get(rows)
        if found is None:
            found = self._owners[rows] = Owners.of(self.row, rows)
        return found

    def norms(self, k1: float, b: float) -> NDArray[np.float32]:
        """Return BM25's k1 (1 - b + b · length / average length) of each chunk; infinite where it is dead.

        Made once for all queries of a generation. Infinite: whatever stands in a dead chunk adds 0.
        """
        found = self._norms.get((k1, b))
        if found is None:
            average = max(self.total_length / max(self.count, 1), 1)
            found = self.length.astype(np.float32)
            found *= np.float32(k1 * b / average)
            found += np.float32(k1 * (1 - b))
            # Above 0, so that a term that stands nowhere in a chunk without words adds 0 / norm = 0.
            np.maximum(found, np.finfo(np.float32).tiny, out=found)
            found[self.source == DEAD] = np.inf
            self._norms[k1, b] = found
        return found

    def starts(self) -> NDArray[np.int64]:
        """Return where the chunks of each source begin, and of each stretch of dead ones, and the end.

        Made once for all queries of a generation. The chunks of a source are put in one transaction, so
        their ids follow each other.
        """
        if not self._starts:
            changes = np.flatnonzero(self.source[1:] != self.source[:-1]) + 1
            self._starts.append(np.concatenate([[0], changes, [len(self.source)]]))
        return self._starts[0]


def require_numpy(what: str) -> None:
    """Raise NumpyMissingError, which names *what* is asked for, where numpy cannot be imported."""
    if not HAS_NUMPY:
        raise NumpyMissingError(f"{what} needs numpy, which cannot be imported: pip install numpy")


def only_living(ids: Sequence[int], columns: Columns) -> list[int]:
    """Return those of *ids* that are live."""
    listed = np.asarray(ids, np.int64)
    living: list[int] = listed[_live(listed, columns)].tolist()
    return living


def live_up_to(columns: Columns, last: int) -> int:
    """Return how many chunks are live of those with an id up to *last*."""
    return int(np.count_nonzero(columns.source[: last + 1]))


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


def mask_of_ids(ids: Iterable[int], size: int) -> Mask:
    """Return a mask of so many places with those ids in it."""
    mask = np.zeros(size, np.bool_)
    mask[np.fromiter(ids, np.int64)] = True
    return mask


def restrict(mask: Mask, ids: Iterable[int], *, keep: bool) -> Mask:
    """Return *mask* with only these ids left (*keep*), or without them."""
    listed = np.zeros(len(mask), np.bool_)
    listed[np.fromiter(ids, np.int64)] = True
    narrowed: Mask = np.logical_and(mask, listed if keep else ~listed)
    return narrowed


def mask_size(mask: Mask) -> int:
    """Return how many chunks are under *mask*."""
    return int(np.count_nonzero(mask))


def take(values: NDArray[Any], ids: Sequence[int] | Ids) -> list[Any]:
    """Return the values at *ids* as plain Python numbers."""
    taken: list[Any] = values[np.asarray(ids, np.int64)].tolist()
    return taken


def stretches(columns: Columns, ids: Sequence[int] | Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first id, and the one after the last, of the chunks of each id's source."""
    starts = columns.starts()
    after = np.searchsorted(starts, np.asarray(ids, np.int64), side="right")
    return starts[after - 1], starts[after]


def _grown(column: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    grown = np.zeros(max(size, len(column)), np.int32)
    grown[: len(column)] = column
    return grown


def _live(ids: NDArray[np.int64], columns: Columns) -> Mask:
    known = (ids >= 0) & (ids < len(columns.source))
    live: Mask = columns.source[np.where(known, ids, 0)] != DEAD if len(columns.source) else known
    return known & live
