"""Fusion of both arms: the chunks of either pool in columns, each judged by both, decayed and ordered.

One pass over an array for each step, however many candidates there are; a `Candidate` is made of those alone
that somebody looks at. It reads no clock and no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memd.config import Weights
from memd.index.snapshot import Snapshot
from memd.search import ranking
from memd.search.identifiers import Named
from memd.search.keyword import KeywordArm
from memd.search.ranking import RRF_K, Candidate
from memd.search.source_scores import PLACES, SOURCE_SHARE, Grouped, grouped, places, vector_scores
from memd.search.vector import VectorArm

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memd.index.columns import Ids, Mask
    from memd.search.score import SearchRequest

    Floats = NDArray[np.float64]

# Times the limit: of so many of the best candidates also those vectors are verified that the means of their
# sources rest on, more than are shown of nearly every answer. Of all of them they would be a thousand
# checksums, which take longer than all the rest.
VERIFIED = 2


@dataclass(frozen=True, slots=True)
class FusedCandidates:
    """Chunks that at least one arm's pool holds, best first: a column for each fact of a `Candidate`."""

    ids: Ids
    sources: NDArray[np.int32]
    vector_ranks: Ids  # 0 where the chunk was outside of the arm's pool
    vector_scores: Floats  # 0 where the arm could not see the chunk
    seen: Mask  # by the vector arm
    keyword_ranks: Ids
    keyword_scores: Floats
    decays: Floats
    merged: Floats
    orders: Floats
    weights: tuple[Weights, Weights]  # used for those that are not seen, and for those that are
    keyword: KeywordArm | None  # None: that arm did not run
    known_sources: Mapping[int, Any]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.ids)

    def __getitem__(self, place: int) -> Candidate:
        """Return the one at a place, the best first."""
        number, source, seen = int(self.ids[place]), int(self.sources[place]), bool(self.seen[place])
        return Candidate(
            id=number,
            source=source,
            path=self.known_sources[source].path,
            vector_rank=int(self.vector_ranks[place]) or None,
            vector_score=float(self.vector_scores[place]) if seen else None,
            keyword_rank=int(self.keyword_ranks[place]) or None,
            keyword_score=float(self.keyword_scores[place]) if self.keyword else None,
            tier=self.keyword.tier_of(number) if self.keyword else None,
            decay=float(self.decays[place]),
            weights=self.weights[seen],
            merged=float(self.merged[place]),
            order=float(self.orders[place]),
        )

    def __iter__(self) -> Iterator[Candidate]:
        """Yield all of them, each made as it is asked for."""
        return map(self.__getitem__, range(len(self)))

    def numbers(self) -> tuple[list[int], list[int]]:
        """Return the ids, and the source of each."""
        return self.ids.tolist(), self.sources.tolist()

    def floor(self, min_score: float) -> FusedCandidates:
        """Drop what scores below *min_score* before decay: a note does not vanish because it is old."""
        return self.taken(np.flatnonzero(self.merged >= min_score))

    def near(self, cosine: float) -> FusedCandidates:
        """Return those that the vector arm has a say of, and says at least *cosine*."""
        counts = np.array([one.vector > 0 for one in self.weights])[self.seen.astype(np.intp)]
        return self.taken(np.flatnonzero(counts & (self.vector_scores >= cosine)))

    def placed(self, order: Sequence[int], places: Mapping[int, int]) -> FusedCandidates:
        """Return all of them in another *order*; those in *places* are sorted as the one at that place is."""
        orders = self.orders.copy()
        orders[list(places)] = self.orders[list(places.values())]
        return replace(self, orders=orders).taken(np.asarray(order, np.int64))

    def taken(self, at: Ids) -> FusedCandidates:
        """Return those at some places, in that order."""
        return FusedCandidates(
            self.ids[at], self.sources[at],
            self.vector_ranks[at], self.vector_scores[at], self.seen[at],
            self.keyword_ranks[at], self.keyword_scores[at],
            self.decays[at], self.merged[at], self.orders[at],
            self.weights, self.keyword, self.known_sources,
        )  # fmt: skip


