"""Does full-text search know what the chunks say? Both tables are made once more and compared.

FTS5's own check can't know: the tables do not hold the text (`content=''`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from memd.index.database import open_scratch
from memd.index.reader import Reader

TABLES: Final = {"words": "temp.postings", "trigrams": "temp.trigram_postings"}
BATCH = 500  # chunks handed to FTS5 at once

# A term's postings as a few numbers. A place that is missing, that is too much or that was moved changes
# the first three; two errors would have to cancel out in all of them. 65,521 is the largest prime below
# 2**16: products stay far below 2**63.
SUMS = """
    SELECT term, count(*), sum(doc), sum(offset), sum((doc % 65521) * (offset % 65521 + 1))
    FROM {places} GROUP BY term
"""

Texts = tuple[int, str, str]  # chunk, what the words table indexes, what the trigrams table does


class Rederived:
    """Full-text tables made from the chunks once more, in a database of their own."""

    def __init__(self) -> None:
        self._database = open_scratch()

    def fill(self, texts: Iterable[Texts]) -> None:
        """Index the texts of all chunks, in the order of their ids."""
        remaining = iter(texts)
        while batch := list(islice(remaining, BATCH)):
            with self._database:
                self._database.executemany(
                    "INSERT INTO words (rowid, text) VALUES (?, ?)", ((one[0], one[1]) for one in batch)
                )
                self._database.executemany(
                    "INSERT INTO trigrams (rowid, text) VALUES (?, ?)", ((one[0], one[2]) for one in batch)
                )

    def differing(self, reader: Reader, table: str) -> int:
        """Return how many terms of *table* have other postings than their texts say.

        Raises:
            IndexDamagedError: the table can't be read.
        """
        statement = SUMS.format(places=TABLES[table])
        return _differences(iter(self._database.execute(statement)), reader.each(statement))

    def close(self) -> None:
        """Delete it."""
        self._database.close()


def _differences(expected: Iterator[tuple[object, ...]], found: Iterator[tuple[object, ...]]) -> int:
    """Count the terms that two sorted lists do not have in common with the same numbers."""
    one, other = next(expected, None), next(found, None)
    count = 0
    while one is not None or other is not None:
        if one == other:
            one, other = next(expected, None), next(found, None)
            continue
        count += 1
        here = str(one[0]).encode() if one is not None else None
        there = str(other[0]).encode() if other is not None else None
        if there is None or (here is not None and here <= there):
            one = next(expected, None)
        if here is None or (there is not None and there <= here):
            other = next(found, None)
    return count
