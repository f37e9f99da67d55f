"""faiss, IndexFlatIP: the exact scan of a library that is made for it."""

from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way


class FaissFlat:
    """All rows in memory; inner product, which is the cosine of unit vectors."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "flat.faiss"
        self._index: Any = None

    def build(self, corpus: Corpus) -> None:
        """Add the rows and write the file."""
        import faiss

        index = faiss.IndexFlatIP(corpus.matrix().shape[1])
        for _, rows in corpus.slabs():
            index.add(rows)
        faiss.write_index(index, str(self._file))

    def open(self) -> None:
        """Read the file."""
        import faiss

        self._index = faiss.read_index(str(self._file))

    def ways(self) -> dict[str, Way]:
        """By vector."""
        return {"vector": self._nearest}

    def _nearest(self, question: Question, limit: int) -> list[int]:
        _, rows = self._index.search(question.vector[None, :], limit)
        return [int(row) for row in rows[0]]
