"""How do dirty files get into the index? From the backlog, in slices, each a commit that a query sees."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from memd.errors import MemdError
from memd.index.indexer import Indexer, Progress
from memd.service.backlog import Backlog
from memd.service.pace import Pace
from memd.service.vectorizing import Write
from memd.workspace import Workspace

SLICE_PATHS = 256  # taken at once; the indexer stops earlier, when its time is up
SETTLE_S = 0.2  # until a file that was still being written is looked at again
MISSING_POLL_S = 0.5  # while the folder is away nothing is read from it
TOLD_PATHS = 100  # named in one event; its count counts all


class Indexing:
    """Indexes what waits in one workspace's backlog. For the event loop's thread."""

    def __init__(
        self,
        place: Workspace,
        indexer: Indexer,
        backlog: Backlog,
        *,
        write: Write,
        skipped: Callable[[], dict[str, str]],
        changed: Callable[[list[str]], Awaitable[None]],
        emptied: Callable[[], Awaitable[None]],
        publish: Callable[[dict[str, Any]], None],
    ) -> None:
        """Begin with nothing to do.

        Args:
            place: where the files are.
            indexer: reads and commits.
            backlog: what waits.
            write: runs work in the writing thread.
            skipped: path → reason of the files that are not indexed, to be kept up to date.
            changed: called after a commit, with the paths that were saved a moment ago.
            emptied: called when nothing waits any more.
            publish: tells who follows.
        """
        self.fault: MemdError | None = None  # why the last slice was not committed
        self.pace = Pace()  # in files
        self._place = place
        self._indexer = indexer
        self._backlog = backlog
        self._write = write
        self._skipped = skipped
        self._changed = changed
        self._emptied = emptied
        self._publish = publish
        self._work = asyncio.Event()

    def hint(self, paths: Iterable[str]) -> None:
        """Take paths, relative to the root, that may have changed."""
        self._backlog.hint(paths, time.monotonic())
        self.wake()

    def waits(self, path: str) -> bool:
        """Tell whether a path is in line to be looked at."""
        return path in self._backlog

    def wake(self) -> None:
        """Say that there may be something in the backlog."""
        self._work.set()

    async def index_now(self, path: str) -> None:
        """Index one file before anything else; returns when its words are searchable."""
        done: Progress = await self._write(self._indexer.apply, [path])
        await self._record(done, saved=True)

    async def run(self) -> None:
        """Index what waits, for ever."""
        while True:
            self._work.clear()  # before the look: what comes during it is seen by the next one
            if not self._place.is_there():  # no file is gone because the disk is away
                await asyncio.sleep(MISSING_POLL_S)
                continue
            paths = self._backlog.take(SLICE_PATHS)
            if not paths:
                await self._emptied()
                await self._work.wait()
                continue
            await self._index(paths)

    async def _index(self, paths: list[str]) -> None:
        handled, began = 0, time.monotonic()
        try:
            done: Progress = await self._write(self._indexer.apply, paths)
            self.fault = None
            await self._record(done, saved=self._backlog.urgent)
            handled = done.handled
            self.pace.note(handled, time.monotonic() - began)
        except MemdError as error:
            if self._place.is_there():  # else it went away meanwhile, which is no failure
                self.fault = error
                raise
        finally:
            self._backlog.done(handled)

    async def _record(self, done: Progress, *, saved: bool) -> None:
        skipped = self._skipped()
        for path in [*done.indexed, *done.removed]:
            skipped.pop(path, None)
        skipped.update({one.path: one.reason for one in done.skipped})
        if done.unsettled:
            asyncio.get_running_loop().call_later(SETTLE_S, self.hint, done.unsettled)
        for event, paths in (("indexed", done.indexed), ("removed", done.removed)):
            if paths:
                self._publish({"event": event, "paths": paths[:TOLD_PATHS], "count": len(paths)})
        if done.indexed or done.removed:
            await self._changed(done.indexed if saved else [])
