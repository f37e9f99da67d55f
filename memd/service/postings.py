"""When is the file of postings made? In the background, beside queries and saves, when it is due."""

import asyncio
import time

import structlog

from memd.errors import MemdError
from memd.index.index import Index
from memd.service.vectorizing import Write

log = structlog.get_logger()

# Of one core at a time, and as long a pause after it: of two cores a quarter is used for a minute or two.
BUILD_BUDGET_S = 0.1
RETRY_S = 3600.0  # after one that failed: the disk is full, or worse


class PostingsFile:
    """The file of one workspace's index. For the event loop's thread."""

    def __init__(self, index: Index, write: Write) -> None:
        self._index = index
        self._write = write
        self._making = asyncio.Lock()  # one at a time
        self._not_before = 0.0

    async def renew_if_due(self, *, is_idle: bool) -> None:
        """Make it anew if that is worth it by now; *is_idle*: nothing else is to be done."""
        async with self._making:
            if time.monotonic() > self._not_before and await self._write(self._is_due, is_idle):
                await self._renew(pauses=True)

    async def clean(self) -> None:
        """Leave nothing in it of what was purged."""
        async with self._making:
            if await self._write(self._holds_purged):
                await self._renew(pauses=False)
            if await self._write(self._holds_purged):
                await self._write(self._index.inverted.drop)

    async def _renew(self, *, pauses: bool) -> None:
        building = await self._write(self._index.inverted.begin, self._index.view_apart)
        try:
            done = False
            while not done:
                done = await asyncio.to_thread(building.step, BUILD_BUDGET_S)
                await asyncio.sleep(BUILD_BUDGET_S if pauses else 0)
            adopted = await self._write(self._index.inverted.adopt, building)
        except MemdError as error:
            self._not_before = time.monotonic() + RETRY_S
            log.warning("postings_not_made", code=error.code)
        except BaseException:
            building.abandon()
            raise
        else:
            log.info("postings_made", adopted=adopted)

    def _is_due(self, is_idle: bool) -> bool:  # noqa: FBT001 - `write` hands on what has a place, no name
        return self._index.inverted.is_due(self._index.snapshot, is_busy=not is_idle)

    def _holds_purged(self) -> bool:
        return self._index.inverted.holds_purged
