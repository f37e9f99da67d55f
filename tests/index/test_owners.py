"""The chunks that a row belongs to, when texts repeat, are removed, or wait for their vectors."""

import random

import numpy as np

from memd.index.columns import Columns, mask_of, restrict


def table(rows: dict[int, int]):
    """Chunk → row."""
    added = [(number, 1, row, 5) for number, row in rows.items()]
    return Columns.empty().changed(removed=[], added=added, embedded=[])


def mask(columns, *without: int) -> np.ndarray:
    return restrict(mask_of(columns, None), without, keep=False)


def test_every_chunk_of_a_row_is_found():
    columns = table({1: 0, 2: 2, 3: 0, 4: -1, 5: 0, 6: 1})
    owners = columns.owners(3)
    everything = mask(columns)
    assert sorted(owners.chunks(np.asarray([0]), everything).tolist()) == [1, 3, 5]
    assert sorted(owners.chunks(np.asarray([2, 1]), everything).tolist()) == [2, 6]
    assert owners.chunks(np.asarray([], np.int64), everything).tolist() == []


def test_a_row_is_allowed_if_one_of_its_chunks_is():
    columns = table({1: 0, 2: 1, 3: 0})
    owners = columns.owners(3)
    for hidden in (1, 3):
        allowed = mask(columns, hidden)
        assert owners.allowed(allowed).tolist() == [True, True, False]
        assert sorted(owners.chunks(np.asarray([0]), allowed).tolist()) == [4 - hidden]
    assert owners.allowed(mask(columns, 1, 3)).tolist() == [False, True, False]


def test_rows_of_nobody_are_not_allowed():
    columns = table({1: 0, 2: 1, 3: 5}).changed(removed=[1], added=[], embedded=[])
    assert columns.owners(2).allowed(mask(columns)).tolist() == [False, True]


def test_random_tables_agree_with_a_search_of_all():
    rng = random.Random(11)
    for _ in range(50):
        rows = {number: rng.randint(-1, 12) for number in range(1, rng.randint(2, 60))}
        columns = table(rows)
        allowed = mask(columns, *rng.sample(sorted(rows), len(rows) // 3))
        wanted = rng.sample(range(10), rng.randint(0, 10))
        owners = columns.owners(10)
        expected = sorted(number for number, row in rows.items() if row in wanted and allowed[number])
        assert sorted(owners.chunks(np.asarray(wanted, np.int64), allowed).tolist()) == expected
        by_row = [any(allowed[n] for n, row in rows.items() if row == place) for place in range(10)]
        assert owners.allowed(allowed).tolist() == by_row
