"""Supervision of background tasks: logs a failure and restarts the task, with growing delays.

A caller that waits for the task may have it restarted at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

import structlog

from memd.errors import IndexDamagedError, MemdError

log = structlog.get_logger()

RETRY_S = (1.0, 2.0, 5.0, 15.0, 60.0)  # after consecutive failures; the last one repeats


async def again_and_again(
    loop: Callable[[], Awaitable[None]],
    *,
    stop: asyncio.Event,
    at_once: asyncio.Event,
    note: Callable[[Exception], None],
    pauses_s: Sequence[float] = RETRY_S,
) -> None:
    """Run *loop* until *stop* is set; *note* receives each failure, and *at_once* ends the delay after it."""
    failures = 0
    pause_s = 0.0
    while not stop.is_set():
        began = time.monotonic()
        try:
            await loop()
        except (MemdError, OSError) as error:
            note(error)
        except Exception as error:
            log.exception("upkeep_failed")  # an unexpected exception: log its place
            note(error)
        # A task that ran for longer than its last delay counts as recovered.
        failures = 1 if time.monotonic() - began > max(pause_s, pauses_s[0]) else failures + 1
        pause_s = pauses_s[min(failures, len(pauses_s)) - 1]
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await at_once.wait()


KEPT = 10  # shown by `status`


class ReopenReason(Enum):
    """Why a workspace must be opened again."""

    CONFIG = 0  # its configuration was saved, or is there again
    DAMAGED = 1  # its index cannot be read: it is set aside first
    FAILED = 2  # its device failed: what it says is on the disk must be looked at again


class Troubles:
    """The errors of one workspace, until they are resolved."""

    def __init__(self, publish: Callable[[dict[str, Any]], None]) -> None:
        self.newest: list[str] = []  # the most recent one last
        self._publish = publish

    def note(self, error: Exception, *, device_failed: bool) -> ReopenReason | None:
        """Store an error, logging repetitions once; return why the workspace must be reopened, or None."""
        text = f"{type(error).__name__}: {error}"
        if self.newest[-1:] != [text]:
            self.newest = [*self.newest, text][-KEPT:]
            log.warning("upkeep_retries", error=type(error).__name__, code=getattr(error, "code", None))
            self._publish({"event": "trouble", "text": text})
        if isinstance(error, IndexDamagedError):
            return ReopenReason.DAMAGED
        return ReopenReason.FAILED if device_failed else None

    def clear(self) -> None:
        """Forget the errors, because their causes are gone."""
        self.newest = []
