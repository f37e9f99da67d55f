"""Are a term's postings the same however they are held, with numpy and without?"""

import random
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.kernels import dense, plain

KERNELS = [dense, plain]
K1, B = 1.2, 0.75
SIZE = 60  # ids of the chunks here are lower
CHUNKS_A_SOURCE = 6
COUNTS = st.dictionaries(st.integers(1, SIZE - 1), st.integers(1, 300), max_size=SIZE)


def packed(counts: dict[int, int]) -> "array[int]":
    return array("q", (number << 24 | counts[number] for number in sorted(counts)))


def columns(kernel, dead: set[int] = frozenset()):
    """Return chunks of which some are dead."""
    rng = random.Random(5)
    added = [(number, 1 + number // CHUNKS_A_SOURCE, -1, rng.randint(1, 300)) for number in range(1, SIZE)]
    table = kernel.Columns.empty().changed(removed=[], added=added, embedded=[])
    return table.changed(removed=sorted(dead), added=[], embedded=[])


def listed(part) -> list[tuple[int, int]]:
    """Return (id, count) of a part, whatever it is made of."""
    if part.ids is None:
        return [(number, int(count)) for number, count in enumerate(part.counts) if count]
    return list(zip(map(int, part.ids), map(int, part.counts), strict=True))


@given(COUNTS)
def test_what_one_kernel_writes_the_other_reads(counts):
    """Few postings as ids, many as a count for each id; no count is higher than 255."""
    expected = [(number, min(counts[number], 255)) for number in sorted(counts)]
    for writing in KERNELS:
        is_dense, stored = writing.encoded(writing.part_of(packed(counts)), SIZE)
        assert is_dense == (len(counts) >= SIZE / 5)
        for reading in KERNELS:
            part = reading.decoded(memoryview(stored), len(counts), dense=is_dense)
            assert listed(part) == expected
            assert writing.encoded(writing.part_of(packed(dict(listed(part)))), SIZE) == (is_dense, stored)


@given(COUNTS, st.integers(0, SIZE), st.sets(st.integers(0, SIZE - 1)))
def test_parts_are_cut_joined_chosen_and_counted_alike(counts, last, dead):
    """Whichever kernel, and whether from memory or from the file."""
    low = {number: count for number, count in counts.items() if number <= last}
    high = {number: count for number, count in counts.items() if number > last}
    expected = [(number, min(counts[number], 255)) for number in sorted(counts)]
    living = [number for number in sorted(counts) if number not in dead]
    for kernel in KERNELS:
        table = columns(kernel, dead - {0})
        first, second, whole = (kernel.part_of(packed(some)) for some in (low, high, counts))
        assert listed(kernel.up_to(whole, last)) == listed(first)
        is_dense, stored = kernel.encoded(first, SIZE)
        held = kernel.decoded(memoryview(stored), len(low), dense=is_dense)
        assert listed(kernel.joined(held, second)) == expected
        kept = kernel.mask_of_ids([number for number in range(SIZE) if number not in dead], SIZE)
        assert [pair[0] for pair in listed(kernel.only(kernel.joined(held, second), kept))] == living
        assert kernel.living(held, table) + kernel.living(second, table) == len(living)
        assert kernel.live_up_to(table, last) == sum(n not in dead for n in range(1, min(last + 1, SIZE)))


@given(COUNTS, st.integers(0, SIZE), st.sets(st.integers(1, SIZE // CHUNKS_A_SOURCE)))
def test_scores_do_not_depend_on_how_postings_are_held(counts, last, gone):
    """Bit for bit with numpy; nothing is said of sources that are gone, or beyond the columns."""
    dead = {number for number in range(1, SIZE) if 1 + number // CHUNKS_A_SOURCE in gone}
    low = {number: count for number, count in counts.items() if number <= last}
    high = {number: count for number, count in counts.items() if number > last}
    found = []
    for kernel in KERNELS:
        table = columns(kernel, dead)
        is_dense, stored = kernel.encoded(kernel.part_of(packed(low)), SIZE)
        held = kernel.decoded(memoryview(stored), len(low), dense=is_dense)
        beyond = {SIZE + 5: 7}
        split = kernel.Postings((held, kernel.part_of(packed(high | beyond))), 0)
        whole = kernel.counted({number: count for number, count in counts.items() if number not in dead})
        scores = [list(map(float, kernel.bm25([(1.3, one)], table, K1, B))) for one in (split, whole)]
        assert scores[0] == scores[1]
        ids = [number for number in range(1, SIZE) if number not in dead]
        sources = [kernel.bm25_of_sources([(1.3, one)], table, ids, K1, B) for one in (split, whole)]
        assert sources[0] == sources[1]
        assert kernel.count_between(split, 3, 40) == sum(
            min(count, 255) for number, count in counts.items() if 3 <= number < 40
        )
        found.append(scores[0])
    assert found[0] == pytest.approx(found[1], abs=1e-5)


@pytest.mark.parametrize("wrong", [[5, 4], [5, 5], [0, 1], [-1], [1 << 31]])
def test_postings_that_cannot_be_are_refused(wrong):
    """Out of order, twice, or no ids: the database is damaged."""
    for kernel in KERNELS:
        with pytest.raises(ValueError, match="not in the order"):
            kernel.part_of(array("q", (number << 24 | 1 for number in wrong)))


def test_parts_agree_when_they_say_the_same_of_what_is_live():
    """Dead chunks, and those beyond the columns, make no difference."""
    for kernel in KERNELS:
        table = columns(kernel, {7})
        one = kernel.part_of(packed({3: 1, 7: 2, 9: 1}))
        for other, expected in (
            ({3: 1, 9: 1, SIZE + 1: 4}, True),
            ({3: 1, 9: 2}, False),
            ({3: 1}, False),
            ({3: 1, 9: 1, 10: 1}, False),
        ):
            assert kernel.agree(one, kernel.part_of(packed(other)), table) is expected


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0]), max_size=9),
    st.integers(1, 40),
    st.randoms(use_true_random=False),
)
def test_the_best_of_many_are_those_of_a_sorted_list(few, limit, chance):
    """Also where most are left out unseen, with ties at the edge, and under a mask."""
    size = chance.choice([len(few), 3_000])
    scores = [chance.choice(few or [0.0]) for _ in range(size)]
    mask = [chance.random() < 0.7 for _ in range(size)]
    expected = sorted((-score, n) for n, score in enumerate(scores) if mask[n] and score > 0)[:limit]
    assert dense.best(np.array(scores, np.float32), np.array(mask, bool), limit) == [n for _, n in expected]
    assert plain.best(scores, mask, limit) == [n for _, n in expected]


def test_the_norms_of_a_generation_are_made_once():
    """For all of its queries; another generation has its own."""
    table = columns(dense)
    assert table.norms(K1, B) is table.norms(K1, B)
    later = table.changed(removed=[3], added=[], embedded=[])
    assert np.isinf(later.norms(K1, B)[3])
    assert not np.isinf(table.norms(K1, B)[3])
