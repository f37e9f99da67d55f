"""Read-only access to the database of an index: connections, their pool, and the live sources.

A query borrows a `Reader` from the `Pool`, in any thread. `Sources` has the live sources of one generation,
for any thread.
"""

import json
import queue
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from memd.errors import DeadlineError, IndexClosedError
from memd.index.database import FRONT, Match, damaged, decoded, open_reader, terms_of, translated
from memd.index.links import original_of
from memd.index.postings import COUNT_BITS, Part, Stored, StoredRow, Term, key_of, part_of, stored_in
from memd.index.source_rows import AGENTS, ARCHIVES, FORM, PEOPLE, SESSION, read_by_model, searchable
from memd.index.texts import unpacked
from memd.records import NOT_UTF8, Source

# SQLite VM instructions between two checks of the deadline: about half a millisecond.
STEPS = 10_000
# In the order of StoredChunk's fields, which has heading and text unpacked.
CHUNK_COLUMNS = "id, source, start_line, end_line, start_byte, packed, place, entry, origin"
CHUNK_TYPES = (int, int, int, int, int, bytes, int, str, str)
# The function `note` runs for each row at the position in the full-text index: 0.5 µs, without reading the
# chunk. count() avoids returning rows one by one.
NOTED = """
    SELECT count(noted) FROM (
        SELECT note(words) AS noted FROM words WHERE words MATCH ? AND rowid > ? LIMIT -1
    )
"""
NEWEST = """
    SELECT id, iif(mtime_ns, mtime_ns, 9223372036854775807) AS changed FROM sources
    WHERE gone_at IS NULL AND path NOT GLOB ? ORDER BY changed DESC LIMIT ?
"""
STORED = "SELECT term, upto, ids, counts, crc FROM main.postings WHERE term = ?"
# CROSS JOIN fixes the order: otherwise SQLite scans all vectors, which takes seconds for 100,000.
CHECKSUMS = """
    SELECT row, crc FROM json_each(?) AS asked CROSS JOIN chunks ON chunks.id = asked.value
    CROSS JOIN vectors ON vectors.hash = chunks.hash
        AND matrix = (SELECT value FROM meta WHERE key = 'active')
"""
CHECKSUMS_AFTER = "SELECT hash, row, crc FROM vectors WHERE matrix = ? AND hash > ? ORDER BY hash LIMIT ?"
ENTRIES = """
    SELECT name, source FROM names WHERE kind = 'id' AND name IN (SELECT value FROM json_each(?))
"""
OF_HASHES = """
    SELECT lower(hex(hash)), id FROM sources
    WHERE gone_at IS NULL AND hash IN (SELECT unhex(value) FROM json_each(?))
"""
IDENTITY = """
    SELECT ifnull((SELECT name FROM names WHERE source = sources.id AND kind = 'id'), ''), hash FROM sources
    WHERE path = ?
"""
DAILY_ENTRIES = """
    SELECT entry, min(id) FROM chunks
    WHERE hidden_from != ? AND entry != '' AND entry IN (SELECT value FROM json_each(?)) GROUP BY entry
"""
# A key of a chunk is the first 8 bytes of its hash, in hex.
KEYS = "SELECT id, hex(substr(hash, 1, 8)) FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
STRETCHES = """
    SELECT source, start_line, start_byte, end_line FROM chunks WHERE id IN (SELECT value FROM json_each(?))
"""
KEYED = """
    SELECT chunks.id FROM json_each(?) AS asked
    CROSS JOIN chunks ON hash BETWEEN unhex(asked.value) AND unhex(asked.value || 'ffffffffffffffff')
"""
SEARCHED = f"""
    SELECT chunks.id, path, context, text, {FRONT}
    FROM whole_chunks AS chunks CROSS JOIN sources ON sources.id = source
    WHERE chunks.id IN (SELECT value FROM json_each(?))
"""
FENCED = f"""
    SELECT {CHUNK_COLUMNS} FROM whole_chunks WHERE id IN (
        SELECT before.id FROM json_each(?) AS asked CROSS JOIN chunks AS own ON own.id = asked.value
        CROSS JOIN chunks AS before ON before.id BETWEEN own.id - ? AND own.id - 1
        WHERE before.source = own.source
    ) AND hidden_from != ? AND (instr(text, '```') OR instr(text, '~~~')) ORDER BY id
"""
# Number of chunks, and of those with a vector.
SIZES = """
    SELECT source, count(*), sum(row >= 0) FROM placed
    WHERE source IN (SELECT value FROM json_each(?)) AND hidden_from != ? GROUP BY source
"""
# Of every chunk, the row of its vector.
ALL_ROWS = "SELECT id, source, row FROM placed WHERE hidden_from != ? ORDER BY id"
# The chunks with secrets, and those that agents see instead.
TWOFOLD = "SELECT id, source, row, length, hidden_from FROM placed WHERE hidden_from"
REPLACED = f"""
    SELECT path FROM sources WHERE warnings != '[]' AND warnings LIKE '["{NOT_UTF8}%' AND gone_at IS NULL
    ORDER BY path LIMIT ?
"""
ENTRY_IDS = """
    SELECT source, name FROM names WHERE kind = 'id' AND source IN (SELECT value FROM json_each(?))
"""
WRITTEN = """
    SELECT source, max(value) FROM fields
    WHERE key IN ('created', 'updated') AND source IN (SELECT value FROM json_each(?)) GROUP BY source
"""
# The sources that name the same conversation as a given one.
SAME_SESSION = """
    SELECT DISTINCT other.source FROM fields AS one
    CROSS JOIN fields AS other ON other.key = one.key AND other.value = one.value
    WHERE one.source = ? AND one.key = ? AND one.value != '' AND other.source != one.source
"""
LEFT_OUT = "SELECT why FROM unembedded WHERE chunk = ? AND why != 'waiting'"
UNREAD = "SELECT chunk FROM unembedded WHERE chunk IN (SELECT value FROM json_each(?)) AND +why = 'script'"
SAID = "SELECT id, assistant FROM chunks WHERE id IN (SELECT value FROM json_each(?)) AND assistant > 0"
LeftOut = Literal["script", "long"]  # why a chunk gets no vector

