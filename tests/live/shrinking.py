"""Shrinking of a failing sequence: parts are left out as long as what is left still fails."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def shrunk(items: Sequence[Item], fails: Callable[[list[Item]], bool], *, budget_s: float) -> list[Item]:
    """Return a part of *items* that still fails, as short as the time allows (Zeller's ddmin)."""
    left = list(items)
    stop = time.monotonic() + budget_s
    size = len(left) // 2
    while size and time.monotonic() < stop:
        start = len(left)
        while start > 0 and time.monotonic() < stop:  # from the end: the last ones are the likeliest
            start -= size
            without = left[: max(start, 0)] + left[start + size :]
            if fails(without):
                left = without
        size = min(size // 2, len(left))
    return left
