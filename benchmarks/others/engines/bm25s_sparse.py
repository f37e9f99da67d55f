"""bm25s: a sparse matrix of scores made ahead, summed up for a query's words; memd's stop words, no stems."""

from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way

# memd leaves out a question's function words; with its list both rank by the same words.
K1, B = 1.2, 0.75  # Lucene's, as memd and tantivy have them


class Bm25sSparse:
    """The matrix of scores, mapped from its files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "bm25s"
        self._index: Any = None
        self._count = 0

    def build(self, corpus: Corpus) -> None:
        """Tokenize, score, write."""
        import bm25s

        index = bm25s.BM25(k1=K1, b=B)
        index.index(_tokens(list(corpus.lines())), show_progress=False)
        index.save(self._folder, show_progress=False)

    def open(self) -> None:
        """Map the files."""
        import bm25s

        self._index = bm25s.BM25.load(self._folder, mmap=True, show_progress=False)
        self._count = self._index.scores["num_docs"]

    def ways(self) -> dict[str, Way]:
        """By words."""
        return {"keyword": self._words}

    def _words(self, question: Question, limit: int) -> list[int]:
        tokens = _tokens([question.text], ids=False)
        rows, scores = self._index.retrieve(tokens, k=min(limit, self._count), show_progress=False)
        return [int(row) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]


def _tokens(texts: list[str], *, ids: bool = True) -> Any:
    import bm25s

    from memctl.stop_words import STOP_WORDS

    return bm25s.tokenize(
        texts, token_pattern=r"(?u)\w+", stopwords=sorted(STOP_WORDS), return_ids=ids, show_progress=False
    )