READERS = 2  # queries that run at once in one workspace; the machine has only a few cores
WAIT_S = 0.05  # between two checks of the deadline while all readers are in use
Expired = Callable[[], bool]

# The point follows the hyphen in ASCII. More files than these are not told apart by a number.
NUMBERED = "SELECT source FROM names WHERE name >= ? AND name < ? AND kind = 'file' LIMIT 20"
WITH_ID = "SELECT source FROM names WHERE name >= ? AND name < ? AND kind = 'id' LIMIT 2"
SOURCE_COLUMNS = "id, path, title, tags, day, day_of, origin, valid_until, evergreen, external"
SOURCE_TYPES = (int, *[str] * 7, int, int)
SourceSize: TypeAlias = tuple[int, int]  # number of chunks, and of those with a vector
_day = cache(date.fromisoformat)  # there are few distinct days


class StoredChunk(NamedTuple):
    """A chunk with the fields that answers show."""

    id: int
    source: int
    start_line: int
    end_line: int
    start_byte: int
    heading: str
    text: str
    entry: str = ""  # id of its daily entry
    origin: str = ""  # author of that entry; "": as in the source
    context: str = ""  # what the model reads in front of its text


class Reader:
    """One read-only connection; `begin` to `end` sees one state of the database. It never checkpoints."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.generation = -1  # that the transaction sees
        self.for_people = False  # whether secrets are read, instead of what stands for them
        with translated(path):
            self._db = open_reader(path)
        self._terms = terms_of(self._db, of_query=True)
        self.indexed_terms = terms_of(self._db, of_query=False)  # prepared text → its terms, as FTS5 has them
        self._noted = array("q")  # postings noted by the function, for `part_of`
        self._db.register_fts5_function("note", _noting(self._noted))

    def limit(self, expired: Callable[[], bool] | None) -> None:
        """Interrupt statements with DeadlineError once *expired* returns True; None: no limit."""
        self._db.set_progress_handler(expired, STEPS)

    def begin(self) -> int:
        """Start a read transaction; return the generation that it sees."""
        with decoded(self._path):
            self._db.execute("BEGIN")
            found = self._db.execute("SELECT value FROM meta WHERE key = 'generation'").get
            if type(found) is not int:
                raise damaged(self._path, f"generation is {found!r:.50}")
            self.generation = found
            return found

    def end(self) -> None:
        """End the read transaction and remove the limit."""
        self.limit(None)
        self.for_people = False
        self.rollback()

    def rollback(self) -> None:
        """End the read transaction."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def terms(self, prepared: str) -> tuple[str, ...]:
        """Return the terms of a prepared text as FTS5 splits a query."""
        return tuple(self._terms(prepared))

    def counted(self, term: Term, after: int = 0) -> Part:
        """Return the postings of a term in chunks with ids above *after*, dead chunks included.

        Of a prefix FTS5 reads all positions, 0.2 µs each.
        """
        text, is_beginning = term
        del self._noted[:]
        with decoded(self._path):
            self._db.execute(NOTED, (f'"{text}" *' if is_beginning else f'"{text}"', after)).fetchall()
            return part_of(self._noted)

    def stored(self, term: Term) -> Stored | None:
        """Return the postings of a term in the table; None if there are none, or if they are damaged."""
        with decoded(self._path):
            found = self._db.execute(STORED, (key_of(term),)).fetchone()
        return stored_in(StoredRow(*found)) if found is not None else None

    def matching(self, table: str, expression: str) -> list[int]:
        """Return the ids of the chunks that match an FTS5 expression made by memd."""
        with decoded(self._path):
            # As one text: separate rows take twice as long and need the GIL for each row.
            found = self._db.execute(
                f"SELECT group_concat(rowid) FROM {table} WHERE {table} MATCH ?", (expression,)
            ).get
            return list(map(int, str(found).split(","))) if found else []

    def searched(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the searched text of the chunks that exist, as it was indexed."""
        return {
            number: searchable(read_by_model(context, text), path, front)
            for number, path, context, text, front in self.each(SEARCHED, (json.dumps(list(ids)),))
        }

    def with_links(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the text of the chunks that exist, with its links and behind its headings."""
        each = self.each(SEARCHED, (json.dumps(list(ids)),))
        return {number: read_by_model(context, text) for number, _, context, text, _ in each}

    def chunks(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks among *ids* that exist."""
        found = self._chunks(f"id IN ({','.join('?' * len(ids))})", (*ids,))
        return {chunk.id: chunk for chunk in found}

    def fenced(self, ids: Sequence[int], most: int) -> list[StoredChunk]:
        """Return those of the *most* chunks before some, of their sources, in which a fence may stand."""
        with decoded(self._path):
            found = self._db.execute(FENCED, (json.dumps(list(ids)), most, self._not_for))
            return [_stored(row) for row in found]

    def numbered(self, numbers: Iterable[str]) -> set[int]:
        """Return some sources whose files' names begin with one of these numbers and a hyphen."""
        return {
            source for number in numbers for (source,) in self.each(NUMBERED, (f"{number}-", f"{number}."))
        }

    def lines(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Return (source, first line, last line) of the chunks that exist."""
        marks = ",".join("?" * len(ids))
        with decoded(self._path):
            found = self._db.execute(
                f"SELECT id, source, start_line, end_line FROM chunks WHERE id IN ({marks})", tuple(ids)
            )
            return {row[0]: _typed(row, int, int, int, int)[1:] for row in found}

    def stretches(self, ids: Sequence[int]) -> list[tuple[int, int, int, int]]:
        """Return (source, first line, offset in it, last line) of the chunks that exist."""
        found = self.all(STRETCHES, (json.dumps(list(ids)),))
        return [(source, first, first_byte, last) for source, first, first_byte, last in found]

    def signatures(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the signatures of the chunks that exist."""
        marks = ",".join("?" * len(ids))
        with decoded(self._path):
            found = self._db.execute(f"SELECT id, signature FROM chunks WHERE id IN ({marks})", tuple(ids))
            return {row[0]: _signature(row) for row in found}

    def keys(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the keys of the chunks that exist: of the text that the model reads, not of their place."""
        found = self.all(KEYS, (json.dumps(list(ids)),))
        return {number: str(key).lower() for number, key in found}

    def keyed(self, keys: Sequence[str]) -> list[int]:
        """Return the ids of the chunks that have one of these keys, dead chunks included."""
        return [int(number) for (number,) in self.all(KEYED, (json.dumps(list(keys)),))]

    def source_ids(self, paths: Sequence[str]) -> dict[str, int]:
        """Return path → id of the sources at *paths*, including gone ones."""
        marks = ",".join("?" * len(paths))
        return dict(self.each(f"SELECT path, id FROM sources WHERE path IN ({marks})", tuple(paths)))

    def identity(self, path: str) -> tuple[str, bytes] | None:
        """Return (entry id or "", hash) of the source at *path*, None if it is unknown.

        Includes gone sources.
        """
        with decoded(self._path):
            for row in self._db.execute(IDENTITY, (path,)).fetchall():
                return _typed(row, str, bytes)
        return None

    def chunks_of(self, source: int, limit: int = -1) -> list[StoredChunk]:
        """Return up to *limit* chunks of a source in line order; -1: all."""
        # The ids first: sorted with their texts, all of these would be unpacked.
        ids = "SELECT id FROM chunks WHERE source = ? AND hidden_from != ? ORDER BY id LIMIT ?"
        return self._chunks(f"id IN ({ids})", (source, self._not_for, limit))

    def entries(self, ids: Collection[str]) -> list[tuple[str, int]]:
        """Return (entry id, source) of the sources whose entry id is among *ids*."""
        return [(str(name), int(source)) for name, source in self.all(ENTRIES, (json.dumps(list(ids)),))]

    def of_hashes(self, digests: Collection[str]) -> list[tuple[str, int]]:
        """Return (hash of the file in hex, source) of the sources whose file has one of the hashes."""
        found = self.all(OF_HASHES, (json.dumps(list(digests)),))
        return [(str(digest), int(source)) for digest, source in found]

    def daily_entries(self, ids: Collection[str]) -> list[tuple[str, int]]:
        """Return (entry id, first chunk) of the daily entries among *ids*."""
        found = self.all(DAILY_ENTRIES, (self._not_for, json.dumps(list(ids))))
        return [(str(name), int(chunk)) for name, chunk in found]

    def entry_ids(self, sources: Sequence[int]) -> dict[int, str]:
        """Return source → entry id of those among *sources* that have one."""
        found = self.all(ENTRY_IDS, (json.dumps(list(sources)),))
        return {int(source): str(name) for source, name in found}

    def written(self, sources: Sequence[int]) -> dict[int, str]:
        """Return source → when it was revised or written, of those whose front matter says it."""
        found = self.all(WRITTEN, (json.dumps(list(sources)),))
        return {int(source): str(value) for source, value in found}

    def front_matters(self, sources: Collection[int]) -> list[tuple[int, str]]:
        """Return (source, its front matter as JSON) of the sources that exist."""
        found = self.each(
            "SELECT id, front_matter FROM sources WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(sources)),),
        )
        return [(int(source), str(front)) for source, front in found]

    def change_times(self) -> dict[int, int]:
        """Return source → mtime_ns of all sources, gone ones included."""
        return dict(self.each("SELECT id, mtime_ns FROM sources"))

    def newest(self, limit: int) -> dict[int, int]:
        """Return source → mtime_ns of those changed last, the newest first, without the archive.

        A file that was saved just before it was read has no stamp yet, and counts as the newest.
        """
        return dict(self.each(NEWEST, (f"{ARCHIVES}*", limit)))

    def all_rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield (chunk, source, row of the active matrix or -1) of all chunks by id, gone ones included."""
        yield from self.each(ALL_ROWS, (self._not_for,))

    def not_utf8(self, limit: int) -> list[str]:
        """Return the first paths of live sources in which bytes were replaced."""
        return [path for (path,) in self.each(REPLACED, (limit,))]

    def occurrences(self, expression: str) -> dict[int, int]:
        """Return how often an FTS5 expression occurs in each chunk, dead chunks included."""
        del self._noted[:]
        with decoded(self._path):
            self._db.execute(NOTED, (expression, 0)).fetchall()
        return {packed >> COUNT_BITS: packed & (1 << COUNT_BITS) - 1 for packed in self._noted}

    def lengths(self) -> dict[int, int]:
        """Return the length in terms of each chunk, dead ones included."""
        return dict(self.each("SELECT id, length FROM chunks"))

    def field_values(self, key: str) -> list[str]:
        """Return the distinct values of a key of the front matter, those of gone sources included."""
        return [
            value for [value] in self.each(f"SELECT DISTINCT value FROM {self._fields} WHERE key = ?", (key,))
        ]

    def values_of(self, key: str) -> dict[int, str]:
        """Return source → one value of *key*, of those that have it; gone ones included."""
        return dict(self.each(f"SELECT source, value FROM {self._fields} WHERE key = ?", (key,)))

    def with_secrets(self) -> frozenset[int]:
        """Return the sources of whose text agents, who ask, see another one."""
        if self.for_people:
            return frozenset()
        return frozenset(row[0] for row in self.each("SELECT DISTINCT source FROM chunks WHERE hidden_from"))

    def sources_with_field(self, key: str, values: Sequence[str] | None = None) -> set[int]:
        """Return the sources that have a key with one of *values*, None: any; gone ones included."""
        # As one text: separate rows take twice as long.
        statement, asked = f"SELECT group_concat(source) FROM {self._fields} WHERE key = ?", [key]
        if values is not None:
            statement, asked = (
                f"{statement} AND value IN (SELECT value FROM json_each(?))",
                [key, json.dumps(values)],
            )
        [[found]] = self.each(statement, asked)
        return set(map(int, str(found).split(","))) if found else set()

    def field_key_counts(self, sources: Collection[int]) -> Iterator[tuple[str, int, int]]:
        """Yield (key, sources that have it, distinct values) among *sources*, the most frequent first."""
        yield from self.each(
            f"""
            SELECT key, count(DISTINCT source), count(DISTINCT value) FROM {self._fields}
            WHERE source IN (SELECT value FROM json_each(?)) GROUP BY key ORDER BY 2 DESC, key
            """,
            (json.dumps(list(sources)),),
        )

    def field_value_counts(self, key: str, sources: Collection[int]) -> Iterator[tuple[str, int, int]]:
        """Yield (value, sources that have it, 1) of a key among *sources*, the most frequent first."""
        for value, count in self.each(
            f"""
            SELECT value, count(DISTINCT source) FROM {self._fields}
            WHERE key = ? AND source IN (SELECT value FROM json_each(?)) GROUP BY value ORDER BY 2 DESC, value
            """,
            (key, json.dumps(list(sources))),
        ):
            yield value, count, 1

    @property
    def _not_for(self) -> int:
        return PEOPLE if self.for_people else AGENTS

    @property
    def _fields(self) -> str:
        return "whole_fields" if self.for_people else "fields"

    def of_same_session(self, source: int) -> list[int]:
        """Return the sources that name the same conversation as *source*, gone ones included."""
        return [int(other) for [other] in self.all(SAME_SESSION, (source, SESSION))]

    def checksums(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return (row, CRC-32) of the vectors that the chunks have: 10 µs per chunk."""
        with decoded(self._path):
            found = self._db.execute(CHECKSUMS, (json.dumps([int(number) for number in ids]),))
            return [_typed(row, int, int) for row in found]

    def checksums_after(self, matrix: int, digest: bytes, limit: int) -> tuple[bytes, list[tuple[int, int]]]:
        """Return (row, CRC-32) of up to *limit* rows of a matrix, for text hashes above *digest*.

        Returns:
            The last of the hashes, for the next call, and the pairs; no pairs at the end.
        """
        with decoded(self._path):
            found = [
                _typed(row, bytes, int, int)
                for row in self._db.execute(CHECKSUMS_AFTER, (matrix, digest, limit))
            ]
            return (found[-1][0] if found else digest), [row[1:] for row in found]

    def sizes(self, sources: Sequence[int]) -> dict[int, SourceSize]:
        """Return the sizes of sources that have chunks."""
        rows = self.all(SIZES, (json.dumps(list(sources)), self._not_for))
        return {source: (chunks, vectors) for source, chunks, vectors in rows}

    def left_out(self, chunk_id: int) -> LeftOut | None:
        """Return why a chunk gets no vector; None if it has one or waits for it."""
        found = self.all(LEFT_OUT, (chunk_id,))
        return cast("LeftOut", found[0][0]) if found else None

    def unread(self, chunk_ids: Sequence[int]) -> frozenset[int]:
        """Return those of the chunks that get no vector, as the model does not read their scripts."""
        return frozenset(number for (number,) in self.all(UNREAD, (json.dumps(list(chunk_ids)),)))

    def assistants(self, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return chunk → the share of its lines that an assistant said, where it said any."""
        return dict(self.all(SAID, (json.dumps(list(chunk_ids)),)))

    def _chunks(self, which: str, values: Sequence[int]) -> list[StoredChunk]:
        """Return the chunks that a condition selects, by id."""
        statement = f"SELECT {CHUNK_COLUMNS} FROM whole_chunks WHERE {which} AND hidden_from != ? ORDER BY id"
        with decoded(self._path):
            return [_stored(row) for row in self._db.execute(statement, (*values, self._not_for))]

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of any statement: faster than `each`, and all in memory."""
        with decoded(self._path):
            return self._db.execute(statement, values).fetchall()

    def each(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of any statement: for the check, and the publishing of a workspace."""
        with decoded(self._path):
            yield from self._db.execute(statement, values)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


class Pool:
    """The reading connections of one index. For any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free: queue.SimpleQueue[Reader | None] = queue.SimpleQueue()  # None: closed
        with ExitStack() as opened:
            readers = [opened.enter_context(closing(Reader(path))) for _ in range(READERS)]
            for reader in readers:
                self._free.put(reader)
            opened.pop_all()

    @contextmanager
    def borrowed(self, expired: Expired | None) -> Iterator[Reader]:
        """Borrow a reader; its statements end when *expired* returns True."""
        reader = self._next(expired)
        try:
            reader.limit(expired)
            yield reader
        finally:
            reader.end()
            self._free.put(reader)

    @contextmanager
    def apart(self, expired: Expired | None) -> Iterator[Reader]:
        """Open a separate reader, so that no query waits for it."""
        reader = Reader(self._path)
        try:
            reader.limit(expired)
            yield reader
        finally:
            reader.end()
            reader.close()

    def close(self) -> None:
        """Close all readers; waits for those in use. Later calls raise IndexClosedError."""
        for _ in range(READERS):
            reader = self._free.get()
            if reader is None:  # closed before
                break
            reader.close()
        self._free.put(None)

    def _next(self, expired: Expired | None) -> Reader:
        while True:
            try:
                reader = self._free.get(timeout=None if expired is None else WAIT_S)
            except queue.Empty:
                if expired is not None and expired():
                    raise DeadlineError(f"{self._path}: other queries took all the time; ask again") from None
                continue
            if reader is None:
                self._free.put(None)  # for the next waiting thread
                raise IndexClosedError(f"{self._path.parent} is being reopened: ask again")
            return reader


class Sources(dict[int, Source]):
    """The live sources of one generation by id. Never changed: `changed` makes those of the next."""

    def __init__(
        self,
        known: Mapping[int, Source],
        copies: Mapping[int, str] | None = None,
        expiring: Mapping[int, date] | None = None,
    ) -> None:
        """Take the *known* records."""
        super().__init__(known)
        # Conflict copies, recognised by name → the path of the original, which may not exist.
        self.copies = copies_in(known) if copies is None else copies
        # The sources that hold until some day → that day.
        self.expiring = _expiring(known) if expiring is None else expiring

    def changed(self, *, removed: AbstractSet[int], put: Mapping[int, Source]) -> "Sources":
        """Return the sources of the next generation: without *removed*, with *put* added or replaced."""
        known = self.copy()
        for source_id in removed:
            known.pop(source_id, None)
        known.update(put)
        copies = {one: original for one, original in self.copies.items() if one in known and one not in put}
        expiring = {one: day for one, day in self.expiring.items() if one in known and one not in put}
        return Sources(known, copies | copies_in(put), expiring | _expiring(put))


def _noting(noted: "array[int]") -> Callable[..., None]:
    append, shift = noted.append, COUNT_BITS

    def note(row: Match) -> None:
        append(row.rowid << shift | row.inst_count)

    return note


def _typed(row: tuple[Any, ...], *types: type) -> tuple[Any, ...]:
    """Return *row*. Raises TypeError: a bit that flipped has made values of other types."""
    if tuple(map(type, row)) != types:
        raise TypeError(f"the row of {row[0]!r:.20} has values of wrong types")
    return row


def _stored(row: tuple[Any, ...]) -> StoredChunk:
    number, source, start_line, end_line, start_byte, packed, place, entry, origin = _typed(row, *CHUNK_TYPES)
    heading, context, text = unpacked(packed)[place]
    return StoredChunk(
        number, source, start_line, end_line, start_byte, heading, text, entry, origin, context
    )


def _signature(row: tuple[Any, ...]) -> bytes:
    number, found = _typed(row, int, bytes)
    if len(found) != FORM.size:
        raise TypeError(f"the chunk {number} has no signature")
    return cast("bytes", found)


def copies_in(known: Mapping[int, Source]) -> dict[int, str]:
    """Return the conflict copies among some sources → the paths of their originals."""
    each = ((one, original_of(source.path)) for one, source in known.items())
    return {one: original for one, original in each if original is not None}


def _expiring(known: Mapping[int, Source]) -> dict[int, date]:
    return {one: source.valid_until for one, source in known.items() if source.valid_until is not None}


def source_of(row: tuple[Any, ...]) -> Source:
    """Return the record for a row of `SOURCE_COLUMNS`. Raises ValueError or TypeError if it cannot be."""
    source_id, path, title, tags, day, day_of, origin, valid_until, evergreen, external = _typed(
        row, *SOURCE_TYPES
    )
    tags = json.loads(tags) if tags != "[]" else []  # most have none
    if type(tags) is not list or not all(type(tag) is str for tag in tags):
        raise TypeError(f"a source has impossible tags: {row!r:.100}")
    return Source(
        source_id, path, title, tuple(tags), _day(day), day_of, origin,
        _day(valid_until) if valid_until else None, bool(evergreen), bool(external),
    )  # fmt: skip
