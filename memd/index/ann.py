"""Approximate nearest neighbours with faiss: a scan of codes that are 16 times smaller than the rows.

Product quantisation (Jégou, Douze & Schmid, TPAMI 2011) with 4 bits per 4 dimensions, so that a lookup
table of 16 products fits into a register and one instruction looks up 32 codes (André, Kermarrec & Le
Scouarnec, VLDB 2015). Only the rows are quantised, not the query: among 100,000 real vectors the ten nearest
are within the 100 best by code; with sign bits on both sides this takes 450.

The only importer of faiss, an optional dependency that is loaded when the first codes are made or read.
Filters are applied during the scan, not to its result.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import util
from typing import TYPE_CHECKING, Any, TypeAlias

from memd.index.columns import Columns, Mask, Scores
from memd.index.vectors import Ids, Rows, Table, cosines, table, with_newest

with suppress(ImportError):  # then there is no faiss, either
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

PART_DIMS = 4  # dimensions per code
BITS = 4  # per code, so 1 bit per dimension
CENTROIDS = 1 << BITS
BLOCK_ROWS = 32  # rows whose codes are interleaved for a register; only the last block may be partly filled
SAMPLE_ROWS = 256 * CENTROIDS  # rows to train the centroids on; the library samples down to this number
ROUNDS = 10  # of k-means, 0.5 s; 25, the library's default, gave no better recall on real vectors
NEAREST = 10  # k of recall@k
ROUNDING = 1e-6  # tolerance for cosines computed in another order
STRIPES = 2  # scanned in parallel by one query; further cores are left for other queries
_HELPER = ThreadPoolExecutor(STRIPES - 1, thread_name_prefix="memd-codes")

RowIds: TypeAlias = "NDArray[np.int64]"


def is_there() -> bool:
    """Return whether faiss and what it needs are installed, without loading them."""
    return all(util.find_spec(one) is not None for one in ("numpy", "faiss"))


def library() -> str:
    """Return the name and version of the library: only the version that wrote codes can read them."""
    return f"faiss {_faiss().__version__}"


def fits(dim: int) -> bool:
    """Return whether vectors with *dim* dimensions can be coded."""
    return dim % PART_DIMS == 0


def stripes(rows: int) -> list[tuple[int, int]]:
    """Return (first row, end) of the part that each thread scans; parts are whole blocks."""
    middle = rows // STRIPES // BLOCK_ROWS * BLOCK_ROWS
    ends = [*range(middle, middle * STRIPES, middle or 1), rows]
    return list(zip([0, *ends], ends, strict=False))


class Coder:
    """Encodes rows."""

    def __init__(self, rows: Table) -> None:
        """Train the centroids on a sample of (n, dim) rows: half a second of one core."""
        # An untrained IVF index with one list: the only fast-scan index that accepts a bitmap.
        dim = rows.shape[1]
        faiss = _alone()
        single = faiss.IndexFlatIP(dim)
        single.add(np.zeros((1, dim), np.float32))
        parts = dim // PART_DIMS
        index = faiss.IndexIVFPQFastScan(single, dim, 1, parts, BITS, faiss.METRIC_INNER_PRODUCT)
        index.by_residual = False
        single.this.disown()
        index.own_fields = True
        self._index = index
        settings = index.pq.cp
        settings.niter = ROUNDS
        settings.min_points_per_centroid = 1  # otherwise it warns on stderr about too few rows
        self._index.train(np.ascontiguousarray(rows[:: -(-len(rows) // SAMPLE_ROWS)]))

    def add(self, rows: Table) -> None:
        """Encode (n, dim) further rows."""
        _alone()
        self._index.add(np.ascontiguousarray(rows))

    def write(self, write: Callable[[bytes], object]) -> None:
        """Write the rows added so far in the library's format, and start again without rows."""
        faiss = _alone()
        faiss.write_index(self._index, faiss.PyCallbackIOWriter(write))
        self._index.reset()


class Probes:
    """Sample rows and the cosines of their nearest neighbours, to measure the recall of the codes."""

    def __init__(self, rows: Table, count: int) -> None:
        """Choose *count* evenly spaced rows of the (n, dim) *rows*."""
        self._rows = rows
        self._chosen = rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]
        self._best = np.full((count, NEAREST + 1), -1, np.float32)  # and the row itself

    def look(self, part: Table) -> None:
        """Compare the sample with a part of the rows. Each part must be passed once."""
        cosines = np.hstack([self._best, self._chosen @ part.T])
        self._best = np.partition(cosines, -NEAREST - 1, axis=1)[:, -NEAREST - 1 :]

    def recall(self, codes: Codes, limit: int) -> float:
        """Return the share of the nearest neighbours among *limit* candidates. `look` comes first."""
        everything = np.ones(len(self._rows), np.bool_)
        found = 0
        for chosen, least in zip(self._chosen, self._best[:, 0], strict=True):
            candidates = self._rows[codes.nearest(chosen.tobytes(), limit, everything)]
            reached = int(np.count_nonzero(candidates @ chosen >= least - ROUNDING))
            found += min(reached, NEAREST + 1) - 1
        return found / (len(self._chosen) * NEAREST)


