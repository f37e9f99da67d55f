"""Maintenance of one workspace while it is idle: purge, compaction, postings, codes, the daily check.

Handles damaged rows, too: a scrub compares every row with its checksum after the start, and again when a
query meets a damaged one, because damage is rarely limited to one row. Runs concurrently with queries and
saves. For the event loop's thread.
"""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import structlog

from memd.errors import DeadlineError, MemdError
from memd.index.check import Scrub
from memd.index.codes import UNUSABLE, UnderivableError, can_code
from memd.index.matrices import is_worth_it
from memd.index.writer import CHECKED_AT
from memd.workspace.context import WorkspaceContext
from memd.workspace.embed_loop import EmbedLoop
from memd.workspace.set_aside import delete_aside

log = structlog.get_logger()

# Of one core at a time, followed by an equal pause: of two cores a quarter is used for a minute or two.
BUILD_BUDGET_S = 0.1
RETRY_S = 3600.0  # after a failure, such as a full disk
# An unmounted disk or a wrong checkout must not cost the index; a deleted note must not stay.
KEEP_GONE_S = 24 * 3600
# Deleting more than this at once counts as an accident until it is confirmed (like syncthing's folder
# marker).
HELD_FILES = 20
HELD_SHARE = 0.5
LOOK_S = 60.0  # between two checks for work: a wake-up a minute
PURGE_S = 3600.0  # so that one compaction, which takes seconds for a large index, serves many deletions
CHECK_S = 24 * 3600  # a flipped bit in the database is found within a day
PURGE_AT_ONCE = 64  # sources per commit, some 50 ms
COMPACT_BUDGET_S = 0.1  # of the writer thread at a time
# Between two tries to empty SQLite's log, the first doubled up to the second: a query ends in milliseconds,
# a check after minutes.
LOG_RETRIES_S = (0.002, 0.5)


# After the first answers, and usually after the model is loaded.
SCRUB_AFTER_S = 2.0
# Of one core at a time, followed by an equal pause: a million rows take some seconds.
SCRUB_BUDGET_S = 0.02


class Purged(NamedTuple):
    """What `Maintenance.purge_now` did."""

    sources: int  # that were deleted
    is_erased: bool  # False: a query or check that began earlier still reads them; erased when it ends


def held(gone: int, live: int) -> str:
    """Return why deleted sources are kept for longer than a day; "" if they are not."""
    if gone < HELD_FILES or gone <= HELD_SHARE * (gone + live):
        return ""
    return (
        f"{gone} of {gone + live} sources are gone. They are kept in the index until they are back, or until "
        "you confirm: memctl index --purge"
    )


