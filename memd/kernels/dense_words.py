"""How much do words say of a million chunks? Postings and BM25 with numpy: one pass over an array each."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.kernels.dense_columns import DEAD, Columns

Ids = NDArray[np.int32]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]

COUNT_BITS = 24  # of a packed count: no source has so many bytes
MAX_COUNT = 255  # of a term in a chunk that makes a difference: a chunk has about as many words
# Chunks or postings scored at once: what each step makes stays in a core's second cache (1 MB).
BLOCK = 1 << 16
# From this share of the ids on, a count for each id is smaller than ids with counts (4 + 1 bytes), and
# faster: 0.8 ns an id against 3.5 ns a posting.
DENSE_SHARE = 1 / 5


@dataclass(frozen=True, slots=True)
class Part:
    """Where a term stands among some of the chunks; dead ones may be among them."""

    ids: Ids | None  # ascending; None: there is a count for each id from 0 on
    counts: NDArray[np.uint8]  # capped

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return len(self.counts)


NO_PART = Part(np.zeros(0, np.int32), np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Postings:
    """In which chunks a term stands, and how often. No chunk is in two of the parts."""

    parts: tuple[Part, ...]
    document_frequency: int  # in how many live chunks it stands


def part_of(packed: "array[int]") -> Part:
    """Return the part of packed postings: id · 2 ** COUNT_BITS + count, by id.

    Raises:
        ValueError: they are not in order, or no ids.
    """
    numbers = np.array(packed, np.int64)  # a copy: who fills it goes on with it
    ids = numbers >> COUNT_BITS
    if len(ids) and not (ids[0] > 0 and ids[-1] < 1 << 31 and np.all(ids[1:] > ids[:-1])):
        raise ValueError("postings are not in the order of their ids")
    counts = np.minimum(numbers & (1 << COUNT_BITS) - 1, MAX_COUNT)
    return Part(ids.astype(np.int32), counts.astype(np.uint8))


def joined(first: Part, second: Part) -> Part:
    """Return two parts as one; all ids of *first* are lower."""
    if not second.size:
        return first
    (ids, counts), (more_ids, more_counts) = _listed(first), _listed(second)
    return Part(np.concatenate([ids, more_ids]), np.concatenate([counts, more_counts]))


def up_to(part: Part, last: int) -> Part:
    """Return what of a part with ids is not beyond the id *last*."""
    ids, counts = _listed(part)
    end = int(np.searchsorted(ids, last, side="right"))
    return part if end == len(ids) else Part(ids[:end], counts[:end])


def only(part: Part, kept: Mask) -> Part:
    """Return a part with those of its ids, each lower than the length of *kept*, that are in it."""
    ids, counts = _listed(part)
    chosen = kept[ids]
    return Part(ids[chosen], counts[chosen])


def mask_of_ids(ids: Iterable[int], size: int) -> Mask:
    """Return a mask of so many places with those ids in it."""
    mask = np.zeros(size, np.bool_)
    mask[np.fromiter(ids, np.int64)] = True
    return mask


def living(part: Part, columns: Columns) -> int:
    """Return in how many live chunks a part says that its term stands."""
    live = columns.source
    if part.ids is None:
        size = min(len(live), part.size)
        return int(np.count_nonzero((part.counts[:size] > 0) & (live[:size] != DEAD)))
    return int(np.count_nonzero(live.take(_known(part, columns)[0], mode="clip")))


def live_up_to(columns: Columns, last: int) -> int:
    """Return how many chunks are live of those with an id up to *last*."""
    return int(np.count_nonzero(columns.source[: last + 1]))


def agree(one: Part, other: Part, columns: Columns) -> bool:
    """Tell whether two parts say the same of all live chunks."""
    live = columns.source != DEAD
    (ids, counts), (other_ids, other_counts) = (
        _listed(only(Part(*_known(part, columns)), live)) for part in (one, other)
    )
    return np.array_equal(ids, other_ids) and np.array_equal(counts, other_counts)


def encoded(part: Part, size: int) -> tuple[bool, bytes]:
    """Return (whether it is dense, bytes) of a part with ids below *size*, as `decoded` reads them."""
    ids, counts = _listed(part)
    if len(ids) < size * DENSE_SHARE:
        return False, ids.tobytes() + counts.tobytes()
    every = np.zeros(size, np.uint8)
    every[ids] = counts
    return True, every.tobytes()


def decoded(stored: memoryview, documents: int, *, dense: bool) -> Part:
    """Return the part of that many *documents* that stands in *stored*; it is not copied."""
    if dense:
        return Part(None, np.frombuffer(stored, np.uint8))
    ids = np.frombuffer(stored, np.int32, documents)
    return Part(ids, np.frombuffer(stored, np.uint8, documents, offset=4 * documents))


def counted(counts: Mapping[int, int]) -> Postings:
    """Return postings from live chunk → how often the term stands there."""
    packed = array("q", (number << COUNT_BITS | counts[number] for number in sorted(counts)))
    return Postings((part_of(packed),), len(counts))


def bm25(terms: Sequence[tuple[float, Postings]], columns: Columns, k1: float, b: float) -> Scores:
    """Return each chunk's Σ weight · tf / (tf + k1 (1 - b + b · length / average length)).

    Each chunk's sum is made of the same float32 numbers in the same order, however the postings are held.
    """
    scores = np.zeros(len(columns.length), np.float32)
    norms = columns.norms(k1, b)
    for weight, term in terms:
        for part in term.parts:
            if part.ids is None:
                _add_dense(scores, norms, np.float32(weight), part)
            else:
                _add_sparse(scores, norms, np.float32(weight), *_known(part, columns))
    return scores


def stretches(columns: Columns, ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first id, and the one after the last, of the chunks of each id's source."""
    starts = columns.starts()
    after = np.searchsorted(starts, np.asarray(ids, np.int64), side="right")
    return starts[after - 1], starts[after]


