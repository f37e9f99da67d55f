"""lancedb: its exact scan, its index with partitions (IVF_PQ, refined), its words, both fused by RRF."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way

REFINE = 10  # candidates a wanted row that are scored exactly; without it the codes' recall is poor
INDEXED_WITHIN = timedelta(minutes=15)  # arbitrary
COLUMN = "vector"


class Lance:
    """One table on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lance"
        self._table: Any = None

    def build(self, corpus: Corpus) -> None:
        """Write the table, then its indexes."""
        import lancedb

        table = lancedb.connect(self._folder).create_table("rows", data=_batches(corpus), mode="overwrite")
        if corpus.vectors:
            table.create_index(metric="cosine", vector_column_name=COLUMN)
        if corpus.texts:
            table.create_fts_index("text", use_tantivy=False)
        names = [index.name for index in table.list_indices()]
        table.wait_for_index(names, timeout=INDEXED_WITHIN)

    def open(self) -> None:
        """Open the table."""
        import lancedb

        self._table = lancedb.connect(self._folder).open_table("rows")

    def ways(self) -> dict[str, Way]:
        """By vector with and without its index, by words, by both."""
        return {
            "vector": self._indexed,
            "vector flat": self._flat,
            "keyword": self._words,
            "hybrid": self._hybrid,
        }

    def _indexed(self, question: Question, limit: int) -> list[int]:
        return _ids(self._near(question).refine_factor(REFINE), limit, "_distance")

    def _flat(self, question: Question, limit: int) -> list[int]:
        return _ids(self._near(question).bypass_vector_index(), limit, "_distance")

    def _words(self, question: Question, limit: int) -> list[int]:
        return _ids(self._table.search(question.text, query_type="fts"), limit, "_score")

    def _hybrid(self, question: Question, limit: int) -> list[int]:
        asked = self._table.search(query_type="hybrid").vector(question.vector).text(question.text)
        return _ids(asked.distance_type("cosine"), limit)

    def _near(self, question: Question) -> Any:
        return self._table.search(question.vector, vector_column_name=COLUMN).distance_type("cosine")


def _ids(asked: Any, limit: int, *scores: str) -> list[int]:
    """Return the hits; names the scores, because it warns with every search otherwise."""
    found: list[int] = asked.limit(limit).select(["id", *scores]).to_arrow()["id"].to_pylist()
    return found


def _batches(corpus: Corpus) -> Any:
    """Return the rows as Arrow batches, read while they are written."""
    import numpy as np
    import pyarrow as pa

    fields = [pa.field("id", pa.int64())]
    if corpus.vectors:
        fields.append(pa.field(COLUMN, pa.list_(pa.float32(), corpus.matrix().shape[1])))
    if corpus.texts:
        fields.append(pa.field("text", pa.string()))
    schema = pa.schema(fields)

    def batches() -> Any:
        lines = corpus.lines() if corpus.texts else None
        slabs = corpus.slabs() if corpus.vectors else _counted(corpus.count)
        for start, rows in slabs:
            columns = [pa.array(np.arange(start, start + len(rows)))]
            if corpus.vectors:
                columns.append(pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1]))
            if lines is not None:
                columns.append(pa.array([next(lines) for _ in rows]))
            yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _counted(count: int) -> Any:
    step = 20_000  # rows a batch, as vectors come
    return ((start, range(start, min(start + step, count))) for start in range(0, count, step))
