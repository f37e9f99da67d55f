"""numpy: `matrix @ query` with nothing around it; the floor of every exact scan, and the truth."""

from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way


class NumpyExact:
    """A matrix in memory."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "matrix.npy"
        self._matrix: Any = None

    def build(self, corpus: Corpus) -> None:
        """Write the rows in one piece."""
        import numpy as np

        np.save(self._file, corpus.matrix())

    def open(self) -> None:
        """Map the rows."""
        import numpy as np

        self._matrix = np.load(self._file, mmap_mode="r").view(np.ndarray)

    def ways(self) -> dict[str, Way]:
        """By vector."""
        return {"vector": self._nearest}

    def _nearest(self, question: Question, limit: int) -> list[int]:
        import numpy as np

        scores = self._matrix @ question.vector
        best = np.argpartition(scores, -limit)[-limit:]
        return [int(row) for row in best[np.argsort(-scores[best])]]
