"""tantivy: an inverted index with block-max pruning, its default tokenizer; any of the words may match."""

import re
from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way

HEAP_BYTES = 512 << 20  # arbitrary: shared by its threads; more makes fewer segments
THREADS = 2  # of the machine that the kept runs are of


class TantivyInverted:
    """One index on disk; the number of a line is stored with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tantivy"
        self._index: Any = None
        self._searcher: Any = None

    def build(self, corpus: Corpus) -> None:
        """Add the lines and commit once."""
        import tantivy

        self._folder.mkdir()
        fields = tantivy.SchemaBuilder()
        fields.add_text_field("text", stored=False)
        fields.add_integer_field("line", stored=True)
        index = tantivy.Index(fields.build(), path=str(self._folder))
        writer = index.writer(HEAP_BYTES, THREADS)
        for number, line in enumerate(corpus.lines()):
            writer.add_document(tantivy.Document(text=line, line=number))
        writer.commit()
        writer.wait_merging_threads()

    def open(self) -> None:
        """Open the newest commit."""
        import tantivy

        self._index = tantivy.Index.open(str(self._folder))
        self._searcher = self._index.searcher()

    def ways(self) -> dict[str, Way]:
        """By words."""
        return {"keyword": self._words}

    def _words(self, question: Question, limit: int) -> list[int]:
        from memctl.stop_words import STOP_WORDS

        words = [word for word in re.findall(r"\w+", question.text.lower()) if word not in STOP_WORDS]
        if not words:
            return []
        query = self._index.parse_query(" ".join(f'"{word}"' for word in words), ["text"])
        found = self._searcher.search(query, limit).hits
        return [self._searcher.doc(address)["line"][0] for _, address in found]
