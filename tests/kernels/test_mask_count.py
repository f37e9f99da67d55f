"""How many chunks does a mask let through, with and without numpy?"""

import pytest

from memd.kernels import dense, plain


@pytest.mark.parametrize("kernel", [dense, plain])
def test_a_mask_is_counted(kernel):
    """Live chunks, then those that are left of them."""
    added = [(1, 1, -1, 3), (2, 1, -1, 3), (3, 2, -1, 3), (5, 2, -1, 3)]
    columns = kernel.Columns.empty().changed(removed=[], added=added, embedded=[])
    columns = columns.changed(removed=[2], added=[], embedded=[])
    mask = kernel.mask_of(columns, None)
    assert kernel.count(mask) == 3
    assert kernel.count(kernel.restrict(mask, [3, 5], keep=False)) == 1
    assert kernel.count(kernel.mask_of(kernel.Columns.empty(), None)) == 0
