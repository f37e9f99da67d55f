"""The scanner of one workspace: compares its folder, or a folder in it, with the index on a schedule."""

import asyncio
import heapq
import time
from collections.abc import Iterable
from contextlib import suppress

from memd.errors import DiskError
from memd.index.indexer import Compared, FolderComparison
from memd.records import Skipped
from memd.sources.scan import Rules, is_utf8
from memd.workspace.backlog import Backlog
from memd.workspace.context import LoopListener, ReopenReason, WorkspaceContext
from memd.workspace.threads import DEADLINE_S

# Events are hints: the folder is scanned as often as a thousandth of a core allows, for all workspaces
# together. With 10,000 files, which take a tenth of a second, that is every 100 s.
TIMER_SHARE = 0.001
TIMER_S = (60.0, 3600.0)
MISSING_S = 2.0  # how soon a folder that comes back is noticed
# Without events the folder is scanned constantly, using at most a hundredth of a core, and no change stays
# unnoticed for longer than half a minute.
POLLED_S = (2.0, 30.0)
POLLED_SHARE = 0.01
# With constant requests (a rule file that is rewritten in a loop), scans take a twentieth of a core.
ASKED_SHARE = 0.05
# During a storm of events, the minimum time between two scans, doubled while the storm lasts
# (facebook/watchman#1354: 14,459 scans in 19 minutes).
STORM_S = (10.0, 300.0)


class Schedule:
    """The times of a folder's scans; the first one is due at once."""

    def __init__(self, now: float) -> None:
        self.since: float | None = now  # when the oldest scan that is still due was requested
        self._storm = False  # whether a storm requested it
        self._urgent = False  # whether a caller waits for it
        self._pause_s = 0.0  # between two scans of a storm
        self._calm_after = now  # when a storm counts as over
        self._not_before = now
        self._last = now
        self._took_s = 0.0
        self._cost_s = 0.0

    def ask(self, now: float, *, storm: bool = False, urgent: bool = False) -> None:
        """Request a scan, due since *now*; an *urgent* one, which a caller waits for, is due at once."""
        self.since = now if self.since is None else min(now, self.since)
        self._storm |= storm
        self._urgent |= urgent

    def due(self, *, pace_s: float) -> float:
        """Return when the next scan is due: *pace_s* after the last one, unless one was requested."""
        timer = self._last + pace_s
        if self.since is None:
            return timer
        return self.since if self._urgent else min(max(self.since, self._not_before), timer)

    def pace_s(self, *, polling: bool, roots: int = 1) -> float:
        """Return the interval of scans that are not requested, given the number of roots."""
        if polling:
            least, most = POLLED_S
            return min(max(self._took_s / POLLED_SHARE, least), most)
        least, most = TIMER_S
        return min(max(self._cost_s * roots / TIMER_SHARE, least), most)

    def begin(self, now: float) -> float | None:
        """Note that a scan begins; return since when it was requested, None for a periodic one."""
        owed, self.since = self.since, None
        if self._storm and not self._urgent:
            least, most = STORM_S
            goes_on = self._pause_s and now < self._calm_after
            self._pause_s = min(self._pause_s * 2, most) if goes_on else least
            self._calm_after = now + 3 * self._pause_s
            self._not_before = now + self._pause_s
        self._storm = self._urgent = False
        return owed

    def end(self, began: float, now: float, *, cost_s: float) -> None:
        """Note that a scan has ended, which took *cost_s* of a core."""
        self._last = now
        self._cost_s = cost_s
        self._took_s = now - began
        self._not_before = max(self._not_before, now + self._took_s / ASKED_SHARE)


ARMED_S = 2.0  # how long the first scan waits for the watch, which takes 0.1 s for a thousand folders
NOT_UTF8_NAMED = 4  # by each search; status names up to a hundred
MAX_FOLDERS = 64  # with more new folders at once, a full scan is cheaper


