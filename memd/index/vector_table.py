"""The SQL of vectors: which row of which matrix has the vector of which text, and which chunks have none.

Every statement about matrices, their rows and the chunks without one: those that wait for it, those in a
script that the model does not read, and those beyond the first ones of a long source. The *target* is the
matrix that new vectors go to: the one that is being built, else the active one. Those that change something
are called inside a transaction.
"""

import json
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import cast

from memd.errors import IndexDamagedError
from memd.index.database import Store

SLICE_ROWS = 5_000  # deleted in one commit: some 20 ms of the writing thread

PART = 8  # values of a hash's first byte that are read at once: of a million chunks 30,000

MAX_DIM = 65_536  # arbitrary; models have up to 4,096

# Whether the model of the matrix ?1 reads one of the scripts of a chunk.
READ = """
    (chunks.scripts = '' OR (SELECT matrices.scripts FROM matrices WHERE number = ?1) IS NULL OR EXISTS
        (SELECT 1 FROM json_each((SELECT matrices.scripts FROM matrices WHERE number = ?1))
        WHERE instr(' ' || chunks.scripts || ' ', ' ' || value || ' ')))
"""
EMBEDDED = f"({READ} AND NOT chunks.beyond)"  # whether it is to have a vector there
WITHOUT = (
    ("waiting", EMBEDDED),
    ("unreadable", f"NOT {READ}"),
    ("beyond", f"({READ} AND chunks.beyond)"),
)  # of the chunks without a vector, where which are

NewRow = tuple[int, bytes, int]  # row, hash, CRC-32
LiveChunk = tuple[int, int, int, int]  # chunk, source, row or -1, length in terms


@dataclass(frozen=True, slots=True)
class MatrixFacts:
    """What SQLite says of one matrix."""

    number: int
    model_id: str
    dim: int
    next_row: int
    scripts: str | None  # JSON list of those that the model reads; None: all


