"""Is this daemon still the one that clients reach?

A daemon whose socket or lock was deleted or replaced looks alive and serves nobody, and a second one may
write to the same index. It had better end, and let the next client start one that can be reached
(facebook/watchman and gpg-agent look each minute, too).
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from memctl.protocol import ProtocolError, Reader, Request, Response, pack

PING_S = 5.0  # a loop so slow is the watchdog's business; it is no sign of another daemon


class Reachability:
    """What was true of socket and lock when the daemon began to listen."""

    def __init__(
        self, listeners: Sequence[socket.socket], *, lock: int, lock_path: Path, instance_id: str
    ) -> None:
        self._sockets = {path: _identity(path) for path in (one.getsockname() for one in listeners)}
        self._lock = lock
        self._lock_path = str(lock_path)
        self._instance_id = instance_id

    async def lost(self) -> str:
        """Return what is not as it was; "" while all is well."""
        held = os.fstat(self._lock)
        if _identity(self._lock_path) != (held.st_dev, held.st_ino):
            return "lock"
        for path, identity in self._sockets.items():
            if _identity(path) != identity or not await self._is_ours(path):
                return "socket"
        return ""

    async def _is_ours(self, path: str) -> bool:
        """Tell whether this daemon answers at *path*; True also where nobody says anything in time."""
        try:
            async with asyncio.timeout(PING_S):
                answer = await _asked(path)
        except TimeoutError:
            return True
        except (OSError, ProtocolError):
            return False
        # Closed unheard, or an error: that is this daemon as well, with too many clients or on its way down.
        if answer is None or answer.error is not None:
            return True
        return isinstance(answer.result, dict) and answer.result.get("instance_id") == self._instance_id


async def _asked(path: str) -> Response | None:
    """Ping whoever listens at *path*; None where the connection is closed without an answer, or must wait."""
    connected = socket.socket(socket.AF_UNIX)
    connected.settimeout(0)
    try:
        connected.connect(path)
    except OSError as error:
        connected.close()
        # Its queue is full. asyncio would wait for what Linux never tells, and take the socket for connected.
        if isinstance(error, BlockingIOError):
            return None
        raise
    incoming, outgoing = await asyncio.open_unix_connection(sock=connected)
    try:
        outgoing.write(pack(Request(1, "ping", {})))
        reader = Reader()
        while received := await incoming.read(1 << 16):
            for message in reader.feed(received):
                if isinstance(message, Response):
                    return message
        return None
    finally:
        outgoing.close()
        with contextlib.suppress(OSError):
            await outgoing.wait_closed()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
