"""The k best chunks by score, under a mask."""

from __future__ import annotations

from contextlib import suppress

from memd.index.columns import Ids, Mask, Scores

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np

GROUP = 64  # scores per group, of which only the best is compared first: 16,000 of a million


def best(scores: Scores, mask: Mask, limit: int) -> Ids:
    """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
    least = lower_bound(scores, limit)
    ids = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    ids = ids[mask[ids]]
    if least > 0 and len(ids) < limit:  # too few of the ids above the bound are under the mask
        allowed = np.where(mask, scores, np.float32(0))
        least = lower_bound(allowed, limit)
        ids = np.flatnonzero(allowed >= least if least > 0 else allowed > 0)
    return best_of(ids, scores[ids], limit)


def best_of(ids: Ids, scores: Scores, limit: int) -> Ids:
    """Return those *ids* that have the *limit* highest *scores*, best first, ties by id."""
    order = np.lexsort((ids, -scores))
    return ids[order][:limit]


def count_above(scores: Scores, mask: Mask, limit: float) -> int:
    """Return how many scores under *mask* are higher than *limit*."""
    return int(np.count_nonzero(mask & (scores > np.float32(limit))))


def lower_bound(scores: Scores, limit: int) -> np.float32:
    """Return a score that at least *limit* scores reach, and not many more; 0 if there are few scores.

    The result is the *limit*-th best of the groups' maxima: the maxima of a million scores take a twentieth
    of the time of a partition.
    """
    groups = len(scores) // GROUP
    if groups <= limit:
        return np.float32(0)
    best = np.maximum.reduce(scores[: groups * GROUP].reshape(GROUP, groups), axis=0)
    bound: np.float32 = np.partition(best, groups - limit)[groups - limit]
    return bound
