"""How much do words say, without numpy? Postings and BM25 chunk by chunk, the same up to rounding."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memd.kernels.plain_columns import DEAD, Columns

Scores = list[float]
Mask = list[bool]

COUNT_BITS = 24
MAX_COUNT = 255
DENSE_SHARE = 1 / 5


@dataclass(frozen=True, slots=True)
class Part:
    """Where a term stands among some of the chunks; dead ones may be among them."""

    ids: list[int]  # ascending
    counts: list[int]  # capped

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return len(self.counts)


NO_PART = Part([], [])


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
    ids = [number >> COUNT_BITS for number in packed]
    if ids and not (ids[0] > 0 and ids[-1] < 1 << 31 and all(map(int.__lt__, ids, ids[1:]))):
        raise ValueError("postings are not in the order of their ids")
    return Part(ids, [min(number & (1 << COUNT_BITS) - 1, MAX_COUNT) for number in packed])


def joined(first: Part, second: Part) -> Part:
    """Return two parts as one; all ids of *first* are lower."""
    return Part(first.ids + second.ids, first.counts + second.counts)


def up_to(part: Part, last: int) -> Part:
    """Return what of a part with ids is not beyond the id *last*."""
    end = bisect_right(part.ids, last)
    return Part(part.ids[:end], part.counts[:end])


def only(part: Part, kept: Mask) -> Part:
    """Return a part with those of its ids, each lower than the length of *kept*, that are in it."""
    chosen = [pair for pair in zip(part.ids, part.counts, strict=True) if kept[pair[0]]]
    return Part([pair[0] for pair in chosen], [pair[1] for pair in chosen])


def mask_of_ids(ids: Iterable[int], size: int) -> Mask:
    """Return a mask of so many places with those ids in it."""
    mask = [False] * size
    for number in ids:
        mask[number] = True
    return mask


def living(part: Part, columns: Columns) -> int:
    """Return in how many live chunks a part says that its term stands."""
    source = columns.source
    return sum(number < len(source) and source[number] != DEAD for number in part.ids)


def live_up_to(columns: Columns, last: int) -> int:
    """Return how many chunks are live of those with an id up to *last*."""
    return sum(source != DEAD for source in columns.source[: last + 1])


def agree(one: Part, other: Part, columns: Columns) -> bool:
    """Tell whether two parts say the same of all live chunks."""
    live = [source != DEAD for source in columns.source]
    first, second = (only(up_to(part, len(live) - 1), live) for part in (one, other))
    return first == second


def encoded(part: Part, size: int) -> tuple[bool, bytes]:
    """Return (whether it is dense, bytes) of a part with ids below *size*, as `decoded` reads them."""
    if part.size < size * DENSE_SHARE:
        return False, array("i", part.ids).tobytes() + bytes(part.counts)
    counts = bytearray(size)
    for number, count in zip(part.ids, part.counts, strict=True):
        counts[number] = count
    return True, bytes(counts)


def decoded(stored: memoryview, documents: int, *, dense: bool) -> Part:
    """Return the part of that many *documents* that stands in *stored*."""
    if dense:
        found = [(number, count) for number, count in enumerate(stored) if count]
        return Part([pair[0] for pair in found], [pair[1] for pair in found])
    return Part(stored[: 4 * documents].cast("i").tolist(), stored[4 * documents : 5 * documents].tolist())


def counted(counts: Mapping[int, int]) -> Postings:
    """Return postings from live chunk → how often the term stands there."""
    ids = sorted(counts)
    return Postings((Part(ids, [min(counts[number], MAX_COUNT) for number in ids]),), len(ids))


def bm25(terms: Sequence[tuple[float, Postings]], columns: Columns, k1: float, b: float) -> Scores:
    """Return each chunk's Σ weight · tf / (tf + k1 (1 - b + b · length / average length))."""
    scores = [0.0] * len(columns.length)
    for weight, term in terms:
        for part in term.parts:
            for chunk_id, count in zip(part.ids, part.counts, strict=True):
                if chunk_id < len(scores) and columns.source[chunk_id] != DEAD:
                    norm = columns.norm(columns.length[chunk_id], k1, b)
                    scores[chunk_id] += weight * count / (count + norm)
    return scores


def stretches(columns: Columns, ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the first id, and the one after the last, of the chunks of each id's source.

    The chunks of a source are put in one transaction, so their ids follow each other.
    """
    source = columns.source
    firsts, ends = [], []
    for number in ids:
        first = end = number
        while first > 0 and source[first - 1] == source[number]:
            first -= 1
        while end < len(source) and source[end] == source[number]:
            end += 1
        firsts.append(first)
        ends.append(end)
    return firsts, ends


def bm25_of_sources(
    terms: Sequence[tuple[float, Postings]], columns: Columns, ids: Sequence[int], k1: float, b: float
) -> list[float]:
    """Return the BM25 of each id's source, taken as one long chunk of all that its chunks have.

    Counts and lengths are sums over its chunks; the average length is that of a chunk, as in `bm25`. What
    two chunks share is counted twice, in the counts as in the length. Its only chunk scores what it does.
    """
    found: dict[int, float] = {}
    for number, first, end in zip(ids, *stretches(columns, ids), strict=True):
        source = columns.source[number]
        if source not in found:
            norm = columns.norm(sum(columns.length[first:end]), k1, b)
            counts = ((weight, count_between(term, first, end)) for weight, term in terms)
            found[source] = sum(weight * count / (count + norm) for weight, count in counts)
    return [found[columns.source[number]] for number in ids]


def count_between(term: Postings, first: int, end: int) -> int:
    """Return how often a term stands in the chunks from *first* to before *end*."""
    return sum(
        sum(part.counts[bisect_left(part.ids, first) : bisect_left(part.ids, end)]) for part in term.parts
    )
