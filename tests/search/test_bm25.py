"""BM25 of the best chunks equals the sum over all chunks, to the last bit."""

import numpy as np
import pytest

from memd.index.columns import Columns, best, mask_of
from memd.index.postings import Part, Postings, row_of, stored_in
from memd.search.keyword import ChunkScores

K1, B = 1.2, 0.75
CHUNKS = 6_000
LIMIT = 20
SHARES = (0.9, 0.6, 0.3, 0.05, 0.02, 0.004)  # of the chunks that a term stands in
WEIGHTS = (0.1, 0.5, 1.2, 3.0, 4.0, 5.5)


def columns(chance: np.random.Generator) -> Columns:
    """Return chunks of which a tenth is dead."""
    lengths = chance.integers(1, 300, CHUNKS)
    added = [(number + 1, 1 + number // 5, -1, int(lengths[number])) for number in range(CHUNKS)]
    table = Columns.empty().changed(removed=[], added=added, embedded=[])
    gone = (1 + np.flatnonzero(chance.random(CHUNKS) < 0.1)).tolist()
    return table.changed(removed=gone, added=[], embedded=[])


def drawn(chance: np.random.Generator, share: float) -> Part:
    """Return a term's postings in a share of the chunks."""
    ids = (1 + np.flatnonzero(chance.random(CHUNKS) < share)).astype(np.int32)
    return Part(ids, chance.integers(1, 6, len(ids)).astype(np.uint8))


def held(part: Part, last: int) -> Postings:
    """Return postings up to an id as a file has them, and those beyond as FTS5 does."""
    cut = int(np.searchsorted(part.ids, last, side="right"))
    older = stored_in(row_of(("word", False), last, Part(part.ids[:cut], part.counts[:cut]))).part
    return Postings((older, Part(part.ids[cut:], part.counts[cut:])), len(part.ids))


@pytest.mark.parametrize("allowed", [1.0, 0.5, 0.01, 0.0])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_are_those_of_the_sum_over_all(seed, allowed):
    """Though not every term is looked for in every chunk; under a mask, too, however postings are held."""
    chance = np.random.default_rng(seed)
    table = columns(chance)
    parts = [drawn(chance, share) for share in SHARES]
    mask = mask_of(table, None) & (chance.random(CHUNKS + 1) < allowed)
    terms = [(weight, held(part, 5_000)) for weight, part in zip(WEIGHTS, parts, strict=True)]
    plain = [(weight, Postings((part,), len(part.ids))) for weight, part in zip(WEIGHTS, parts, strict=True)]
    every = ChunkScores(plain, table, K1, B).every()
    scores = ChunkScores(terms, table, K1, B)
    found = scores.best(mask, LIMIT)
    assert found.tolist() == best(every, mask, LIMIT).tolist()
    assert scores.at(found).tolist() == every[found].tolist()
    some = chance.integers(0, CHUNKS + 1, 300)
    assert scores.at(some).tolist() == every[some].tolist()
    assert scores.every().tolist() == every.tolist()


def test_frequent_terms_are_not_looked_for_where_they_cannot_matter():
    chance = np.random.default_rng(3)
    table = columns(chance)
    terms = [(w, held(drawn(chance, s), CHUNKS)) for w, s in ((0.1, 0.9), (0.2, 0.8), (6.0, 0.01))]
    scores = ChunkScores(terms, table, K1, B)
    scores.best(mask_of(table, None), LIMIT)
    assert len(scores._rest) == 2
