"""The best chunks by a score, and BM25 that is one."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.columns import Columns, best, mask_of
from memd.index.postings import counted
from memd.index.vectors import by_chunk, cosines
from memd.search.keyword import ChunkScores


def columns(count: int, rng: random.Random):
    added = [
        (number, 1 + number % 3, number if number % 4 else -1, rng.randint(1, 300))
        for number in range(1, count)
    ]
    return Columns.empty().changed(removed=[], added=added, embedded=[])


def test_ties_are_cut_by_id():
    table = columns(30, random.Random(1))
    scores = ChunkScores([], table, 1.2, 0.75).every()
    for number in range(1, 30):
        scores[number] = 0.5
    assert best(scores, mask_of(table, None), 4).tolist() == [1, 2, 3, 4]


def test_a_chunk_without_a_row_has_no_cosine():
    """-1 marks it, and it is never among the best."""
    table = Columns.empty().changed(removed=[], added=[(1, 1, -1, 5)], embedded=[])
    scores = by_chunk(cosines(b"", 0, 4, bytes(16)), table)
    assert scores[1] == -1
    assert best(scores, mask_of(table, None), 5).tolist() == []


def test_bm25_is_the_formula():
    """Σ weight · tf / (tf + k1 (1 - b + b · length / average))."""
    table = Columns.empty().changed(removed=[], added=[(1, 1, -1, 10), (2, 1, -1, 30)], embedded=[])
    scores = ChunkScores([(2.0, counted({2: 2}))], table, 1.2, 0.75).every()
    assert scores[1] == 0
    assert scores[2] == pytest.approx(2.0 * 2 / (2 + 1.2 * (0.25 + 0.75 * 30 / 20)))


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0]), max_size=9),
    st.integers(1, 40),
    st.randoms(use_true_random=False),
)
def test_the_best_of_many_are_those_of_a_sorted_list(few, limit, chance):
    size = chance.choice([len(few), 3_000])
    scores = [chance.choice(few or [0.0]) for _ in range(size)]
    mask = [chance.random() < 0.7 for _ in range(size)]
    expected = sorted((-score, n) for n, score in enumerate(scores) if mask[n] and score > 0)[:limit]
    assert best(np.array(scores, np.float32), np.array(mask, bool), limit).tolist() == [
        n for _, n in expected
    ]
