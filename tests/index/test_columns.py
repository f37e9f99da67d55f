"""The columns of an index: masks, the best by a score, owners of rows, live sources."""

import random
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.columns import Columns, best, mask_of, mask_size, only_living, restrict
from memd.index.postings import counted
from memd.index.reader import Sources
from memd.index.vectors import by_chunk, cosines
from memd.records import Source
from memd.search.keyword import ChunkScores


def columns(count: int, rng: random.Random):
    added = [
        (number, 1 + number % 3, number if number % 4 else -1, rng.randint(1, 300))
        for number in range(1, count)
    ]
    return Columns.empty().changed(removed=[], added=added, embedded=[])


def test_a_change_removes_adds_and_embeds():
    table = columns(10, random.Random(7))
    changed = table.changed(removed=[3, 7], added=[(12, 2, -1, 11)], embedded=[(8, 99)])
    assert (changed.source[3], changed.row[3], changed.length[3]) == (0, -1, 0)
    assert (changed.source[12], changed.row[12], changed.length[12]) == (2, -1, 11)
    assert changed.row[8] == 99
    assert changed.count == 9 - 2 + 1
    assert changed.total_length == sum(changed.length)


def test_a_change_leaves_the_old_columns_alone():
    old = columns(10, random.Random(1))
    old.changed(removed=[2], added=[], embedded=[(4, 77)])
    assert (old.source[2], old.row[4], old.count) == (3, -1, 9)


def test_what_is_dead_or_unknown_is_not_living():
    """The full-text tables know chunks of sources that are gone, and of commits that came later."""
    table = columns(10, random.Random(1)).changed(removed=[4], added=[], embedded=[])
    assert only_living([9, 4, 3, 10, 5000, 0], table) == [9, 3]
    assert only_living([], table) == []
    assert only_living([1], Columns.empty()) == []


def test_masks_choose_sources_and_ids():
    table = columns(20, random.Random(7)).changed(removed=[5], added=[], embedded=[])
    everything = mask_of(table, None)
    assert everything.nonzero()[0].tolist() == [number for number in range(1, 20) if number != 5]
    assert mask_of(table, [2, 0]).nonzero()[0].tolist() == [1, 4, 7, 10, 13, 16, 19]
    assert not mask_of(table, []).any()
    assert restrict(everything, [4, 5, 6], keep=True).nonzero()[0].tolist() == [4, 6]
    assert mask_size(restrict(everything, [4, 5, 6], keep=False)) == 18 - 2
    assert mask_size(mask_of(Columns.empty(), None)) == 0


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


def table(rows: dict[int, int]):
    """Chunk → row."""
    added = [(number, 1, row, 5) for number, row in rows.items()]
    return Columns.empty().changed(removed=[], added=added, embedded=[])


def mask(columns, *without: int) -> np.ndarray:
    return restrict(mask_of(columns, None), without, keep=False)


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


ROWS = {
    number: Source(number, f"n{number}.md", f"Title {number}", (), date(2026, 5, 1), "name", "human")
    for number in range(1, 6)
}


def test_a_change_leaves_the_generation_before_as_it_was():
    old = Sources(ROWS)
    put = {2: Source(2, "b.md", "B", ("x",), date(2026, 5, 2), "changed", "agent")}
    new = old.changed(removed={1, 7}, put=put)
    assert [source.path for source in new.values()] == ["b.md", "n3.md", "n4.md", "n5.md"]
    assert [source.path for source in old.values()] == [f"n{number}.md" for number in range(1, 6)]
    assert new[2].tags == ("x",)
