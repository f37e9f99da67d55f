"""What is done when nothing else is? Old deletions leave the disk, files shrink, the index is checked."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import structlog

from memd.errors import DeadlineError
from memd.index.compaction import is_worth_it
from memd.index.index import Index
from memd.service.first_pass import FirstPassFile
from memd.service.postings import PostingsFile
from memd.service.vectorizing import Write

log = structlog.get_logger()

# An unmounted disk or a wrong checkout must not cost a new index; a note that was deleted must not stay.
KEEP_GONE_S = 24 * 3600
# More than this at once is an accident until somebody says otherwise (as syncthing's folder marker has it).
HELD_FILES = 20
HELD_SHARE = 0.5
LOOK_S = 60.0  # between two looks at whether there is something to do: a wake-up a minute
PURGE_S = 3600.0  # so that a compaction, which takes seconds of a large index, comes once for many deletions
CHECK_S = 24 * 3600  # a bit that flips in the database is found within a day
PURGE_AT_ONCE = 64  # sources a commit, some 50 ms
COMPACT_BUDGET_S = 0.1  # of the writing thread at a time

Check = Callable[[], Awaitable[Any]]
Prune = Callable[[float], Awaitable[None]]


def held(gone: int, live: int) -> str:
    """Return why deleted sources are kept beyond their day; "" where they are not."""
    if gone < HELD_FILES or gone <= HELD_SHARE * (gone + live):
        return ""
    return (
        f"{gone} of {gone + live} sources are gone. They are kept in the index until they are back, or until "
        "you say that it is meant: memctl index --purge"
    )


class Housekeeping:
    """The slow work of one workspace. For the event loop's thread."""

    def __init__(
        self, index: Index, *, write: Write, is_idle: Callable[[], bool], check: Check, prune: Prune
    ) -> None:
        self.gone = 0  # sources that are kept for a day
        self._index = index
        self._write = write
        self._is_idle = is_idle
        self._check = check
        self._prune = prune
        self._postings = PostingsFile(index, write)
        self._first_pass = FirstPassFile(index, write)

    @property
    def held(self) -> str:
        """Why nothing is purged; "" where old deletions are."""
        return held(self.gone, len(self._index.snapshot.sources))

    async def count(self) -> None:
        """Look how many sources are gone."""
        self.gone = await self._write(self._index.gone_count)

    async def run(self) -> None:
        """Do what is due when the workspace is idle, for ever."""
        purge_at = 0.0
        await self._write(self._begin_to_count)
        await self._first_pass.load()
        while True:
            await asyncio.sleep(LOOK_S)
            await self._postings.renew_if_due(is_idle=self._is_idle())
            await self._first_pass.renew_if_due(is_idle=self._is_idle())
            if not self._is_idle():
                continue
            if time.monotonic() > purge_at and self.gone and not self.held:
                purge_at = time.monotonic() + PURGE_S
                if await self._purge(int(time.time()) - KEEP_GONE_S):
                    await self._compact()  # as in `purge_now`
                    await self._postings.clean()
            if is_worth_it(*await self._write(self._index.garbage)):
                await self._compact()
            await self._write(self._index.checkpoint)
            if time.time() - await self._write(self._index.writer.get, "checked_at") > CHECK_S:
                with suppress(DeadlineError):  # too much is saved just now
                    await self._check()
                await self._prune(time.time())

    def _begin_to_count(self) -> None:
        """Begin the day until the first check with the index; what was just made is true."""
        if self._index.writer.get("checked_at") is None:
            with self._index.writer.transaction():
                self._index.writer.set("checked_at", int(time.time()))

    async def purge_now(self, path: str | None = None) -> int:
        """Delete every trace of the sources that are gone, or of the one at *path*; return how many."""
        purged = await self._purge(None, path)
        await self._prune(math.inf)
        await self._compact()  # until then the words stand in the full-text tables, the meaning in the matrix
        await self._postings.clean()
        await self._write(self._index.checkpoint)
        return purged

    async def _purge(self, before_s: int | None, path: str | None = None) -> int:
        purged = 0
        while some := await self._write(self._index.purge, before_s, PURGE_AT_ONCE, path):
            purged += some
        await self.count()
        if purged:
            log.info("purged", sources=purged)
        return purged

    async def _compact(self) -> None:
        done = False
        while not done:  # saves go between two slices
            done = await self._write(self._index.compact, COMPACT_BUDGET_S)
        log.info("compacted")
