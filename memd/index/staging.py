"""Staging of a large source: its chunks are stored in slices, each a commit of which queries see nothing.

Until all are there they belong to a source of its own that counts as gone; one short commit lets it take the
place of what was known of the path. So queries see the old text until they see the new one, whole, and a
kill between two slices leaves waste, which the next start removes. Saves go between two slices.
"""

import time
from dataclasses import dataclass

from memd.index.source_rows import NewSource
from memd.index.writer import Writer

STAGED_CHUNKS = 1_000  # more go in slices: a commit of so many takes 30 to 60 ms
CHUNKS_AT_ONCE = 100  # between two looks at the clock: 3 to 5 ms
WASTE_CHUNKS = 2_000  # deleted in one commit: 15 to 30 ms


@dataclass(slots=True)
class Staged:
    """A source whose chunks are being stored."""

    new: NewSource
    source_id: int
    first_chunk: int
    stored: int = 0  # of its chunks, from the front


def begin(writer: Writer, new: NewSource) -> Staged:
    """Begin to store a source, inside a transaction."""
    return Staged(new, *writer.stage(new))


def store_some(writer: Writer, staged: Staged, budget_s: float) -> bool:
    """Store some of its chunks, at least CHUNKS_AT_ONCE, inside a transaction, for about so long.

    Returns:
        Whether all are stored.
    """
    stop = time.monotonic() + budget_s
    chunks = staged.new.chunks
    while staged.stored < len(chunks):
        for number in range(staged.stored, min(staged.stored + CHUNKS_AT_ONCE, len(chunks))):
            writer.put_chunk(staged.source_id, chunks[number], staged.first_chunk + number)
        staged.stored = number + 1
        if time.monotonic() > stop:
            break
    return staged.stored == len(chunks)
