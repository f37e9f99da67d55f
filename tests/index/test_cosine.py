"""Cosines of rows and chunks, however few are asked for."""

import array
import random

import numpy as np
import pytest

from memd.index.columns import Columns, best, best_of, mask_of, restrict
from memd.index.vectors import SLAB_ROWS, by_chunk, cosines, cosines_at, with_newest

DIM = 16
ROWS = 40


def unit(rng: random.Random) -> list[float]:
    vector = [rng.gauss(0, 1) for _ in range(DIM)]
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


@pytest.fixture
def matrix():
    rng = random.Random(3)
    return array.array("f", [value for _ in range(ROWS) for value in unit(rng)]).tobytes()


@pytest.fixture
def query():
    return array.array("f", unit(random.Random(9))).tobytes()


def columns(rows: list[int]):
    """Chunks 1, 2, 3 … with these rows."""
    added = [(number, 1, row, 5) for number, row in enumerate(rows, 1)]
    return Columns.empty().changed(removed=[], added=added, embedded=[])


def test_a_few_cosines_are_those_of_the_scan(matrix, query):
    table = columns([7, -1, 0, 39, 7])
    scores = by_chunk(cosines(matrix, ROWS, DIM, query), table)
    ids = [5, 2, 4, 3, 1, 4]
    found = cosines_at(matrix, ROWS, DIM, query, columns=table, ids=ids)
    assert list(found) == pytest.approx([float(scores[number]) for number in ids], abs=1e-6)
    assert found[1] == -1


def test_a_cosine_does_not_depend_on_what_else_is_asked(matrix, query):
    table = columns(list(range(ROWS)))
    together = cosines_at(matrix, ROWS, DIM, query, columns=table, ids=range(1, ROWS + 1))
    for number in range(1, ROWS + 1):
        [alone] = cosines_at(matrix, ROWS, DIM, query, columns=table, ids=[number])
        assert alone == together[number - 1]


def test_no_chunk_is_asked_for(matrix, query):
    assert list(cosines_at(matrix, ROWS, DIM, query, columns=columns([1]), ids=[])) == []
    nobody = np.flatnonzero(mask_of(columns([]), None))
    scores = cosines_at(matrix, ROWS, DIM, query, columns=columns([1]), ids=nobody)
    assert best_of(nobody, scores, 3).tolist() == []


def test_more_rows_than_a_slab_are_gathered(query):
    count = SLAB_ROWS * 2 + 5
    rng = random.Random(1)
    matrix = array.array("f", [rng.random() for _ in range(count * DIM)]).tobytes()
    table = columns(list(range(count)))
    scores = cosines(matrix, count, DIM, query)
    found = cosines_at(matrix, count, DIM, query, columns=table, ids=range(1, count + 1))
    assert list(found) == pytest.approx(list(scores), abs=1e-5)


def test_the_best_of_some_equal_the_best_of_all():
    rng = random.Random(5)
    scores = np.asarray([rng.choice([-0.5, 0.0, 0.25, 0.5, rng.random()]) for _ in range(200)], np.float32)
    for limit in (1, 7, 60, 199, 200, 300):
        assert (
            best_of(np.arange(200), scores, limit).tolist()
            == best(scores, np.ones(200, bool), limit).tolist()
        )


def test_the_newest_rows_join_by_their_scores():
    table = columns([0, 1, 2, 3, 4, -1, 3])
    mask = restrict(mask_of(table, None), [4], keep=False)
    scores, found = np.asarray([0.1, 0.9, 0.5], np.float32), np.asarray([1, 2])  # of the rows 2, 3, 4
    assert list(with_newest(found, scores, table, mask, first=2, limit=2)) == [1, 2, 7, 5]


def test_a_scan_in_parts_gives_each_row_its_cosine():
    rng = np.random.default_rng(5)
    table = rng.standard_normal((2_501, 384)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    for first in (0, 1_200):
        found = cosines(table.tobytes(), len(table), 384, table[7].tobytes(), first)
        assert found == pytest.approx(table[first:] @ table[7], abs=1e-6)
