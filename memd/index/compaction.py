"""Compaction: what is not needed any more leaves the disk, a slice at a time, between saves.

The rows that some chunk still needs are copied into a new matrix beside the old one, which answers
meanwhile; one commit puts the copy in its place. Until then the copy is waste that the next start would
remove. Then full-text search drops the words of deleted chunks: until its segments are merged, the words
stay in them.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from zlib import crc32

import structlog

from memd.errors import MemdError
from memd.index.matrices import Held, Matrices
from memd.index.vector_table import NewRow
from memd.index.writer import Writer

log = structlog.get_logger()

# A row of garbage costs a query as much time as a row that counts: up to a third more is let pass, and in
# small matrices more, since nobody sees those microseconds.
GARBAGE_SHARE = 1 / 4
GARBAGE_ROWS = 4_096
COPIED_ROWS = 512  # between two looks at the clock: a commit and two fsyncs, some 5 ms
MERGED_PAGES = 64  # of a full-text table in one commit: a few ms


def is_worth_it(garbage: int, rows: int) -> bool:
    """Tell whether a matrix with so much garbage should be compacted."""
    return garbage >= GARBAGE_ROWS and garbage > rows * GARBAGE_SHARE


class Compaction:
    """One compaction, in steps. A model that changes meanwhile ends it."""

    def __init__(self, writer: Writer, matrices: Matrices, *, publish: Callable[[], None]) -> None:
        self._writer = writer
        self._matrices = matrices
        self._ledger = matrices.ledger
        self._publish = publish
        self._copy: Held | None = None  # what is being filled
        self._steps = self._all_steps()

    def step(self, budget_s: float) -> bool:
        """Go on for about so long; True when all is done."""
        stop = time.monotonic() + budget_s
        return all(time.monotonic() <= stop for _ in self._steps)

    def abandon(self) -> None:
        """Give up; what was copied is deleted."""
        self._steps = iter(())
        if self._copy is not None:
            with suppress(MemdError):  # a full disk: the next start does it
                self._matrices.retire([self._copy])
            self._copy = None

    def _all_steps(self) -> Iterator[None]:
        yield from self._matrices.drop_waste()
        for held in (self._matrices.active, self._matrices.building):
            if held is not None and self._ledger.used_count(held.number) < held.file.count:
                yield from self._replaced(held)
        yield from self._merged()

    def _replaced(self, old: Held) -> Iterator[None]:
        scripts = self._ledger.matrices()[old.number].scripts
        with self._matrices.created(old.model_id, old.file.dim, scripts) as copy:
            self._copy = copy
        after = b""
        while True:
            rows = self._ledger.rows_to_copy(old.number, copy.number, after=after, limit=COPIED_ROWS)
            if rows:
                self._copy_rows(old, copy, rows)
                after = rows[-1][1]
                yield
            elif not after:
                break  # a look from the first hash on: also texts that came back behind us are there
            else:
                after = b""
        self._matrices.replace(old, copy)
        self._copy = None
        self._publish()
        old.file.remove()
        yield from self._matrices.drop_waste()

    def _copy_rows(self, old: Held, copy: Held, rows: list[NewRow]) -> None:
        vectors = {row: old.file.read(row) for row, _, _ in rows}
        sound = [(row, digest) for row, digest, crc in rows if crc32(vectors[row]) == crc]
        if len(sound) < len(rows):
            self._forget(old, sorted(vectors.keys() - {row for row, _ in sound}))
        places = copy.file.append([vectors[row] for row, _ in sound])
        with self._writer.transaction():
            self._ledger.put_rows(
                copy.number,
                ((new, digest, crc) for (new, crc), (_, digest) in zip(places, sound, strict=True)),
            )
            self._ledger.set_next_row(copy.number, copy.file.count)

    def _forget(self, held: Held, rows: list[int]) -> None:
        """Drop rows that the disk has changed, so that their texts are embedded again."""
        log.warning("rows_damaged", rows=len(rows))
        self._matrices.forget_rows(held.number, rows)
        self._publish()

    def _merged(self) -> Iterator[None]:
        for table in ("words", "trigrams"):
            is_merged, pages = False, -MERGED_PAGES  # negative: begin with all segments, whatever their size
            while not is_merged:
                with self._writer.transaction():
                    is_merged = self._writer.merge_full_text(table, pages)
                pages = MERGED_PAGES
                yield
