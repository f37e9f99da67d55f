"""The share of a source's evidence in the scores of its chunks.

The paragraph that answers a query rarely repeats the subject of its page. So a chunk is also scored by the
first chunk of its source, which has the title, and by the whole source. A source of one chunk keeps its
score: all three parts are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memd.index.columns import Columns, stretches
from memd.search.explanation import Shares

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memd.index.columns import Ids, Mask
    from memd.index.snapshot import Snapshot

# The source's share of the vector score; the rest is the chunk's own cosine. It gains .02 of nDCG@10 on
# manual pages and nothing on abstracts; on files joined from unrelated texts it costs less than .003.
SOURCE_SHARE = 0.25
# Evenly spaced chunks that represent a source: as good as all chunks, and fast for a book, too.
PLACES = 4


EVERGREEN = Shares(chunk=0.5, first=0.2, file=0.3)
# A day's log begins with the day's first subject, which says nothing about the others.
DATED = Shares(chunk=0.7, first=0.0, file=0.3)


def shares_of(*, dated: bool) -> Shares:
    """Return the shares for chunks of a dated or an undated source."""
    return DATED if dated else EVERGREEN


def shares_by(dated: Mask) -> NDArray[np.float64]:
    """Return the shares of each source, by whether it is dated: columns chunk, first, file."""
    table = np.array([(one.chunk, one.first, one.file) for one in (EVERGREEN, DATED)])
    shares: NDArray[np.float64] = table[dated.astype(np.intp)]
    return shares


@dataclass(frozen=True, slots=True)
class Grouped:
    """Chunks grouped by their sources, which are numbered from 0."""

    ids: Ids  # of the chunks
    sources: NDArray[np.int32]  # of each chunk
    group: Ids  # of each chunk, the number of its source
    one_each: Ids  # of each source, one of its chunks
    dated: Mask  # of each source


def grouped(snapshot: Snapshot, ids: Sequence[int] | Ids) -> Grouped:
    """Group the chunks *ids* by source."""
    ids = np.asarray(ids, np.int64)
    sources = snapshot.columns.source[ids]
    each, one, group = np.unique(sources, return_index=True, return_inverse=True)
    known = map(snapshot.sources.__getitem__, each.tolist())
    dated = np.array([one.dated for one in known], np.bool_)
    return Grouped(ids, sources, group, ids[one], dated)


def vector_scores(
    cosines: NDArray[Any], there: Mask, group: Ids, *, share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each chunk's vector score in [0, 1], 0 without a vector, and the mean cosine of its source.

    Args:
        cosines: of the chunks, followed by the same number of chunks for each source in turn.
        there: whether each of these has a vector.
        group: each chunk's source, as a number from 0.
        share: of the mean in the score; the rest is the chunk's own cosine.
    """
    count = len(group)
    sources = int(group.max(initial=-1)) + 1
    every = cosines.astype(np.float64)
    known = there[count:].reshape(sources, -1 if sources else 0)
    number = np.count_nonzero(known, axis=1)
    means = np.where(known, every[count:].reshape(known.shape), 0.0).sum(axis=1) / np.maximum(number, 1)
    own = every[:count]
    mean = np.where(number[group] > 0, means[group], own)
    score = np.maximum(0.0, (1 - share) * own + share * mean)
    return np.where(there[:count], score, 0.0), mean


def keyword_scores(
    own: NDArray[Any],
    group: Ids,
    shares: NDArray[np.float64],
    first: NDArray[Any],
    file: NDArray[np.float64],
    *,
    reachable: float,
) -> NDArray[np.float64]:
    """Return each chunk's keyword score in [0, 1).

    BM25 is divided by the value of a chunk full of every term, the sum of the query's idf: so the score means
    the same in a workspace of any size and keeps the differences that r / (1 + r) would flatten. tanh(2 x)
    spreads the usual values of 0.1 to 0.4 over the range of a cosine.

    Args:
        own: BM25 of each chunk.
        group: each chunk's source, as a number from 0.
        shares: (sources, 3) weights of the chunk, the source's first chunk and the whole source.
        first: BM25 of each source's first chunk.
        file: BM25 of each source, as one long chunk.
        reachable: the sum of the query's idf.
    """
    scale = 2 / reachable if reachable else 0.0
    by_source = shares[:, 1] * first.astype(np.float64) + shares[:, 2] * file
    scores: NDArray[np.float64] = np.tanh(
        scale * (shares[group, 0] * own.astype(np.float64) + by_source[group])
    )
    return scores


def places(columns: Columns, ids: Ids, count: int) -> Ids:
    """Return *count* ids for each of *ids*, spread evenly over its source; a small source repeats ids."""
    first, end = stretches(columns, ids)
    steps = (2 * np.arange(count) + 1) * (end - first)[:, None] // (2 * count)
    spread: Ids = (first[:, None] + steps).ravel()
    return spread