def fused(
    snapshot: Snapshot,
    request: SearchRequest,
    vector: VectorArm | None,
    keyword: KeywordArm | None,
    names: Named,
) -> FusedCandidates:
    """Judge every chunk of either pool by both arms: the rows are there, a pool's edge costs nothing.

    Args:
        snapshot: that the arms looked at.
        request: how the scores become one.
        vector: None: it did not run. Its pool is put into the order of its evidence, as the other one's.
        keyword: the same.
        names: the chunks that the query names.
    """
    named = np.fromiter(names.words, np.int64)
    ids = np.unique(np.concatenate([named, *(arm.pool for arm in (vector, keyword) if arm is not None)]))
    chunks = grouped(snapshot, ids)
    meaning, seen = np.zeros(len(ids)), np.zeros(len(ids), np.bool_)
    if vector is not None:
        meaning, _, seen = meaning_of(snapshot, vector, chunks)
    words = keyword.evidence_of(chunks) if keyword else np.zeros(len(ids))
    ranks = [_ranks(snapshot, arm, chunks, said) for arm, said in ((vector, meaning), (keyword, words))]
    weights = ranking.weights_read(request.weights, names.read)
    has_words = keyword is not None
    used = tuple(ranking.weights_seen(weights, vector=sees, keyword=has_words) for sees in (False, True))
    shares = np.array([(one.vector, one.keyword) for one in used])[seen.astype(np.intp)]
    merged = np.minimum(1.0, shares[:, 0] * meaning + shares[:, 1] * words)
    decay = _decays(chunks.days, request)[chunks.group]
    at = np.searchsorted(ids, named)
    merged[at] = np.maximum(merged[at], [names.scores[number] for number in names.words])
    order = decay * (merged if request.fusion == "weighted" else sum(map(_reciprocal, ranks)))
    order[at] += [len(some) for some in names.words.values()]
    found = FusedCandidates(
        ids, chunks.sources, ranks[0], meaning, seen, ranks[1], words, decay, merged, order,
        (used[0], used[1]), keyword, snapshot.sources,
    )  # fmt: skip
    best_first = found.taken(_best_first(snapshot, chunks, order))
    if vector is not None:
        vector.verify(places(snapshot.columns, best_first.ids[: VERIFIED * request.limit], PLACES))
    return best_first


def meaning_of(snapshot: Snapshot, vector: VectorArm, chunks: Grouped) -> tuple[Floats, Floats, Mask]:
    """Return each chunk's vector score, the mean cosine of its source, and whether it has a vector.

    Those of the chunks themselves are verified; those that the means rest on are not.
    """
    vector.verify(chunks.ids)
    every = np.concatenate([chunks.ids, places(snapshot.columns, chunks.one_each, PLACES)])
    there = snapshot.columns.row[every] >= 0
    scores, means = vector_scores(vector.cosines_of(every), there, chunks.group, share=SOURCE_SHARE)
    return scores, means, there[: len(chunks.ids)]


def _ranks(snapshot: Snapshot, arm: VectorArm | KeywordArm | None, chunks: Grouped, said: Floats) -> Ids:
    """Put an arm's pool into the order of what it said; return each chunk's rank there, 0 outside of it."""
    ranks = np.zeros(len(chunks.ids), np.int64)
    if arm is not None:
        at = np.searchsorted(chunks.ids, arm.pool)
        at = at[_best_first(snapshot, chunks, said[at], at)]
        arm.pool[:] = chunks.ids[at]
        ranks[at] = np.arange(1, len(at) + 1)
    return ranks


def _best_first(snapshot: Snapshot, chunks: Grouped, scores: Floats, at: Ids | None = None) -> Ids:
    """Return the order of *scores*, the highest first, ties by path and line.

    The ids of a source's chunks rise with their lines.

    Args:
        snapshot: of the chunks.
        chunks: whose scores they are, or *at* which places.
        scores: of each.
        at: places in *chunks*; None: all of them.
    """
    ids, sources = (chunks.ids, chunks.sources) if at is None else (chunks.ids[at], chunks.sources[at])
    order = np.lexsort((ids, -scores))
    following = scores[order]
    ties = np.flatnonzero(following[1:] == following[:-1])
    tied = np.unique(sources[order[np.union1d(ties, ties + 1)]])
    if len(tied) < 2:  # noqa: PLR2004 - of one source
        return order
    paths = [snapshot.sources[source].path for source in tied.tolist()]
    by_path = np.empty(len(tied), np.int64)
    by_path[sorted(range(len(paths)), key=paths.__getitem__)] = np.arange(len(paths))
    place = np.searchsorted(tied, sources).clip(max=len(tied) - 1)  # of who is not tied it does not matter
    return np.lexsort((ids, by_path[place], -scores))


def _reciprocal(ranks: Ids) -> Floats:
    """Return 1 / (k + rank), 0 where the arm did not rank the chunk."""
    return np.where(ranks > 0, 1 / (RRF_K + ranks), 0.0)


def _decays(days: Ids, request: SearchRequest) -> Floats:
    """Return what age leaves of scores, by the day that is told of; 0, of no day, does not decay."""
    different, place = np.unique(days, return_inverse=True)
    today, half_life, floor = request.today.toordinal(), request.half_life_days, request.decay_floor
    each = [
        ranking.half_life_decay(today - day, half_life, floor) if day else 1.0 for day in different.tolist()
    ]
    return np.array(each, np.float64)[place]
