"""chromadb: a local collection with a graph (HNSW), with default settings except for the metric.

Its ranked keyword and hybrid search exist only in its hosted service; here it is asked by vector only.
"""

from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way

BATCH_ROWS = 5_000  # below what its client takes at once


class Chroma:
    """One collection on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "chroma"
        self._collection: Any = None

    def build(self, corpus: Corpus) -> None:
        """Add the rows in batches."""
        collection = self._client().create_collection(
            "rows", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        for start, rows in corpus.slabs():
            for at in range(0, len(rows), BATCH_ROWS):
                part = rows[at : at + BATCH_ROWS]
                first = start + at
                collection.add(ids=[str(first + number) for number in range(len(part))], embeddings=part)

    def open(self) -> None:
        """Open the collection."""
        self._collection = self._client().get_collection("rows", embedding_function=None)

    def ways(self) -> dict[str, Way]:
        """By vector."""
        return {"vector": self._nearest}

    def _nearest(self, question: Question, limit: int) -> list[int]:
        found = self._collection.query(query_embeddings=[question.vector], n_results=limit, include=[])
        return [int(key) for key in found["ids"][0]]

    def _client(self) -> Any:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        return chromadb.PersistentClient(path=str(self._folder), settings=settings)
