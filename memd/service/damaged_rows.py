"""Repair of vectors that the disk changed while memd runs: forgotten, then embedded again in the background.

A query that meets such a row tells; the whole matrix is compared with its checksums then, since what
overwrote one row rarely stopped there. Beside queries and saves.
"""

import asyncio

import structlog

from memd.index.index import Index
from memd.service.vectorizing import Vectorizing, Write

log = structlog.get_logger()


class DamagedRows:
    """The damaged vectors of one workspace. For the event loop's thread."""

    def __init__(self, index: Index, vectors: Vectorizing, write: Write) -> None:
        self._index = index
        self._vectors = vectors
        self._write = write
        self._met = asyncio.Event()

    async def run(self) -> None:
        """Repair what queries meet, for ever. Raises what the disk says; call it again later."""
        loop = asyncio.get_running_loop()
        # A query that ends after the loop was closed has nobody to tell: the next start compares every row.
        self._index.tell_damaged = lambda: None if loop.is_closed() else _tell(loop, self._met)
        while True:
            await self._met.wait()
            await self._repair()
            self._met.clear()  # only now: a failure is tried again

    async def _repair(self) -> None:
        seen = self._index.snapshot.rows
        damaged = await asyncio.to_thread(seen.all_damaged)
        if not damaged:  # another matrix answers meanwhile
            return
        log.warning("rows_damaged", rows=len(damaged))
        await self._write(self._index.forget_damaged, seen, damaged)
        await self._vectors.count()
        self._vectors.wake()


def _tell(loop: asyncio.AbstractEventLoop, met: asyncio.Event) -> None:
    loop.call_soon_threadsafe(met.set)
