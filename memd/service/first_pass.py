"""When are the codes for the first pass read and made? In the background, beside queries and saves."""

import asyncio
import time

import structlog

from memd.errors import MemdError
from memd.index.first_pass import DamagedFileError
from memd.index.first_pass_build import Building, TooRoughError
from memd.index.index import Index
from memd.service.vectorizing import Write

log = structlog.get_logger()

# Of one core at a time, and as long a pause after it: of two cores a quarter is used for half a minute.
BUILD_BUDGET_S = 0.1
RETRY_S = 3600.0  # after one that failed: the disk is full, or worse


class FirstPassFile:
    """The codes of one workspace's index. For the event loop's thread."""

    def __init__(self, index: Index, write: Write) -> None:
        self._index = index
        self._write = write
        self._working = asyncio.Lock()  # one at a time
        self._not_before = 0.0

    async def load(self) -> None:
        """Read the file that is there; until then, and where it is damaged, every vector is scanned."""
        async with self._working:
            read = await self._write(self._index.first_pass.stored)
            if read is None:
                return
            try:
                found = await asyncio.to_thread(read)
            except (DamagedFileError, ImportError, OSError) as error:
                log.warning("codes_not_usable", kind=type(error).__name__)
                await self._write(self._index.first_pass.drop)
            else:
                await self._write(self._index.first_pass.take, found)

    async def renew_if_due(self, *, is_idle: bool) -> None:
        """Make it anew if that is worth it by now; *is_idle*: nothing else is to be done."""
        await self.load()
        async with self._working:
            if time.monotonic() > self._not_before and await self._write(self._is_due, is_idle):
                await self._renew()

    async def _renew(self) -> None:
        building: Building = await self._write(self._index.first_pass.begin)
        try:
            done = False
            while not done:
                done = await asyncio.to_thread(building.step, BUILD_BUDGET_S)
                await asyncio.sleep(BUILD_BUDGET_S)
            adopted = await self._write(self._index.first_pass.adopt, building)
        except (TooRoughError, ImportError) as error:
            await self._write(self._index.first_pass.refuse, building)
            log.warning("codes_not_made", kind=type(error).__name__)
        except MemdError as error:
            self._not_before = time.monotonic() + RETRY_S
            log.warning("codes_not_made", code=error.code)
        except BaseException:
            building.abandon()
            raise
        else:
            log.info("codes_made", adopted=adopted, rows=building.rows.count)

    def _is_due(self, is_idle: bool) -> bool:  # noqa: FBT001 - `write` hands on what has a place, no name
        return self._index.first_pass.is_due(is_busy=not is_idle)
