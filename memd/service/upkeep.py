"""How does one index keep up with its folder? Hints, scans, commits, then vectors; one task each.

The loop only waits and decides what is next. Reading files, SQLite and the matrix run in the writing
thread, in slices, so that a save made during a long run is searchable after the slice at hand.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from memd.embedding.queue import EmbeddingQueue
from memd.errors import MemdError
from memd.index.index import Index
from memd.index.indexer import Compared, Indexer, Progress
from memd.service.backlog import Backlog
from memd.service.events import Meaning, below, meaning
from memd.sources.scan import Rules
from memd.sources.watch import watch

log = structlog.get_logger()

SLICE_PATHS = 256  # taken from a queue at once; the indexer stops earlier, when its time is up
EMBED_BATCH = 32  # texts between two commits: about 0.4 s of the shipped model on two cores
SETTLE_S = 0.2  # until a file that was still being written is looked at again
RESCAN_S = 600.0  # the watcher is a hint; this often the folder itself is asked
MISSING_POLL_S = 2.0  # how soon a folder that comes back is noticed
POLL_S = 0.005  # between two looks at counters while a request waits; costs microseconds
KEPT_ERRORS = 10  # shown by status
RETRY_S = (1.0, 2.0, 5.0, 15.0, 60.0)  # after failures in a row; the last one repeats
REPORT_EVERY_S = 0.25  # progress notifications; at least one a second is promised

Write = Callable[..., Awaitable[Any]]


Report = Callable[[dict[str, Any]], None]


class Upkeep:
    """Keeps one workspace's index true. All methods are for the event loop's thread."""

    def __init__(
        self,
        root: Path,
        index: Index,
        indexer: Indexer,
        *,
        load_rules: Callable[[], Rules],
        embedding: EmbeddingQueue | None,
        write: Write,
        config_changed: Callable[[], None],
    ) -> None:
        self.root = root
        self.index = index
        self.skipped: dict[str, str] = {}
        self.found_sources = 0  # by the last scan
        self.trouble = ""  # why the watcher stands still; "" while it works
        self.errors: list[str] = []  # the newest last, at most 10
        self.last_scan: float | None = None  # time.time()
        self.last_index: float | None = None  # time.time() when everything was searchable
        self.first = True  # until everything has been searchable once
        self.pending_vectors = 0
        self._indexer = indexer
        self._load_rules = load_rules
        self._embedding = embedding
        self._write = write
        self._config_changed = config_changed
        self._backlog = Backlog()
        self._scanning = False
        self._scan_wanted = asyncio.Event()
        self._scanned = asyncio.Event()
        self._work = asyncio.Event()
        self._embed_work = asyncio.Event()
        self._stop = asyncio.Event()
        self._totals = {"index": 0, "embed": 0}
        self._vectors_failing = False
        self._rules = load_rules()
        self._tasks: list[asyncio.Task[None]] = []

    # What is known, at any time

    @property
    def state(self) -> str:
        """One of starting, scanning, busy, ready, missing."""
        if not self.root.is_dir():
            return "missing"
        if self.last_scan is None:
            return "scanning" if self._scanning else "starting"
        return "scanning" if self._scanning else "busy" if self._open_work else "ready"

    @property
    def facts(self) -> dict[str, Any]:
        """The ``index`` object of every answer."""
        since = self._backlog.since
        return {
            "state": self.state,
            "first": self.first,
            "pending": len(self._backlog) + self.pending_vectors,
            "pending_files": len(self._backlog),
            "pending_vectors": self.pending_vectors,
            "generation": self.index.snapshot.generation,
            "lag_ms": 0 if since is None else round((time.monotonic() - since) * 1000),
        }

    @property
    def vectors(self) -> int:
        """How many chunks the vector arm can see; 0 without a model."""
        return 0 if self._embedding is None else self.index.snapshot.columns.count - self.pending_vectors

    @property
    def _open_work(self) -> bool:
        waits_for_vectors = bool(self.pending_vectors) and not self._vectors_failing
        return bool(self._backlog or waits_for_vectors or self._scan_wanted.is_set())

    # The life of it

    async def start(self) -> None:
        """Begin: what the index knows is loaded, the rest goes on in tasks."""
        self.first = not await self._write(self.index.writer.get, "complete")
        await self._count_pending()
        loops = [self._watch_folder, self._keep_scanning, self._keep_indexing]
        if self._embedding is not None:
            loops.append(self._keep_embedding)
        self._tasks = [asyncio.create_task(self._again_and_again(loop)) for loop in loops]

    async def stop(self) -> None:
        """End all tasks; a slice in the writing thread is waited for by its caller's executor."""
        self._stop.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hint(self, paths: Iterable[str]) -> None:
        """Take paths, relative to the root, that may have changed."""
        self._backlog.hint(paths, time.monotonic())
        if self._backlog:
            self._work.set()

    def rescan(self) -> None:
        """Ask for a scan of the whole folder."""
        self._scan_wanted.set()

    async def index_now(self, path: str) -> None:
        """Index one file before anything else; returns when its words are searchable."""
        done: Progress = await self._write(self._indexer.apply, [path])
        await self._record(done)

    async def caught_up(self, report: Report | None = None) -> None:
        """Wait until nothing is open; *report* hears of it as it goes."""
        while self._open_work or self._scanning or self.last_scan is None:
            if self.state == "missing":
                return
            if report is not None:
                report(self._progress())
            await asyncio.sleep(REPORT_EVERY_S if report is not None else POLL_S)

    async def scanned(self) -> None:
        """Wait until the folder has been looked through once."""
        await self._scanned.wait()

    async def embedded(self, *, timeout_s: float) -> bool:
        """Wait until every chunk has its vector; False where that takes longer, or the model fails."""
        stop = time.monotonic() + timeout_s
        while self.pending_vectors and not self._vectors_failing and self._embedding is not None:
            if time.monotonic() > stop:
                return False
            await asyncio.sleep(POLL_S)
        return not self.pending_vectors

    def _progress(self) -> dict[str, Any]:
        if self._scanning or self.last_scan is None:
            return {"stage": "scan", "done": 0, "total": 0}
        stage = "index" if len(self._backlog) else "embed"
        left = len(self._backlog) if stage == "index" else self.pending_vectors
        total = max(self._totals[stage], left)
        return {"stage": stage, "done": total - left, "total": total}

    # The tasks

    async def _again_and_again(self, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop; what it raises is noted, and it starts again, later each time it fails soon."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await loop()
            except (MemdError, OSError) as error:
                self._note(error)
            except Exception as error:
                log.exception("upkeep_failed", task=loop.__name__)
                self._note(error)
            failures = 0 if time.monotonic() - began > RETRY_S[-1] else failures + 1
            await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S)) - 1])

    async def _watch_folder(self) -> None:
        async for dirty in watch(self.root, stop=self._stop):
            self.trouble = dirty.trouble
            if dirty.rescan:
                self.rescan()
            self._take_events(dirty.paths)

    def _take_events(self, paths: Iterable[str]) -> None:
        known = self.index.snapshot
        meant = [(meaning(path, self.root, self._rules, known.has_below), path) for path in paths]
        if any(what is Meaning.CONFIG for what, _ in meant):
            self._config_changed()
        if any(what is Meaning.SCAN for what, _ in meant):
            self.rescan()
        self.hint(below(self.root, path) for what, path in meant if what is Meaning.SOURCE)

    async def _keep_scanning(self) -> None:
        while True:
            pause_s = RESCAN_S if self.root.is_dir() else MISSING_POLL_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._scan_wanted.wait(), pause_s)
            await self._scan()

    async def _scan(self) -> None:
        if not self.root.is_dir():
            self._scan_wanted.clear()
            return
        self._scanning = True
        self._scan_wanted.clear()
        try:
            self._rules = self._load_rules()
            compared: Compared = await self._write(self._indexer.compare, self._rules)
        except BaseException:
            self._scan_wanted.set()  # nothing was compared: the next try must not wait for the timer
            raise
        finally:
            self._scanning = False
        self._backlog.found(compared.differing, time.monotonic())
        self.found_sources = compared.sources
        kept = {path: reason for path, reason in self.skipped.items() if path in self._backlog}
        self.skipped = kept | {one.path: one.reason for one in compared.skipped}
        self._totals["index"] = len(self._backlog)
        self.last_scan = time.time()
        self._scanned.set()
        self._work.set()

    async def _keep_indexing(self) -> None:
        while True:
            self._work.clear()
            paths = self._backlog.take(SLICE_PATHS)
            if not paths:
                await self._note_if_complete()
                await self._work.wait()
                continue
            handled = 0
            try:
                done: Progress = await self._write(self._indexer.apply, paths)
                await self._record(done)
                handled = done.handled
            finally:
                self._backlog.done(handled)

    async def _record(self, done: Progress) -> None:
        for path in [*done.indexed, *done.removed]:
            self.skipped.pop(path, None)
        for one in done.skipped:
            self.skipped[one.path] = one.reason
        if done.unsettled:
            asyncio.get_running_loop().call_later(SETTLE_S, self.hint, done.unsettled)
        if done.indexed or done.removed:
            await self._count_pending()
            self._totals["embed"] = max(self._totals["embed"], self.pending_vectors)
            self._embed_work.set()

    async def _keep_embedding(self) -> None:
        try:
            await self._embed_what_waits()
        except Exception:
            self._vectors_failing = True  # who waits for vectors must not wait for ever
            raise

    async def _embed_what_waits(self) -> None:
        assert self._embedding is not None
        embedder = await asyncio.to_thread(self._embedding.ready)
        await self._write(self.index.begin_model, embedder.model_id, embedder.dim)
        await self._count_pending()
        while True:
            self._embed_work.clear()  # before the look: what comes during it is seen by the next one
            batch: dict[bytes, str] = await self._write(self.index.pending, EMBED_BATCH)
            if not batch:
                await self._count_pending()
                self._totals["embed"] = self.pending_vectors
                await self._note_if_complete()
                await self._embed_work.wait()
                continue
            vectors = await asyncio.to_thread(self._embed, list(batch.values()), embedder.model_id)
            await self._write(self._store, dict(zip(batch, vectors, strict=True)), embedder.model_id)
            self._vectors_failing = False
            await self._count_pending()

    async def _count_pending(self) -> None:
        # Without a model nothing waits for a vector, and nobody may wait for one.
        if self._embedding is not None:
            self.pending_vectors = await self._write(self.index.pending_count)

    async def _note_if_complete(self) -> None:
        if self._open_work or self._scanning or self.last_scan is None or self.pending_vectors:
            return
        self.last_index = time.time()
        if self.first:
            self.first = False
            await self._write(self.index.note_complete)

    # In other threads

    def _embed(self, texts: list[str], model_id: str) -> list[bytes]:
        assert self._embedding is not None
        return self._embedding.embed_documents(texts, model_id=model_id)

    def _store(self, vectors: dict[bytes, bytes], model_id: str) -> None:
        self._indexer.embed(vectors, model_id=model_id)

    def _note(self, error: Exception) -> None:
        """Keep an error for `status`; log it once and not at each try."""
        text = f"{type(error).__name__}: {error}"
        if self.errors[-1:] != [text]:
            self.errors = [*self.errors, text][-KEPT_ERRORS:]
            log.warning("upkeep_retries", error=type(error).__name__, code=getattr(error, "code", None))