class VectorTable:
    """The table of contents of the matrices."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # Matrices

    def matrices(self) -> dict[int, MatrixFacts]:
        """Return every matrix by its number."""
        found = self._store.run("SELECT number, model_id, dim, next_row, scripts FROM matrices")
        facts = {row[0]: MatrixFacts(*row) for row in found}
        for one in facts.values():
            numbers = (one.number, one.dim, one.next_row)
            if any(type(n) is not int for n in numbers) or type(one.model_id) is not str:
                raise IndexDamagedError(f"the matrix {one.number!r} has values of wrong types")
            if one.scripts is not None and not _is_list_of_names(one.scripts):
                raise IndexDamagedError(f"the matrix {one.number} reads {one.scripts!r:.100}")
            if not 1 <= one.dim <= MAX_DIM:
                raise IndexDamagedError(f"the matrix {one.number} has impossible {one.dim} dimensions")
        return facts

    def add_matrix(self, facts: MatrixFacts) -> None:
        """Record a matrix whose file is there."""
        self._store.run(
            "INSERT INTO matrices VALUES (?, ?, ?, ?, ?)",
            (facts.number, facts.model_id, facts.dim, facts.next_row, facts.scripts),
        )

    def set_next_row(self, matrix: int, next_row: int) -> None:
        """Record that rows below *next_row* have been written."""
        self._store.run("UPDATE matrices SET next_row = ? WHERE number = ?", (next_row, matrix))

    def set_scripts(self, matrix: int, scripts: str | None) -> None:
        """Record which scripts the model of a matrix reads, and forget the rows of texts in others."""
        self._store.run("UPDATE matrices SET scripts = ? WHERE number = ?", (scripts, matrix))
        self._store.run(
            f"""
            DELETE FROM vectors
            WHERE matrix = ?1 AND hash IN (SELECT chunks.hash FROM chunks WHERE NOT {READ})
            """,
            (matrix,),
        )

    def drop_matrix(self, matrix: int) -> None:
        """Forget a matrix that has no rows any more."""
        self._store.run("DELETE FROM matrices WHERE number = ?", (matrix,))

    # Rows

    def crcs(self, matrix: int) -> list[tuple[int, int]]:
        """Return (row, CRC-32) of every row, by row."""
        found = self._store.run("SELECT row, crc FROM vectors WHERE matrix = ? ORDER BY row", (matrix,))
        if found and set(map(type, chain.from_iterable(found))) != {int}:
            raise IndexDamagedError(f"rows of the matrix {matrix} have values of wrong types")
        return cast("list[tuple[int, int]]", found)

    def row_of(self, matrix: int, digest: bytes) -> int:
        """Return the row of a text's vector, -1 where there is none."""
        found = self._store.run("SELECT row FROM vectors WHERE matrix = ? AND hash = ?", (matrix, digest))
        return int(found[0][0]) if found else -1

    def put_rows(self, matrix: int, rows: Iterable[NewRow]) -> None:
        """Record rows that are on the disk."""
        self._store.run_many(
            "INSERT INTO vectors (matrix, row, hash, crc) VALUES (?, ?, ?, ?)",
            ((matrix, *row) for row in rows),
        )

    def drop_rows(self, matrix: int, rows: Iterable[int]) -> int:
        """Forget rows, so that their texts are embedded again; return how many texts. `refill` follows."""
        dropped = self._store.run(
            "DELETE FROM vectors WHERE matrix = ? AND row IN (SELECT value FROM json_each(?)) RETURNING row",
            (matrix, json.dumps(list(rows))),
        )
        return len(dropped)

    def drop_some_rows(self, matrix: int) -> bool:
        """Forget a part of a matrix's rows; False when none is left."""
        self._store.run(
            """
            DELETE FROM vectors WHERE (matrix, hash) IN
                (SELECT matrix, hash FROM vectors WHERE matrix = ? LIMIT ?)
            """,
            (matrix, SLICE_ROWS),
        )
        return self.has_rows(matrix)

    def has_rows(self, matrix: int) -> bool:
        """Tell whether a matrix has any row."""
        return bool(self._store.run("SELECT 1 FROM vectors WHERE matrix = ? LIMIT 1", (matrix,)))

    def used_count(self, matrix: int) -> int:
        """Return how many rows hold the vector of a chunk that is there, live or gone."""
        [[count]] = self._store.run(
            """
            SELECT count(*) FROM vectors
            WHERE matrix = ? AND EXISTS (SELECT 1 FROM chunks WHERE chunks.hash = vectors.hash)
            """,
            (matrix,),
        )
        return int(count)

    def rows_to_copy(self, matrix: int, to: int, *, after: bytes, limit: int) -> list[NewRow]:
        """Return used rows that the matrix *to* does not have yet, by hash, of hashes beyond *after*."""
        found = self._store.run(
            """
            SELECT row, hash, crc FROM vectors AS old
            WHERE matrix = ?1 AND hash > ?3
                AND EXISTS (SELECT 1 FROM chunks WHERE chunks.hash = old.hash)
                AND NOT EXISTS (SELECT 1 FROM vectors AS new WHERE new.matrix = ?2 AND new.hash = old.hash)
            ORDER BY hash LIMIT ?4
            """,
            (matrix, to, after, limit),
        )
        return cast("list[NewRow]", found)

    # Chunks

    def live_chunks(self, first: int, end: int, matrix: int | None) -> list[LiveChunk]:
        """Return those of live sources with an id from *first* on and before *end*."""
        found = self._store.run(
            """
            SELECT chunks.id, source, ifnull(row, -1), length FROM chunks
            LEFT JOIN vectors ON matrix = ? AND vectors.hash = chunks.hash
            WHERE chunks.id >= ? AND chunks.id < ?
                AND source NOT IN (SELECT id FROM sources WHERE gone_at IS NOT NULL)
            """,
            (matrix, first, end),
        )
        return cast("list[LiveChunk]", found)

    def rows_by_chunk(self, matrix: int | None) -> "array[int]":
        """Return the row in *matrix*, or -1, at the place of each chunk's id, live or not.

        Read in parts, by the first bits of the hashes: each tuple takes 100 bytes, all of a million 100 MB.
        """
        rows = array("i", [-1]) * (self.newest_chunk() + 1)
        # Below and above everything, also what a flipped bit makes of a hash.
        edges = [-math.inf, *(bytes([first]) for first in range(PART, 256, PART)), b"\xff" * 17]
        for least, below in pairwise(edges):
            found = self._store.run(
                """
                SELECT chunks.id, row FROM chunks INDEXED BY chunks_by_hash
                JOIN vectors ON matrix = ? AND vectors.hash = chunks.hash
                WHERE chunks.hash >= ? AND chunks.hash < ?
                """,
                (matrix, least, below),
            )
            for chunk_id, row in found:
                rows[chunk_id] = row
        return rows

    def chunks_at(self, matrix: int, rows: Iterable[int]) -> list[int]:
        """Return the chunks, live or not, whose vectors are in these rows."""
        found = self._store.run(
            """
            SELECT chunks.id FROM vectors JOIN chunks ON chunks.hash = vectors.hash
            WHERE matrix = ? AND row IN (SELECT value FROM json_each(?))
            """,
            (matrix, json.dumps(list(rows))),
        )
        return [row[0] for row in found]

    def newest_chunk(self) -> int:
        """Return the highest id that a chunk was ever given."""
        found = self._store.run("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
        return found[0][0] if found else 0

    def has_chunks_beyond(self, newest: int) -> bool:
        """Tell whether some chunk has an id that was never given."""
        return bool(self._store.run("SELECT 1 FROM chunks WHERE id > ? OR id <= 0 LIMIT 1", (newest,)))

    def chunks_with_rows(self, source: int, matrix: int | None) -> list[LiveChunk]:
        """Return (id, source, row of *matrix* or -1, length) of each of a source's chunks."""
        found = self._store.run(
            """
            SELECT chunks.id, source, ifnull(row, -1), length FROM chunks
            LEFT JOIN vectors ON matrix = ? AND vectors.hash = chunks.hash WHERE source = ?
            """,
            (matrix, source),
        )
        return cast("list[LiveChunk]", found)

    # Waiting

    def wait(self, source: int, target: int | None) -> None:
        """Note of the chunks of a source without a vector in *target* whether they wait for one."""
        for table, condition in WITHOUT:
            self._store.run(
                f"""
                INSERT OR IGNORE INTO {table} SELECT id FROM chunks
                WHERE source = ?2 AND {condition} AND NOT EXISTS
                    (SELECT 1 FROM vectors WHERE matrix = ?1 AND vectors.hash = chunks.hash)
                """,
                (target, source),
            )

    def wait_no_more(self, source: int) -> None:
        """Note that the chunks of a source do not: it is gone."""
        for table, _ in WITHOUT:
            self._store.run(
                f"DELETE FROM {table} WHERE chunk IN (SELECT id FROM chunks WHERE source = ?)", (source,)
            )

    def served(self, digest: bytes) -> list[int]:
        """Note that a text has its vector now; return the chunks that get it.

        A chunk beyond the first ones of a long source gets it, too, where another one waited for it.
        """
        return [
            chunk[0]
            for table in ("waiting", "beyond")
            for chunk in self._store.run(
                f"DELETE FROM {table} WHERE chunk IN (SELECT id FROM chunks WHERE hash = ?) RETURNING chunk",
                (digest,),
            )
        ]

    def refill(self, target: int | None) -> None:
        """Find out anew which chunks have no vector in *target*, and which of them wait for one."""
        for table, condition in WITHOUT:
            self._store.run(f"DELETE FROM {table}")
            self._store.run(
                f"""
                INSERT INTO {table} SELECT id FROM chunks
                WHERE source NOT IN (SELECT id FROM sources WHERE gone_at IS NOT NULL) AND {condition}
                    AND NOT EXISTS (SELECT 1 FROM vectors WHERE matrix = ?1 AND vectors.hash = chunks.hash)
                """,
                (target,),
            )

    def waiting_count(self) -> int:
        """Return how many chunks wait."""
        return int(self._store.run("SELECT count(*) FROM waiting")[0][0])

    def unreadable_count(self) -> int:
        """Return how many chunks are in a script that the model does not read."""
        return int(self._store.run("SELECT count(*) FROM unreadable")[0][0])

    def beyond_count(self) -> int:
        """Return how many chunks are beyond the first ones of a long source."""
        return int(self._store.run("SELECT count(*) FROM beyond")[0][0])

    def waiting_texts(self, limit: int, *, first: Sequence[str]) -> dict[bytes, tuple[str, str]]:
        """Return hash → context and text of up to *limit* texts: of the sources *first*, then the newest."""
        found: dict[bytes, tuple[str, str]] = {}
        for path in first:
            found.update(self._waiting_of(path, limit - len(found)))
        before = 1 << 62  # beyond every id
        while len(found) < limit:
            rows = self._store.run(
                """
                SELECT hash, context, text, chunk FROM waiting JOIN chunks ON id = chunk
                WHERE chunk < ? ORDER BY chunk DESC LIMIT ?
                """,
                (before, limit - len(found)),
            )
            if not rows:
                break
            found.update((row[0], (row[1], row[2])) for row in rows)
            before = rows[-1][3]
        return found

    def waiting_after(self, chunk: int, limit: int) -> list[tuple[int, bytes]]:
        """Return (id, hash of the text) of up to *limit* chunks that wait, those after *chunk*, by id."""
        found = self._store.run(
            """
            SELECT chunk, hash FROM waiting JOIN chunks ON id = chunk
            WHERE chunk > ? ORDER BY chunk LIMIT ?
            """,
            (chunk, limit),
        )
        return [(int(row[0]), row[1]) for row in found]

    def only_waits_for(self, refused: Iterable[bytes]) -> bool:
        """Tell whether no chunk waits but those of texts that the model does not take."""
        known = set(refused)
        found = self._store.run(
            "SELECT DISTINCT hash FROM waiting JOIN chunks ON id = chunk LIMIT ?", (len(known) + 1,)
        )
        return all(digest in known for [digest] in found)

    # Sources, for sidecars

    def waiting_sources(self, chunks: int, target: int | None) -> dict[int, list[tuple[bytes, bool]]]:
        """Return, of the sources of the newest *chunks* that wait, each chunk's (hash, whether it waits).

        Without those that are to have no vector.
        """
        rows = self._store.run(
            f"""
            SELECT source, hash, EXISTS (SELECT 1 FROM waiting WHERE chunk = chunks.id) FROM chunks
            WHERE {EMBEDDED} AND source IN
                (SELECT source FROM waiting JOIN chunks ON id = chunk ORDER BY chunk DESC LIMIT ?2)
            ORDER BY source, id
            """,
            (target, chunks),
        )
        found: dict[int, list[tuple[bytes, bool]]] = {}
        for source, digest, waits in rows:
            found.setdefault(source, []).append((digest, bool(waits)))
        return found

    def source_hashes(self) -> list[tuple[int, bytes]]:
        """Return (id, hash of the file's bytes) of every live source."""
        found = self._store.run("SELECT id, hash FROM sources WHERE gone_at IS NULL")
        return cast("list[tuple[int, bytes]]", found)

    def source_rows(self, source: int, matrix: int) -> list[tuple[bytes, int, int]]:
        """Return (hash, row of *matrix* or -1, CRC-32 or -1) of those of a source that are to have a row."""
        found = self._store.run(
            f"""
            SELECT chunks.hash, ifnull(row, -1), ifnull(crc, -1) FROM chunks
            LEFT JOIN vectors ON matrix = ?1 AND vectors.hash = chunks.hash
            WHERE source = ?2 AND {EMBEDDED} ORDER BY id
            """,
            (matrix, source),
        )
        return cast("list[tuple[bytes, int, int]]", found)

    def chunk_hashes(self, target: int | None) -> list[tuple[int, bytes]]:
        """Return (source, hash) of every chunk that is to have a vector in *target*, by source and id.

        Of sources that are gone, too.
        """
        found = self._store.run(
            f"SELECT source, hash FROM chunks WHERE {EMBEDDED} ORDER BY source, id", (target,)
        )
        return cast("list[tuple[int, bytes]]", found)

    def _waiting_of(self, path: str, limit: int) -> dict[bytes, tuple[str, str]]:
        rows = self._store.run(
            """
            SELECT hash, context, text FROM chunks CROSS JOIN waiting ON chunk = id
            WHERE source = (SELECT id FROM sources WHERE path = ?) ORDER BY id LIMIT ?
            """,
            (path, limit),
        )
        return {row[0]: (row[1], row[2]) for row in rows}


def _is_list_of_names(stored: object) -> bool:
    try:
        names = json.loads(stored) if isinstance(stored, str) else None
    except ValueError:
        return False
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
