"""sqlite-vec: the exact scan inside of SQLite; hybrid with FTS5 by its author's recipe.

Through apsw, a dependency of memd: Python's own sqlite3 is often built without loadable extensions.
"""

import re
from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way

RRF_K = 60  # of the recipe
POOL = 50  # candidates of each arm in the recipe's spirit; hybrid answers are not scored, only timed

HYBRID = """
WITH near AS (
    SELECT rowid, row_number() OVER (ORDER BY distance) AS place
    FROM vectors WHERE embedding MATCH ?1 AND k = ?3
), words AS (
    SELECT rowid, row_number() OVER (ORDER BY rank) AS place
    FROM texts WHERE texts MATCH ?2 ORDER BY rank LIMIT ?3
)
SELECT coalesce(near.rowid, words.rowid) FROM near FULL OUTER JOIN words ON near.rowid = words.rowid
ORDER BY coalesce(1.0 / (?4 + near.place), 0) + coalesce(1.0 / (?4 + words.place), 0) DESC LIMIT ?5
"""


class SqliteVectors:
    """One database with a vec0 table and, if there are texts, an FTS5 table."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "vectors.db"
        self._database: Any = None

    def build(self, corpus: Corpus) -> None:
        """Insert the rows, and the texts if there are any."""
        self.open()
        run = self._database.execute
        run("PRAGMA journal_mode = WAL")
        with self._database:
            if corpus.vectors:
                dim = corpus.matrix().shape[1]
                run(f"CREATE VIRTUAL TABLE vectors USING vec0(embedding float[{dim}] distance_metric=cosine)")
                for start, rows in corpus.slabs():
                    self._database.executemany(
                        "INSERT INTO vectors (rowid, embedding) VALUES (?, ?)",
                        ((start + at + 1, row.tobytes()) for at, row in enumerate(rows)),
                    )
            if corpus.texts:
                run("CREATE VIRTUAL TABLE texts USING fts5(text, content='')")
                self._database.executemany(
                    "INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(corpus.lines(), 1)
                )
        self._database.close()

    def open(self) -> None:
        """Open the database."""
        import apsw
        import sqlite_vec

        self._database = apsw.Connection(str(self._file))
        self._database.enable_load_extension(True)  # noqa: FBT003 - apsw's own signature
        self._database.load_extension(sqlite_vec.loadable_path())

    def ways(self) -> dict[str, Way]:
        """By vector, and with words."""
        return {"vector": self._nearest, "hybrid": self._hybrid}

    def _nearest(self, question: Question, limit: int) -> list[int]:
        found = self._database.execute(
            "SELECT rowid FROM vectors WHERE embedding MATCH ? AND k = ? ORDER BY distance",
            (question.vector.tobytes(), limit),
        )
        return [rowid - 1 for [rowid] in found]

    def _hybrid(self, question: Question, limit: int) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question.text))
        found = self._database.execute(HYBRID, (question.vector.tobytes(), words, POOL, RRF_K, limit))
        return [rowid - 1 for [rowid] in found]
