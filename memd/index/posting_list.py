"""The postings of a term: in which chunks it stands, and how often."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from memd.index.columns import DEAD, Columns, Mask

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

Ids: TypeAlias = "NDArray[np.int32]"

COUNT_BITS = 24  # of a packed count: no source has so many bytes
MAX_COUNT = 255  # of a term in a chunk that makes a difference: a chunk has about as many words
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


def no_part() -> Part:
    """Return the part of a term that stands nowhere."""
    return Part(np.zeros(0, np.int32), np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Postings:
    """In which chunks a term stands, and how often. No chunk is in two of the parts."""

    parts: tuple[Part, ...]
    document_frequency: int  # in how many live chunks it stands


def part_of(packed: array[int]) -> Part:
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
    (ids, counts), (more_ids, more_counts) = listed(first), listed(second)
    return Part(np.concatenate([ids, more_ids]), np.concatenate([counts, more_counts]))


def up_to(part: Part, last: int) -> Part:
    """Return what of a part with ids is not beyond the id *last*."""
    ids, counts = listed(part)
    end = int(np.searchsorted(ids, last, side="right"))
    return part if end == len(ids) else Part(ids[:end], counts[:end])


def only(part: Part, kept: Mask) -> Part:
    """Return a part with those of its ids, each lower than the length of *kept*, that are in it."""
    ids, counts = listed(part)
    chosen = kept[ids]
    return Part(ids[chosen], counts[chosen])


def living(part: Part, columns: Columns) -> int:
    """Return in how many live chunks a part says that its term stands."""
    live = columns.source
    if part.ids is None:
        size = min(len(live), part.size)
        return int(np.count_nonzero((part.counts[:size] > 0) & (live[:size] != DEAD)))
    return int(np.count_nonzero(live.take(known(part, columns)[0], mode="clip")))


def agree(one: Part, other: Part, columns: Columns) -> bool:
    """Tell whether two parts say the same of all live chunks."""
    live = columns.source != DEAD
    (ids, counts), (other_ids, other_counts) = (
        listed(only(Part(*known(part, columns)), live)) for part in (one, other)
    )
    return np.array_equal(ids, other_ids) and np.array_equal(counts, other_counts)


def encoded(part: Part, size: int) -> tuple[bool, bytes]:
    """Return (whether it is dense, bytes) of a part with ids below *size*, as `decoded` reads them."""
    ids, counts = listed(part)
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


def listed(part: Part) -> tuple[Ids, NDArray[np.uint8]]:
    """Return a part's ids and counts, however it is held."""
    if part.ids is not None:
        return part.ids, part.counts
    ids = np.flatnonzero(part.counts).astype(np.int32)
    return ids, part.counts[ids]


def known(part: Part, columns: Columns) -> tuple[Ids, NDArray[np.uint8]]:
    """Return ids and counts of what the columns have a place for: what is beyond is dead."""
    return listed(up_to(part, len(columns.source) - 1))
