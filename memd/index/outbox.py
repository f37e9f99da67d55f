"""The outbox of an index: the sources that a team's store has, and those that it must still be sent.

Only a workspace that is published has rows here. They change in the transaction of the commit that they are
about, so no save is lost between two steps. One row a source, whatever happens to it meanwhile: the table is
bounded by the number of sources, however long the store is away.

Each change gives its row a new revision. Revisions only grow, also over restarts, and also over a new index:
the first one is the time in microseconds, above what an older index can have counted to.

Private sources get no row: not even their paths leave the machine. For the writing thread, inside of a
transaction; the SQL below is for readers.
"""

import json
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memd.index.database import Database

# Keys in meta, for memd.team.publisher: under which terms the workspace is published, and what replaces what.
TERMS, REPLACED = "published", "replaced"
REVISION = "revision"  # key in meta: the highest one given
KEPT, TO_SEND, TO_REMOVE = 0, 1, 2  # values of `due`

DUE = "SELECT path, revision, sent FROM outbox WHERE due ORDER BY due DESC, revision DESC LIMIT ?"
SENT = "SELECT path FROM outbox WHERE sent"
# How many sources the store has, and how many wait.
COUNTS = "SELECT ifnull(sum(due = 0), 0), ifnull(sum(due > 0), 0) FROM outbox"
# Each source that the store may have, with what it should have.
ROWS = """
    SELECT outbox.path, revision, due,
        (SELECT count(*) FROM chunks WHERE chunks.source = sources.id AND hidden_from != 1)
    FROM outbox LEFT JOIN sources ON sources.path = outbox.path AND gone_at IS NULL
"""
_SHOWN = "gone_at IS NULL AND NOT private"


class SentSource(NamedTuple):
    """A source as it was read from the outbox."""

    path: str
    revision: int


class Outbox:
    """The table `outbox`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.is_open = database.get(TERMS) is not None  # otherwise nothing is noted

    def open(self, terms: str) -> None:
        """Publish the workspace from now on, under *terms*."""
        self._database.set(TERMS, terms)
        self.is_open = True

    def close(self) -> None:
        """Publish no more, and forget what the store has."""
        self._database.run("DELETE FROM outbox")
        self._database.set(TERMS, None)
        self.is_open = False

    def note(self, path: str) -> None:
        """Note, if the workspace is published, that a source was saved, deleted or made private."""
        if not self.is_open:
            return
        if self._database.run(f"SELECT 1 FROM sources WHERE path = ? AND {_SHOWN}", (path,)):
            self._put([path], TO_SEND)
        else:
            # What the store never had is not named to it.
            self._database.run("DELETE FROM outbox WHERE path = ? AND NOT sent", (path,))
            self._database.run(
                "UPDATE outbox SET revision = ?, due = ? WHERE path = ?", (self._next(), TO_REMOVE, path)
            )

    def note_embedded(self, chunks: Iterable[int]) -> None:
        """Note the sources of these chunks that have all of their vectors now, as `note` does."""
        if not self.is_open:
            return
        found = self._database.run(
            f"""
            SELECT DISTINCT sources.path FROM json_each(?) AS asked
            CROSS JOIN chunks ON chunks.id = asked.value CROSS JOIN sources ON sources.id = chunks.source
            WHERE {_SHOWN} AND NOT EXISTS (
                SELECT 1 FROM chunks AS other CROSS JOIN unembedded ON chunk = other.id
                WHERE other.source = sources.id AND why = 'waiting'
            )
            """,
            (json.dumps(list(chunks)),),
        )
        self._put([path for [path] in found], TO_SEND)

    def note_all(self, *, again: bool = True) -> None:
        """Note every source, or those without a row, and the removal of those that are no longer shown."""
        gone = f"path NOT IN (SELECT path FROM sources WHERE {_SHOWN})"
        self._database.run(f"DELETE FROM outbox WHERE NOT sent AND {gone}")
        self.note_gone([path for [path] in self._database.run(f"SELECT path FROM outbox WHERE {gone}")])
        # Newest last: those are sent first.
        live = self._database.run(
            f"""
            SELECT path FROM sources WHERE {_SHOWN} AND (? OR path NOT IN (SELECT path FROM outbox))
            ORDER BY mtime_ns
            """,
            (again,),
        )
        self._put([path for [path] in live], TO_SEND)

    def note_gone(self, paths: Iterable[str]) -> None:
        """Note the removal of sources that the store may have."""
        self._put(paths, TO_REMOVE, sent=1)

    def count_from(self, revision: int) -> None:
        """Give no revision that is not above one that the store knows."""
        if revision > (self._database.number(REVISION) or 0):
            self._database.set(REVISION, revision)

    def begin(self, sources: Sequence[SentSource]) -> set[SentSource]:
        """Record that the store may have these sources; return those that have not changed meanwhile."""
        found = self._database.run(
            """
            UPDATE outbox SET sent = 1
            WHERE (path, revision) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
            RETURNING path, revision
            """,
            (json.dumps(sources),),
        )
        return {SentSource(*row) for row in found}

    def acknowledge(self, stored: Sequence[SentSource], removed: Sequence[SentSource]) -> None:
        """Record what the store has acknowledged, except of sources that have changed meanwhile."""
        if stored:
            self._database.run_many("UPDATE outbox SET due = 0 WHERE path = ? AND revision = ?", stored)
        if removed:
            self._database.run_many("DELETE FROM outbox WHERE path = ? AND revision = ?", removed)

    def _put(self, paths: Iterable[str], due: int, sent: int = 0) -> None:
        self._database.run_many(
            """
            INSERT INTO outbox (path, revision, due, sent) VALUES (?, ?, ?, ?)
            ON CONFLICT (path) DO UPDATE SET revision = excluded.revision, due = excluded.due,
                sent = max(sent, excluded.sent)
            """,
            [(path, self._next(), due, sent) for path in paths],
        )

    def _next(self) -> int:
        known = self._database.number(REVISION)
        revision = (int(time.time() * 1_000_000) if known is None else known) + 1
        self._database.set(REVISION, revision)
        return revision
