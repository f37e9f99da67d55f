"""The columns of an index, and masks of its chunks."""

import random

from memd.index.columns import Columns, mask_of, mask_size, only_living, restrict


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
