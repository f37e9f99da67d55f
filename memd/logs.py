"""Logging: JSON lines for the journal, readable lines on a terminal; always on stderr.

Events contain names, numbers and codes. Note text, queries and paths inside a workspace are never passed to a
logger, so this module does not filter them.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

import structlog

from memd.errors import MemdError

log = structlog.get_logger()

# Per kind of event; a peer that constantly breaks the protocol must not fill a disk.
MOST_ALIKE = 20
ALIKE_S = 60.0


def configure(stream: TextIO, *, terminal: bool, verbose: bool = False) -> None:
    """Configure structlog for this process to write to *stream*; *verbose* adds connections and requests."""
    structlog.configure(
        processors=[
            _Throttle(),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=not terminal),
            _frames,
            structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Lossy(stream))),
        cache_logger_on_first_use=True,
    )


class _Lossy:
    """Drops what *stream* does not take, as on a full disk: a log line never fails the work it is about."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write *text* if possible."""
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        """Flush if possible."""
        with suppress(OSError):
            self._stream.flush()


@dataclass(slots=True)
class _Repeats:
    """The recent log lines of one kind of event."""

    since: float = field(default_factory=time.monotonic)
    count: int = 0
    dropped: int = 0


class _Throttle:
    """Drops an event that was logged often; the next one logged says how many were dropped."""

    def __init__(self) -> None:
        self._alike: defaultdict[str, _Repeats] = defaultdict(_Repeats)

    def __call__(self, _: object, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Return *event*, or drop it."""
        if level in ("debug", "info"):
            return event
        alike = self._alike[event["event"]]
        if time.monotonic() - alike.since > ALIKE_S:
            alike.since, alike.count = time.monotonic(), 0
        alike.count += 1
        if alike.count > MOST_ALIKE:
            alike.dropped += 1
            raise structlog.DropEvent
        if alike.dropped:
            event["dropped"], alike.dropped = alike.dropped, 0
        return event


def _frames(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Log the place of an exception instead of its message, which may quote a note."""
    if event.pop("exc_info", None):
        error = sys.exc_info()[1]
        event["exception"] = type(error).__name__
        event["frames"] = _places(error)
    return event


def catch_the_rest(loop: asyncio.AbstractEventLoop, *, on_no_memory: Callable[[], None]) -> None:
    """Log uncaught exceptions by class and place; Python would print their texts, too."""

    def in_loop(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, MemoryError):
            on_no_memory()
        what = type(error).__name__ if error else context.get("message")
        structlog.get_logger().error("uncaught", exception=what, frames=_places(error))

    def tell(error: BaseException | None) -> None:
        structlog.get_logger().error("uncaught", exception=type(error).__name__, frames=_places(error))

    loop.set_exception_handler(in_loop)
    threading.excepthook = lambda arguments: tell(arguments.exc_value)
    sys.excepthook = lambda _, error, __: tell(error)
    sys.unraisablehook = lambda raised: tell(raised.exc_value)


def _places(error: BaseException | None) -> list[str]:
    trace = error.__traceback__ if error else None
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]


def log_unforeseen(error: BaseException, method: str) -> None:
    """Log the place of an error, without its text and without any parameter."""
    if not isinstance(error, MemdError):
        log.error("request failed", method=method, error=type(error).__name__, where=_places(error))
