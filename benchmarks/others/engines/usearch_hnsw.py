"""usearch: a graph (HNSW) with the library's defaults for breadth and number type."""

from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way


class UsearchHnsw:
    """A graph, mapped from its file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "graph.usearch"
        self._index: Any = None

    def build(self, corpus: Corpus) -> None:
        """Add the rows and write the file."""
        import numpy as np
        from usearch.index import Index

        index = Index(ndim=corpus.matrix().shape[1], metric="cos")
        for start, rows in corpus.slabs():
            index.add(np.arange(start, start + len(rows)), rows)
        index.save(str(self._file))

    def open(self) -> None:
        """Map the file, as memd maps its own."""
        from usearch.index import Index

        self._index = Index.restore(str(self._file), view=True)

    def ways(self) -> dict[str, Way]:
        """By vector."""
        return {"vector": self._nearest}

    def _nearest(self, question: Question, limit: int) -> list[int]:
        return [int(key) for key in self._index.search(question.vector, limit).keys]