class Scanner:
    """Scans one workspace's folder and adds differences to the backlog. For the event loop's thread."""

    def __init__(self, context: WorkspaceContext, backlog: Backlog, listener: LoopListener) -> None:
        self.rules: Rules | None = None  # before the first scan
        self.skipped: dict[str, Skipped] = {}  # by path
        self.not_utf8: tuple[str, ...] = ()  # the first ones that would be notes in another encoding
        self.found_sources = 0  # in the last scan
        self.last: float | None = None  # time.time() of the last scan
        self.running = False
        self.is_outdated = False  # another sync takes over: callers that wait must continue there
        self.slices = 0  # of all scans: it grows while there is progress
        self.failures = 0  # in a row
        self.polling = False  # events are unreliable
        self.watched = asyncio.Event()  # set once the watch is armed, or reports why it is not
        self._context = context
        self._backlog = backlog
        self._listener = listener
        self._schedule = Schedule(time.monotonic())
        self._folders: dict[str, float] = {}  # "a/b/" → since when it is known to be dirty
        self._owed: float | None = None  # since when the running scan was requested
        self._in_hand: float | None = None  # the same for the folder being compared
        self._wanted = asyncio.Event()

    @property
    def since(self) -> float | None:
        """Since when there may be differences that no scan has compared; None if none are known."""
        known = (self._schedule.since, self._owed, self._in_hand, *self._folders.values())
        return min((at for at in known if at is not None), default=None)

    def ask(self, *, storm: bool = False, urgent: bool = False) -> None:
        """Request a scan of everything."""
        self._schedule.ask(time.monotonic(), storm=storm, urgent=urgent)
        self._wanted.set()

    def ask_folder(self, path: str) -> None:
        """Request a scan of one folder, "a/b/"."""
        if not is_utf8(path):  # it cannot contain sources; a full scan lists what is skipped
            return
        self._folders.setdefault(path, time.monotonic())
        self._wanted.set()

    def note_skipped(self, kept: Iterable[Skipped], found: Iterable[Skipped]) -> None:
        """Store the files that are not sources now: those that are *kept*, and those just *found*."""
        self.skipped = {file.path: file for file in (*kept, *found)}
        unread = (file.path for file in self.skipped.values() if file.reason == "not-utf8")
        self.not_utf8 = tuple(heapq.nsmallest(NOT_UTF8_NAMED, unread))

    async def run(self) -> None:
        """Scan whenever it is due, for ever."""
        with suppress(TimeoutError):  # a scan before the watch is armed would have to be repeated
            async with asyncio.timeout(ARMED_S):
                await self.watched.wait()
        while True:
            self._wanted.clear()  # cleared first: requests from now on are seen next time
            if not await self._context.disk.look():
                await asyncio.sleep(MISSING_S)
                self.ask()
            elif (pause_s := self._pause_s()) > 0 and not self._folders:
                with suppress(TimeoutError):
                    # Not wait_for: in Python 3.11 it swallows a cancellation that comes with the event.
                    async with asyncio.timeout(pause_s):
                        await self._wanted.wait()
            elif pause_s <= 0:
                await self._scan()
            else:
                await self._scan_folders()

    async def read_rules(self) -> Rules:
        """Reload the rules for sources, which apply to everything indexed from now on."""
        self.rules = await self._context.disk.run(self._context.load_rules)
        self._context.indexer.comparison(self.rules)
        return self.rules

    def _pause_s(self) -> float:
        pace_s = self._schedule.pace_s(polling=self.polling, roots=self._context.daemon.watcher.count)
        return self._schedule.due(pace_s=pace_s) - time.monotonic()

    async def _scan(self) -> None:
        try:
            is_current = await self._context.disk.run(self._context.is_current)
        except DiskError:
            self.failures += 1
            raise
        if not is_current:
            self.is_outdated = True
            self._context.reopen(ReopenReason.CONFIG)
            await asyncio.Event().wait()  # it is being reopened with a new configuration
        began = time.monotonic()
        self._owed = self._schedule.begin(began)
        self.running = True
        in_hand = self._backlog.in_hand  # not yet in the index, with which the scan compares
        try:
            self.rules = await self._context.disk.run(self._context.load_rules)
            compared, cost_s = await self._compared(self.rules)
            # If the folder went away meanwhile, the result is void.
            if await self._context.disk.look(patience_s=DEADLINE_S):
                self._backlog.found(compared.differing, began if self._owed is None else self._owed)
                self._folders = {path: at for path, at in self._folders.items() if at > began}
                self.found_sources = compared.sources
                kept = (file for path, file in self.skipped.items() if path in self._backlog)
                self.note_skipped(kept, compared.skipped)
                self.last = time.time()
                self._backlog.found(in_hand, began)
            else:
                self._schedule.ask(began)
        except BaseException:
            self.failures += 1
            self._schedule.since = began if self._owed is None else self._owed
            raise
        finally:
            self.running = False
            self._owed = None
        self.failures = 0
        self._schedule.end(began, time.monotonic(), cost_s=cost_s)
        self._listener.note_scanned()

    async def _compared(self, rules: Rules, folder: str = "") -> tuple[Compared, float]:
        """Compare in slices; return also the processor time in seconds."""
        comparison = self._context.indexer.comparison(rules, folder)
        compared: Compared | None = None
        cost_s = 0.0
        while compared is None:
            is_through, took_s = await self._context.disk.run(_step, comparison)
            cost_s += took_s
            self.slices += 1
            if is_through:
                compared = await self._context.write(comparison.compared)
        return compared, cost_s

    async def _scan_folders(self) -> None:
        if len(self._folders) > MAX_FOLDERS or self.rules is None:
            # When a scan is due: whatever creates so many folders may do so all day.
            self._schedule.ask(min(self._folders.values()))
            self._folders.clear()
            return
        for folder in list(self._folders):
            # Removed before the comparison: later changes in it request another one.
            self._in_hand = since = self._folders.pop(folder)
            through = False
            try:
                self.rules.forget(folder)  # it may have its own rules
                compared, _ = await self._compared(self.rules, folder)
                if not await self._context.disk.look(patience_s=DEADLINE_S):
                    return
                self._backlog.hint(compared.differing, since)
                kept = (file for path, file in self.skipped.items() if not path.startswith(folder))
                self.note_skipped(kept, compared.skipped)
                through = True
            finally:
                self._in_hand = None
                if not through:
                    self._folders[folder] = since
        self._listener.note_scanned()


def _step(comparison: FolderComparison) -> tuple[bool, float]:
    """Continue for a slice; return whether the folder has been walked through, and the processor time."""
    began = time.thread_time()
    is_through = comparison.walk()
    return is_through, time.thread_time() - began
