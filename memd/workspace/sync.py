"""The sync of one workspace with its folder: hints, scans, commits, vectors; one task each.

The event loop only waits and decides what is next. Reading files, SQLite and the matrix run in the writing
thread, in slices, so that a save made during a long run is searchable after the slice at hand.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import floor
from typing import Any

import structlog

from memd.errors import IndexClosedError, NoSpaceError, StorageError
from memd.index.index import Index
from memd.records import Renewal, State, SyncState
from memd.registry import Workspace
from memd.workspace.backlog import Backlog
from memd.workspace.context import WorkspaceContext
from memd.workspace.embed_loop import EmbedLoop
from memd.workspace.index_loop import IndexLoop
from memd.workspace.maintenance import DamagedRows, Maintenance
from memd.workspace.scanner import Scanner
from memd.workspace.supervisor import RETRY_S, ReopenReason, Troubles, again_and_again
from memd.workspace.watcher import WorkspaceWatcher

HOPELESS_SCANS = 3  # failures in a row after which nobody is kept waiting
POLL_S = 0.005  # between two looks at counters while a request waits; costs microseconds
BULK_POLL_S = 0.05  # the same while thousands of files wait, and counting them takes a millisecond
# After failures in a row to embed. To look whether the model is back costs nothing: it is loaded by itself.
EMBED_RETRY_S = (1.0, 2.0, 5.0)
REPORT_EVERY_S = 0.25  # progress notifications; at least one a second is promised

log = structlog.get_logger()

Report = Callable[[dict[str, Any]], None]  # takes {"stage": "scan" | "index" | "embed", "done", "total"}


class WorkspaceSync:
    """Keeps one workspace's index true. For the event loop's thread, but for reading `known`."""

    known: SyncState  # what answers tell, from any thread; replaced by `publish`

    def __init__(self, context: WorkspaceContext) -> None:
        self.context = context
        self.last_index: float | None = None  # time.time() when everything was searchable
        self.first = True  # until everything has been searchable once
        self.first_words = True  # until the words of everything have been
        self.renewed: Renewal = ""  # why an index that is not whole is made anew
        self.is_rebuild = False  # of an index that answers meanwhile
        self._began_s = time.monotonic()
        self.reopening = False  # what follows is the next sync's: who waits goes on there
        self.troubles = Troubles(context.publish)
        self._told_state = ""
        self._most = 0  # files that waited after the last scan
        self._stop = asyncio.Event()
        self._at_once = asyncio.Event()  # what failed is tried again, without a pause
        self._tasks: list[asyncio.Task[None]] = []
        self._backlog = Backlog(self.publish)
        self.scanner = Scanner(context, self._backlog, self)
        self.index_loop = IndexLoop(context, self._backlog, self.scanner, self)
        self.vectors = EmbedLoop(context, self._backlog, self.publish)
        self.watcher = WorkspaceWatcher(context, self.scanner, self.index_loop)
        self.maintenance = Maintenance(context, self.vectors, is_idle=lambda: self.state == "ready")
        self._damaged_rows = DamagedRows(context, self.vectors)
        self.publish()

    @property
    def place(self) -> Workspace:
        """Where the files are."""
        return self.context.place

    @property
    def index(self) -> Index:
        """What is kept in step with them."""
        return self.context.index

    # What is known, at any time

    @property
    def state(self) -> State:
        """How the workspace is, by what is known and a look whether its folder is there."""
        return self.known.state_at(time.monotonic()) if self.place.is_there() else "missing"

    def publish(self) -> None:
        """Replace what answers tell by what is known now."""
        files, vectors = len(self._backlog), self.vectors
        state: State = "ready"
        if self.scanner.running:
            state = "scanning"
        elif self.scanner.last is None:
            state = "starting"
        elif self._open_words or (vectors.pending and not vectors.failing):
            state = "busy"
        self.known = SyncState(
            state=state,
            open_words=self._open_words,
            dirty_since=self._dirty_since,
            first=self.first,
            first_words=self.first_words,
            renewed=self.renewed,
            pending_files=files,
            pending_vectors=vectors.pending,
            embedded=self._embedded_share,
            words_left_s=self.index_loop.throughput.left_s(files),
            vectors_left_s=vectors.throughput.left_s(vectors.pending),
            failing=vectors.failing,
            held_until=self.context.daemon.pause.stop_s,
            not_utf8=self.scanner.not_utf8,
        )

    @property
    def progress(self) -> dict[str, Any]:
        """How far the work at hand is: {"stage": "scan" | "index" | "embed", "done", "total"}."""
        files = len(self._backlog)
        if self.scanner.last is None or (self.scanner.running and not files):
            return {"stage": "scan", "done": 0, "total": 0}
        left, most = (files, self._most) if files else (self.vectors.pending, self.vectors.total)
        total = max(left, most)
        return {"stage": "index" if files else "embed", "done": total - left, "total": total}

    @property
    def _embedded_share(self) -> float | None:
        """Which share of the chunks that are to have a vector has it; None without a model."""
        if not self.vectors.wanted:
            return None
        chunks = self.index.snapshot.columns.count - self.vectors.left_out
        # Downwards: 1 is said of a whole index alone.
        return floor(self.vector_count / chunks * 1000) / 1000 if chunks else 1.0

    @property
    def vector_count(self) -> int:
        """How many chunks the vector arm can see; 0 without a model."""
        if not self.vectors.wanted or self.vectors.building:
            return 0
        return self.index.snapshot.columns.count - self.vectors.left_out - self.vectors.pending

    @property
    def _dirty_since(self) -> float | None:
        """Since when something that was saved may not be searchable; None: nothing is known of."""
        known = (self._backlog.since, self.scanner.since)
        return min((at for at in known if at is not None), default=None)

    @property
    def _open_work(self) -> bool:
        waits_for_vectors = bool(self.vectors.pending) and not (self.vectors.failing or self.vectors.held)
        return self._open_words or waits_for_vectors

    @property
    def _open_words(self) -> bool:
        return self._dirty_since is not None or self.reopening

    # The life of it

    async def start(self) -> None:
        """Begin: what the index knows is loaded, the rest goes on in tasks."""
        self.first = self.first_words = not await self.context.write(self.index.writer.get, "complete")
        if self.first:
            self.renewed = self.context.aside.why
        else:
            await self._drop_old()
        self.index_loop.warnings = await self.context.write(self.index.writer.warnings)
        await self.vectors.count()
        await self.maintenance.count()
        if self.place.is_there():
            self.scanner.rules = await self.context.write(self.context.load_rules)
        loops = [self.watcher.run, self.scanner.run, self.index_loop.run]
        loops += [self.index_loop.run_large, self.maintenance.run, self._damaged_rows.run]
        pauses_s: dict[Callable[[], Awaitable[None]], Sequence[float]] = dict.fromkeys(loops, RETRY_S)
        if self.vectors.wanted:
            pauses_s[self._keep_embedding] = EMBED_RETRY_S
        self._tasks = [
            asyncio.create_task(
                again_and_again(
                    loop, stop=self._stop, at_once=self._at_once, note=self._note, pauses_s=pauses
                )
            )
            for loop, pauses in pauses_s.items()
        ]
        self.context.daemon.pause.followers.add(self.publish)
        self.publish()

    async def stop(self) -> None:
        """End all tasks; who waits for something hears IndexClosedError."""
        self._stop.set()
        self.context.daemon.pause.followers.discard(self.publish)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.context.write(self.context.indexer.in_hand.clear_all)

    def rescan(self) -> None:
        """Ask for a scan of the whole folder, now."""
        self.scanner.ask(urgent=True)

    # Waiting for it

    async def synced(self, timeout_s: float) -> bool:
        """Wait until what was saved before the call is searchable by its words; False if it is not yet."""
        try:
            async with asyncio.timeout(timeout_s):
                self._try_again()
                self.rescan()  # events are hints: some never come, and nothing tells
                reached = time.monotonic()
                while (since := self._dirty_since) is not None and since <= reached:
                    if self.state == "missing":
                        return False
                    await self._wait(BULK_POLL_S if self._backlog.is_bulk else POLL_S)
                return self.state != "missing"
        except (TimeoutError, StorageError, NoSpaceError):  # it is not there yet, and status says why
            return False

    async def caught_up(self, report: Report | None = None, *, vectors: bool = True) -> None:
        """Wait until nothing is open, or nothing but *vectors*; *report* hears of it as it goes.

        Raises:
            IndexClosedError: the workspace is being reopened or removed.
            StorageError, NoSpaceError: its folder cannot be looked through, its index cannot be written.
        """
        self._try_again()
        while (
            (self._open_work if vectors else self._open_words)
            or self.scanner.running
            or self.scanner.last is None
        ):
            if self.state == "missing":
                return
            if report is not None:
                report(self.progress)
            await self._wait(REPORT_EVERY_S if report is not None else POLL_S)
        if vectors and self.vectors.fault is not None:
            raise self.vectors.fault

    async def scanned(self) -> None:
        """Wait until the folder has been looked through once. Raises as `caught_up` does."""
        while self.scanner.last is None and self.state != "missing":
            await self._wait(POLL_S)

    async def embedded(self, *, timeout_s: float) -> None:
        """Wait until every chunk has its vector, for so long at most, and not while none will get one."""
        stop = time.monotonic() + timeout_s
        vectors = self.vectors
        while vectors.pending and not (vectors.failing or vectors.held) and time.monotonic() < stop:
            await self._wait(POLL_S)

    def _try_again(self) -> None:
        """Have what failed tried at once: what was in its way may be mended."""
        if self.index_loop.fault is not None or self.vectors.fault is not None:
            self.index_loop.fault = None
            self.vectors.forgive()
            self._at_once.set()
            self._at_once.clear()  # who waits has been woken

    async def _wait(self, pause_s: float) -> None:
        if self._stop.is_set():
            raise IndexClosedError(f"the workspace {self.place.root} is being reopened: ask again")
        if self.index_loop.fault is not None:
            raise self.index_loop.fault
        if self.scanner.failures >= HOPELESS_SCANS:
            raise StorageError(f"{self.place.root} cannot be looked through: {self.troubles.newest[-1]}")
        await asyncio.sleep(pause_s)

    # The tasks

    def note_outdated(self) -> None:
        """Have the configuration read, once."""
        if not self.reopening:
            self.reopening = True
            self.publish()
            self.context.reopen(ReopenReason.CONFIG)

    def note_hinted(self) -> None:
        """Tell that there is work: who is told "ready" afterwards asks again then."""
        self._tell_state()

    def note_scanned(self) -> None:
        """Have what was found indexed."""
        self._most = max(self._most, len(self._backlog))  # another look is no new beginning
        self.index_loop.wake()
        self._tell_state()

    async def note_committed(self, saved: list[str]) -> None:
        """Have what is new embedded, *saved* first."""
        await self.maintenance.count()
        await self.vectors.count()
        self.vectors.wake(saved)
        self._tell_state()

    async def note_emptied(self) -> None:
        """Take note that no file waits any more."""
        self._most = 0
        if not self._open_words and not self.scanner.running and self.scanner.last is not None:
            self.first_words = False
            self.publish()
            # Now, and not when the first word comes that no chunk has: it would go uncorrected.
            await asyncio.to_thread(self.index.read_vocabulary)
        await self._note_if_complete()

    async def _keep_embedding(self) -> None:
        await self.vectors.run(self._note_if_complete)

    async def _note_if_complete(self) -> None:
        if self._open_work or self.scanner.running or self.scanner.last is None or self.vectors.pending:
            return
        self.last_index = time.time()
        self.troubles.clear()
        self._tell_state()
        if self.first:
            log.info(
                "index_complete",
                made="rebuild" if self.is_rebuild else self.renewed or "first",
                sources=len(self.index.snapshot.sources),
                chunks=self.index.snapshot.columns.count,
                vectors=self.vector_count,
                took_s=round(time.monotonic() - self._began_s, 1),
            )
            self.first, self.renewed = False, ""
            self.publish()
            await self.context.write(self.index.note_complete)
            await self._drop_old()

    async def _drop_old(self) -> None:
        """Delete what another release left: its words are indexed, its vectors taken over."""
        self.vectors.old = None
        if old := self.context.aside.old:
            with suppress(StorageError):  # `status` names it
                await self.context.daemon.threads.apart(self.context.aside.delete, old)

    def _note(self, error: Exception) -> None:
        reason = self.troubles.note(error, device_failed=self.index.failed is not None)
        if reason is not None:
            self.context.reopen(reason)

    def _tell_state(self) -> None:
        if self._told_state != (state := self.state):
            self._told_state = state
            self.context.publish({"event": "state", "state": state})
