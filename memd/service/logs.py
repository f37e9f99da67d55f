"""How does the log look? JSON for the journal, readable on a terminal; always on stderr.

Events carry names, numbers and codes. Note text, queries and paths inside a workspace are never given
to a logger, so there is nothing to filter here.
"""

import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog


def configure(*, terminal: bool) -> None:
    """Set structlog up for this process."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=not terminal),
            _frames,
            structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _frames(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Say where an exception came from, and not its message: that may quote a note."""
    if event.pop("exc_info", None):
        kind, _error, trace = sys.exc_info()
        event["exception"] = kind.__name__ if kind else "?"
        event["frames"] = [f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(trace)]
    return event
