"""The SQL of vectors: the rows of the matrices, the texts they belong to, and the chunks without vectors.

A chunk without a vector waits for it, is in a script that the model does not read, or is beyond the first
chunks of a long source. The *target* is the matrix that receives new vectors: the one being built, otherwise
the active one. Methods that change something are called inside a transaction.
"""

import json
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, cast

from memd.errors import IndexDamagedError
from memd.index.database import Database
from memd.index.source_rows import PEOPLE

SLICE_ROWS = 5_000  # deleted in one commit: some 20 ms of the writing thread

PART = 8  # values of a hash's first byte read at once: 30,000 of a million chunks

MAX_DIM = 65_536  # arbitrary; models have up to 4,096

# Whether the model of matrix ?1 reads one of the scripts of a chunk.
READ = """
    (chunks.scripts = '' OR (SELECT matrices.scripts FROM matrices WHERE number = ?1) IS NULL OR EXISTS
        (SELECT 1 FROM json_each((SELECT matrices.scripts FROM matrices WHERE number = ?1))
        WHERE instr(' ' || chunks.scripts || ' ', ' ' || value || ' ')))
"""
EMBEDDED = f"({READ} AND NOT chunks.beyond)"  # whether a chunk should have a vector there
# Why a chunk has no vector: it waits for one, is in a script that the model does not read, or is beyond the
# first chunks of a long source.
Why = Literal["waiting", "script", "long"]
WHY = f"CASE WHEN NOT {READ} THEN 'script' WHEN chunks.beyond THEN 'long' ELSE 'waiting' END"
# Whether a chunk has no vector in the matrix ?1.
BARE = "NOT EXISTS (SELECT 1 FROM vectors WHERE matrix = ?1 AND vectors.hash = chunks.hash)"

NewRow = tuple[int, bytes, int]  # row, hash, CRC-32


@dataclass(frozen=True, slots=True)
class MatrixFacts:
    """The row of one matrix in the table `matrices`."""

    number: int
    model_id: str
    dim: int
    next_row: int
    scripts: str | None  # JSON list of the scripts that the model reads; None: all


