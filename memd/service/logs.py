"""How does the log look? JSON for the journal, readable on a terminal; always on stderr.

Events carry names, numbers and codes. Note text, queries and paths inside a workspace are never given
to a logger, so there is nothing to filter here.
"""

import asyncio
import sys
import threading
import traceback
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog


def configure(stream: TextIO, *, terminal: bool) -> None:
    """Set structlog up for this process, to write to *stream*."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=not terminal),
            _frames,
            structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )


def _frames(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Say where an exception came from, and not its message: that may quote a note."""
    if event.pop("exc_info", None):
        error = sys.exc_info()[1]
        event["exception"] = type(error).__name__
        event["frames"] = _places(error)
    return event


def catch_the_rest(loop: asyncio.AbstractEventLoop) -> None:
    """Log what nobody caught by class and place; asyncio and threading would print its text, too."""

    def in_loop(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        what = type(error).__name__ if error else context.get("message")
        structlog.get_logger().error("uncaught", exception=what, frames=_places(error))

    def in_thread(arguments: threading.ExceptHookArgs) -> None:
        structlog.get_logger().error(
            "uncaught", exception=arguments.exc_type.__name__, frames=_places(arguments.exc_value)
        )

    loop.set_exception_handler(in_loop)
    threading.excepthook = in_thread


def _places(error: BaseException | None) -> list[str]:
    trace = error.__traceback__ if error else None
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
