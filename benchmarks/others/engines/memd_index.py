"""memd's own index and search, in a process like those of the other engines.

"vector", "keyword" and "hybrid" are the whole search: filters, both arms for hybrid, fusion with the evidence
of each chunk's source, snippets of the hits. "… arm" is equivalent to the other engines: only the ids of the
nearest or best.
"""

import random
from collections.abc import Iterator
from datetime import date
from itertools import islice
from pathlib import Path

from benchmarks.made_index import CHUNKS_A_SOURCE, source_of
from benchmarks.made_notes import SEED, word
from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import Way
from memd.config import Weights
from memd.index.columns import mask_of
from memd.index.index import Index
from memd.records import Mode
from memd.search.keyword import keyword_arm
from memd.search.query import parse
from memd.search.score import PreparedQuery
from memd.search.search import search
from memd.search.vector import vector_arm

MODEL_ID = "benchmark"
TODAY = date(2026, 5, 2)
SOURCES_A_COMMIT = 400
ROWS_A_COMMIT = 5_000
BUDGET_S = 1.0  # of a step of what is derived
SHORT_WORDS = 12
SHORT_VOCABULARY = 20_000


class MemdIndex:
    """One index, as a daemon has it open."""

    def __init__(self, folder: Path) -> None:
        self._folder = (folder / "index").resolve()  # it knows the name of its folder
        self._index: Index | None = None

    def build(self, corpus: Corpus) -> None:
        """Put the texts, or short ones where only vectors are compared, then the vectors."""
        index = Index(self._folder)
        try:
            _put_texts(index, corpus)
            if corpus.vectors:
                _put_vectors(index, corpus)
            _derived(index)
            index.writer.checkpoint()
        finally:
            index.close()

    def open(self) -> None:
        """Open the index, with everything that a daemon reads or derives soon after its start."""
        self._index = Index(self._folder)
        _derived(self._index)

    def ways(self) -> dict[str, Way]:
        """Each arm alone, and the whole search in each mode."""
        return {
            "vector arm": self._nearest,
            "vector": lambda question, limit: self._whole("vector", question, limit),
            "keyword arm": self._words,
            "keyword": lambda question, limit: self._whole("keyword", question, limit),
            "hybrid": lambda question, limit: self._whole("hybrid", question, limit),
        }

    def _whole(self, mode: Mode, question: Question, limit: int) -> list[int]:
        assert self._index
        with self._index.view() as view:
            answer = search(view, _request(mode, question, limit))
        return [hit.candidate.id - 1 for hit in answer.hits]

    def _nearest(self, question: Question, limit: int) -> list[int]:
        assert self._index
        with self._index.view() as view:
            mask = mask_of(view.snapshot.columns, None)
            arm = vector_arm(view, question.vector.tobytes(), MODEL_ID, mask)
        assert arm
        return (arm.pool[:limit] - 1).tolist()

    def _words(self, question: Question, limit: int) -> list[int]:
        assert self._index
        with self._index.view() as view:
            arm = keyword_arm(view, parse(question.text), mask_of(view.snapshot.columns, None))
        return (arm.pool[:limit] - 1).tolist()


def _request(mode: Mode, question: Question, limit: int) -> PreparedQuery:
    return PreparedQuery(
        query=parse(question.text),
        query_vec=None if question.vector is None else question.vector.tobytes(),
        model_id=MODEL_ID,
        mode=mode,
        fusion="weighted",
        weights=Weights(),
        half_life_days=30.0,
        decay_floor=0.5,
        min_score=0.0,
        limit=limit,
        today=TODAY,
        alive=lambda _: True,
        expired=lambda: False,
    )


def _put_texts(index: Index, corpus: Corpus) -> None:
    """Fill the tables; ids of chunks are the line numbers, from 1. Existing content is kept."""
    if index.snapshot.columns.count >= corpus.count:
        return
    lines = corpus.lines() if corpus.texts else _short_texts(corpus.count)
    parts = iter(lambda: tuple(islice(lines, CHUNKS_A_SOURCE)), ())
    sources = (source_of(number, texts) for number, texts in enumerate(parts))
    while batch := list(islice(sources, SOURCES_A_COMMIT)):
        with index.changes() as changes:
            for source in batch:
                changes.put(source)


def _short_texts(count: int) -> Iterator[str]:
    """Yield texts where only vectors are compared: each another one, or it would share its vector."""
    chance = random.Random(SEED)
    known = [word(number) for number in range(SHORT_VOCABULARY)]
    return (f"row {number} {' '.join(chance.choices(known, k=SHORT_WORDS))}" for number in range(count))


def _put_vectors(index: Index, corpus: Corpus) -> None:
    """Give chunk i + 1 row i of the matrix, unless the rows exist."""
    if index.snapshot.model_id == MODEL_ID:
        return
    matrix = corpus.matrix()
    index.begin_model(MODEL_ID, matrix.shape[1])
    with index.view_apart() as view:
        places = list(view.reader.each("SELECT id, hash FROM chunks WHERE id <= ?", (corpus.count,)))
    for start in range(0, len(places), ROWS_A_COMMIT):
        rows = {digest: matrix[number - 1].tobytes() for number, digest in places[start:][:ROWS_A_COMMIT]}
        with index.changes() as changes:
            changes.embed(rows, model_id=MODEL_ID)


def _derived(index: Index) -> None:
    """Make and read what a daemon makes while it is idle."""
    if index.postings.is_due(is_busy=False):
        made = index.postings.begin()
        while not made.is_done:
            index.postings.put(made, made.step(BUDGET_S))
    if index.codes.is_due(is_busy=False):
        building = index.codes.begin()
        while not building.step(BUDGET_S):
            pass
        index.codes.adopt(building)
    if index.codes.current is not None:
        index.codes.use(index.codes.current, index.codes.current.read())
