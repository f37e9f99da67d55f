"""What a connection and a method share: the limits of a server, the `Call` of a method, frames of answers.

Errors are `[0 | 1, "CODE: text"]`, the one shape whose text Neovim shows. An exception that nobody foresaw is
told by its class and place alone: its text may quote a note, and this peer may not know that note.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from memctl.protocol import FrameTooLargeError, Notification, Response, pack, pack_answer, pack_value
from memd.errors import InvalidError, MemdError
from memd.events import Listener, Unlisten
from memd.logs import log_unforeseen

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a client may take before it is told MEMD_BUSY or is cut off."""

    connections: int = 256  # a quarter of the usual 1,024 file descriptors
    refused_connections: int = (
        32  # past the limit, kept just long enough to be told so; more wait to be let in
    )
    # File descriptors that are left for databases, matrices and notes where the process may have few.
    spare_descriptors: int = 16
    least_connections: int = (
        4  # served however few descriptors there are: else nobody could ask what is wrong
    )
    in_flight_per_connection: int = 16
    # Of these, worked on at the same time. Answers of a megabyte that nobody reads are so many megabytes; two
    # reading threads are kept busy by half as many.
    at_once_per_connection: int = 4
    in_flight: int = 256  # requests of all connections together
    frame_s: float = 5.0  # from a frame's first byte to its last
    write_high_water_bytes: int = 256 << 10  # unsent bytes at which nothing more is read from a client
    drain_s: float = 10.0  # how long a client may leave its answers lying


@dataclass(frozen=True, slots=True)
class Call:
    """One request as its method sees it."""

    id: int
    client: dict[str, Any]  # uid and pid; one dict a connection, memd.hello may add to it
    deadline: float | None  # in loop.time(), which is time.monotonic(); None: as long as it takes
    notify: Callable[[dict[str, Any]], None]
    # Begins to listen for this connection, which sends what it hears until it ends or follows something else.
    follow: Callable[[Callable[[Listener], Unlisten]], None]
    left: Callable[[], bool]  # whether the client is gone; from any thread
    outlives: Callable[[str], None]  # says what goes on after the deadline, for the error's text
    started: float = field(default_factory=time.monotonic)  # when it came, in loop.time()

    def age_ms(self) -> float:
        """Return how long ago the request came. From any thread."""
        return round((time.monotonic() - self.started) * 1000, 3)

    def is_over(self) -> bool:
        """Tell whether nobody waits for the answer any more. From any thread: reads end when it says so."""
        return self.left() or (self.deadline is not None and time.monotonic() > self.deadline)

    async def to_the_end(self, work: Coroutine[Any, Any, T], goes_on: str) -> T:
        """Do *work* also when nobody waits for it any more; who gave up waiting was told *goes_on*."""
        self.outlives(goes_on)
        return await asyncio.shield(work)

    def progress(self, message: dict[str, Any]) -> None:
        """Tell the caller how far the work is, if it asked for that. From any thread; may be dropped."""
        self.notify(message)


Handler = Callable[[str, dict[str, Any], Call], Awaitable[Any]]

# Method → seconds it may take, None without a limit; a table's `get` is such a function.
Deadlines = Callable[[str], float | None]


def no_deadline(method: str) -> float | None:  # noqa: ARG001 - the signature is that of Deadlines
    """Let every method take as long as it likes."""
    return None


Result = TypeVar("Result")
Made = TypeVar("Made", bound=msgspec.Struct)
_ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Packed(Generic[Result]):
    """A result that is MessagePack already: the thread that made it has encoded it, too."""

    result: bytes


def packed(result: Made) -> Packed[Made]:
    """Return a struct as it travels: MessagePack of a map; what is UNSET has no key."""
    try:
        return Packed(_ENCODER.encode(result))
    except UnicodeEncodeError:  # a file's name that is no UTF-8: it travels as the bytes that it is
        return Packed(pack_value(msgspec.to_builtins(result)))


def wire_error(error: BaseException, method: str) -> list[object]:
    """Return the error's form on the wire."""
    if isinstance(error, MemdError):
        return [int(error.callers_fault), f"{error.code}: {error}"]
    text = (
        f"{MemdError.code}: {method} failed with {type(error).__name__}. This is a bug in memd; "
        "its log names the place (journalctl --user -u memd, or memd.log in the state directory)"
    )
    return [0, text]


def frame_of(response: Response, method: str) -> bytes:
    """Return the reply's bytes; where it can't be sent as it is, those of an error that says why."""
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
    """Return an event's bytes; none for one that can't be sent, which is a bug and costs that event alone."""
    try:
        return pack(Notification("event", fields))
    except Exception as error:  # noqa: BLE001 - whoever told of the event is in the middle of other work
        log_unforeseen(error, "event")
        return b""