class VectorTable:
    """The tables `matrices`, `vectors` and `unembedded`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Matrices

    def matrices(self) -> dict[int, MatrixFacts]:
        """Return every matrix by its number."""
        found = self._database.run("SELECT number, model_id, dim, next_row, scripts FROM matrices")
        facts = {row[0]: MatrixFacts(*row) for row in found}
        for matrix in facts.values():
            numbers = (matrix.number, matrix.dim, matrix.next_row)
            if any(type(n) is not int for n in numbers) or type(matrix.model_id) is not str:
                raise IndexDamagedError(f"the matrix {matrix.number!r} has values of wrong types")
            if matrix.scripts is not None and not _is_list_of_names(matrix.scripts):
                raise IndexDamagedError(f"the matrix {matrix.number} reads {matrix.scripts!r:.100}")
            if not 1 <= matrix.dim <= MAX_DIM:
                raise IndexDamagedError(f"the matrix {matrix.number} has impossible {matrix.dim} dimensions")
        return facts

    def set_next_row(self, matrix: int, next_row: int) -> None:
        """Record the number of the next row to be written."""
        self._database.run("UPDATE matrices SET next_row = ? WHERE number = ?", (next_row, matrix))

    # Rows

    def row_of(self, matrix: int, digest: bytes) -> int:
        """Return the row of a text's vector, -1 if it has none."""
        found = self._database.run("SELECT row FROM vectors WHERE matrix = ? AND hash = ?", (matrix, digest))
        return int(found[0][0]) if found else -1

    def put_rows(self, matrix: int, rows: Iterable[NewRow]) -> None:
        """Record rows that are on the disk."""
        self._database.run_many(
            "INSERT INTO vectors (matrix, row, hash, crc) VALUES (?, ?, ?, ?)",
            ((matrix, *row) for row in rows),
        )

    def drop_rows(self, matrix: int, rows: Iterable[int]) -> int:
        """Drop rows, so that their texts are embedded again; return how many. `refill` must follow."""
        dropped = self._database.run(
            "DELETE FROM vectors WHERE matrix = ? AND row IN (SELECT value FROM json_each(?)) RETURNING row",
            (matrix, json.dumps(list(rows))),
        )
        return len(dropped)

    def drop_some(self, matrix: int) -> bool:
        """Drop a slice of a matrix's rows, at the end its record; return False when nothing is left."""
        self._database.run(
            """
            DELETE FROM vectors WHERE (matrix, hash) IN
                (SELECT matrix, hash FROM vectors WHERE matrix = ? LIMIT ?)
            """,
            (matrix, SLICE_ROWS),
        )
        if self.has_rows(matrix):
            return True
        self._database.run("DELETE FROM matrices WHERE number = ?", (matrix,))
        return False

    def has_rows(self, matrix: int) -> bool:
        """Return whether a matrix has any row."""
        return bool(self._database.run("SELECT 1 FROM vectors WHERE matrix = ? LIMIT 1", (matrix,)))

    def used_count(self, matrix: int) -> int:
        """Return how many rows belong to existing chunks, live or gone."""
        [[count]] = self._database.run(
            """
            SELECT count(*) FROM vectors
            WHERE matrix = ? AND EXISTS (SELECT 1 FROM chunks WHERE chunks.hash = vectors.hash)
            """,
            (matrix,),
        )
        return int(count)

    def rows_to_copy(self, matrix: int, to: int, *, after: bytes, limit: int) -> list[NewRow]:
        """Return used rows that the matrix *to* lacks, sorted by hash, with hashes above *after*."""
        found = self._database.run(
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

    def rows_by_chunk(self, matrix: int | None) -> "array[int]":
        """Return the row in *matrix*, or -1, indexed by chunk id, for live and other chunks.

        Reads in parts by the first byte of the hash: tuples take 100 bytes each, 100 MB for a million chunks.
        """
        rows = array("i", [-1]) * (self.newest_chunk() + 1)
        # Bounds that include any value, also a hash of wrong type or length.
        edges = [-math.inf, *(bytes([first]) for first in range(PART, 256, PART)), b"\xff" * 17]
        for least, below in pairwise(edges):
            found = self._database.run(
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

    def newest_chunk(self) -> int:
        """Return the highest chunk id ever used."""
        found = self._database.run("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
        return found[0][0] if found else 0

    # Waiting

    def wait(self, source: int, target: int | None) -> None:
        """Record, for each chunk of a source without a vector in *target*, whether and why it has none."""
        self._database.run(
            f"INSERT OR IGNORE INTO unembedded SELECT id, {WHY} FROM chunks WHERE source = ?2 AND {BARE}",
            (target, source),
        )

    def served(self, digest: bytes) -> list[tuple[int, bool]]:
        """Record that a text has a vector now; return the chunks that use it, and whether people see each.

        A chunk beyond the first ones of a long source gets it, too, if another chunk has the same text.
        """
        found = self._database.run(
            """
            DELETE FROM unembedded WHERE chunk IN (SELECT id FROM chunks WHERE hash = ?)
            RETURNING chunk, (SELECT hidden_from FROM chunks WHERE id = chunk)
            """,
            (digest,),
        )
        return [(chunk, hidden_from != PEOPLE) for chunk, hidden_from in found]

    def refill(self, target: int | None) -> None:
        """Compute again which chunks have no vector in *target*, and why."""
        self._database.run("DELETE FROM unembedded")
        self._database.run(
            f"""
            INSERT INTO unembedded SELECT id, {WHY} FROM chunks
            WHERE source NOT IN (SELECT id FROM sources WHERE gone_at IS NOT NULL) AND {BARE}
            """,
            (target,),
        )

    def waiting_texts(self, limit: int, *, first: Sequence[str]) -> dict[bytes, tuple[str, str]]:
        """Return hash → context and text of up to *limit* texts: of the sources *first*, then the newest."""
        found: dict[bytes, tuple[str, str]] = {}
        for path in first:
            rows = self._database.run(
                """
                SELECT hash, context, text FROM whole_chunks CROSS JOIN unembedded ON chunk = id
                WHERE source = (SELECT id FROM sources WHERE path = ?) AND why = 'waiting' ORDER BY id LIMIT ?
                """,
                (path, limit - len(found)),
            )
            found.update({row[0]: (row[1], row[2]) for row in rows})
        before = 1 << 62  # beyond every id
        while len(found) < limit:
            rows = self._database.run(
                """
                SELECT hash, context, text, chunk FROM unembedded JOIN whole_chunks ON id = chunk
                WHERE why = 'waiting' AND chunk < ? ORDER BY chunk DESC LIMIT ?
                """,
                (before, limit - len(found)),
            )
            if not rows:
                break
            found.update((row[0], (row[1], row[2])) for row in rows)
            before = rows[-1][3]
        return found

    def only_waits_for(self, refused: Iterable[bytes]) -> bool:
        """Return whether all waiting chunks have texts in *refused*, which the model rejects."""
        known = set(refused)
        found = self._database.run(
            "SELECT DISTINCT hash FROM unembedded JOIN chunks ON id = chunk WHERE why = 'waiting' LIMIT ?",
            (len(known) + 1,),
        )
        return all(digest in known for [digest] in found)


def _is_list_of_names(stored: object) -> bool:
    try:
        names = json.loads(stored) if isinstance(stored, str) else None
    except ValueError:
        return False
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
