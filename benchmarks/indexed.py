"""A benchmark's index, built in this process as a daemon would build it, and kept for later runs."""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from memd.api.search import excludes_in
from memd.config import WorkspaceConfig
from memd.embedding.onnx import OnnxEmbedder
from memd.errors import SchemaError
from memd.index.index import DATABASE, Index
from memd.index.indexer import Indexer
from memd.index.old_vectors import OldVectors, adopt
from memd.index.snapshot import View
from memd.records import ChunkLimits, Mode
from memd.search.identifiers import spelled
from memd.search.query import parse
from memd.search.score import PreparedQuery
from memd.search.search import Answer, search
from memd.search.spelling import corrected, spelling
from memd.search.word_forms import with_forms
from memd.text import readable_part

TODAY = date(2026, 1, 1)  # arbitrary: benchmarks have no dated notes
FILES_AT_ONCE = 200  # in a commit
TEXTS_AT_ONCE = 64
THREADS = 2  # of one run of the model each
BUDGET_S = 600.0  # of a commit; far above what one takes


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index, and the model that its vectors are of."""

    index: Index
    embedder: OnnxEmbedder
    vectors: dict[str, bytes]  # text → its vector

    def ask(self, text: str, *, correct: bool = True, **changes: Any) -> Answer:
        """Answer as a daemon would, with the default configuration except for the *changes* of the request.

        *correct*: apply spelling corrections.
        """
        config = WorkspaceConfig()
        with self.index.view() as view:
            query = parse(text, TODAY, excludes_in(view))
        vector = None if changes.get("mode") == "keyword" else self._vector(query.text, changes.get("mode"))
        scripts = None if changes.get("mode") == "vector" else self.embedder.scripts
        reading, unread = readable_part(query.text, scripts)
        fields: dict[str, Any] = {
            "query": query,
            "query_vec": vector,
            "off": "" if vector else "mode" if changes.get("mode") == "keyword" else "script",
            "is_floor_named": "min_score" in changes,
            "languages": config.languages,
            "model_id": self.embedder.model_id,
            "mode": "hybrid",
            "fusion": config.fusion,
            "weights": config.weights,
            "half_life_days": config.half_life_days,
            "decay_floor": config.decay_floor,
            "min_score": config.min_score,
            "limit": config.max_results,
            "today": TODAY,
            "alive": lambda _path: True,
            "expired": lambda: False,
            "spelled": spelled(reading, self.embedder.tokenizer),
            "unread": unread,
        }
        request = PreparedQuery(**fields | changes)
        with self.index.view() as view:
            return search(view, self._respelled(view, request) if correct else request)

    def _respelled(self, view: View, request: PreparedQuery) -> PreparedQuery:
        view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
        found = spelling(view, request.query, self.embedder.tokenizer, request.expired)
        query, _ = with_forms(view, corrected(request.query, found.corrected), WorkspaceConfig().languages)
        if not query.corrected:
            return replace(request, query=query)
        vector = None if request.query_vec is None else self._vector(query.text, request.mode)
        return replace(request, query=query, corrected_vec=vector)

    def _vector(self, text: str, mode: Mode | None) -> bytes | None:
        text, _ = readable_part(text, None if mode == "vector" else self.embedder.scripts)
        if not text.strip():
            return None
        if text not in self.vectors:
            self.vectors[text] = self.embedder.embed_queries([text])[0]
        return self.vectors[text]


@contextmanager
def indexed(
    notes: Path, name: str, kept: Path | None, *, embed: bool, model: Path | None = None
) -> Iterator[Indexed]:
    """Yield the index of a folder of notes.

    Args:
        notes: the folder; not needed if the index was kept.
        name: of the index.
        kept: the folder for kept indexes, whose vectors serve each other; None: a temporary index.
        embed: whether to compute vectors.
        model: the folder of another model than the shipped one.
    """
    with ExitStack() as opened:
        folder = kept / name if kept else Path(opened.enter_context(tempfile.TemporaryDirectory())) / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            index = Index(folder)
        except SchemaError:  # kept by another version: its vectors are taken over
            folder.rename(folder.with_name(f"{name}-{time.time_ns()}"))
            folder.mkdir(mode=0o700)
            index = Index(folder)
        opened.enter_context(closing(index))
        embedder = OnnxEmbedder(model)
        limits = ChunkLimits(200, 50, embedder.max_tokens)  # as WorkspaceConfig has them
        indexer = Indexer(index, notes, tokenizer=embedder.tokenizer, limits=limits)
        cut_by = index.writer.get("chunker")
        indexer.begin()
        index.begin_model(embedder.model_id, embedder.dim, embedder.scripts, embedder.cosines)
        if index.writer.get("chunker") != cut_by:  # new, or kept by a version that cuts otherwise
            _index(indexer, notes, name)
        if embed and kept and index.unembedded_count():
            others = (path for path in kept.iterdir() if path != folder and (path / DATABASE).exists())
            old = OldVectors(others, DATABASE, model_id=embedder.model_id, dim=embedder.dim)
            while adopt(index, old, model_id=embedder.model_id):
                pass
        if embed:
            _embed(index, indexer, embedder, name)
        yield Indexed(index, embedder, {})


def _index(indexer: Indexer, notes: Path, name: str) -> None:
    paths = sorted(path.relative_to(notes).as_posix() for path in notes.rglob("*.md"))
    for start in range(0, len(paths), FILES_AT_ONCE):
        indexer.apply(paths[start : start + FILES_AT_ONCE], budget_s=BUDGET_S)
        _tell(f"{name}: {start:,} of {len(paths):,} files")


def _embed(index: Index, indexer: Indexer, embedder: OnnxEmbedder, name: str) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        while batch := index.pending(TEXTS_AT_ONCE):
            vectors: Sequence[bytes] = list(
                pool.map(lambda text: embedder.embed_documents([text])[0], batch.values())
            )
            indexer.embed(dict(zip(batch, vectors, strict=True)), model_id=embedder.model_id)
            _tell(f"{name}: {index.unembedded_count():,} chunks without a vector")


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}   ")
