"""The types that connections and methods share: `Limits`, the `Call` of a method, encoded answers.

Errors are `[0 | 1, "CODE: text"]`, the one shape whose text Neovim shows. Of an unexpected exception only
class and place are told: its text may quote a note, which this peer may not be allowed to see.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import structlog

from memctl.protocol import FrameTooLargeError, Notification, Request, Response, pack, pack_answer, pack_value
from memd.errors import InvalidError, MemdError
from memd.events import Listener, Unlisten
from memd.logs import log_unforeseen

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a client may use before it gets MEMD_BUSY or is disconnected."""

    connections: int = 256  # a quarter of the usual 1,024 file descriptors
    # Over the limit, kept only until they are told so; others wait in the kernel's queue.
    refused_connections: int = 32
    # File descriptors reserved for databases, matrices and notes if the process may open only few.
    spare_descriptors: int = 16
    # Served however few descriptors there are, so that a user can ask what is wrong.
    least_connections: int = 4
    in_flight_per_connection: int = 16
    # How many of these are processed at the same time. Each may hold an unread answer of a megabyte; half as
    # many keep two reading threads busy.
    at_once_per_connection: int = 4
    in_flight: int = 256  # requests of all connections together
    frame_s: float = 5.0  # from a frame's first byte to its last
    write_high_water_bytes: int = 256 << 10  # of unsent data, above which nothing more is read from a client
    drain_s: float = 10.0  # how long a client may leave its answers unread


@dataclass(slots=True, eq=False)
class Call:
    """One request, from its arrival to its reply, for its method and its connection."""

    request: Request
    client: dict[str, Any]  # uid and pid; one dict per connection, to which memd.hello may add
    deadline: float | None  # in loop.time(), which is time.monotonic(); None: without a limit
    tell: Callable[["Call", dict[str, Any]], None]  # sends the client progress; thread-safe
    # Starts a subscription of this connection, which lasts until it ends or follows something else.
    follow: Callable[[Callable[[Listener], Unlisten]], None]
    left: Callable[[], bool]  # whether the client is gone; thread-safe
    started: float = field(default_factory=time.monotonic)  # when the request arrived, in loop.time()
    goes_on: str = ""  # the work that continues after the deadline, for the error's text
    is_answered: bool = False
    has_turn: bool = False  # it is one of the few requests of its connection that are processed now
    timer: asyncio.TimerHandle | None = None  # of the deadline

    def progress(self, message: dict[str, Any]) -> None:
        """Tell the client, if it asked; a report may be dropped. Thread-safe."""
        # An unexpected notification can close the channel of a Neovim that waits for an answer.
        if self.request.params.get("progress") is True:
            self.tell(self, message)

    def age_ms(self) -> float:
        """Return the age of the request. Thread-safe."""
        return round((time.monotonic() - self.started) * 1000, 3)

    def is_over(self) -> bool:
        """Return whether the client has stopped waiting for the answer. Thread-safe; ends reads early."""
        return self.left() or (self.deadline is not None and time.monotonic() > self.deadline)

    async def to_the_end(self, work: Coroutine[Any, Any, T], goes_on: str) -> T:
        """Complete *work* even if the client stops waiting; a client that times out is told *goes_on*."""
        self.goes_on = goes_on
        return await asyncio.shield(work)


Handler = Callable[[str, dict[str, Any], Call], Awaitable[Any]]

# Method → its time limit in seconds, None for no limit; a table's `get` is such a function.
Deadlines = Callable[[str], float | None]

_ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Packed:
    """A result that is already MessagePack, encoded in the thread that made it."""

    result: bytes


def packed(result: msgspec.Struct) -> Packed:
    """Return a struct as a MessagePack map; fields that are UNSET have no key."""
    try:
        return Packed(_ENCODER.encode(result))
    except UnicodeEncodeError:  # a file name that is not UTF-8 is sent as its bytes
        return Packed(pack_value(msgspec.to_builtins(result)))


def wire_error(error: BaseException, method: str) -> list[object]:
    """Return the wire format of an error."""
    if isinstance(error, MemdError):
        return [int(error.callers_fault), f"{error.code}: {error}"]
    text = (
        f"{MemdError.code}: {method} failed with {type(error).__name__}. This is a bug in memd; "
        "its log names the place (journalctl --user -u memd, or memd.log in the state directory)"
    )
    return [0, text]


def frame_of(response: Response, method: str) -> bytes:
    """Return the bytes of a reply; if it cannot be encoded, those of an error that says why."""
    try:
        if isinstance(response.result, Packed):
            return pack_answer(response.id, response.result.result)
        return pack(response)
    except FrameTooLargeError as error:
        ask = "ask for less: a smaller limit, or lines instead of a whole source"
        return pack(
            Response(response.id, wire_error(InvalidError(f"the answer is {error}; {ask}"), method), None)
        )
    except Exception as error:  # noqa: BLE001 - a bug in one method must not cost the connection
        log_unforeseen(error, method)
        return pack(Response(response.id, wire_error(error, method), None))


def event_frame(fields: dict[str, Any]) -> bytes:
    """Return the bytes of an event; b"" if it cannot be encoded, a bug that costs only that event."""
    try:
        return pack(Notification("event", fields))
    except Exception as error:  # noqa: BLE001 - whoever told of the event is in the middle of other work
        log_unforeseen(error, "event")
        return b""
