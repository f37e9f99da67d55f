"""Both kernels must give the same answers: every test here runs each operation with and without numpy."""

import array
import random

import pytest

from memd.kernels import dense, plain


def columns(kernel, count: int, rng: random.Random):
    added = [
        (number, 1 + number % 3, number if number % 4 else -1, rng.randint(1, 300))
        for number in range(1, count)
    ]
    return kernel.Columns.empty().changed(removed=[], added=added, embedded=[])


def both(function):
    """Return what *function* gives with each kernel, from the same random numbers."""
    return function(dense, random.Random(7)), function(plain, random.Random(7))


def test_columns_change_alike():
    """Removing, adding and embedding leave the same columns and counts."""

    def change(kernel, rng):
        changed = columns(kernel, 50, rng).changed(
            removed=[3, 7], added=[(60, 2, -1, 11)], embedded=[(8, 99)]
        )
        return (
            list(changed.source),
            list(changed.row),
            list(changed.length),
            changed.count,
            changed.total_length,
        )

    dense_columns, plain_columns = both(change)
    assert dense_columns == plain_columns


def test_a_change_leaves_the_old_columns_alone():
    """A snapshot taken before a change still sees what it saw."""
    for kernel in (dense, plain):
        old = columns(kernel, 10, random.Random(1))
        old.changed(removed=[2], added=[], embedded=[(4, 77)])
        assert (old.source[2], old.row[4], old.count) == (3, -1, 9)


def test_what_is_dead_or_unknown_is_not_living():
    """The full-text tables know chunks of sources that are gone, and of commits that came later."""
    for kernel in (dense, plain):
        table = columns(kernel, 10, random.Random(1)).changed(removed=[4], added=[], embedded=[])
        assert kernel.only_living([9, 4, 3, 10, 5000, 0], table) == [9, 3]
        assert kernel.only_living([], table) == []
        assert kernel.only_living([1], kernel.Columns.empty()) == []


def test_masks_choose_sources_and_ids():
    """Dead ids never pass; sources and listed ids narrow."""

    def masks(kernel, rng):
        table = columns(kernel, 20, rng).changed(removed=[5], added=[], embedded=[])
        everything = kernel.mask_of(table, None)
        return [
            [bool(value) for value in mask]
            for mask in (
                everything,
                kernel.mask_of(table, [2, 0]),
                kernel.mask_of(table, []),
                kernel.restrict(everything, [4, 5, 6], keep=True),
                kernel.restrict(everything, [4, 5, 6], keep=False),
            )
        ]

    dense_masks, plain_masks = both(masks)
    assert dense_masks == plain_masks
    assert not dense_masks[0][5]
    assert not any(dense_masks[2])
    assert [number for number, value in enumerate(dense_masks[3]) if value] == [4, 6]


def test_the_same_chunks_are_best_in_the_same_order():
    """Cosines, BM25 and the cut rank alike."""

    def rank(kernel, rng):
        table = columns(kernel, 200, rng)
        matrix = array.array("f", (rng.gauss(0, 1) for _ in range(200 * 8))).tobytes()
        query = array.array("f", (rng.gauss(0, 1) for _ in range(8))).tobytes()
        mask = kernel.mask_of(table, [1, 2])
        vector = kernel.by_chunk(kernel.cosines(matrix, 200, 8, query), table)
        terms = [
            (1.5, kernel.counted({1: 1, 2: 2, 8: 1, 9: 1})),
            (0.5, kernel.counted({2: 1, 9: 3, 100: 1})),
        ]
        words = kernel.bm25(terms, table, 1.2, 0.75)
        return kernel.best(vector, mask, 20), kernel.best(words, mask, 20)

    dense_ranks, plain_ranks = both(rank)
    assert dense_ranks == plain_ranks
    assert len(dense_ranks[0]) == 20
    assert 2 not in dense_ranks[1], "a chunk of another source passed the mask"


def test_ties_are_cut_by_id():
    """Equal scores at the edge of the cut: the lower ids stay."""
    for kernel in (dense, plain):
        table = columns(kernel, 30, random.Random(1))
        scores = kernel.bm25([], table, 1.2, 0.75)
        for number in range(1, 30):
            scores[number] = 0.5
        assert kernel.best(scores, kernel.mask_of(table, None), 4) == [1, 2, 3, 4]


def test_a_chunk_without_a_row_has_no_cosine():
    """-1 marks it, and it is never among the best."""
    for kernel in (dense, plain):
        table = kernel.Columns.empty().changed(removed=[], added=[(1, 1, -1, 5)], embedded=[])
        scores = kernel.by_chunk(kernel.cosines(b"", 0, 4, bytes(16)), table)
        assert scores[1] == -1
        assert kernel.best(scores, kernel.mask_of(table, None), 5) == []


def test_bm25_is_the_formula():
    """Σ weight · tf / (tf + k1 (1 - b + b · length / average))."""
    for kernel in (dense, plain):
        table = kernel.Columns.empty().changed(
            removed=[], added=[(1, 1, -1, 10), (2, 1, -1, 30)], embedded=[]
        )
        scores = kernel.bm25([(2.0, kernel.counted({2: 2}))], table, 1.2, 0.75)
        assert scores[1] == 0
        assert scores[2] == pytest.approx(2.0 * 2 / (2 + 1.2 * (0.25 + 0.75 * 30 / 20)))
