"""What does indexing tell SQLite? The one connection that writes, used by the one writing thread."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

import apsw

from memd.errors import IndexDamagedError
from memd.index import schema
from memd.index.database import open_writer, terms_of, translated
from memd.records import FileStamp, Source

STAMP_COLUMNS = "path, mtime_ns, ctime_ns, size_bytes, inode, hash"
SOURCE_COLUMNS = "id, path, title, tags, day, dated, origin"


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk on its way into the store."""

    start_line: int
    end_line: int
    start_byte: int
    heading: str
    text: str
    context: str
    hash: bytes
    words: str  # prepared for the words table
    trigrams: str  # prepared for the trigram table


@dataclass(frozen=True, slots=True)
class NewSource:
    """A source on its way into the store."""

    path: str
    stamp: FileStamp
    hash: bytes
    title: str
    tags: tuple[str, ...]
    day: date
    dated: bool
    origin: str
    front_matter: Mapping[str, object]
    warnings: tuple[str, ...]
    chunks: tuple[NewChunk, ...]


class Writer:
    """The one connection that writes and checkpoints."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with translated(path):
            self._db = open_writer(path)
            version = self._db.pragma("user_version")
            if version not in (0, schema.VERSION):
                raise IndexDamagedError(f"{path} has tables of version {version}, not {schema.VERSION}")
            if version == 0:
                with self._db:
                    self._db.execute(schema.SCHEMA)
                    self.set("generation", 0)
                    self._db.pragma("user_version", schema.VERSION)
        self._terms = terms_of(self._db, apsw.FTS5_TOKENIZE_DOCUMENT)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block does as one, or undo all of it."""
        with translated(self._path), self._db:
            yield

    def count_generation_up(self) -> None:
        """Say, inside a transaction, that the next reader sees another index."""
        self.set("generation", self.get("generation") + 1)

    def get(self, key: str) -> Any:
        """Return a value of the meta table, None where it has none."""
        return self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).get

    def set(self, key: str, value: int | str | bytes) -> None:
        """Set a value of the meta table."""
        self._db.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def stamps(self, limit: int) -> dict[str, tuple[FileStamp, bytes]]:
        """Return path → stamp and content hash of up to *limit* sources."""
        found = self._db.execute(f"SELECT {STAMP_COLUMNS} FROM sources LIMIT ?", (limit,))
        return {row[0]: (FileStamp(*row[1:5]), row[5]) for row in found}

    def stamp(self, path: str) -> tuple[FileStamp, bytes] | None:
        """Return the stamp and content hash of one source, None where there is none."""
        row = self._db.execute(f"SELECT {STAMP_COLUMNS} FROM sources WHERE path = ?", (path,)).fetchone()
        return None if row is None else (FileStamp(*row[1:5]), row[5])

    def sources(self) -> dict[int, Source]:
        """Return every source by its id."""
        return {row[0]: _source(row) for row in self._db.execute(f"SELECT {SOURCE_COLUMNS} FROM sources")}

    def chunk_rows(self) -> list[tuple[int, int, int, int]]:
        """Return (id, source, row or -1, length) of every chunk."""
        return list(self._db.execute("SELECT id, source, ifnull(row, -1), length FROM chunks"))

    def put_stamp(self, path: str, stamp: FileStamp) -> None:
        """Note that a source's bytes are the same under a new stamp."""
        self._db.execute(
            "UPDATE sources SET mtime_ns = ?, ctime_ns = ?, size_bytes = ?, inode = ? WHERE path = ?",
            (stamp.mtime_ns, stamp.ctime_ns, stamp.size_bytes, stamp.inode, path),
        )

    def put_source(self, new: NewSource) -> Source:
        """Insert a source or replace what is known of it; its chunks are put one by one."""
        row = self._db.execute(
            """
            INSERT INTO sources (path, mtime_ns, ctime_ns, size_bytes, inode, hash, title, tags, day, dated,
                                 origin, front_matter, warnings)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (path) DO UPDATE SET
                mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, size_bytes = excluded.size_bytes,
                inode = excluded.inode, hash = excluded.hash, title = excluded.title, tags = excluded.tags,
                day = excluded.day, dated = excluded.dated, origin = excluded.origin,
                front_matter = excluded.front_matter, warnings = excluded.warnings
            RETURNING id
            """,
            (
                new.path,
                new.stamp.mtime_ns,
                new.stamp.ctime_ns,
                new.stamp.size_bytes,
                new.stamp.inode,
                new.hash,
                new.title,
                json.dumps(new.tags),
                new.day.isoformat(),
                int(new.dated),
                new.origin,
                json.dumps(new.front_matter),
                json.dumps(new.warnings),
            ),
        )
        return Source(row.get, new.path, new.title, new.tags, new.day, new.dated, new.origin)

    def put_chunk(self, source_id: int, new: NewChunk) -> tuple[int, int, int, int]:
        """Insert a chunk into all three tables; return its (id, source, row or -1, length)."""
        length = len(self._terms(new.words))
        chunk_id, row = self._db.execute(
            """
            INSERT INTO chunks
                (source, start_line, end_line, start_byte, heading, text, context, hash, length, row)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, (SELECT row FROM vectors WHERE hash = ?8))
            RETURNING id, ifnull(row, -1)
            """,
            (
                source_id, new.start_line, new.end_line, new.start_byte, new.heading, new.text, new.context,
                new.hash, length,
            ),
        ).fetchall()[0]  # fmt: skip
        self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (chunk_id, new.words))
        self._db.execute("INSERT INTO trigrams (rowid, text) VALUES (?, ?)", (chunk_id, new.trigrams))
        return cast("int", chunk_id), source_id, cast("int", row), length

    def delete_chunks(self, source_id: int) -> list[int]:
        """Delete a source's chunks from all three tables; return their ids."""
        ids = [
            row[0]
            for row in self._db.execute("DELETE FROM chunks WHERE source = ? RETURNING id", (source_id,))
        ]
        for chunk_id in ids:
            self._db.execute("DELETE FROM words WHERE rowid = ?", (chunk_id,))
            self._db.execute("DELETE FROM trigrams WHERE rowid = ?", (chunk_id,))
        return ids

    def delete_source(self, source_id: int) -> None:
        """Delete a source whose chunks are gone."""
        self._db.execute("DELETE FROM sources WHERE id = ?", (source_id,))

    def source_id(self, path: str) -> int | None:
        """Return the id of the source at *path*."""
        found = self._db.execute("SELECT id FROM sources WHERE path = ?", (path,)).get
        return None if found is None else int(found)

    def pending(self, limit: int) -> dict[bytes, str]:
        """Return hash → text for the model of the newest chunks without a vector, at most *limit*.

        Newest first: what was saved a moment ago does not wait for a long first run.
        """
        found = self._db.execute(
            "SELECT hash, context || text FROM chunks WHERE row IS NULL ORDER BY id DESC LIMIT ?", (limit,)
        )
        return {row[0]: row[1] for row in found}

    def pending_count(self) -> int:
        """Return how many chunks have no vector yet."""
        return int(self._db.execute("SELECT count(*) FROM chunks WHERE row IS NULL").get)

    def put_vectors(self, vectors: Iterable[tuple[int, bytes, int]]) -> list[tuple[int, int]]:
        """Record (row, hash, crc) of rows that are on the disk; return each (chunk id, row) they complete."""
        completed = []
        for row, digest, crc in vectors:
            self._db.execute("INSERT INTO vectors (row, hash, crc) VALUES (?, ?, ?)", (row, digest, crc))
            done = self._db.execute(
                "UPDATE chunks SET row = ? WHERE hash = ? AND row IS NULL RETURNING id", (row, digest)
            )
            completed += [(chunk[0], row) for chunk in done]
        return completed

    def crcs(self) -> list[tuple[int, int]]:
        """Return (row, crc) of every recorded row, in order."""
        return list(self._db.execute("SELECT row, crc FROM vectors ORDER BY row"))

    def drop_vectors(self, rows: Iterable[int] | None) -> None:
        """Forget rows (None: all of them), so that their chunks are embedded again."""
        if rows is None:
            self._db.execute("UPDATE chunks SET row = NULL WHERE row IS NOT NULL")
            self._db.execute("DELETE FROM vectors")
            return
        for row in rows:
            self._db.execute("UPDATE chunks SET row = NULL WHERE row = ?", (row,))
            self._db.execute("DELETE FROM vectors WHERE row = ?", (row,))

    def forget_stamps(self) -> None:
        """Make every source look changed, so that the next scan cuts it into chunks again."""
        self._db.execute("UPDATE sources SET mtime_ns = 0, ctime_ns = 0, hash = x''")

    def paths(self) -> dict[str, FileStamp]:
        """Return path → stamp of every source."""
        found = self._db.execute("SELECT path, mtime_ns, ctime_ns, size_bytes, inode FROM sources")
        return {row[0]: FileStamp(*row[1:]) for row in found}

    def close(self) -> None:
        """Write the log back into the database and close it."""
        with translated(self._path):
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._db.close()


def _source(row: Sequence[Any]) -> Source:
    source_id, path, title, tags, day, dated, origin = row
    return Source(
        source_id, path, title, tuple(json.loads(tags)), date.fromisoformat(day), bool(dated), origin
    )
