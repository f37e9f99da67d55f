"""The embedders of a contest: memd's queue, the bare session below it, sentence-transformers.

Each runs in a separate process (`remote`); all embed the same texts, in the given order.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.embedding import bare_run, bare_session
from benchmarks.others.engine import memory_mb

QUERY_TIMEOUT_S = 5.0  # far above what a query takes


class Embedder:
    """What the embedders have in common."""

    def documents(self, texts: Sequence[str]) -> float:
        """Embed texts; return the seconds."""
        return _seconds(lambda: self._documents(texts))

    def queries(self, texts: Sequence[str]) -> list[float]:
        """Embed texts one by one; return the seconds of each."""
        return [_seconds(partial(self._query, text)) for text in texts]

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return (n, dim) float32 rows of length 1; None where an embedder does not give them."""
        return self._documents(texts)

    def memory_mb(self) -> tuple[float, float]:
        """Return (resident, anonymous) megabytes."""
        return memory_mb()

    def _documents(self, texts: Sequence[str]) -> Any:
        raise NotImplementedError

    def _query(self, text: str) -> Any:
        return self._documents([text])


class MemdQueue(Embedder):
    """The daemon's queue with its two threads, tokenizing included."""

    def __init__(self) -> None:
        from memd.embedding.onnx import OnnxEmbedder
        from memd.embedding.queue import EmbeddingQueue

        self._queue = EmbeddingQueue(OnnxEmbedder)
        self._queue.ready()

    def _documents(self, texts: Sequence[str]) -> Any:
        import numpy as np

        return np.frombuffer(b"".join(self._queue.embed_documents(texts)), "<f4").reshape(len(texts), -1)

    def _query(self, text: str) -> Any:
        return self._queue.embed_queries([text], QUERY_TIMEOUT_S)[0]


class BareSession(Embedder):
    """onnxruntime on tensors that are ready: what tokenizing, threads and queue could cost at most."""

    def __init__(self, batch: int) -> None:
        from memd.embedding.model import TOKENIZER_FILE
        from memd.embedding.tokenizer import WordPieces

        self._batch = batch
        self._session = bare_session()
        self._tokenizer = WordPieces(TOKENIZER_FILE)

    def documents(self, texts: Sequence[str]) -> float:
        """Embed texts; what makes the tensors is not counted."""
        return _seconds(bare_run(self._session, texts, self._tokenizer, self._batch))

    def queries(self, texts: Sequence[str]) -> list[float]:
        """Embed texts one by one."""
        return [_seconds(bare_run(self._session, [text], self._tokenizer, 1)) for text in texts]

    def vectors(self, _texts: Sequence[str]) -> Any:
        """It gives none."""
        return None


class SentenceTransformers(Embedder):
    """The reference implementation on torch, as its documentation calls it."""

    def __init__(self, weights: Path) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"  # the weights are a folder; nothing is looked up
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(weights), device="cpu")

    def _documents(self, texts: Sequence[str]) -> Any:
        return self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)


def _seconds(work: Callable[[], Any]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
