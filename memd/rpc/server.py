"""The server: takes connections off listening sockets, limits their number, and closes them in order.

Listens on sockets that are bound already and never binds or unlinks one: asyncio's own server would take a
path away from a living daemon. asyncio's server also accepts every connection, until no descriptor is left
to read a note with; here a connection past the limit is accepted only to be told so, and the others wait in
the kernel's queue. Knows no method; `handle` gets every request.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Sequence

import structlog

from memd.rpc.connection import Connection, Shared
from memd.rpc.context import Call, Deadlines, Handler, Limits, no_deadline

log = structlog.get_logger()

# Connects that the kernel keeps waiting; one more is EAGAIN to an editor, which does not try again. Linux
# cuts it to net.core.somaxconn.
BACKLOG = 1024
AT_ONCE = 64  # taken before others have their turn: a few milliseconds
RETRY_S = 0.5  # after the system had no descriptor or no memory for a connection


class Acceptor:
    """Takes connections off listening sockets. On the event loop's thread."""

    def __init__(self, shared: Shared, listeners: Sequence[socket.socket]) -> None:
        """Begin at once; *listeners* are closed by `stop`."""
        self._shared = shared
        self._listeners = listeners
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._waits = True
        self._ended = False
        for listening in listeners:
            listening.settimeout(0)
            listening.listen(BACKLOG)
        self._go_on()

    def stop(self) -> None:
        """Take nothing more, and close the listening sockets."""
        self._wait()
        self._ended = True
        for listening in self._listeners:
            listening.close()

    async def begun(self) -> None:
        """Wait until every connection that was taken is one that can be ended."""
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _take_some(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            if self._waits:
                return
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("connections wait", reason=errno.errorcode.get(error.errno or 0, "unknown"))
                self._wait()
                self._loop.call_later(RETRY_S, self._go_on)
                return
            self._take(accepted)

    def _take(self, accepted: socket.socket) -> None:
        has_room = self._shared.has_room(accepted.fileno())
        # One that is idle costs its client a new connection; being refused costs a request.
        idle = None if has_room else self._shared.make_room()
        connection = Connection(self._shared, over_limit=not has_room and idle is None)
        self._shared.connections.add(connection)
        connection.closed.add_done_callback(lambda _: self._go_on())
        beginning = self._loop.create_task(self._begin(connection, accepted, idle))
        self._beginning.add(beginning)
        beginning.add_done_callback(self._beginning.discard)
        if idle or self._shared.is_full(accepted.fileno()):
            self._wait()

    async def _begin(self, connection: Connection, accepted: socket.socket, idle: Connection | None) -> None:
        if idle:  # its descriptor is taken over: the highest number in use says how many there are
            await idle.closed
            with accepted:
                accepted = accepted.dup()
            accepted.settimeout(0)
        await self._loop.connect_accepted_socket(lambda: connection, accepted)

    def _wait(self) -> None:
        if not self._waits:
            self._waits = True
            for listening in self._listeners:
                self._loop.remove_reader(listening)

    def _go_on(self) -> None:
        if self._waits and not self._ended:
            self._waits = False
            for listening in self._listeners:
                self._loop.add_reader(listening, self._take_some, listening)


__all__ = ["BACKLOG", "Call", "Deadlines", "Handler", "Limits", "Server", "serve"]

# How long the last replies may take to leave; a client that reads needs microseconds.
FLUSH_S = 0.5


async def serve(
    sockets: Sequence[socket.socket],
    handle: Handler,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    deadline_s: Deadlines = no_deadline,
    uid: int | None = None,
) -> "Server":
    """
    Serve on *sockets* until `close`.

    Args:
        sockets: Unix sockets, bound and listening; closed by `close`, their paths left alone.
        handle: gets method, params and Call; its result is the reply, a MemdError the error.
            It is cancelled when its client leaves or its deadline passes: shield what must be finished.
        limits: what a client may take.
        deadline_s: seconds for each method, None for those without a limit; a client may ask for less.
        uid: whose processes may connect; None: this process's effective user.
    """
    shared = Shared(handle, limits, deadline_s, os.geteuid() if uid is None else uid)
    return Server(shared, Acceptor(shared, sockets))


class Server:
    """What serves; close it."""

    def __init__(self, shared: Shared, accepting: Acceptor) -> None:
        self._shared = shared
        self._accepting = accepting

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._shared.connections)

    @property
    def in_flight(self) -> int:
        """How many requests are being worked on."""
        return len(self._shared.tasks)

    def stop_accepting(self) -> None:
        """Take no new connection; answer new requests on the old ones with MEMD_STOPPING."""
        self._shared.stopping = True
        self._accepting.stop()

    async def close(self, *, grace_s: float = 1.0) -> None:
        """
        End all connections; returns after grace_s and a second at the latest, whatever clients do.

        Args:
            grace_s: how long open requests may go on before they are cancelled and told MEMD_STOPPING.
        """
        self.stop_accepting()
        await self._accepting.begun()
        if self._shared.tasks:
            await asyncio.wait(self._shared.tasks, timeout=grace_s)
        await asyncio.sleep(0)  # finished tasks hand in their replies
        ending = list(self._shared.connections)
        for connection in ending:
            connection.end()
        if ending:
            await asyncio.wait([connection.closed for connection in ending], timeout=FLUSH_S)
        for connection in list(self._shared.connections):
            connection.abort()
        await asyncio.sleep(0)  # aborted transports close their sockets in the next turn
