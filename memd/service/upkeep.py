"""How does one index keep up with its folder? Hints, scans, commits, then vectors; one task each.

The loop only waits and decides what is next. Reading files, SQLite and the matrix run in the writing
thread, in slices, so that a save made during a long run is searchable after the slice at hand.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import structlog

from memd.embedding.queue import EmbeddingQueue
from memd.errors import IndexClosedError, IndexDamagedError, StorageError
from memd.index.index import Index
from memd.index.indexer import Compared, Indexer, Progress
from memd.service.backlog import Backlog
from memd.service.events import Meaning, below, meaning
from memd.service.retry import again_and_again
from memd.service.vectorizing import Vectorizing, Write
from memd.sources.scan import Rules
from memd.sources.watch import watch
from memd.workspace import is_folder

log = structlog.get_logger()

SLICE_PATHS = 256  # taken at once; the indexer stops earlier, when its time is up
SETTLE_S = 0.2  # until a file that was still being written is looked at again
RESCAN_S = 600.0  # the watcher is a hint; this often the folder itself is asked
MISSING_POLL_S = 2.0  # how soon a folder that comes back is noticed
HOPELESS_SCANS = 3  # failures in a row after which nobody is kept waiting
POLL_S = 0.005  # between two looks at counters while a request waits; costs microseconds
REPORT_EVERY_S = 0.25  # progress notifications; at least one a second is promised
KEPT_ERRORS = 10  # shown by status


class Reason(Enum):
    """Why a workspace must be opened again."""

    CONFIG = 0  # its configuration was saved, or is there again
    DAMAGED = 1  # its index cannot be read: it is set aside first


Report = Callable[[dict[str, Any]], None]  # takes {"stage": "scan" | "index" | "embed", "done", "total"}


class Upkeep:
    """Keeps one workspace's index true. All methods are for the event loop's thread."""

    def __init__(
        self,
        root: Path,
        index: Index,
        indexer: Indexer,
        *,
        load_rules: Callable[[], Rules],
        config_is_current: Callable[[], bool],
        embedding: EmbeddingQueue | None,
        write: Write,
        reopen: Callable[[Reason], None],
    ) -> None:
        self.root = root
        self.index = index
        self.vectors = Vectorizing(index, indexer, embedding, write=write)
        self.skipped: dict[str, str] = {}
        self.found_sources = 0  # by the last scan
        self.trouble = ""  # why the watcher stands still; "" while it works
        self.errors: list[str] = []  # the newest last
        self.last_scan: float | None = None  # time.time()
        self.last_index: float | None = None  # time.time() when everything was searchable
        self.first = True  # until everything has been searchable once
        self._indexer = indexer
        self._load_rules = load_rules
        self._config_is_current = config_is_current
        self._write = write
        self._reopen = reopen
        self._backlog = Backlog()
        self._most = 0  # files that waited after the last scan
        self._scanning = False
        self._scan_wanted = asyncio.Event()
        self._failed_scans = 0  # in a row
        self._reopening = False  # what follows is the next upkeep's: who waits goes on there
        self._work = asyncio.Event()
        self._stop = asyncio.Event()
        self._rules: Rules | None = None  # before the first scan
        self._tasks: list[asyncio.Task[None]] = []

    # What is known, at any time

    @property
    def state(self) -> str:
        """One of starting, scanning, busy, ready, missing."""
        if not is_folder(self.root):
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
            "pending": len(self._backlog) + self.vectors.pending,
            "pending_files": len(self._backlog),
            "pending_vectors": self.vectors.pending,
            "generation": self.index.snapshot.generation,
            "lag_ms": 0 if since is None else round((time.monotonic() - since) * 1000),
        }

    @property
    def vector_count(self) -> int:
        """How many chunks the vector arm can see; 0 without a model."""
        return self.index.snapshot.columns.count - self.vectors.pending if self.vectors.wanted else 0

    @property
    def _open_work(self) -> bool:
        waits_for_vectors = bool(self.vectors.pending) and not self.vectors.failing
        return bool(self._backlog or waits_for_vectors or self._scan_wanted.is_set() or self._reopening)

    # The life of it

    async def start(self) -> None:
        """Begin: what the index knows is loaded, the rest goes on in tasks."""
        self.first = not await self._write(self.index.writer.get, "complete")
        await self.vectors.count()
        loops = [self._watch_folder, self._keep_scanning, self._keep_indexing]
        if self.vectors.wanted:
            loops.append(self._keep_embedding)
        self._tasks = [
            asyncio.create_task(again_and_again(loop, stop=self._stop, note=self._note)) for loop in loops
        ]

    async def stop(self) -> None:
        """End all tasks; who waits for something hears IndexClosedError."""
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
        """Wait until nothing is open; *report* hears of it as it goes.

        Raises:
            IndexClosedError: the workspace is being reopened or removed.
            StorageError: its folder cannot be looked through.
        """
        while self._open_work or self._scanning or self.last_scan is None:
            if self.state == "missing":
                return
            if report is not None:
                report(self._progress())
            await self._wait(REPORT_EVERY_S if report is not None else POLL_S)

    async def scanned(self) -> None:
        """Wait until the folder has been looked through once. Raises as `caught_up` does."""
        while self.last_scan is None and self.state != "missing":
            await self._wait(POLL_S)

    async def embedded(self, *, timeout_s: float) -> None:
        """Wait until every chunk has its vector, for so long at most, and not while the model fails."""
        stop = time.monotonic() + timeout_s
        while self.vectors.pending and not self.vectors.failing and time.monotonic() < stop:
            await self._wait(POLL_S)

    async def _wait(self, pause_s: float) -> None:
        if self._stop.is_set():
            raise IndexClosedError(f"the workspace {self.root} is being reopened: ask again")
        if self._failed_scans >= HOPELESS_SCANS:
            raise StorageError(f"{self.root} cannot be looked through: {self.errors[-1]}")
        await asyncio.sleep(pause_s)

    def _progress(self) -> dict[str, Any]:
        if self._scanning or self.last_scan is None:
            return {"stage": "scan", "done": 0, "total": 0}
        files = len(self._backlog)
        left, most = (files, self._most) if files else (self.vectors.pending, self.vectors.total)
        total = max(left, most)
        return {"stage": "index" if files else "embed", "done": total - left, "total": total}

    # The tasks

    async def _watch_folder(self) -> None:
        async for dirty in watch(self.root, stop=self._stop):
            self.trouble = dirty.trouble
            if dirty.rescan:
                self.rescan()
            if self._rules is not None:
                self._take_events(dirty.paths, self._rules)

    def _take_events(self, paths: Iterable[str], rules: Rules) -> None:
        known = functools.cache(self.index.snapshot.folders)
        meant = [(meaning(path, self.root, rules, lambda folder: folder in known()), path) for path in paths]
        if any(what is Meaning.SCAN for what, _ in meant):
            self.rescan()
        self.hint(below(self.root, path) for what, path in meant if what is Meaning.SOURCE)

    async def _keep_scanning(self) -> None:
        while True:
            pause_s = RESCAN_S if is_folder(self.root) else MISSING_POLL_S
            with suppress(TimeoutError):
                # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the event.
                async with asyncio.timeout(pause_s):
                    await self._scan_wanted.wait()
            await self._scan()

    async def _scan(self) -> None:
        self._scan_wanted.clear()
        if not is_folder(self.root):
            return
        if not self._config_is_current():
            self._reopening = True
            self._reopen(Reason.CONFIG)
            await self._stop.wait()
        self._scanning = True
        try:
            self._rules = await self._write(self._load_rules)
            compared: Compared = await self._write(self._indexer.compare, self._rules)
        except BaseException:
            self._failed_scans += 1
            self._scan_wanted.set()  # nothing was compared: the next try must not wait for the timer
            raise
        finally:
            self._scanning = False
        self._failed_scans = 0
        self._backlog.found(compared.differing, time.monotonic())
        self._most = len(self._backlog)
        self.found_sources = compared.sources
        kept = {path: reason for path, reason in self.skipped.items() if path in self._backlog}
        self.skipped = kept | {one.path: one.reason for one in compared.skipped}
        self.last_scan = time.time()
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
            await self.vectors.count()
            self.vectors.wake()

    async def _keep_embedding(self) -> None:
        await self.vectors.run(self._note_if_complete)

    async def _note_if_complete(self) -> None:
        if self._open_work or self._scanning or self.last_scan is None or self.vectors.pending:
            return
        self.last_index = time.time()
        self.errors = []  # whatever it was, it is mended
        if self.first:
            self.first = False
            await self._write(self.index.note_complete)

    def _note(self, error: Exception) -> None:
        """Keep an error for `status`; log it once and not at each try."""
        if isinstance(error, IndexDamagedError):
            self._reopen(Reason.DAMAGED)
        text = f"{type(error).__name__}: {error}"
        if self.errors[-1:] != [text]:
            self.errors = [*self.errors, text][-KEPT_ERRORS:]
            log.warning("upkeep_retries", error=type(error).__name__, code=getattr(error, "code", None))
