"""The embed loop: computes vectors for chunks without one, newest first, in small commits.

If sidecars are in use, vectors of other machines are taken from them first, and new vectors are written to
them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from memd.embedding import Embedder
from memd.embedding.queue import PROBE
from memd.errors import DiskError, EmbedderError, MemdError, ModelMismatchError, NoSpaceError, StorageError
from memd.index import old_vectors
from memd.index.index import DATABASE
from memd.index.old_vectors import OldVectors
from memd.index.sidecars import (
    Exportable,
    SidecarFolder,
    adoptable,
    export_sidecars,
    exportable,
    needed_keys,
    waiting_sources,
)
from memd.index.writer import COMPLETE
from memd.workspace.backlog import Backlog, Count, Throughput
from memd.workspace.context import WorkspaceContext
from memd.workspace.set_aside import set_aside

log = structlog.get_logger()

# Texts per commit: about 0.2 s of the shipped model on two cores. Two batches are in progress: the model
# computes the next one while the last one is committed.
EMBED_BATCH = 16
FIRST_BATCH = 4  # one piece of work for one thread: the chunks of a note
LOADING_POLL_S = 0.05  # how soon a loaded model is noticed
MODEL_POLL_S = 5.0  # how soon a changed model is noticed while there is nothing to embed
# While many files wait to be indexed, embedding pauses: on two busy cores it would double their delay.
BULK_POLL_S = 0.1
SIDECARS_AT_ONCE = 32  # adopted in one commit: some 50 ms
MAX_FIRST = 256  # saved paths whose chunks take precedence over a long run


@dataclass(frozen=True, slots=True)
class _TextBatch:
    """Texts that the model is embedding."""

    texts: dict[bytes, str]  # by hash
    vectors: asyncio.Task[dict[bytes, bytes]]  # without those that it rejected


class EmbedLoop:
    """Keeps the vectors of one workspace in step with its chunks. For the event loop's thread."""

    def __init__(self, context: WorkspaceContext, backlog: Backlog) -> None:
        self.pending = 0  # chunks that wait for a vector; 0 without a model
        self.unreadable = 0  # chunks without a vector: in a script that the model does not read
        self.beyond = 0  # chunks without a vector: after the first ones of a long source
        self.count_up = Count()  # of vectors, since everything was complete
        self.fault: MemdError | None = None  # why vectors cannot be stored
        self.failing = False  # a caller that waits for vectors must not wait forever
        self.throughput = Throughput()  # in chunks
        self.sidecars = context.sidecars
        self.old: OldVectors | None = None  # of the indexes that were set aside, until this one is complete
        self._context = context
        self._index = context.index
        self._embedding = context.embedding
        self.wanted = context.embedding is not None  # whether there is a model at all
        self._backlog = backlog
        self._pause = context.daemon.pause
        self._first: set[str] = set()  # paths saved a moment ago
        self._tried: set[str] = set()  # sources without a usable sidecar, which are not tried again
        self._is_late = False  # the disk with the sidecars did not answer in time
        self._kept: set[bytes] = set()  # sources with a usable sidecar, by the hash of their bytes
        # What is about to be exported may be purged: the removal of its sidecar must come after.
        self._exporting = asyncio.Lock()
        self._work = asyncio.Event()
        self._refused: set[bytes] = set()  # texts that the model rejected, until the next start
        self._next: _TextBatch | None = None  # started while the previous one was in progress

    @property
    def left_out(self) -> int:
        """The number of chunks that get no vector."""
        return self.unreadable + self.beyond

    @property
    def held(self) -> bool:
        """Whether chunks wait for vectors because embedding is paused."""
        return self.pending > 0 and self._pause.left_s > 0

    async def count(self) -> None:
        """Count the chunks that wait, and those that get no vector."""
        if self._embedding is not None:
            waiting, self.unreadable, self.beyond = await self._context.write(self._counts)
            self.pending = waiting - len(self._refused)
            self.count_up.note(self.pending)

    def expect(self, chunks: int) -> None:
        """Assume that about this many chunks will wait in a moment; `count` then corrects the number."""
        if self.wanted:
            self.pending += chunks

    def wake(self, first: Iterable[str] = ()) -> None:
        """Signal new chunks; those of the *first* paths were saved a moment ago."""
        self._first |= set(first)
        if len(self._first) > MAX_FIRST:
            self._first.clear()
        self._work.set()

    def forgive(self) -> None:
        """Clear the failure, after a success or before another attempt."""
        self.failing = False
        self.fault = None

    @property
    def building(self) -> dict[str, Any] | None:
        """The progress of another model's vectors, which are computed next to the old ones."""
        if not self.wanted or not self._index.building:
            return None
        total = self._index.snapshot.columns.count - self.left_out
        return {"model_id": self._index.building, "done": max(total - self.pending, 0), "total": total}

    async def run(self, note_complete: Callable[[], Awaitable[None]]) -> None:
        """Embed what waits, for ever. Raises the model's errors; call it again later."""
        try:
            assert self._embedding is not None
            while self._embedding.state == "loading":  # noqa: ASYNC110 - a thread without a loop loads it
                await asyncio.sleep(LOADING_POLL_S)
            embedder = self._embedding.embedder()
            await self._context.write(self._begin, embedder)
            await self.count()  # needed by `building`
            await self._measure(embedder)
            while True:
                self._work.clear()  # cleared first: chunks that arrive from now on are seen next time
                if self._backlog.is_bulk and not self._first:
                    await asyncio.sleep(BULK_POLL_S)
                    continue
                if self.held and self._next is None:  # the batch in progress is committed first
                    await self._pause.over()
                    continue
                if await self._embed_some(embedder):
                    continue
                if self.held:
                    continue
                await self._finish(embedder)
                await note_complete()
                await self._wait_for_work(embedder)
        except Exception as error:
            self.failing = True
            self.fault = error if isinstance(error, NoSpaceError | StorageError) else None
            raise
        finally:
            if self._next is not None:
                self._next.vectors.cancel()
                self._next = None

    async def _wait_for_work(self, embedder: Embedder) -> None:
        """Wait for new chunks, or for another model: a restarted server may have one.

        Raises:
            ModelMismatchError: the model has changed.
        """
        assert self._embedding is not None
        while not self._work.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(MODEL_POLL_S):
                    await self._work.wait()
            now = self._embedding.embedder_or_none()
            if now is not None and (now.model_id, now.dim) != (embedder.model_id, embedder.dim):
                raise ModelMismatchError(f"the model is now {now.model_id!r}, not {embedder.model_id!r}")

    def _counts(self) -> tuple[int, int, int]:
        index = self._index
        return (index.unembedded_count(), index.unembedded_count("script"), index.unembedded_count("long"))

    def _begin(self, embedder: Embedder) -> None:
        self._index.begin_model(embedder.model_id, embedder.dim, embedder.scripts, embedder.cosines)
        is_first = not self._index.writer.get(COMPLETE)
        if is_first and (old := set_aside(self._context.place.index_dir)):
            self.old = OldVectors(old, DATABASE, model_id=embedder.model_id, dim=embedder.dim)

    async def _measure(self, embedder: Embedder) -> None:
        """Measure the cosines of a model that does not state them, once."""
        assert self._embedding is not None
        model_id = embedder.model_id
        known = await self._context.write(self._index.matrices.cosines_of, model_id)
        if known.is_measured:
            return
        try:
            found = await asyncio.wrap_future(self._embedding.measure())
        except EmbedderError:  # it is tried again when the loop starts again; notes need not wait
            log.warning("model_not_measured")
            return
        await self._context.write(self._index.learn_cosines, model_id, found)

    async def _adopt_old(self, embedder: Embedder) -> bool:
        """Take vectors from indexes that were set aside; return False if all chunks were looked up there."""
        old = self.old
        if old is None:
            return False
        examined: bool = await self._context.write(
            lambda: old_vectors.adopt(self._index, old, model_id=embedder.model_id)
        )
        await self.count()
        return examined

    async def _adopt_sidecars(self, embedder: Embedder, waiting: list[list[tuple[bytes, bool]]]) -> bool:
        """Take vectors of the *waiting* sources from sidecars; return False if there are none.

        A slow disk is waited for; of one that did not answer in time nothing is expected until it is quick.
        """
        sidecars = self.sidecars
        if sidecars is None or (self._is_late and self._context.disk.seen.is_slow):
            return False
        try:
            adopted, vectors = await self._context.disk.run(
                lambda: adoptable(
                    sidecars, waiting, model_id=embedder.model_id, dim=embedder.dim,
                    tried=self._tried, limit=SIDECARS_AT_ONCE,
                )
            )  # fmt: skip
        except DiskError:
            self._is_late = True
            return False
        if not adopted:
            return False
        await self._context.write(lambda: self._context.indexer.embed(vectors, model_id=embedder.model_id))
        await self.count()
        return True

    async def _finish(self, embedder: Embedder) -> None:
        """Switch to a model whose vectors are complete now; write new vectors to sidecars."""
        refused = frozenset(self._refused)
        if self._index.building and await self._context.write(self._index.finish_building, refused):
            log.info("model_switched")
        if self.sidecars is not None and not self._index.building:
            with suppress(DiskError):  # later: the next vectors are left with these
                await self._export(self.sidecars, embedder)

    async def prune(self, now_s: float) -> None:
        """Remove sidecars that no source has needed for a day at *now_s*.

        Raises:
            DiskError: the disk does not answer.
        """
        embedder = self._embedding.embedder_or_none() if self._embedding is not None else None
        sidecars = self.sidecars
        if embedder is None or sidecars is None:
            return
        model: dict[str, Any] = {"model_id": embedder.model_id, "dim": embedder.dim}
        async with self._exporting:
            needed = await self._context.write(lambda: needed_keys(self._index, **model))
            if needed is not None:
                await self._context.disk.run(lambda: sidecars.prune(needed, now_s=now_s, **model))

    async def _export(self, sidecars: SidecarFolder, embedder: Embedder) -> None:
        model: dict[str, Any] = {"model_id": embedder.model_id, "dim": embedder.dim}

        def leave(sources: list[Exportable]) -> int:
            return export_sidecars(sidecars, sources, done=self._kept, **model)

        settled = 1
        while settled:
            async with self._exporting:
                sources = await self._context.write(lambda: exportable(self._index, done=self._kept, **model))
                settled = len(sources)
                while sources and settled:
                    settled = await self._context.disk.run(leave, sources)
                    sources = sources[settled:]

    async def _embed_some(self, embedder: Embedder) -> bool:
        """Commit one batch of vectors while the model computes the next one; return False if none is left."""
        began, before = time.monotonic(), self.pending
        at_hand, self._next = self._next or await self._begun(embedder, ()), None
        if at_hand is None:
            return False
        try:
            self._next = await self._begun(embedder, at_hand.texts.keys())
            vectors = await at_hand.vectors
        finally:
            at_hand.vectors.cancel()
        if vectors:
            await self._context.write(
                lambda: self._context.indexer.embed(vectors, model_id=embedder.model_id)
            )
            self.forgive()
        await self.count()
        if vectors:
            self.throughput.note(max(before - self.pending, 0), time.monotonic() - began)
            self._context.publish(
                {"event": "embedded", "count": len(vectors), "pending_vectors": self.pending}
            )
        return True

    async def _begun(self, embedder: Embedder, under_way: Collection[bytes]) -> _TextBatch | None:
        """Start embedding the next texts except *under_way*; None if there are none, or during a pause."""
        if self._pause.left_s:
            return None
        # During a long run, only chunks that were just saved are embedded, in small batches.
        limit = FIRST_BATCH if self._backlog.is_bulk else EMBED_BATCH
        limit += len(self._refused) + len(under_way)
        first, self._first = self._first, set()
        while True:
            found, waiting = await self._context.write(self._read_next, limit, first)
            if len(found) < limit:  # these are all: rejected texts of deleted notes no longer matter
                self._refused &= found.keys()
            texts = {
                digest: text
                for digest, text in found.items()
                if digest not in self._refused and digest not in under_way
            }
            if not texts:
                return None
            # Vectors that need no model come first, those of notes indexed a moment ago, too.
            if not (await self._adopt_old(embedder) or await self._adopt_sidecars(embedder, waiting)):
                break
        vectors = asyncio.create_task(self._vectors(texts, embedder.model_id))
        # After a failure, the next one is not awaited: its error counts as seen.
        vectors.add_done_callback(lambda task: task.cancelled() or task.exception())
        return _TextBatch(texts, vectors)

    def _read_next(
        self, limit: int, first: Collection[str]
    ) -> tuple[dict[bytes, str], list[list[tuple[bytes, bool]]]]:
        """Return the next texts, and their sources, which may have sidecars."""
        with_sidecars = self.sidecars is not None
        waiting = waiting_sources(self._index, SIDECARS_AT_ONCE) if with_sidecars else []
        return self._index.pending(limit, first), waiting

    async def _vectors(self, batch: dict[bytes, str], model_id: str) -> dict[bytes, bytes]:
        assert self._embedding is not None
        try:
            found = await self._embedded(list(batch.values()), model_id)
            return dict(zip(batch, found, strict=True))
        except ModelMismatchError:  # no text is at fault: start again with the new model
            raise
        except EmbedderError:
            # If it rejects every text, no text is at fault.
            await self._embedded([PROBE], model_id)
        # The model works, so one of the texts is at fault: only that one remains without a vector.
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
            for piece in pieces:  # after a failure the rest is not needed
                piece.cancel()
        return [vector for piece in done for vector in piece]
