"""A term's postings are the same however they are held."""

import random
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.columns import Columns, mask_of_ids
from memd.index.postings import (
    Postings,
    agree,
    counted,
    joined,
    living,
    only,
    part_of,
    row_of,
    stored_in,
    up_to,
)
from memd.search.keyword import ChunkScores, bm25_of_sources, count_between

K1, B = 1.2, 0.75
SIZE = 60  # ids of the chunks here are lower
CHUNKS_A_SOURCE = 6
COUNTS = st.dictionaries(st.integers(1, SIZE - 1), st.integers(1, 300), max_size=SIZE)


def packed(counts: dict[int, int]) -> "array[int]":
    return array("q", (number << 24 | counts[number] for number in sorted(counts)))


def columns(dead: set[int] = frozenset()):
    """Return chunks of which some are dead."""
    rng = random.Random(5)
    added = [(number, 1 + number // CHUNKS_A_SOURCE, -1, rng.randint(1, 300)) for number in range(1, SIZE)]
    table = Columns.empty().changed(removed=[], added=added, embedded=[])
    return table.changed(removed=sorted(dead), added=[], embedded=[])


def listed(part) -> list[tuple[int, int]]:
    """Return (id, count) of a part, whatever it is made of."""
    if part.ids is None:
        return [(number, int(count)) for number, count in enumerate(part.counts) if count]
    return list(zip(map(int, part.ids), map(int, part.counts), strict=True))


@given(COUNTS)
def test_what_is_written_is_read(counts):
    """Few postings as ids, many as a count for each id; no count is higher than 255."""
    row = row_of(("word", False), SIZE - 1, part_of(packed(counts)))
    assert (row.ids is None) == (len(counts) >= SIZE / 5)
    upto, part = stored_in(row)
    assert upto == SIZE - 1
    assert listed(part) == [(number, min(counts[number], 255)) for number in sorted(counts)]


@given(COUNTS, st.integers(0, SIZE), st.sets(st.integers(0, SIZE - 1)))
def test_parts_are_cut_joined_chosen_and_counted_alike(counts, last, dead):
    low = {number: count for number, count in counts.items() if number <= last}
    high = {number: count for number, count in counts.items() if number > last}
    expected = [(number, min(counts[number], 255)) for number in sorted(counts)]
    alive = [number for number in sorted(counts) if number not in dead]
    table = columns(dead - {0})
    first, second, whole = (part_of(packed(some)) for some in (low, high, counts))
    assert listed(up_to(whole, last)) == listed(first)
    held = stored_in(row_of(("word", False), SIZE - 1, first)).part
    assert listed(joined(held, second)) == expected
    kept = mask_of_ids([number for number in range(SIZE) if number not in dead], SIZE)
    assert [pair[0] for pair in listed(only(joined(held, second), kept))] == alive
    assert living(held, table) + living(second, table) == len(alive)


@given(COUNTS, st.integers(0, SIZE), st.sets(st.integers(1, SIZE // CHUNKS_A_SOURCE)))
def test_scores_do_not_depend_on_how_postings_are_held(counts, last, gone):
    dead = {number for number in range(1, SIZE) if 1 + number // CHUNKS_A_SOURCE in gone}
    low = {number: count for number, count in counts.items() if number <= last}
    high = {number: count for number, count in counts.items() if number > last}
    table = columns(dead)
    held = stored_in(row_of(("word", False), SIZE - 1, part_of(packed(low)))).part
    beyond = {SIZE + 5: 7}
    split = Postings((held, part_of(packed(high | beyond))), 0)
    whole = counted({number: count for number, count in counts.items() if number not in dead})
    every = np.arange(SIZE)
    scores = [ChunkScores([(1.3, one)], table, K1, B).every().tolist() for one in (split, whole)]
    assert scores[0] == ChunkScores([(1.3, split)], table, K1, B).at(every).tolist()
    assert scores[0] == scores[1]
    ids = [number for number in range(1, SIZE) if number not in dead]
    sources = [bm25_of_sources([(1.3, one)], table, ids, K1, B).tolist() for one in (split, whole)]
    assert sources[0] == sources[1]
    assert count_between(split, 3, 40) == sum(
        min(count, 255) for number, count in counts.items() if 3 <= number < 40
    )


@pytest.mark.parametrize("wrong", [[5, 4], [5, 5], [0, 1], [-1], [1 << 31]])
def test_postings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="not in the order"):
        part_of(array("q", (number << 24 | 1 for number in wrong)))


def test_parts_agree_when_they_say_the_same_of_what_is_live():
    """Dead chunks, and those beyond the columns, make no difference."""
    table = columns({7})
    one = part_of(packed({3: 1, 7: 2, 9: 1}))
    for other, expected in (
        ({3: 1, 9: 1, SIZE + 1: 4}, True),
        ({3: 1, 9: 2}, False),
        ({3: 1}, False),
        ({3: 1, 9: 1, 10: 1}, False),
    ):
        assert agree(one, part_of(packed(other)), table) is expected


def test_the_norms_of_a_generation_are_made_once():
    table = columns()
    assert table.norms(K1, B) is table.norms(K1, B)
    later = table.changed(removed=[3], added=[], embedded=[])
    assert np.isinf(later.norms(K1, B)[3])
    assert not np.isinf(table.norms(K1, B)[3])