def bm25_of_sources(
    terms: Sequence[tuple[float, Postings]], columns: Columns, ids: Sequence[int], k1: float, b: float
) -> list[float]:
    """Return the BM25 of each id's source, taken as one long chunk of all that its chunks have.

    Counts and lengths are sums over its chunks; the average length is that of a chunk, as in `bm25`. What
    two chunks share is counted twice, in the counts as in the length. Its only chunk scores what it does.
    """
    if not len(ids):
        return []
    first, end = stretches(columns, ids)
    average = max(columns.total_length / max(columns.count, 1), 1)
    norm = k1 * (1 - b + b * _sums(columns.length, first, end) / average)
    scores = np.zeros(len(first))
    for weight, term in terms:
        counts = sum((_between(part, first, end) for part in term.parts), start=np.zeros(len(first)))
        scores += weight * counts / (counts + norm)
    found: list[float] = scores.tolist()
    return found


def count_between(term: Postings, first: int, end: int) -> int:
    """Return how often a term stands in the chunks from *first* to before *end*."""
    ends = np.array([first]), np.array([end])
    return int(sum(_between(part, *ends)[0] for part in term.parts))


def _listed(part: Part) -> tuple[Ids, NDArray[np.uint8]]:
    """Return a part's ids and counts, however it is held."""
    if part.ids is not None:
        return part.ids, part.counts
    ids = np.flatnonzero(part.counts).astype(np.int32)
    return ids, part.counts[ids]


def _known(part: Part, columns: Columns) -> tuple[Ids, NDArray[np.uint8]]:
    """Return ids and counts of what the columns have a place for: what is beyond is dead."""
    return _listed(up_to(part, len(columns.source) - 1))


def _add_dense(scores: Scores, norms: Scores, weight: np.float32, part: Part) -> None:
    size = min(part.size, len(scores))
    for start in range(0, size, BLOCK):
        block = slice(start, min(start + BLOCK, size))
        counts = part.counts[block].astype(np.float32)
        added = norms[block] + counts
        np.divide(counts, added, out=added)
        added *= weight
        scores[block] += added


def _add_sparse(
    scores: Scores, norms: Scores, weight: np.float32, ids: Ids, counted_there: NDArray[np.uint8]
) -> None:
    for start in range(0, len(ids), BLOCK):
        # With places of numpy's own type, and "clip", which never clips here, a gather takes half as long.
        at = ids[start : start + BLOCK].astype(np.intp)
        counts = counted_there[start : start + BLOCK].astype(np.float32)
        added = norms.take(at, mode="clip")
        added += counts
        np.divide(counts, added, out=added)
        added *= weight
        added += scores.take(at, mode="clip")
        scores[at] = added


def _between(part: Part, first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how often the term stands in the chunks from each *first* to before its *end*."""
    if part.ids is None:
        return _sums(part.counts, np.minimum(first, part.size), np.minimum(end, part.size))
    low, high = (np.searchsorted(part.ids, edge.astype(np.int32)) for edge in (first, end))
    return _sums(part.counts, low, high)


def _sums(values: NDArray[Any], first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of the values from each *first* to before its *end*."""
    sizes = end - first
    which = np.repeat(np.arange(len(first)), sizes)
    places = np.arange(len(which)) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    return np.bincount(which, values[places], len(first)).astype(np.float64, copy=False)
