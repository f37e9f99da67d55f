"""What happens to a task that fails? It is noted and started again, later each time it fails soon.

Whoever waits for the task may have it tried at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from memd.errors import MemdError

log = structlog.get_logger()

RETRY_S = (1.0, 2.0, 5.0, 15.0, 60.0)  # after failures in a row; the last one repeats


async def again_and_again(
    loop: Callable[[], Awaitable[None]],
    *,
    stop: asyncio.Event,
    at_once: asyncio.Event,
    note: Callable[[Exception], None],
) -> None:
    """Run *loop* until *stop* is set; *note* hears of each failure, *at_once* ends a pause after one."""
    failures = 0
    pause_s = 0.0
    while not stop.is_set():
        began = time.monotonic()
        try:
            await loop()
        except (MemdError, OSError) as error:
            note(error)
        except Exception as error:
            log.exception("upkeep_failed")  # not one of ours: its place is worth knowing
            note(error)
        # One that went well for longer than it was kept waiting is well again.
        failures = 1 if time.monotonic() - began > max(pause_s, RETRY_S[0]) else failures + 1
        pause_s = RETRY_S[min(failures, len(RETRY_S)) - 1]
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await at_once.wait()
