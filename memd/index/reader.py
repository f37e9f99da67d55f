"""What does a query ask of SQLite? Read-only connections, any number of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from memd.index.database import open_reader, terms_of, translated

CHUNK_COLUMNS = "id, source, start_line, end_line, start_byte, heading, text"  # as in StoredChunk


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as an answer shows it."""

    id: int
    source: int
    start_line: int
    end_line: int
    start_byte: int
    heading: str
    text: str


class Reader:
    """One read-only connection; `begin` to `end` sees one moment of the database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with translated(path):
            self._db = open_reader(path)
        self._terms = terms_of(self._db, apsw.FTS5_TOKENIZE_QUERY)

    def begin(self) -> int:
        """Start a read transaction; return the generation that it sees."""
        with translated(self._path):
            self._db.execute("BEGIN")
            return int(self._db.execute("SELECT value FROM meta WHERE key = 'generation'").get)

    def end(self) -> None:
        """End the read transaction."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def terms(self, prepared: str) -> list[str]:
        """Return the terms that FTS5 makes of a prepared text."""
        return self._terms(prepared)

    def documents(self, term: str, *, prefix: bool) -> str:
        """Return the ids of the chunks that a term stands in, joined by commas, once each time."""
        where, values = (
            ("term = ?", (term,)) if not prefix else ("term >= ? AND term < ?", (term, _after(term)))
        )
        with translated(self._path):
            found = self._db.execute(f"SELECT group_concat(doc) FROM temp.postings WHERE {where}", values)
            return str(found.get or "")

    def matching(self, table: str, expression: str) -> list[int]:
        """Return the ids of the chunks that an FTS5 expression of our own making matches."""
        with translated(self._path):
            found = self._db.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (expression,))
            return [int(row[0]) for row in found]

    def containing(self, piece: str) -> list[int]:
        """Return the ids of the chunks whose text has *piece* somewhere: a scan of all of them."""
        escaped = piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        with translated(self._path):
            found = self._db.execute("SELECT id FROM chunks WHERE text LIKE ? ESCAPE '\\'", (f"%{escaped}%",))
            return [int(row[0]) for row in found]

    def chunks(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks of those ids that exist."""
        marks = ",".join("?" * len(ids))
        with translated(self._path):
            found = self._db.execute(
                f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE id IN ({marks})",
                tuple(ids),
            )
            return {row[0]: StoredChunk(*row) for row in found}

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _after(term: str) -> str:
    """Return the smallest text that sorts after every text that begins with *term* (one character)."""
    return chr(ord(term) + 1)
