"""The table of postings: which terms have a row, and the passes that write rows in slices.

A row is made from FTS5 and says up to which chunk it is complete; queries read newer chunks in FTS5. So rows
are independent of each other, any of them can be missing, and a pass can be stopped anywhere. Below that id
chunks never change and are only deleted, and the columns of a snapshot mask deleted ones.

A pass reads in any thread, by a connection of its own, and the writing thread stores its rows in short
transactions. Terms that have a row are not read again in FTS5 but for newer chunks. After a purge all rows
are dropped, since terms of purged text must leave the disk; queries read FTS5 until they are made again.
"""

import random
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager

from memd.index.columns import Mask, mask_of_ids, require_numpy
from memd.index.postings import BEGINNING, StoredRow, Term, agree, joined, key_of, listed, only, row_of, up_to
from memd.index.snapshot import Snapshot, View
from memd.index.writer import COVERED, PURGED, Writer
from memd.text import is_spaceless

# In smaller indexes FTS5 returns any term within 10 ms, and once for all queries.
MIN_CHUNKS = 20_000
# A term in at least this many chunks has a row. FTS5 returns a rarer one within 0.05 ms, a term in 256 chunks
# within 0.2 ms. Of 66,000 terms in 100,000 real chunks 19,300 have a row, 57 MB; from 256 chunks on they
# would be 5,400, 51 MB.
MIN_DOCUMENTS = 32
# Newer chunks are read in FTS5 at the first query for a word after a start, at 0.5 µs per posting. A pass
# costs the counting of all terms, and writing all rows.
TAIL_SHARE = 1 / 20
BUSY_TAIL_SHARE = 1 / 4  # while there is other work: a first import makes ten passes
TERMS_AT_ONCE = 2_000  # counted by one statement; FTS5 reads all of their positions for it, 0.1 s per million
CHUNKS_AT_ONCE = 50_000  # ids listed by one statement
WRITTEN_BYTES = 512 * 1024  # of rows in one transaction: a millisecond of the processor, and a sync
DROPPED_ROWS = 100  # in one transaction, some 300 kB
COMPARED = (
    200  # random rows that a check compares with FTS5: a checksum says nothing about how a row was made
)

# Ids from FTS5's own table of 12 bytes per chunk; the table of chunks would read their texts.
LISTED = """
    SELECT group_concat(id) FROM (SELECT id FROM words_docsize WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)
"""
COUNTED = "SELECT term, doc FROM temp.terms WHERE term > ? LIMIT ?"
PUT = "INSERT OR REPLACE INTO postings VALUES (?, ?, ?, ?, ?)"
DROPPED = "DELETE FROM postings WHERE rowid IN (SELECT rowid FROM postings LIMIT ?)"

OpenView = Callable[[], AbstractContextManager[View]]
Slice = list[str | StoredRow]  # rows to store, and keys of rows to delete


class PostingsTable:
    """Decides when passes are due, and stores their rows. For the writing thread."""

    def __init__(
        self,
        writer: Writer,
        snapshot: Callable[[], Snapshot],
        open_view: OpenView,
        publish: Callable[[], None],
    ) -> None:
        """Take what passes read; *publish* is called when queries should read rows again."""
        self._writer = writer
        self._snapshot = snapshot
        self._open_view = open_view
        self._publish = publish
        self._purges = 0  # since opening

    @property
    def is_outdated(self) -> bool:
        """Whether rows name chunks that were purged."""
        return self._writer.number(PURGED) is not None

    def is_due(self, *, is_busy: bool) -> bool:
        """Return whether a pass over newer chunks is worthwhile; *is_busy*: there is other work."""
        if self._snapshot().columns.count < MIN_CHUNKS:
            return False
        covered = self._writer.number(COVERED) or 0
        return self._end() - covered > (BUSY_TAIL_SHARE if is_busy else TAIL_SHARE) * covered

    def begin(self) -> "PostingsPass":
        """Return a pass over newer chunks.

        Raises:
            NumpyMissingError: numpy cannot be imported.
        """
        require_numpy("the table of postings")
        return PostingsPass(self._open_view, self._end(), self._state)

    def put(self, made: "PostingsPass", rows: Slice) -> bool:
        """Store a slice of a pass; return False, storing nothing, if the pass must be abandoned.

        A chunk may have been purged meanwhile that the pass read before, or the words were made again.
        """
        if made.state != self._state:
            return False
        if not (rows or made.is_done):
            return True
        with self._writer.transaction():
            self._writer.run_many(PUT, (row for row in rows if isinstance(row, StoredRow)))
            self._writer.run_many(
                "DELETE FROM postings WHERE term = ?", ((row,) for row in rows if isinstance(row, str))
            )
            if made.is_done:
                self._writer.set(COVERED, made.end)
        if made.is_done:
            self._publish()
        return True

    def note_purged(self) -> None:
        """Record, inside a transaction, that chunks were purged."""
        self._purges += 1
        if self._writer.run("SELECT 1 FROM postings LIMIT 1"):
            self._writer.set(PURGED, 1)

    def drop_some(self) -> bool:
        """Delete some rows; return False when none is left."""
        with self._writer.transaction():
            self._writer.set(COVERED, None)
            self._writer.run(DROPPED, (DROPPED_ROWS,))
            is_left = bool(self._writer.run("SELECT 1 FROM postings LIMIT 1"))
            if not is_left:
                self._writer.set(PURGED, None)
        if not is_left:
            self._publish()
        return is_left

    def _end(self) -> int:
        """Return the id up to which FTS5 has every chunk: others may be stored later under reserved ids."""
        return min([self._snapshot().postings.newest + 1, *self._writer.staged.values()]) - 1

    @property
    def _state(self) -> Hashable:
        return self._purges, self._writer.refilled


