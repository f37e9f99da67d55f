"""The scrub of an index: every row of its matrices is compared with its checksum, a slice at a time.

As file systems scrub: in the background, since reading a million rows takes seconds, and what nobody asks for
may be damaged as well. It also brings the checksums from the database into memory, where a query that rests
on a row finds them. Rows are never written twice and checksums never change, so each slice has a transaction
of its own.
"""

import time
from collections.abc import Iterator

from memd.index.index import Index
from memd.index.vectors import Rows

CHECKSUMS_AT_ONCE = 10_000  # read by one statement: 10 ms
ROWS_AT_ONCE = 4_096  # compared between two looks at the clock: 6 MB and some ms of 384 dimensions


class Scrub:
    """One pass over the matrices that are open. Begin it and `forget` in the writing thread."""

    def __init__(self, index: Index) -> None:
        self._index = index
        held = (index.matrices.active, index.matrices.building)
        self._matrices = [(one.number, one.file.rows) for one in held if one is not None]
        self._damaged: list[tuple[Rows, list[int]]] = []
        self._steps = self._all_steps()

    def step(self, budget_s: float) -> bool:
        """Go on for about so long, in any one thread at a time; True when all is compared.

        Raises:
            MemdError: the database cannot be read.
        """
        stop = time.monotonic() + budget_s
        return all(time.monotonic() <= stop for _ in self._steps)

    @property
    def damaged_count(self) -> int:
        """How many rows were found damaged."""
        return sum(len(damaged) for _, damaged in self._damaged)

    def forget(self) -> int:
        """Drop the rows that were found damaged, so that their texts are embedded again; return how many."""
        return sum(self._index.forget_damaged(rows, damaged) for rows, damaged in self._damaged)

    def _all_steps(self) -> Iterator[None]:
        for number, rows in self._matrices:
            damaged: list[int] = []
            yield from self._learn(number, rows, damaged)
            for start in range(0, rows.count, ROWS_AT_ONCE):
                some = range(start, min(start + ROWS_AT_ONCE, rows.count))
                damaged += rows.damaged(row for row in some if rows.crcs[row])  # others nobody names
                yield
            if damaged:
                self._damaged.append((rows, damaged))

    def _learn(self, number: int, rows: Rows, damaged: list[int]) -> Iterator[None]:
        digest = b""
        while True:
            with self._index.view_apart() as view:
                digest, crcs = view.reader.checksums_after(number, digest, CHECKSUMS_AT_ONCE)
            if not crcs:
                return
            damaged += rows.learn(crcs)
            yield
