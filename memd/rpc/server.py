"""The server: accepts connections on listening sockets, limits their number, and closes them in order.

Listens on sockets that are already bound, and never binds or unlinks one: asyncio's own server would remove
the path of a running daemon. It would also accept every connection, until no descriptor is left to read a
note with; here a connection over the limit is accepted only to be refused with an error, and others wait in
the kernel's queue. Knows no method; `handle` gets every request.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Sequence

import structlog

from memd.rpc.connection import Connection, Shared, has_left
from memd.rpc.context import Deadlines, Handler, Limits

log = structlog.get_logger()

# Connections that the kernel keeps waiting; one more is EAGAIN to an editor, which does not retry. Linux
# limits it to net.core.somaxconn.
BACKLOG = 1024
AT_ONCE = 64  # accepted before other work has its turn: a few milliseconds
RETRY_S = 0.5  # after the system lacked a descriptor or memory for a connection
# Time for the last replies to be sent; a client that reads needs microseconds.
FLUSH_S = 0.5


async def serve(
    sockets: Sequence[socket.socket],
    handle: Handler,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    deadline_s: Deadlines = lambda _: None,
    uid: int | None = None,
) -> "RpcServer":
    """Serve on *sockets*, bound and listening, until `close`, which leaves their paths.

    *handle* gets method, params and Call; its result is the reply, a MemdError the error. It is cancelled
    when its client leaves or its deadline passes: shield what must be finished. *uid*: whose processes may
    connect; None: this process's effective user.
    """
    shared = Shared(handle, limits, deadline_s, os.geteuid() if uid is None else uid)
    return RpcServer(shared, sockets)


class RpcServer:
    """A running server; the owner must close it. For the event loop's thread."""

    def __init__(self, shared: Shared, listeners: Sequence[socket.socket]) -> None:
        """Accept connections at once; `stop_accepting` closes the *listeners*."""
        self.is_full = True  # whether new connections wait: there are too many, or the system has no room
        self._shared = shared
        self._listeners = listeners
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        for listening in listeners:
            listening.settimeout(0)
            listening.listen(BACKLOG)
        self._go_on()

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self._shared.connections)

    @property
    def in_flight(self) -> int:
        """The number of requests in progress."""
        return len(self._shared.tasks)

    def stop_accepting(self) -> None:
        """Accept no new connections; answer new requests on existing ones with MEMD_STOPPING."""
        self._shared.stopping = True
        self._wait()
        for listening in self._listeners:
            listening.close()

    async def close(self, *, grace_s: float = 1.0) -> None:
        """End all connections, whatever clients do; open requests may continue for *grace_s*.

        Then they are cancelled with MEMD_STOPPING; this returns a second later at the latest.
        """
        self.stop_accepting()
        if self._beginning:  # every accepted connection is set up first, so that it can be closed
            await asyncio.wait(self._beginning)
        if self._shared.tasks:
            await asyncio.wait(self._shared.tasks, timeout=grace_s)
        await asyncio.sleep(0)  # finished tasks hand over their replies
        ending = list(self._shared.connections)
        for connection in ending:
            connection.end()
        if ending:
            await asyncio.wait([connection.closed for connection in ending], timeout=FLUSH_S)
        for connection in list(self._shared.connections):
            connection.abort()
        await asyncio.sleep(0)  # aborted transports close their sockets in the next iteration

    def _take_some(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            if self.is_full:
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
            if has_left(accepted):
                accepted.close()  # it must not cost an idle client its place
            else:
                self._take(accepted)

    def _take(self, accepted: socket.socket) -> None:
        has_room = self._shared.has_room(accepted.fileno())
        # Closing an idle connection costs its client a reconnect; refusing this one would cost a request.
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
        if idle:  # its descriptor is reused: the highest number in use shows how many there are
            await idle.closed
            with accepted:
                accepted = accepted.dup()
            accepted.settimeout(0)
        await self._loop.connect_accepted_socket(lambda: connection, accepted)

    def _wait(self) -> None:
        if not self.is_full:
            self.is_full = True
            for listening in self._listeners:
                self._loop.remove_reader(listening)

    def _go_on(self) -> None:
        if self.is_full and not self._shared.stopping:
            self.is_full = False
            for listening in self._listeners:
                self._loop.add_reader(listening, self._take_some, listening)