class PostingsPass:
    """One pass over the terms. `step` is for any one thread at a time."""

    def __init__(self, open_view: OpenView, end: int, state: Hashable) -> None:
        """Read nothing yet. New rows have the chunks up to the id *end*.

        Rows of another *state* are not stored.
        """
        self.end = end
        self.state = state
        self.is_done = False
        self._open_view = open_view
        self._view: View  # of the slice in progress
        self._rows = self._all_rows()

    def step(self, budget_s: float) -> Slice:
        """Work for about *budget_s*; return changes to store, which may be none. `is_done` is set at the end.

        Raises:
            MemdError: the database cannot be read.
        """
        stop, found, size = time.monotonic() + budget_s, Slice(), 0
        with self._open_view() as self._view:
            for row in self._rows:
                if row is not None:
                    found.append(row)
                    size += len(row) if isinstance(row, str) else len(row.counts) + len(row.ids or b"")
                if size > WRITTEN_BYTES or time.monotonic() > stop:
                    return found
        self.is_done = True
        return found

    def _all_rows(self) -> Iterator[str | StoredRow | None]:
        """Yield each change, and None after other work."""
        ids: list[int] = []
        while some := self._chunks(ids[-1] if ids else 0):
            ids += some
            yield None
        there = mask_of_ids(ids, self.end + 1)
        del ids
        for terms in self._frequent():
            yield None
            for term in terms:
                yield self._row(term, there)

    def _chunks(self, after: int) -> list[int]:
        """Return the next existing chunk ids above *after*."""
        [[found]] = self._view.reader.each(LISTED, (after, self.end, CHUNKS_AT_ONCE))
        return [int(number) for number in str(found or "").split(",") if number]

    def _frequent(self) -> Iterator[list[Term]]:
        """Yield batches of the frequent terms, and prefixes of spaceless scripts: the most frequent first.

        Until they have rows, queries read them in FTS5: of a million chunks a second for the commonest.
        """
        documents: dict[Term, int] = {}  # of frequent terms; of a prefix those of its terms, summed
        after = ""
        while found := list(self._view.reader.each(COUNTED, (after, TERMS_AT_ONCE))):
            for term, count in found:
                if count >= MIN_DOCUMENTS:
                    documents[term, False] = count
                if is_spaceless(term[:1]):
                    documents[term[0], True] = documents.get((term[0], True), 0) + count
            yield []
            after = found[-1][0]
        yield [
            one
            for one in sorted(documents, key=lambda one: -documents[one])
            if documents[one] >= MIN_DOCUMENTS
        ]

    def _row(self, term: Term, there: Mask) -> str | StoredRow | None:
        """Return how the row of a term must be changed; None: not at all."""
        stored = self._view.reader.stored(term)
        if stored is None or stored.upto > self.end:
            return row_of(term, self.end, up_to(self._view.reader.counted(term), self.end))
        part, end = only(stored.part, there), stored.upto
        if self.end - end > TAIL_SHARE * end:
            part = joined(part, up_to(self._view.reader.counted(term, end), self.end))
            end = self.end
        elif part.size == len(listed(stored.part)[0]):
            return None
        return row_of(term, end, part) if part.size >= MIN_DOCUMENTS else key_of(term)


def term_of(key: str) -> Term:
    """Return the term or prefix of a key in the table."""
    return key.removesuffix(BEGINNING), key.endswith(BEGINNING)


def flaw(view: View, ends: Callable[[], None]) -> str:
    """Return what is wrong with the table, "" if nothing is; *ends* raises when there is no time left."""
    terms = [term_of(key) for [key] in view.reader.each("SELECT term FROM main.postings")]
    damaged = 0
    for term in terms:
        ends()
        damaged += view.reader.stored(term) is None
    if damaged:
        return f"{damaged} rows are not what was written"
    compared = random.sample(terms, min(COMPARED, len(terms)))
    wrong = 0
    for term in compared:
        ends()
        stored = view.reader.stored(term)
        truth = view.reader.counted(term)
        wrong += not (
            stored is not None and agree(stored.part, up_to(truth, stored.upto), view.snapshot.columns)
        )
    return f"{wrong} of {len(compared)} rows are not what FTS5 says" if wrong else ""
