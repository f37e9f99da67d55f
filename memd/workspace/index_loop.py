"""The index loop: dirty files from the backlog into the index, in slices, each a commit that a query sees.

Small files are parsed in this process. Large ones wait apart and go one by one through a lane of their own,
whose parsing is done by a process that can be ended, so that neither a save nor a ping waits for them.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from memd.errors import MemdError
from memd.index.indexer import Applied, Indexer, Prepare
from memd.registry import Workspace
from memd.workspace.embed_loop import Write
from memd.workspace.pace import Pace

# More paths than this at once are no person's save but a checkout, a copy or a sync: they wait in the order
# they came, so that a note that is saved meanwhile does not wait behind them.
BULK_PATHS = 64
HINTS_AT_ONCE = 16  # in one commit: the newest save does not wait for many older ones in its own slice


class Backlog:
    """Paths on their way into the index. A path that is taken may come back as a new hint meanwhile."""

    def __init__(self) -> None:
        self._hints: dict[str, float] = {}  # saved a moment ago → monotonic time: first in line
        self._found: OrderedDict[str, float] = OrderedDict()  # in bulk, or by a scan
        self._in_hand: dict[str, float] = {}  # being indexed now, a slice
        self._urgent = False  # whether those in hand were hints
        self._large: dict[str, float] = {}  # put off: they take long
        self._large_in_hand: dict[str, float] = {}  # one or none
        # When the oldest of all was first known to be dirty; None while there is none. Kept, because every
        # answer tells it, and thousands may wait.
        self.since: float | None = None

    def __len__(self) -> int:
        twice = sum(path in self._found for path in self._hints)
        twice += sum(path in self._hints or path in self._found for path in self._in_hand)
        large = sum(
            path not in self._hints and path not in self._found and path not in self._in_hand
            for path in self._large.keys() | self._large_in_hand.keys()
        )
        return len(self._hints) + len(self._found) + len(self._in_hand) - twice + large

    def __contains__(self, path: str) -> bool:
        return any(path in waiting for waiting in self._all())

    @property
    def urgent(self) -> bool:
        """Whether what is in hand was saved a moment ago, one by one."""
        return self._urgent

    def hint(self, paths: Iterable[str], now: float) -> None:
        """Add paths that an event names."""
        named = list(paths)
        if len(named) > BULK_PATHS:
            self.found(named, now)
            return
        for path in named:
            self._hints[path] = min(now, self._hints.get(path, now))
            self._note(now)

    def found(self, paths: Iterable[str], since: float) -> None:
        """Add paths that differ from the index, and when that may have begun at the latest."""
        for path in paths:
            self._found[path] = min(since, self._found.get(path, since))
            self._note(since)

    def take(self, limit: int) -> list[str]:
        """Take the next paths in hand; `done` follows. Of the hints the newest, of the others the oldest."""
        self._urgent = bool(self._hints)
        if self._hints:
            count = min(limit, HINTS_AT_ONCE, len(self._hints))
            self._in_hand = dict(self._hints.popitem() for _ in range(count))
        else:
            self._in_hand = {path: self._found.pop(path) for path in list(islice(self._found, limit))}
        return list(self._in_hand)

    def done(self, handled: int) -> None:
        """Say how many of those in hand are through, from the front; the others wait again, where they were.

        Where none is, something is wrong with them: the others go first.
        """
        queue = self._hints if self._urgent else self._found
        left = list(self._in_hand.items())[handled:]
        for path, at in left:
            queue[path] = min(at, queue.get(path, at))
        if handled and not self._urgent:
            for path, _ in reversed(left):
                self._found.move_to_end(path, last=False)
        if self._urgent:  # what was saved meanwhile is newer than what waits again
            self._hints = dict(sorted(self._hints.items(), key=itemgetter(1)))
        self._in_hand = {}
        self._look_since()

    def put_off(self, paths: Iterable[str], now: float) -> None:
        """Have some of those in hand, or others, wait apart; `done` is said of them all the same."""
        for path in paths:
            at = min(self._in_hand.get(path, now), self._large.pop(path, now))
            self._large[path] = at

    def take_large(self, last: Container[str] = ()) -> str | None:
        """Take one of those that wait apart in hand, those in *last* at the end; `done_large` follows."""
        path = next((one for one in self._large if one not in last), next(iter(self._large), None))
        if path is not None:
            self._large_in_hand = {path: self._large.pop(path)}
        return path

    def done_large(self, *, through: bool) -> None:
        """Say that it is through, or must wait again."""
        for path, at in self._large_in_hand.items():
            if not through:
                self._large[path] = min(at, self._large.get(path, at))
        self._large_in_hand = {}
        self._look_since()

    def _all(self) -> tuple[dict[str, float], ...]:
        return self._hints, self._found, self._in_hand, self._large, self._large_in_hand

    def _look_since(self) -> None:
        self.since = min(chain.from_iterable(one.values() for one in self._all()), default=None)

    def _note(self, at: float) -> None:
        self.since = at if self.since is None else min(self.since, at)


SLICE_PATHS = 256  # taken at once; the indexer stops earlier, when its time is up
SETTLE_S = 0.2  # until a file that was still being written is looked at again
MISSING_POLL_S = 0.5  # while the folder is away nothing is read from it
TOLD_PATHS = 100  # named in one event; its count counts all


@dataclass(frozen=True, slots=True)
class Lane:
    """A way through reading and parsing, for one slice at a time."""

    name: str
    run: Write  # runs work in its thread
    parse: Prepare | None = None  # does it elsewhere; None: in its thread, and large files are put off


@dataclass(frozen=True, slots=True)
class Lanes:
    """Both ways."""

    small: Lane
    large: Lane


class IndexLoop:
    """Indexes what waits in one workspace's backlog. For the event loop's thread."""

    def __init__(
        self,
        place: Workspace,
        indexer: Indexer,
        backlog: Backlog,
        *,
        write: Write,
        lanes: Lanes,
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
            lanes: where files are read and parsed.
            skipped: path → reason of the files that are not indexed, to be kept up to date.
            changed: called after a commit, with the paths that were saved a moment ago.
            emptied: called when nothing waits any more.
            publish: tells who follows.
        """
        self.fault: MemdError | None = None  # why the last slice was not committed
        self.pace = Pace()  # in files
        self.warnings: dict[str, str] = {}  # path → what is indexed not as it is written
        self._place = place
        self._indexer = indexer
        self._backlog = backlog
        self._write = write
        self._lanes = lanes
        self._skipped = skipped
        self._changed = changed
        self._emptied = emptied
        self._publish = publish
        self._work = asyncio.Event()
        self._large_work = asyncio.Event()

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
        self._large_work.set()

    async def index_now(self, path: str) -> None:
        """Index one file before anything else; returns when its words are searchable."""
        done = await self._through([path], self._lanes.small)
        if done.put_off:
            done = await self._through([path], self._lanes.large)
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

    async def run_large(self) -> None:
        """Index the large files that were put off, one after the other, for ever."""
        while True:
            self._large_work.clear()
            if not self._place.is_there():
                await asyncio.sleep(MISSING_POLL_S)
                continue
            while self._indexer.has_waste:
                await self._write(self._indexer.drop_some_waste)
            path = self._backlog.take_large(self._indexer.suspects)
            if path is None:
                await self._large_work.wait()
                continue
            await self._index_large(path)
            await self._emptied()

    async def _index(self, paths: list[str]) -> None:
        handled, began = 0, time.monotonic()
        try:
            done = await self._through(paths, self._lanes.small)
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

    async def _index_large(self, path: str) -> None:
        through = False
        try:
            done = await self._through([path], self._lanes.large)
            self.fault = None
            await self._record(done, saved=False)
            self._indexer.suspects -= {path}
            through = True
        except MemdError as error:
            if self._place.is_there():
                self.fault = error
                raise
        finally:
            self._backlog.done_large(through=through)

    async def _through(self, paths: list[str], lane: Lane) -> Applied:
        """Take paths through all steps, each in its thread."""
        indexer = self._indexer
        readings = await lane.run(lambda: indexer.read(paths, large_too=lane.parse is not None))
        await self._write(indexer.sift, readings)

        def prepare() -> None:
            indexer.in_hand.mark(lane.name, [one.path for one in readings if one.wanted])
            indexer.prepare(readings, parse=lane.parse)

        def commit() -> Applied:
            done = indexer.commit(readings)
            indexer.in_hand.clear(lane.name)
            return done

        if any(one.wanted for one in readings):
            await lane.run(prepare)
            while not await self._write(indexer.stage, readings):  # saves go between two slices
                pass
        done: Applied = await self._write(commit)
        return done

    async def _record(self, done: Applied, *, saved: bool) -> None:
        if done.put_off:
            self._backlog.put_off(done.put_off, time.monotonic())
            self._large_work.set()
        self._note_warnings(done)
        skipped = self._skipped()
        for path in [*done.indexed, *done.removed]:
            skipped.pop(path, None)
        skipped.update({one.path: one.reason for one in done.skipped})
        if self._indexer.has_waste:
            self._large_work.set()
        if done.unsettled:
            asyncio.get_running_loop().call_later(SETTLE_S, self.hint, done.unsettled)
        for event, paths in (("indexed", done.indexed), ("removed", done.removed)):
            if paths:
                self._publish({"event": event, "paths": paths[:TOLD_PATHS], "count": len(paths)})
        if done.indexed or done.removed:
            await self._changed(done.indexed if saved else [])

    def _note_warnings(self, done: Applied) -> None:
        for path in done.removed:
            self.warnings.pop(path, None)
        for path, warnings in done.warned.items():
            self.warnings.pop(path, None)
            if warnings:
                self.warnings[path] = warnings[0]
