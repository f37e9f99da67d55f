"""Approximate nearest rows by faiss: a scan of codes, 16 times smaller than the rows.

Product quantisation (Jégou, Douze & Schmid, TPAMI 2011) with 4 bits for 4 dimensions, so that a table of
16 products fits into a register and one instruction looks up 32 codes (André, Kermarrec & Le Scouarnec,
VLDB 2015). The query stays whole, only the rows are rounded: of a hundred thousand real vectors the ten
nearest are among the 100 best by code, where signs compared with signs need 450.

The only importer of faiss, an optional part that is loaded when the first codes are made or read. Which
rows count is told before the cut, never after it.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Columns

PART_DIMS = 4  # dimensions that share a code
BITS = 4  # of a code, so 1 bit a dimension
CENTROIDS = 1 << BITS
BLOCK_ROWS = 32  # whose codes lie together, as a register takes them; only the last block may be part full
SAMPLE_ROWS = 256 * CENTROIDS  # to find the centroids in; the library draws as many of more
ROUNDS = 10  # of moving the centroids, 0.5 s; 25, the library's default, find no more of real vectors
NEAREST = 10  # of recall@10
ROUNDING = 1e-6  # of cosines that are computed in another order
STRIPES = 2  # scanned at once by one query: more cores than that are for other queries
_HELPER = ThreadPoolExecutor(STRIPES - 1, thread_name_prefix="memd-codes")

Ids = NDArray[np.int64]
Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]


def is_there() -> bool:
    """Tell whether the library is installed; it is not loaded for that."""
    return util.find_spec("faiss") is not None


def library() -> str:
    """Return name and version of the library: codes are read by the one that made them."""
    return f"faiss {_faiss().__version__}"


def fits(dim: int) -> bool:
    """Tell whether vectors of so many dimensions can be coded."""
    return dim % PART_DIMS == 0


def stripes(rows: int) -> list[tuple[int, int]]:
    """Return the first row and the one after the last of each part that one thread scans: whole blocks."""
    middle = rows // STRIPES // BLOCK_ROWS * BLOCK_ROWS
    ends = [*range(middle, middle * STRIPES, middle or 1), rows]
    return list(zip([0, *ends], ends, strict=False))


def table(matrix: Any, rows: int, dim: int) -> NDArray[np.float32]:
    """Return a view of the rows."""
    return np.frombuffer(matrix, np.float32, rows * dim).reshape(rows, dim)


class Coder:
    """Makes codes of rows."""

    def __init__(self, rows: NDArray[np.float32]) -> None:
        """Find the centroids in a sample of (n, dim) rows: half a second of one core."""
        self._index = _empty(rows.shape[1])
        settings = self._index.pq.cp
        settings.niter = ROUNDS
        settings.min_points_per_centroid = 1  # else it warns on stderr of what cannot be helped
        self._index.train(np.ascontiguousarray(rows[:: -(-len(rows) // SAMPLE_ROWS)]))

    def add(self, rows: NDArray[np.float32]) -> None:
        """Code some (n, dim) rows more."""
        _alone()
        self._index.add(np.ascontiguousarray(rows))

    def taken(self) -> memoryview:
        """Return what `Codes` reads of the rows that were added, as the library writes it; begin anew."""
        written: memoryview = _alone().serialize_index(self._index).data
        self._index.reset()
        return written


class Probes:
    """Some rows with the cosines of their nearest ones, to measure how many of those the codes miss."""

    def __init__(self, rows: NDArray[np.float32], count: int) -> None:
        """Choose *count* of (n, dim) rows, evenly."""
        self._rows = rows
        self._chosen = rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]
        self._best = np.full((count, NEAREST + 1), -1, np.float32)  # and itself

    def look(self, part: NDArray[np.float32]) -> None:
        """Compare them with a part of the rows; each part once."""
        cosines = np.hstack([self._best, self._chosen @ part.T])
        self._best = np.partition(cosines, -NEAREST - 1, axis=1)[:, -NEAREST - 1 :]

    def recall(self, codes: "Codes", limit: int) -> float:
        """Return the share of the nearest rows that are among *limit* candidates, once all rows were seen."""
        everything = np.ones(len(self._rows), np.bool_)
        found = 0
        for chosen, least in zip(self._chosen, self._best[:, 0], strict=True):
            candidates = self._rows[codes.nearest(chosen.tobytes(), limit, everything)]
            reached = int(np.count_nonzero(candidates @ chosen >= least - ROUNDING))
            found += min(reached, NEAREST + 1) - 1
        return found / (len(self._chosen) * NEAREST)


@dataclass(frozen=True, slots=True)
class Stripe:
    """The codes of some blocks of rows."""

    first: int  # row
    index: Any  # faiss.IndexIVFPQFastScan

    def scan(self, query_vec: bytes, limit: int, blocks: NDArray[np.uint32]) -> tuple[Scores, Rows]:
        """Return up to *limit* rows whose bit is set in *blocks*, a number for each block of all stripes."""
        faiss = _alone()
        first = self.first // BLOCK_ROWS
        bits = blocks[first : first + -(-self.index.ntotal // BLOCK_ROWS)].view(np.uint8)
        chosen = faiss.SearchParametersIVF(sel=faiss.IDSelectorBitmap(bits), nprobe=1)
        scores, rows = self.index.search(np.frombuffer(query_vec, np.float32)[None], limit, params=chosen)
        is_row = rows[0] >= 0
        return scores[0][is_row], rows[0][is_row] + self.first


class Codes:
    """The codes of a matrix's first rows, in memory. Never changes; for any thread."""

    def __init__(self, stripes: Sequence[memoryview]) -> None:
        """Read what a `Coder` made of the rows of each of the `stripes`."""
        self.rows = 0
        self._stripes: list[Stripe] = []
        for written in stripes:
            index = _alone().deserialize_index(np.frombuffer(written, np.uint8))
            index.fine_quantizer = index.pq  # the library forgets it, and reading a code needs it
            self._stripes.append(Stripe(self.rows, index))
            self.rows += index.ntotal

    def chunks(self, query_vec: bytes, limit: int, columns: Columns, mask: Mask) -> Ids:
        """Return the chunks under *mask* of about *limit* rows that may be nearest, in any order."""
        owners = columns.owners(self.rows)
        is_open = np.count_nonzero(mask) == columns.count  # every live chunk may answer
        allowed = owners.used if is_open else owners.allowed(mask)
        return owners.chunks(self.nearest(query_vec, limit, allowed), mask)

    def nearest(self, query_vec: bytes, limit: int, allowed: Mask) -> Rows:
        """Return about *limit* rows that may be nearest among the *allowed* ones, in any order.

        Args:
            query_vec: float32 of the rows' dimension.
            limit: rows wanted of the allowed ones; there may be some more, and others between them.
            allowed: whether each of the rows may be returned.
        """
        wanted = int(np.count_nonzero(allowed))
        if wanted <= limit:
            everything: Rows = np.flatnonzero(allowed)
            return everything
        blocks = np.zeros(-(-self.rows // BLOCK_ROWS), np.uint32)
        packed = np.packbits(allowed, bitorder="little")
        blocks.view(np.uint8)[: len(packed)] = packed
        # Blocks without an allowed row would be skipped, and memory does not like jumps: where a twentieth
        # is allowed, here and there, that takes twice as long as reading all. One row of each keeps it going.
        is_empty = blocks == 0
        blocks[is_empty] = 1
        limit += limit * int(np.count_nonzero(is_empty)) // wanted
        scores, rows = self._scanned(query_vec, limit, blocks)
        if len(rows) > limit:
            rows = rows[np.argpartition(-scores, limit)[:limit]]
        return rows

    def _scanned(self, query_vec: bytes, limit: int, blocks: NDArray[np.uint32]) -> tuple[Scores, Rows]:
        """Scan each stripe; the others by a thread that helps, unless it has enough to do."""
        mine, *others = self._stripes
        helped = [_HELPER.submit(stripe.scan, query_vec, limit, blocks) for stripe in others]
        found = [mine.scan(query_vec, limit, blocks)]
        for stripe, task in zip(others, helped, strict=True):
            found.append(stripe.scan(query_vec, limit, blocks) if task.cancel() else task.result())
        scores, rows = zip(*found, strict=True)
        return np.concatenate(scores), np.concatenate(rows)

    def wrong(self, matrix: Any, count: int) -> int:
        """Return how many of *count* rows, chosen evenly, are not what their codes stand for."""
        faiss = _alone()
        quantizer = self._stripes[0].index.pq
        chosen = np.linspace(0, self.rows - 1, count).astype(np.int64)
        rounded = quantizer.decode(quantizer.compute_codes(table(matrix, self.rows, quantizer.d)[chosen]))
        stored = np.empty_like(rounded)
        for place, row in enumerate(chosen.tolist()):
            stripe = next(stripe for stripe in reversed(self._stripes) if stripe.first <= row)
            stripe.index.reconstruct_from_offset(0, row - stripe.first, faiss.swig_ptr(stored[place]))
        return int(np.count_nonzero((stored != rounded).any(axis=1)))


def _empty(dim: int) -> Any:
    """Return an index with one list: the only one of these indexes that takes a mask."""
    faiss = _alone()
    single = faiss.IndexFlatIP(dim)
    single.add(np.zeros((1, dim), np.float32))
    parts = dim // PART_DIMS
    index = faiss.IndexIVFPQFastScan(single, dim, 1, parts, BITS, faiss.METRIC_INNER_PRODUCT)
    index.by_residual = False
    single.this.disown()
    index.own_fields = True
    return index


def _alone() -> Any:
    """Return faiss, which uses only the calling thread from now on.

    The setting is the thread's own. OpenMP's threads wait for each other spinning: on a busy machine that
    costs more than they win.
    """
    faiss = _faiss()
    faiss.omp_set_num_threads(1)
    return faiss


def _faiss() -> Any:
    import faiss  # noqa: PLC0415 - 0.2 s and 7 MB that a small index never pays

    return faiss
