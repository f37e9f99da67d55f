"""The sync of one workspace with its folder, in one task each for events, scans, indexing and embedding.

The event loop only waits and decides on the next step. File reads, SQLite and the matrix run in the writer
thread, in slices, so that a note saved during a long run is searchable after the current slice.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from math import floor
from typing import Any

import structlog

from memd.errors import (
    DeadlineError,
    IndexClosedError,
    IndexDamagedError,
    MemdError,
    NoSpaceError,
    StorageError,
)
from memd.index.writer import COMPLETE
from memd.records import Freshness, IndexState, LeftSeconds, Renewal, State
from memd.workspace.backlog import Backlog, Count
from memd.workspace.context import ReopenReason, WorkspaceContext
from memd.workspace.embed_loop import EmbedLoop
from memd.workspace.index_loop import IndexLoop
from memd.workspace.maintenance import Maintenance
from memd.workspace.scanner import Scanner
from memd.workspace.set_aside import delete_aside, why_renewed
from memd.workspace.watcher import WorkspaceWatcher

HOPELESS_SCANS = 3  # consecutive failures after which callers no longer wait
POLL_S = 0.005  # between two checks of counters while a request waits; costs microseconds
BULK_POLL_S = 0.05  # the same while thousands of files wait, which take a millisecond to count
RETRY_S = (1.0, 2.0, 5.0, 15.0, 60.0)  # after consecutive failures; the last one repeats
# The same of embedding. Checking for the model is cheap: it is loaded separately.
EMBED_RETRY_S = (1.0, 2.0, 5.0)
STALLED_S = 60.0  # open work without any progress for so long: something hangs, and nobody should wait for it
LOOK_S = 5.0  # between two looks at the progress
LOOKED_S = 0.2  # between two looks at the root while a request waits
TROUBLES = 10  # shown by `status`
REPORT_EVERY_S = 0.25  # of progress notifications; at least one a second is promised

log = structlog.get_logger()

Report = Callable[[dict[str, Any]], None]  # takes {"stage": "scan" | "index" | "embed", "done", "total"}


class WorkspaceSync:
    """Keeps one workspace's index up to date. For the event loop's thread."""

    def __init__(self, context: WorkspaceContext) -> None:
        self.context, self.place, self.index = context, context.place, context.index
        self.last_index: float | None = None  # time.time() when everything was last searchable
        self.first = True  # until everything has been searchable once
        self.first_words = True  # until the words of everything have been searchable once
        self.renewed: Renewal = ""  # why an incomplete index is being rebuilt
        self.is_rebuild = False  # of an index next to the one that answers meanwhile
        self._began_s = time.monotonic()
        self.troubles: list[str] = []  # its errors until they are resolved, the most recent one last
        self._told_state = ""
        self._files = Count()  # since everything was complete
        self._progressed_s = time.monotonic()  # when there was progress last
        self._seen: tuple[object, ...] = ()  # the counters by which it was seen
        self._stop = asyncio.Event()
        self._at_once = asyncio.Event()  # failed work is retried without a delay
        self._tasks: list[asyncio.Task[None]] = []
        self._backlog = Backlog()
        self.scanner = Scanner(context, self._backlog, self)
        self.index_loop = IndexLoop(context, self._backlog, self.scanner, self)
        self.vectors = EmbedLoop(context, self._backlog)
        self.watcher = WorkspaceWatcher(context, self.scanner, self.index_loop)
        self.maintenance = Maintenance(context, self.vectors, is_idle=lambda: self.state == "ready")

    # The current state

    @property
    def state(self) -> State:
        """The state of the workspace, including a check whether its folder exists."""
        if not self.place.is_there():
            return "missing"
        if self.scanner.running:
            return "scanning"
        if self.scanner.last is None:
            return "starting"
        return "busy" if self._open_work else "ready"

    @property
    def known(self) -> Freshness:
        """The state that an answer reports: made when one is asked for, which costs some microseconds."""
        files, vectors, since = len(self._backlog), self.vectors, self._dirty_since
        return Freshness(
            index=IndexState(
                state=self.state,
                first=self.first,
                renewed=self.renewed,
                first_words=self.first_words,
                pending=files + vectors.pending,
                pending_files=files,
                pending_vectors=vectors.pending,
                generation=self.index.snapshot.generation,
                lag_ms=0 if since is None else round((time.monotonic() - since) * 1000),
                embedded=self._embedded_share,
                left_s=LeftSeconds(
                    words=self.index_loop.throughput.left_s(files),
                    vectors=vectors.throughput.left_s(vectors.pending),
                ),
            ),
            failing=vectors.failing,
            held=vectors.held,
            not_utf8=self.scanner.not_utf8,
        )

    @property
    def progress(self) -> dict[str, Any]:
        """The progress of the current work: {"stage": "scan" | "index" | "embed", "done", "total"}."""
        files = len(self._backlog)
        if self.scanner.last is None or (self.scanner.running and not files):
            return {"stage": "scan", "done": 0, "total": 0}
        count, left = (self._files, files) if files else (self.vectors.count_up, self.vectors.pending)
        total = count.note(left)
        return {"stage": "index" if files else "embed", "done": count.done, "total": total}

    @property
    def stalled(self) -> str:
        """What the work has hung on for a minute; "" while there is progress, or no work."""
        still_s = time.monotonic() - self._progressed_s
        if (
            still_s < STALLED_S
            or not (self._open_work or self.scanner.last is None)
            or self.state == "missing"
        ):
            return ""
        files = len(self._backlog)
        stage = "index" if files else "embed" if self.vectors.pending else "scan"
        what = {
            "scan": f"the scan of {self.place.root}",
            "index": f"indexing of {next(iter(self._backlog.in_hand), 'a file')} ({files:,} files wait)",
            "embed": f"embedding ({self.vectors.pending:,} vectors wait)",
        }[stage]
        return f"no progress for {still_s:.0f} s with {what}" + (
            "" if not self.first else ", in the first index"
        )

    async def _look_at_progress(self) -> None:
        """Note when something was done last, for ever."""
        while True:
            seen: tuple[object, ...] = (
                self.index.snapshot.generation, self.scanner.slices, self.scanner.last, len(self._backlog),
                self.vectors.pending, self.index_loop.steps, self._open_work,
                self.context.daemon.process.ticks,  # a long note, which may be that of another workspace
            )  # fmt: skip
            if seen != self._seen:
                self._progressed_s, self._seen = time.monotonic(), seen
            await asyncio.sleep(LOOK_S)

    @property
    def _embedded_share(self) -> float | None:
        """The share of the chunks to embed that have a vector; None without a model."""
        if not self.vectors.wanted:
            return None
        chunks = self.index.snapshot.columns.count - self.vectors.left_out
        # Rounded down: 1 means a complete index.
        return floor(self.vector_count / chunks * 1000) / 1000 if chunks else 1.0

    @property
    def vector_count(self) -> int:
        """The number of chunks that the vector arm can see; 0 without a model."""
        if not self.vectors.wanted or self.vectors.building:
            return 0
        # What agents see of a chunk with a secret may wait, too.
        return max(self.index.snapshot.columns.count - self.vectors.left_out - self.vectors.pending, 0)

    @property
    def _dirty_since(self) -> float | None:
        """Since when saved changes may not be searchable; None if none are known."""
        known = (self._backlog.since, self.scanner.since)
        return min((at for at in known if at is not None), default=None)

    @property
    def _open_work(self) -> bool:
        waits_for_vectors = bool(self.vectors.pending) and not (self.vectors.failing or self.vectors.held)
        return self._open_words or waits_for_vectors

    @property
    def _open_words(self) -> bool:
        return self._dirty_since is not None or self.scanner.is_outdated

    # Start and stop

    async def start(self) -> None:
        """Load the state of the index, and start the tasks."""
        self.first = self.first_words = not await self.context.write(self.index.writer.get, COMPLETE)
        if self.first:
            self.renewed = await self.context.write(why_renewed, self.place.index_dir)
        else:
            await self._drop_old()
        self.index_loop.warnings = await self.context.write(self.index.writer.warnings)
        await self.vectors.count()
        await self.maintenance.count()
        if self.place.is_there():
            self.scanner.rules = await self.context.disk.run(self.context.load_rules)
        loops = [self.watcher.run, self.scanner.run, self.index_loop.run]
        loops += [self.index_loop.run_large, self.maintenance.run, self.maintenance.keep_erasing]
        loops += [self.maintenance.scrub, self._look_at_progress]
        pauses_s: dict[Callable[[], Awaitable[None]], Sequence[float]] = dict.fromkeys(loops, RETRY_S)
        if self.vectors.wanted:
            pauses_s[partial(self.vectors.run, self._note_if_complete)] = EMBED_RETRY_S
        self._tasks = [
            asyncio.create_task(
                again_and_again(
                    loop, stop=self._stop, at_once=self._at_once, note=self._note, pauses_s=pauses
                )
            )
            for loop, pauses in pauses_s.items()
        ]

    async def stop(self) -> None:
        """End all tasks; waiting callers get IndexClosedError."""
        self._stop.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.context.write(self.context.indexer.in_hand.clear_all)

    def rescan(self) -> None:
        """Request a scan of the whole folder, now."""
        self.scanner.ask(urgent=True)

    # Waiting

    async def synced(self, timeout_s: float, report: Report | None = None) -> bool:
        """Wait until what was saved before the call is searchable by words; return False on a timeout.

        *report* gets the progress.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._try_again()
                self.rescan()  # events are hints: some are lost without notice
                reached = told = time.monotonic()
                while (since := self._dirty_since) is not None and since <= reached:
                    if self.state == "missing":
                        return False
                    if report is not None and time.monotonic() >= told + REPORT_EVERY_S:
                        report(self.progress)
                        told = time.monotonic()
                    await self._wait(BULK_POLL_S if self._backlog.is_bulk else POLL_S)
                return self.state != "missing"
        except (TimeoutError, StorageError, NoSpaceError):  # not searchable yet; status reports why
            return False

    async def caught_up(self, report: Report | None = None, *, vectors: bool = True) -> None:
        """Wait until all work is done, or all except *vectors*; *report* gets the progress.

        Raises:
            IndexClosedError: the workspace is being reopened or removed.
            DeadlineError: there has been no progress for a minute.
            StorageError, NoSpaceError: its folder cannot be scanned, or its index cannot be written.
        """
        await self._try_again()
        while (
            (self._open_work if vectors else self._open_words)
            or self.scanner.running
            or self.scanner.last is None
        ):
            if self.state == "missing":
                return
            if stalled := self.stalled:
                raise DeadlineError(f"{stalled}: memctl status")
            if report is not None:
                report(self.progress)
            await self._wait(REPORT_EVERY_S if report is not None else POLL_S)
        if vectors and self.vectors.fault is not None:
            raise self.vectors.fault

    async def scanned(self) -> None:
        """Wait until the folder has been scanned once. Raises as `caught_up` does."""
        while self.scanner.last is None and self.state != "missing":
            await self._wait(POLL_S)

    async def embedded(self, *, timeout_s: float) -> None:
        """Wait until every chunk has its vector, at most *timeout_s*, and not while embedding fails."""
        stop = time.monotonic() + timeout_s
        vectors = self.vectors
        while vectors.pending and not (vectors.failing or vectors.held) and time.monotonic() < stop:
            await self._wait(POLL_S)

    async def _try_again(self) -> None:
        """Look for the root, and retry failed work, at once: a disk may be back, a cause may be gone."""
        await self.context.disk.look()
        if self.index_loop.fault is not None or self.vectors.fault is not None:
            self.index_loop.fault = None
            self.vectors.forgive()
            self._at_once.set()
            self._at_once.clear()  # the waiting tasks have been woken

    async def _wait(self, pause_s: float) -> None:
        await self.context.disk.look(fresh_s=LOOKED_S)
        if self._stop.is_set():
            raise IndexClosedError(f"the workspace {self.place.root} is being reopened: ask again")
        if self.index_loop.fault is not None:
            raise self.index_loop.fault
        if self.scanner.failures >= HOPELESS_SCANS:
            raise StorageError(f"{self.place.root} cannot be scanned: {self.troubles[-1]}")
        await asyncio.sleep(pause_s)

    # Tasks

    def note_hinted(self) -> None:
        """Report work at once: a caller that sees "ready" afterwards can rely on it."""
        self._tell_state()

    def note_scanned(self) -> None:
        """Start indexing what the scan found."""
        self._files.note(len(self._backlog))  # a further scan does not restart the progress
        self.index_loop.wake()
        self._tell_state()

    async def note_committed(self, saved: list[str]) -> None:
        """Start embedding the new chunks, those of *saved* first."""
        self._files.note(len(self._backlog))
        await self.maintenance.count()
        await self.vectors.count()
        self.vectors.wake(saved)
        self._tell_state()

    async def note_emptied(self) -> None:
        """Update the state after the last waiting file."""
        if not self._open_words and not self.scanner.running and self.scanner.last is not None:
            self.first_words = False
            # Now rather than at the first unknown word, which would remain uncorrected.
            await asyncio.to_thread(self.index.read_vocabulary)
        await self._note_if_complete()

    async def _note_if_complete(self) -> None:
        if self._open_work or self.scanner.running or self.scanner.last is None or self.vectors.pending:
            return
        self.last_index = time.time()
        self._files, self.vectors.count_up = Count(), Count()
        self.troubles = []
        self._tell_state()
        if self.first:
            self.end_first()
            await self.context.write(self.index.writer.store, COMPLETE, 1)
            await self._drop_old()

    def end_first(self) -> None:
        """Log that everything is searchable for the first time; do nothing at later calls."""
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

    async def _drop_old(self) -> None:
        """Delete the index of another release, after its vectors were taken over."""
        self.vectors.old = None
        with suppress(StorageError):  # `status` reports it
            await self.context.daemon.threads.apart(delete_aside, self.place.index_dir, "old")

    def note_trouble(self, error: Exception) -> None:
        """Show an error in `status` until it is resolved; log repetitions once."""
        text = f"{type(error).__name__}: {error}"
        if self.troubles[-1:] != [text]:
            self.troubles = [*self.troubles, text][-TROUBLES:]
            log.warning("upkeep_retries", error=type(error).__name__, code=getattr(error, "code", None))
            self.context.publish({"event": "trouble", "text": text})

    def _note(self, error: Exception) -> None:
        self.note_trouble(error)
        if isinstance(error, IndexDamagedError):
            self.context.reopen(ReopenReason.DAMAGED)
        elif self.index.failed is not None:
            self.context.reopen(ReopenReason.FAILED)

    def _tell_state(self) -> None:
        if self._told_state != (state := self.state):
            self._told_state = state
            self.context.publish({"event": "state", "state": state})


async def again_and_again(
    loop: Callable[[], Awaitable[None]],
    *,
    stop: asyncio.Event,
    at_once: asyncio.Event,
    note: Callable[[Exception], None],
    pauses_s: Sequence[float] = RETRY_S,
) -> None:
    """Run *loop* until *stop* is set; *note* receives each failure, and *at_once* ends the delay after it.

    The delays grow.
    """
    failures = 0
    pause_s = 0.0
    while not stop.is_set():
        began = time.monotonic()
        try:
            await loop()
        except (MemdError, OSError) as error:
            note(error)
        except Exception as error:
            log.exception("upkeep_failed")  # an unexpected exception: log its place
            note(error)
        # A task that ran for longer than its last delay counts as recovered.
        failures = 1 if time.monotonic() - began > max(pause_s, pauses_s[0]) else failures + 1
        pause_s = pauses_s[min(failures, len(pauses_s)) - 1]
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await at_once.wait()
