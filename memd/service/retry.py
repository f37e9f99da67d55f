"""What happens to a task that fails? It is noted and started again, later each time it fails soon."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from memd.errors import MemdError

log = structlog.get_logger()

RETRY_S = (1.0, 2.0, 5.0, 15.0, 60.0)  # after failures in a row; the last one repeats


async def again_and_again(
    loop: Callable[[], Awaitable[None]], *, stop: asyncio.Event, note: Callable[[Exception], None]
) -> None:
    """Run *loop* until *stop* is set; *note* hears of each failure."""
    failures = 0
    while not stop.is_set():
        began = time.monotonic()
        try:
            await loop()
        except (MemdError, OSError) as error:
            note(error)
        except Exception as error:
            log.exception("upkeep_failed")  # not one of ours: its place is worth knowing
            note(error)
        failures = 0 if time.monotonic() - began > RETRY_S[-1] else failures + 1
        await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S)) - 1])
