"""The index loop: takes changed files from the backlog and indexes them, one commit per slice.

Small files are parsed in this process. Large ones are queued separately and parsed one by one in a separate
process that can be ended, so that neither a save nor a ping waits for them.
"""

import asyncio
import time
from collections.abc import Iterable

from memd.errors import MemdError
from memd.index.indexer import Applied
from memd.index.source_rows import shown_warning
from memd.workspace.backlog import Backlog, Throughput
from memd.workspace.context import LoopListener, WorkspaceContext
from memd.workspace.scanner import Scanner
from memd.workspace.threads import DEADLINE_S, Lane

SLICE_PATHS = 256  # taken at once; the indexer stops earlier when its time is over
SETTLE_S = 0.2  # before a file that was still being written is read again
# Before a note whose parsing was ended from outside is parsed again: a shortage of memory takes a while to
# pass.
INTERRUPTED_S = 60.0
MISSING_POLL_S = 0.5  # while the folder is missing nothing is read from it
TOLD_PATHS = 100  # named in one event; its count includes all


class IndexLoop:
    """Indexes the files in one workspace's backlog. For the event loop's thread."""

    def __init__(
        self, context: WorkspaceContext, backlog: Backlog, scanner: Scanner, listener: LoopListener
    ) -> None:
        self.fault: MemdError | None = None  # the error of the last commit, if it failed
        self.throughput = Throughput()  # in files
        self.steps = 0  # that were taken, of files read, parsed or stored: it grows while there is progress
        self.warnings: dict[str, str] = {}  # path → why it is not indexed as Markdown
        self._context = context
        self._indexer = context.indexer
        self.backlog = backlog
        self._scanner = scanner
        self._listener = listener
        self._work = asyncio.Event()
        self._large_work = asyncio.Event()

    def hint(self, paths: Iterable[str]) -> None:
        """Add paths, relative to the root, that may have changed."""
        self.backlog.hint(paths, time.monotonic())
        self.wake()
        self._listener.note_hinted()

    def wake(self) -> None:
        """Signal that the backlog may have work."""
        self._work.set()
        self._large_work.set()

    async def index_now(self, path: str) -> None:
        """Index one file before all others; return when its words are searchable."""
        with self.backlog.at_once(path):
            done = await self._through([path], self._context.small)
            if done.put_off:
                done = await self._through([path], self._context.large)
        await self._record(done, saved=True)

    async def run(self) -> None:
        """Index the backlog, for ever."""
        while True:
            self._work.clear()  # cleared first: work that arrives from now on is seen next time
            if not await self._context.disk.look():  # a missing disk must not look like deleted files
                await asyncio.sleep(MISSING_POLL_S)
                continue
            paths = self.backlog.take(SLICE_PATHS)
            if not paths:
                await self._listener.note_emptied()
                await self._work.wait()
                continue
            handled, began = 0, time.monotonic()
            try:
                if handled := await self._taken(paths, self._context.small, saved=self.backlog.urgent):
                    self.throughput.note(handled, time.monotonic() - began)
            finally:
                self.backlog.done(handled)

    async def run_large(self) -> None:
        """Index the large files that were postponed, one by one, for ever."""
        while True:
            self._large_work.clear()
            if not await self._context.disk.look():
                await asyncio.sleep(MISSING_POLL_S)
                continue
            while await self._context.write(self._context.index.drop_some_waste):
                pass
            path = self.backlog.take_large(self._indexer.suspects)
            if path is None:
                await self._large_work.wait()
                continue
            through = False
            try:
                through = await self._taken([path], self._context.large, saved=False) > 0
                if through:
                    self._indexer.suspects -= {path}
            finally:
                self.backlog.done_large(through=through)
            await self._listener.note_emptied()

    async def _taken(self, paths: list[str], lane: Lane, *, saved: bool) -> int:
        """Index paths, and record the result; return how many were handled."""
        try:
            done = await self._through(paths, lane)
            self.fault = None
            await self._record(done, saved=saved)
        except Exception as error:
            # The folder may have gone away meanwhile, which is not a failure.
            if not isinstance(error, MemdError) or await self._context.disk.look():
                # A bug is told, too, to those who wait: they would wait without end.
                bug = f"indexing failed with {type(error).__name__}: a bug, see the log"
                self.fault = error if isinstance(error, MemdError) else MemdError(bug)
                raise
            return 0
        return done.handled

    async def _through(self, paths: list[str], lane: Lane) -> Applied:
        """Take paths through all steps, each in its thread."""
        indexer = self._indexer
        large_too = lane.parse is not None
        readings = await self._context.disk.run(lambda: indexer.read(paths, large_too=large_too))
        # A file that is not there may have gone with the whole folder, since that was looked at.
        is_one_missing = any(reading.found is None for reading in readings)
        if is_one_missing and not await self._context.disk.look(patience_s=DEADLINE_S):
            return Applied()
        await self._context.write(indexer.sift, readings)

        def prepare() -> None:
            indexer.in_hand.mark(lane.name, [reading.path for reading in readings if reading.wanted])
            indexer.prepare(readings, parse=lane.parse)

        def commit() -> Applied:
            done = indexer.commit(readings)
            indexer.in_hand.clear(lane.name)
            return done

        if any(reading.wanted for reading in readings):
            await lane.run(prepare)
            self.steps += 1
            while not await self._context.write(indexer.stage, readings):  # saves run between slices
                self.steps += 1
        done: Applied = await self._context.write(commit)
        return done

    async def _record(self, done: Applied, *, saved: bool) -> None:
        if done.put_off:
            self.backlog.put_off(done.put_off, time.monotonic())
            self._large_work.set()
        for path in (*done.removed, *done.warned):
            self.warnings.pop(path, None)
        self.warnings |= {path: shown_warning(some) for path, some in done.warned.items() if some}
        looked_at, skipped = {*done.indexed, *done.removed, *done.absent}, self._scanner.skipped
        if done.skipped or not looked_at.isdisjoint(skipped):
            kept = (file for path, file in skipped.items() if path not in looked_at)
            self._scanner.note_skipped(kept, done.skipped)
        if self._context.index.writer.has_waste:
            self._large_work.set()
        if done.unsettled:
            asyncio.get_running_loop().call_later(SETTLE_S, self.hint, done.unsettled)
        if done.interrupted:
            asyncio.get_running_loop().call_later(INTERRUPTED_S, self.hint, done.interrupted)
        for event, paths in (("indexed", done.indexed), ("removed", done.removed)):
            if paths:
                self._context.publish({"event": event, "paths": paths[:TOLD_PATHS], "count": len(paths)})
        if done.indexed or done.removed:
            await self._listener.note_committed(done.indexed if saved else [])