@dataclass(frozen=True, slots=True)
class Stripe:
    """The codes of a contiguous range of blocks."""

    first: int  # row
    index: Any  # faiss.IndexIVFPQFastScan

    def scan(self, query_vec: bytes, limit: int, blocks: NDArray[np.uint32]) -> tuple[Scores, RowIds]:
        """Return scores and numbers of up to *limit* rows whose bit in *blocks* (a uint32 each) is set."""
        faiss = _alone()
        first = self.first // BLOCK_ROWS
        bits = blocks[first : first + -(-self.index.ntotal // BLOCK_ROWS)].view(np.uint8)
        chosen = faiss.SearchParametersIVF(sel=faiss.IDSelectorBitmap(bits), nprobe=1)
        scores, rows = self.index.search(np.frombuffer(query_vec, np.float32)[None], limit, params=chosen)
        is_row = rows[0] >= 0
        return scores[0][is_row], rows[0][is_row] + self.first


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of the first rows of a matrix, in memory. For any thread."""

    covered: int  # number of rows
    candidates: int  # to score by their rows
    stripes: tuple[Stripe, ...]

    @staticmethod
    def read(read: Callable[[int], bytes], rows: int, candidates: int) -> Codes:
        """Read what a `Coder` wrote for each of the `stripes` of *rows*; *read* returns the next bytes."""
        faiss = _alone()
        source = faiss.PyCallbackIOReader(read)
        found = []
        for first, _ in stripes(rows):
            index = faiss.read_index(source)
            index.fine_quantizer = index.pq  # not restored by the library, and needed to decode
            found.append(Stripe(first, index))
        return Codes(rows, candidates, tuple(found))

    def nearest_chunks(
        self, rows: Rows, query_vec: bytes, *, columns: Columns, mask: Mask, limit: int
    ) -> Ids:
        """Return chunks under *mask* that may be among the *limit* nearest, in any order.

        Covered rows are selected by code, newer rows by their cosines.
        """
        older = self.chunks(query_vec, self.candidates, columns, mask)
        if rows.count == self.covered:
            return older
        scores = cosines(rows.buffer, rows.count, rows.dim, query_vec, self.covered)
        return with_newest(older, scores, columns, mask, first=self.covered, limit=limit)

    def chunks(self, query_vec: bytes, limit: int, columns: Columns, mask: Mask) -> Ids:
        """Return the chunks under *mask* that own about *limit* probably nearest rows, in any order."""
        owners = columns.owners(self.covered)
        is_open = np.count_nonzero(mask) == columns.count  # every live chunk may answer
        allowed = owners.used if is_open else owners.allowed(mask)
        return owners.chunks(self.nearest(query_vec, limit, allowed), mask)

    def nearest(self, query_vec: bytes, limit: int, allowed: Mask) -> RowIds:
        """Return about *limit* probably nearest rows among the *allowed* ones, in any order.

        There may be more, also not allowed ones.
        """
        wanted = int(np.count_nonzero(allowed))
        if wanted <= limit:
            everything: RowIds = np.flatnonzero(allowed)
            return everything
        blocks = np.zeros(-(-self.covered // BLOCK_ROWS), np.uint32)
        packed = np.packbits(allowed, bitorder="little")
        blocks.view(np.uint8)[: len(packed)] = packed
        # Blocks without an allowed row would be skipped, which defeats prefetching: with a random 5 % of the
        # rows allowed that takes twice as long as reading all. So every block gets at least one row.
        is_empty = blocks == 0
        blocks[is_empty] = 1
        limit += limit * int(np.count_nonzero(is_empty)) // wanted
        scores, rows = self._scanned(query_vec, limit, blocks)
        if len(rows) > limit:
            rows = rows[np.argpartition(-scores, limit)[:limit]]
        return rows

    def _scanned(self, query_vec: bytes, limit: int, blocks: NDArray[np.uint32]) -> tuple[Scores, RowIds]:
        """Scan the stripes in parallel; a stripe that the helper thread has not begun is scanned here."""
        mine, *others = self.stripes
        helped = [_HELPER.submit(stripe.scan, query_vec, limit, blocks) for stripe in others]
        found = [mine.scan(query_vec, limit, blocks)]
        for stripe, task in zip(others, helped, strict=True):
            found.append(stripe.scan(query_vec, limit, blocks) if task.cancel() else task.result())
        scores, rows = zip(*found, strict=True)
        return np.concatenate(scores), np.concatenate(rows)

    def wrong(self, matrix: Any, count: int) -> int:
        """Return how many of *count* evenly spaced rows do not match their stored codes."""
        faiss = _alone()
        quantizer = self.stripes[0].index.pq
        chosen = np.linspace(0, self.covered - 1, count).astype(np.int64)
        rounded = quantizer.decode(quantizer.compute_codes(table(matrix, self.covered, quantizer.d)[chosen]))
        stored = np.empty_like(rounded)
        for place, row in enumerate(chosen.tolist()):
            stripe = next(stripe for stripe in reversed(self.stripes) if stripe.first <= row)
            stripe.index.reconstruct_from_offset(0, row - stripe.first, faiss.swig_ptr(stored[place]))
        return int(np.count_nonzero((stored != rounded).any(axis=1)))


def _alone() -> Any:
    """Return faiss, limited to the calling thread.

    The setting is per thread. Threads of OpenMP wait for each other by spinning, which costs more on a busy
    machine than it gains.
    """
    faiss = _faiss()
    faiss.omp_set_num_threads(1)
    return faiss


def _faiss() -> Any:
    import faiss  # noqa: PLC0415 - 0.2 s and 7 MB that a small index never pays

    return faiss
