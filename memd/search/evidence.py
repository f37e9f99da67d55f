"""What does a source say for each of its chunks? Which chunks are of one source, and shares of the evidence.

The paragraph that answers rarely repeats what its page is about. So a chunk is also judged by the first
chunk of its source, which has the title, and by all of the source. A source of one chunk is not changed by
that: all of these are the same there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memd.kernels import kernel

# Of cosines: the rest is the chunk's own. On manual pages worth .02 of nDCG@10, on abstracts nothing; where
# files are glued together from unrelated texts, it costs less than .003.
SOURCE_SHARE = 0.25
# Chunks that stand for a source, spread evenly over it: as good as all of them, and as quick for a book.
PLACES = 4


@dataclass(frozen=True, slots=True)
class Shares:
    """How much the words of each count for a chunk; they sum up to 1."""

    chunk: float
    first: float  # the first chunk of its source
    file: float  # its source, as one long chunk


EVERGREEN = Shares(chunk=0.5, first=0.2, file=0.3)
# A day's log begins with the first matter of that day, which says nothing of the others.
DATED = Shares(chunk=0.7, first=0.0, file=0.3)


def shares_of(*, dated: bool) -> Shares:
    """Return the shares for chunks of a dated source or of another one."""
    return DATED if dated else EVERGREEN


@dataclass(frozen=True, slots=True)
class Grouped:
    """Some chunks by their sources, which are numbered from 0 in the order in which they come."""

    ids: Sequence[int]
    sources: list[int]  # of each chunk
    group: list[int]  # of each chunk, the number of its source
    one_each: dict[int, int]  # source → one of its chunks


def grouped(columns: kernel.Columns, ids: Sequence[int]) -> Grouped:
    """Group the chunks of those *ids*."""
    sources = kernel.take(columns.source, ids)
    one_each = dict(zip(sources, ids, strict=True))
    numbers = {source: number for number, source in enumerate(one_each)}
    return Grouped(ids, sources, [numbers[source] for source in sources], one_each)
