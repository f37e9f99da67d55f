"""The writing connection of an index: every statement that changes sources and chunks."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from memd.fsio import Failure
from memd.index.database import FRONT, Database, decoded, full_text, terms_of
from memd.index.links import Supersession, key_of, supersession
from memd.index.outbox import Outbox
from memd.index.outlines import only_title
from memd.index.reader import SOURCE_COLUMNS, Sources, source_of
from memd.index.source_rows import PEOPLE, NewChunk, NewSource, shown_warning
from memd.index.texts import TOGETHER, packed
from memd.records import FileStamp, Source

STAMP_COLUMNS = "mtime_ns, ctime_ns, size_bytes, inode"
FORGOTTEN = "mtime_ns = 0, ctime_ns = 0, hash = x''"
COVERED = "postings_covered"  # key in meta: the rows of `postings` have the chunks up to this id
COMPLETE = "complete"  # key in meta: the whole workspace has been searchable once
CHECKED_AT = "checked_at"  # key in meta: unix seconds of the last check; at first, of the making
PURGED = "postings_purged"  # key in meta: rows of `postings` name chunks that were purged since
NAMES_PURGED = (
    "names_purged"  # key in meta: of changes before this generation, removals are not known any more
)
# Sources without a file: new versions being staged. They have gone_at 0, and their path begins with slashes,
# which no path in a workspace does ("0" follows "/").
NAMELESS = "(path >= '/' AND path < '0')"


class Writer(Database):
    """The connection that writes. "Live" sources are on the disk, "gone" sources were."""

    def __init__(self, path: Path, failure: Failure) -> None:
        super().__init__(path, failure)
        self.staged: dict[int, int] = {}  # sources being stored in several transactions → first chunk id
        self.has_waste = True  # a killed process may have left some
        self.refilled = 0  # how often the words table was made again: postings read before are invalid
        self.outbox = Outbox(self)
        self._terms = terms_of(self._db, of_query=False)

    # What is known

    def stamp(self, path: str) -> tuple[FileStamp, bytes, bool] | None:
        """Return the stamp and content hash of a source, and whether it is live; None if there is none."""
        found = self.run(
            f"SELECT hash, gone_at IS NULL, {STAMP_COLUMNS} FROM sources WHERE path = ?", (path,)
        )
        return (FileStamp(*found[0][2:]), found[0][0], bool(found[0][1])) if found else None

    def paths(self, folder: str = "") -> dict[str, FileStamp]:
        """Return path → stamp of every live source, or of those in one folder ("a/b/")."""
        # "0" is the character after "/".
        below, values = ("AND path >= ? AND path < ?", (folder, folder[:-1] + "0")) if folder else ("", ())
        found = self.run(f"SELECT path, {STAMP_COLUMNS} FROM sources WHERE gone_at IS NULL {below}", values)
        return {row[0]: FileStamp(*row[1:]) for row in found}

    def sources(self) -> Sources:
        """Return every live source by its id."""
        found = self.run(f"SELECT {SOURCE_COLUMNS} FROM sources WHERE gone_at IS NULL")
        with decoded(self._path):
            return Sources({row[0]: source_of(row) for row in found})

    def source_of(self, source_id: int) -> Source:
        """Return one source by its id."""
        [row] = self.run(f"SELECT {SOURCE_COLUMNS} FROM sources WHERE id = ?", (source_id,))
        with decoded(self._path):
            return source_of(row)

    def source(self, path: str) -> tuple[int, bool] | None:
        """Return the id of the source at *path* and whether it is live, None if there is none."""
        found = self.run("SELECT id, gone_at IS NULL FROM sources WHERE path = ?", (path,))
        return (int(found[0][0]), bool(found[0][1])) if found else None

    def privacy(self, sources: Collection[int]) -> set[tuple[str, bool]]:
        """Return the path of each of *sources*, and whether it is private."""
        found = self.run(
            "SELECT path, private FROM sources WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(sources)),),
        )
        return {(path, bool(private)) for path, private in found}

    def sources_of(self, chunks: Collection[int]) -> list[int]:
        """Return the sources of *chunks*."""
        found = self.run(
            "SELECT DISTINCT source FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(chunks)),),
        )
        return [source for [source] in found]

    def names(self, source_id: int) -> set[str]:
        """Return the names by which links refer to a source."""
        return {row[0] for row in self.run("SELECT name FROM names WHERE source = ?", (source_id,))}

    def supersedes(self, source_id: int) -> bool:
        """Return whether a source has `supersedes` links."""
        return bool(self.run("SELECT 1 FROM links WHERE source = ? AND kind = 'supersedes'", (source_id,)))

    def supersession(self) -> Supersession:
        """Return which live sources supersede which."""
        return supersession(self.run)

    def warnings(self) -> dict[str, str]:
        """Return path → warning to show, for the live sources with warnings."""
        found = self.run("SELECT path, warnings FROM sources WHERE warnings != '[]' AND gone_at IS NULL")
        with decoded(self._path):
            return {path: shown_warning(json.loads(warnings)) for path, warnings in found}

    def gone_count(self) -> int:
        """Return the number of gone sources."""
        return int(
            self.run(f"SELECT count(*) FROM sources WHERE gone_at IS NOT NULL AND NOT {NAMELESS}")[0][0]
        )

    # What changes, inside a transaction

    def put_stamp(self, path: str, stamp: FileStamp) -> None:
        """Record a new stamp for a source with unchanged bytes."""
        self.run(
            "UPDATE sources SET mtime_ns = ?, ctime_ns = ?, size_bytes = ?, inode = ? WHERE path = ?",
            (stamp.mtime_ns, stamp.ctime_ns, stamp.size_bytes, stamp.inode, path),
        )

    def put_source(self, new: NewSource) -> Source:
        """Insert or replace a source, without its chunks."""
        source = new.source
        row = {
            "path": source.path, **new.stamp._asdict(), "hash": new.hash, "title": source.title,
            "tags": json.dumps(source.tags), "day": source.day.isoformat(), "day_of": source.day_of,
            "origin": source.origin, "front_matter": json.dumps(new.front_matter),
            "warnings": json.dumps(new.warnings), "private": new.private,
            "valid_until": source.valid_until.isoformat() if source.valid_until else "",
            "evergreen": source.evergreen, "external": source.external, "gone_at": None,
            "changed": self._coming(), "told": new.told,
        }  # fmt: skip
        [[source_id]] = self.run(
            f"""
            INSERT INTO sources ({", ".join(row)}) VALUES ({", ".join("?" * len(row))})
            ON CONFLICT (path) DO UPDATE SET {", ".join(f"{one} = excluded.{one}" for one in row)}
            RETURNING id
            """,
            list(row.values()),
        )
        # Replace the names, links and fields of a source.
        for table in ("names", "links", "fields", "secret_fields", "outlines"):
            self.run(f"DELETE FROM {table} WHERE source = ?", (source_id,))
        self.run_many("INSERT INTO names VALUES (?, ?, ?)", ((source_id, *name) for name in new.names))
        self.run_many(
            "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (source_id, place, one.kind, one.target, one.part, key_of(one.target), one.line, one.column)
                for place, one in enumerate(new.links)
            ),
        )
        if new.aliases or list(new.headings) != [only_title(source.title)]:
            self.run(
                "INSERT INTO outlines VALUES (?, ?, ?)",
                (source_id, json.dumps(new.aliases), json.dumps(new.headings)),
            )
        for table, fields in (("fields", new.fields), ("secret_fields", new.secret_fields)):
            self.run_many(f"INSERT INTO {table} VALUES (?, ?, ?)", ((source_id, *field) for field in fields))
        return source._replace(id=source_id)

    def stage(self, new: NewSource) -> tuple[int, int]:
        """Insert a source that is invisible to queries, and reserve consecutive ids for its chunks.

        Returns the source's id, and the first chunk id.
        """
        nameless = new.source._replace(path=self._free_path(new.source.path))
        source = self.put_source(replace(new, source=nameless, hash=b""))
        self.mark_gone(source.id, 0)
        known = self.run("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
        if not known:
            self.run("INSERT INTO sqlite_sequence VALUES ('chunks', 0)")
        self.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'chunks'", (len(new.chunks),))
        return source.id, (known[0][0] if known else 0) + 1

    def unveil(self, source_id: int, path: str, digest: bytes) -> None:
        """Make a completely staged source live at its path."""
        self.run(
            "UPDATE sources SET path = ?, hash = ?, gone_at = NULL, changed = ? WHERE id = ?",
            (path, digest, self._coming(), source_id),
        )

    def drop_some_waste(self, limit: int) -> bool:
        """Delete up to *limit* chunks of what was staged in vain; return False when nothing is left."""
        found = self.run(
            f"SELECT id FROM sources WHERE {NAMELESS} AND id NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
            (json.dumps(list(self.staged)),),
        )
        for [source_id] in found:
            # From the end: the first chunk contains the words of the path.
            ids = "SELECT id FROM chunks WHERE source = ? ORDER BY id DESC LIMIT ?"
            if not self._delete_chunks(f"id IN ({ids})", (source_id, limit)):
                self.run("DELETE FROM sources WHERE id = ?", (source_id,))
        self.has_waste = bool(found)
        return self.has_waste

    def put_chunks(self, source_id: int, new: Sequence[NewChunk], first: int | None = None) -> None:
        """Insert consecutive chunks with their texts and full-text rows; the first under the id *first*."""
        for start in range(0, len(new), TOGETHER):
            some = new[start : start + TOGETHER]
            own = first and first + start
            ids = [self._put_chunk(source_id, one, n, own and own + n) for n, one in enumerate(some)]
            self.run("INSERT INTO texts VALUES (?, ?)", (ids[0], packed([one.chunk for one in some])))

    def _put_chunk(self, source_id: int, new: NewChunk, place: int, chunk_id: int | None) -> int:
        chunk, length = new.chunk, len(self._terms(new.words))
        [[chunk_id]] = self.run(
            """
            INSERT INTO chunks
                (id, source, start_line, end_line, start_byte, signature, place, hash,
                 length, beyond, scripts, entry, origin, assistant, hidden_from)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
            """,
            (
                chunk_id, source_id, chunk.start_line, chunk.end_line, chunk.start_byte, new.signature, place,
                new.hash, length, new.beyond, " ".join(new.scripts), chunk.entry, chunk.origin,
                chunk.assistant, new.hidden_from,
            ),
        )  # fmt: skip
        self.run("INSERT INTO words (rowid, text) VALUES (?, ?)", (chunk_id, new.words))
        self.run("INSERT INTO trigrams (rowid, text) VALUES (?, ?)", (chunk_id, new.trigrams))
        return cast("int", chunk_id)

    def chunks_of(self, source_id: int) -> list[int]:
        """Return the ids of a source's chunks, as people see them, in their order."""
        statement = "SELECT id FROM chunks WHERE source = ? AND hidden_from != ? ORDER BY id"
        return [row[0] for row in self.run(statement, (source_id, PEOPLE))]

    def delete_chunks(self, source_id: int) -> list[int]:
        """Delete a source's chunks from all tables; return their ids."""
        return self._delete_chunks("source = ?", (source_id,))

    def _delete_chunks(self, which: str, values: Sequence[int]) -> list[int]:
        ids = [chunk[0] for chunk in self.run(f"DELETE FROM chunks WHERE {which} RETURNING id", values)]
        for chunk_id in ids:
            self.run("DELETE FROM words WHERE rowid = ?", (chunk_id,))
            self.run("DELETE FROM trigrams WHERE rowid = ?", (chunk_id,))
        return ids

    def mark_gone(self, source_id: int, at_s: int | None) -> None:
        """Record since when a source is gone; None: it is live again."""
        self.run(
            "UPDATE sources SET gone_at = ?, changed = ? WHERE id = ?", (at_s, self._coming(), source_id)
        )

    def _coming(self) -> int:
        """Return the generation that the transaction will commit."""
        return (self.number("generation") or 0) + 1

    def purge(self, before_s: int | None, limit: int, path: str | None = None) -> int:
        """Delete up to *limit* gone sources (since *before_s*, at *path*); return how many."""
        found = self.run(
            """
            SELECT id FROM sources WHERE gone_at IS NOT NULL
                AND gone_at <= ifnull(?, gone_at) AND ltrim(path, '/') = ifnull(?, ltrim(path, '/'))
                AND id NOT IN (SELECT value FROM json_each(?)) LIMIT ?
            """,
            (before_s, path, json.dumps(list(self.staged)), limit),
        )
        for [source_id] in found:
            self.delete_chunks(source_id)
            self.run("DELETE FROM sources WHERE id = ?", (source_id,))
        if found:
            self.set(NAMES_PURGED, self._coming())
        return len(found)

    def forget_stamps(self, paths: Collection[str] | None = None) -> None:
        """Invalidate the stamps of sources (None: all), so that they are cut into chunks again."""
        if paths is None:
            self.run(f"UPDATE sources SET {FORGOTTEN}")
        else:
            self.run_many(f"UPDATE sources SET {FORGOTTEN} WHERE path = ?", ((path,) for path in paths))

    def merge_full_text(self, table: str, pages: int) -> bool:
        """Merge about *pages* pages by FTS5's 'merge' command; return True when nothing is left."""
        before = self.changes_made
        self.run(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))
        return self.changes_made - before < 2  # noqa: PLR2004 - as FTS5 says that nothing is left

    def begin_refill(self, table: str) -> None:
        """Create an empty full-text table to replace *table*."""
        self.run(f"DROP TABLE IF EXISTS {table}_anew")
        for statement in full_text(table, f"{table}_anew"):
            self.run(statement)

    def chunks_to_refill(self, table: str, limit: int) -> list[tuple[int, str, str, str, str | None]]:
        """Return (id, path, context, text, `FRONT`) of chunks not yet refilled."""
        beyond = f"chunks.id > (SELECT ifnull(max(id), 0) FROM {table}_anew_docsize)"
        late = f"chunks.id NOT IN (SELECT id FROM {table}_anew_docsize)"  # staged meanwhile: once, at the end
        for which in (beyond, late):
            found = self.run(
                f"""
                SELECT chunks.id, path, context, text, {FRONT}
                FROM whole_chunks AS chunks CROSS JOIN sources ON sources.id = source
                WHERE {which} ORDER BY chunks.id LIMIT ?
                """,
                (limit,),
            )
            if found:
                break
        return [(row[0], row[1], row[2], row[3], row[4]) for row in found]

    def refill(self, table: str, chunk_id: int, text: str) -> None:
        """Insert a chunk into the new table."""
        self.run(f"INSERT INTO {table}_anew (rowid, text) VALUES (?, ?)", (chunk_id, text))

    def finish_refill(self, table: str) -> None:
        """Replace the old table by the new one, without chunks deleted meanwhile."""
        left = f"SELECT id FROM {table}_anew_docsize WHERE id NOT IN (SELECT id FROM chunks)"
        for [chunk_id] in self.run(left):
            self.run(f"DELETE FROM {table}_anew WHERE rowid = ?", (chunk_id,))
        self.run(f"DROP TABLE {table}")
        self.run(f"ALTER TABLE {table}_anew RENAME TO {table}")
        if table == "words":
            self.run("DELETE FROM postings")  # read from the old words
            self.set(COVERED, None)
            self.refilled += 1
        self.count_generation_up()

    def _free_path(self, path: str) -> str:
        """Return an unused path with the same file name, which the chunks' full text contains."""
        free = f"/{path}"
        while self.source(free) is not None:
            free = f"/{free}"
        return free
