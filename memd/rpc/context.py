"""What a connection and a method share: the limits of a server, and the Call that a method gets."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memd.events import Listener, Unlisten

T = TypeVar("T")


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
