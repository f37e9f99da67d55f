"""What went wrong in one workspace, and what does it call for?"""

from collections.abc import Callable
from enum import Enum
from typing import Any

import structlog

from memd.errors import IndexDamagedError

log = structlog.get_logger()

KEPT = 10  # shown by `status`


class Reason(Enum):
    """Why a workspace must be opened again."""

    CONFIG = 0  # its configuration was saved, or is there again
    DAMAGED = 1  # its index cannot be read: it is set aside first
    FAILED = 2  # its device failed: what it says is on the disk must be looked at again


class Troubles:
    """The errors of one workspace, until they are mended."""

    def __init__(self, publish: Callable[[dict[str, Any]], None]) -> None:
        self.newest: list[str] = []  # the newest last
        self._publish = publish

    def note(self, error: Exception, *, device_failed: bool) -> Reason | None:
        """Keep an error; say it once and not at each try. Return why the workspace must be opened again."""
        text = f"{type(error).__name__}: {error}"
        if self.newest[-1:] != [text]:
            self.newest = [*self.newest, text][-KEPT:]
            log.warning("upkeep_retries", error=type(error).__name__, code=getattr(error, "code", None))
            self._publish({"event": "trouble", "text": text})
        if isinstance(error, IndexDamagedError):
            return Reason.DAMAGED
        return Reason.FAILED if device_failed else None

    def clear(self) -> None:
        """Forget them: whatever it was, it is mended."""
        self.newest = []
