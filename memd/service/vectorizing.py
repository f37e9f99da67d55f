"""How does the vector arm follow? What has no vector yet is embedded, newest first, in small commits."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from memd.embedding import Embedder
from memd.embedding.queue import EmbeddingQueue
from memd.errors import EmbedderError
from memd.index.index import Index
from memd.index.indexer import Indexer

log = structlog.get_logger()

EMBED_BATCH = 32  # texts between two commits: about 0.4 s of the shipped model on two cores
LOADING_POLL_S = 0.05  # how soon a model that has loaded is noticed

Write = Callable[..., Awaitable[Any]]  # runs work in the writing thread


class Vectorizing:
    """Keeps the vectors of one workspace true to its chunks. For the event loop's thread."""

    def __init__(
        self, index: Index, indexer: Indexer, embedding: EmbeddingQueue | None, *, write: Write
    ) -> None:
        self.pending = 0  # chunks without a vector; 0 without a model: then none waits for one
        self.total = 0  # the most there were since the last time there were none
        self.failing = False  # who waits for vectors must not wait for ever
        self._index = index
        self._indexer = indexer
        self._embedding = embedding
        self._write = write
        self._work = asyncio.Event()
        self._refused: set[bytes] = set()  # texts that the model does not take, until the next start

    @property
    def wanted(self) -> bool:
        """Whether there is a model at all."""
        return self._embedding is not None

    async def count(self) -> None:
        """Look how many chunks wait."""
        if self._embedding is not None:
            self.pending = await self._write(self._index.pending_count) - len(self._refused)
            self.total = max(self.total, self.pending)

    def wake(self) -> None:
        """Say that there are new chunks."""
        self._work.set()

    async def run(self, note_complete: Callable[[], Awaitable[None]]) -> None:
        """Embed what waits, for ever. Raises what the model raises; call it again later."""
        try:
            embedder = await self._loaded()
            await self._write(self._index.begin_model, embedder.model_id, embedder.dim)
            while True:
                self._work.clear()  # before the look: what comes during it is seen by the next one
                if await self._embed_some(embedder):
                    continue
                self.total = self.pending
                await note_complete()
                await self._work.wait()
        except Exception:
            self.failing = True
            raise

    async def _loaded(self) -> Embedder:
        assert self._embedding is not None
        while self._embedding.state == "loading":  # noqa: ASYNC110 - it is loaded by a thread that knows no loop
            await asyncio.sleep(LOADING_POLL_S)
        return self._embedding.embedder()

    async def _embed_some(self, embedder: Embedder) -> bool:
        limit = EMBED_BATCH + len(self._refused)
        found: dict[bytes, str] = await self._write(self._index.pending, limit)
        if len(found) < limit:  # all that waits: a refused text whose note is gone waits no more
            self._refused &= found.keys()
        batch = {digest: text for digest, text in found.items() if digest not in self._refused}
        vectors = await self._vectors(batch, embedder.model_id)
        if vectors:
            await self._write(lambda: self._indexer.embed(vectors, model_id=embedder.model_id))
            self.failing = False
        await self.count()
        return bool(batch)

    async def _vectors(self, batch: dict[bytes, str], model_id: str) -> dict[bytes, bytes]:
        assert self._embedding is not None
        try:
            found = await self._embedded(list(batch.values()), model_id)
            return dict(zip(batch, found, strict=True))
        except EmbedderError:
            if self._embedding.state != "ready":
                raise
        # The model lives, so one of the texts is at fault: it alone goes without a vector.
        vectors = {}
        for digest, text in batch.items():
            try:
                [vectors[digest]] = await self._embedded([text], model_id)
            except EmbedderError:
                if self._embedding.state != "ready":
                    raise
                self._refused.add(digest)
                log.warning("text_refused_by_model", refused=len(self._refused))
        return vectors

    async def _embedded(self, texts: list[str], model_id: str) -> list[bytes]:
        assert self._embedding is not None
        pieces = self._embedding.submit_documents(texts, model_id=model_id)
        try:
            done = await asyncio.gather(*(asyncio.wrap_future(piece) for piece in pieces))
        finally:
            for piece in pieces:  # after a failure nobody waits for the rest
                piece.cancel()
        return [vector for piece in done for vector in piece]