class Maintenance:
    """The background work of one workspace. For the event loop's thread."""

    def __init__(self, context: WorkspaceContext, vectors: EmbedLoop, *, is_idle: Callable[[], bool]) -> None:
        self.gone = 0  # deleted sources that are kept for a day
        self._context = context
        self._index = context.index
        self._vectors = vectors
        self._is_idle = is_idle
        self._postings, self._codes = context.index.postings, context.index.codes
        self._on_postings = asyncio.Lock()  # one operation on them at a time
        self._not_before = {"postings": 0.0, "codes": 0.0}  # time.monotonic() after a failure
        self._met = asyncio.Event()  # a query met damage that no later scrub has looked for
        self._log_is_due = asyncio.Event()  # SQLite's log has what was purged

    @property
    def held(self) -> str:
        """Why nothing is purged; "" if old deletions are."""
        return held(self.gone, len(self._index.snapshot.sources))

    async def count(self) -> None:
        """Count the deleted sources."""
        self.gone = await self._context.write(self._index.writer.gone_count)

    async def run(self) -> None:
        """Do the work that is due whenever the workspace is idle, for ever."""
        purge_at = 0.0
        writer = self._index.writer
        if await self._context.write(writer.get, CHECKED_AT) is None:  # a new index is correct
            await self._context.write(writer.store, CHECKED_AT, int(time.time()))
        await self._load_codes()
        while True:
            await asyncio.sleep(LOOK_S)
            await self._clean_postings()
            async with self._on_postings:
                if await self._is_due("postings", self._postings.is_due):
                    await self._make_postings()
            await self._load_codes()
            if await self._is_due("codes", self._codes.is_due):
                await self._make_codes()
            if not self._is_idle():
                continue
            if time.monotonic() > purge_at and self.gone and not self.held:
                purge_at = time.monotonic() + PURGE_S
                if await self._purge(int(time.time()) - KEEP_GONE_S):
                    await self._compact()  # as in `purge_now`
                    await self._clean_postings()
                    self._log_is_due.set()
            is_due = is_worth_it(*await self._context.write(self._index.garbage))
            if is_due or await self._context.write(writer.is_loose):
                await self._compact()
            await self._context.write(writer.checkpoint)
            if time.time() - await self._context.write(writer.get, CHECKED_AT) > CHECK_S:
                with suppress(DeadlineError):  # too much is being saved
                    await self._context.owner.check(self._context.place.root)
                await self._vectors.prune(time.time())

    async def keep_erasing(self) -> None:
        """Empty SQLite's log after each purge, as soon as nobody reads what was purged, for ever."""
        while True:
            await self._log_emptied(math.inf)  # a start may follow a purge, too
            await self._log_is_due.wait()
            self._log_is_due.clear()

    async def scrub(self) -> None:
        """Look for damaged rows once, and again when a query meets one. After an error call it again."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            if not loop.is_closed():  # after that, the next start scrubs anyway
                loop.call_soon_threadsafe(self._met.set)

        self._index.tell_damaged = tell
        with suppress(TimeoutError):
            async with asyncio.timeout(SCRUB_AFTER_S):
                await self._met.wait()
        while True:
            pauses = not self._met.is_set()
            self._met.clear()
            scrub: Scrub = await self._context.write(Scrub, self._index)
            done = False
            while not done:
                done = await asyncio.to_thread(scrub.step, SCRUB_BUDGET_S)
                await asyncio.sleep(SCRUB_BUDGET_S if pauses and not self._met.is_set() else 0)
            if scrub.damaged_count:
                # Before the commit: no answer may lack them without reporting that.
                self._vectors.expect(scrub.damaged_count)
                if lost := await self._context.write(scrub.forget):
                    log.warning("rows_damaged", rows=lost)
                await self._vectors.count()
                self._vectors.wake()
            await self._met.wait()

    async def purge_now(self, path: str | None = None, *, timeout_s: float = math.inf) -> Purged:
        """Delete every trace of the deleted sources, or of the source at *path*, and indexes set aside.

        Waits at most *timeout_s* for those who began to read before; `keep_erasing` does the rest.
        """
        purged = await self._purge(None, path)
        await self._compact()  # until then the full-text tables have the words, and the matrix the vectors
        await self._clean_postings()
        self._log_is_due.set()
        await asyncio.to_thread(delete_aside, self._context.place.index_dir)
        await self._vectors.prune(math.inf)  # last: a disk that hangs keeps nothing in the index
        return Purged(purged, await self._log_emptied(timeout_s))

    async def erase_now(self, path: str, *, timeout_s: float) -> Purged:
        """Delete every trace of text that was removed from the source at *path*, which stays."""
        await self._context.write(self._index.note_forgotten)
        # Chunks that were staged in vain are those of a deleted source with the same path.
        return await self.purge_now(path, timeout_s=timeout_s)

    async def _log_emptied(self, timeout_s: float) -> bool:
        """Write SQLite's log back and empty it; False if somebody still reads an older state then."""
        give_up = time.monotonic() + timeout_s
        pause_s, longest_s = LOG_RETRIES_S
        while not await self._context.write(self._index.writer.checkpoint):
            if time.monotonic() > give_up:
                return False
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, longest_s)
        return True

    async def _purge(self, before_s: int | None, path: str | None = None) -> int:
        purged = 0
        while some := await self._context.write(self._index.purge, before_s, PURGE_AT_ONCE, path):
            purged += some
        await self.count()
        if purged:
            log.info("purged", sources=purged)
        return purged

    async def _compact(self) -> None:
        done = False
        while not done:  # saves get their turn between two slices
            done = await self._context.write(self._index.compact, COMPACT_BUDGET_S)
        log.info("compacted")

    async def _is_due(self, name: str, is_due: Callable[..., bool]) -> bool:
        """Return whether postings or codes should be made now: beside other work later than without."""
        if time.monotonic() <= self._not_before[name]:
            return False
        due: bool = await self._context.write(partial(is_due, is_busy=not self._is_idle()))
        return due

    async def _clean_postings(self) -> None:
        """Drop the table of postings if it has something that was purged."""
        async with self._on_postings:
            if await self._context.write(lambda: self._postings.is_outdated):
                while await self._context.write(self._postings.drop_some):
                    pass

    async def _make_postings(self) -> None:
        try:
            made = await self._context.write(self._postings.begin)
            while not made.is_done:
                rows = await asyncio.to_thread(made.step, BUILD_BUDGET_S)
                if not await self._context.write(self._postings.put, made, rows):
                    break
                await asyncio.sleep(BUILD_BUDGET_S)
        except MemdError as error:
            self._not_before["postings"] = time.monotonic() + RETRY_S
            log.warning("postings_not_made", code=error.code)
        else:
            log.info("postings_made", complete=made.is_done)

    async def _load_codes(self) -> None:
        """Read the file of codes into memory if needed; until then every vector is scanned."""
        found = self._codes.current
        if found is None or self._codes.usable is not None or not can_code(found.dim):
            return
        try:
            codes = await asyncio.to_thread(found.read)
        except UNUSABLE as error:
            log.warning("codes_not_usable", error=type(error).__name__)
            await self._context.write(self._codes.drop)
        else:
            await self._context.write(self._codes.use, found, codes)

    async def _make_codes(self) -> None:
        building = await self._context.write(self._codes.begin)
        try:
            done = False
            while not done:
                done = await asyncio.to_thread(building.step, BUILD_BUDGET_S)
                await asyncio.sleep(BUILD_BUDGET_S)
            adopted = await self._context.write(self._codes.adopt, building)
        except UnderivableError as error:
            self._not_before["codes"] = math.inf  # until the next start
            log.warning("codes_not_made", reason=str(error))
        except MemdError as error:
            self._not_before["codes"] = time.monotonic() + RETRY_S
            log.warning("codes_not_made", code=error.code)
        except BaseException:
            building.abandon()
            raise
        else:
            log.info("codes_made", adopted=adopted)
