"""Who may connect, how much may they ask, and how does serving end?

Listens on sockets that are bound already and never binds or unlinks one: asyncio's own server would take a
path away from a living daemon without asking. Knows no method; `handle` gets them all.
"""

import asyncio
import os
import socket
from collections.abc import Sequence

from memd.service.accepting import BACKLOG, Accepting
from memd.service.call import Call, Deadlines, Handler, Limits, no_deadline
from memd.service.shared import Shared

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
    return Server(shared, Accepting(shared, sockets))


class Server:
    """What serves; close it."""

    def __init__(self, shared: Shared, accepting: Accepting) -> None:
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
