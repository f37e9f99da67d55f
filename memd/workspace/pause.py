"""The pause of embedding: one for the whole daemon, held in memory, over by itself.

Words are indexed meanwhile; what waits is the model's work on notes. Nothing of it is on the disk, so
that a pause that somebody forgot ends with the daemon at the latest. For the event loop's thread.
"""

import asyncio
import time
from contextlib import suppress


class EmbeddingPause:
    """Whether embedding is held, and until when."""

    def __init__(self) -> None:
        self._stop_s = 0.0  # time.monotonic() when it ends
        self._changed = asyncio.Event()

    @property
    def left_s(self) -> float:
        """How long embedding is still held; 0 where it is not."""
        return max(0.0, self._stop_s - time.monotonic())

    @property
    def until(self) -> float | None:
        """The unix time at which it goes on; None where it is not held."""
        left_s = self.left_s
        return time.time() + left_s if left_s else None

    def hold(self, duration_s: float) -> None:
        """Hold embedding from now on for so long; it takes the place of a pause that is under way."""
        self._stop_s = time.monotonic() + duration_s
        self._changed.set()

    def end(self) -> bool:
        """Let embedding go on; False where it was not held."""
        was_held = self.left_s > 0
        self._stop_s = 0.0
        self._changed.set()
        return was_held

    async def over(self) -> None:
        """Wait until embedding may go on."""
        while left_s := self.left_s:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
