"""The Python client for asyncio: one connection to memd, many calls at once.

from memctl.async_client import AsyncClient

async with await AsyncClient.connect() as memd:
    one, other = await asyncio.gather(memd.search("breast cancer gene"), memd.search("sqlite wal"))
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from os import PathLike
from typing import Any, Self

from memctl.client import (
    CONNECT_TIMEOUT_S,
    LATE_S,
    READ_BYTES,
    Unreachable,
    connected_socket,
    frame_of,
    request_of,
    result_of,
)
from memctl.methods import CALL_TIMEOUT_S, AsyncMethods
from memctl.protocol import ANSWERS, MAX_ID, Decoder, Message, Notification, ProtocolError, Response

IN_FLIGHT = 16  # memd's limit for a connection: it answers another request with MEMD_BUSY
_CLOSED = "memd closed the connection; its log says why"

Progress = Callable[[dict[str, Any]], None]


class AsyncClient(AsyncMethods):
    """A connection to memd, for one event loop. Every method raises the errors of `call`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._places = asyncio.Semaphore(IN_FLIGHT)
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._progress: dict[int, Progress] = {}  # id of a call → its listener
        self._events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()  # None: the end
        self._lost: Unreachable | None = None
        self._receiving = asyncio.create_task(self._receive())

    @classmethod
    async def connect(
        cls, path: str | PathLike[str] | None = None, *, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> Self:
        """Connect like `memctl.client.Client.connect`, with the same errors."""
        connected = await asyncio.to_thread(connected_socket, path, timeout_s)
        return cls(*await asyncio.open_unix_connection(sock=connected))

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = CALL_TIMEOUT_S,
        on_progress: Progress | None = None,
    ) -> Any:
        """Call a method and wait for the answer, as `memctl.client.Client.call`, with the same errors.

        Beyond IN_FLIGHT calls, the latest ones wait for the first. After a timeout, other calls continue.
        """
        async with self._places:
            if self._lost is not None:
                raise self._lost
            id_ = self._last_id % MAX_ID + 1
            while id_ in self._waiting:
                id_ = id_ % MAX_ID + 1
            self._last_id = id_
            frame = frame_of(request_of(id_, method, params, timeout_s, reports=on_progress is not None))
            answered = self._waiting[id_] = asyncio.get_running_loop().create_future()
            if on_progress is not None:
                self._progress[id_] = on_progress
            try:
                self._writer.write(frame)
                async with asyncio.timeout(None if timeout_s is None else timeout_s + LATE_S):
                    return result_of(await answered, str(self._writer.get_extra_info("peername")))
            except TimeoutError as error:
                raise Unreachable(f"memd did not answer {method} in time. Check it: memctl status") from error
            finally:
                self._progress.pop(id_, None)
                if not answered.cancelled():  # a late answer may come: the id stays in use
                    self._waiting.pop(id_, None)

    async def events(self, workspace: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yield events of one workspace, or of all, from the first iteration on.

        memd sends no events while a request of the connection is open, so use a separate connection to follow
        for long. The events have the keys of `memctl.client.Client.events`.
        """
        await self.call("subscribe", {"workspace": workspace} if workspace else {})
        while (event := await self._events.get()) is not None:
            yield event
        raise self._lost or Unreachable("the connection to memd was closed")

    async def lost(self) -> Unreachable:
        """Wait until the connection has ended; return the reason."""
        await asyncio.wait([self._receiving])
        return self._lost or Unreachable("the connection to memd was closed")

    async def close(self) -> None:
        """Close the connection; the daemon cancels its open requests."""
        self._writer.close()
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        self._lose(Unreachable("the connection to memd was closed"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _receive(self) -> None:
        decoder = Decoder(ANSWERS)
        try:
            while received := await self._reader.read(READ_BYTES):
                for message in decoder.feed(received):
                    self._take(message)
        except ConnectionError:  # it ended before it had read all requests
            self._lose(Unreachable(_CLOSED))
        except ProtocolError as error:
            self._lose(Unreachable(f"an answer is not in memd's protocol: {error}"))
        except OSError as error:
            self._lose(Unreachable(f"the connection to memd broke: {error}"))
        else:
            self._lose(Unreachable(_CLOSED))

    def _take(self, message: Message) -> None:
        if isinstance(message, Response):
            answered = self._waiting.get(message.id)
            if answered is None:
                raise ProtocolError("an answer to a request that was not sent")
            if answered.cancelled():  # the caller has stopped waiting
                del self._waiting[message.id]
            elif not answered.done():
                answered.set_result(message)
        elif isinstance(message, Notification) and message.method == "event":
            self._events.put_nowait(message.params)
        elif isinstance(message, Notification) and message.method == "progress":
            self._report(message.params)

    def _report(self, progress: dict[str, Any]) -> None:
        """Pass progress to the listener of its call; the listener's exception becomes the call's error."""
        id_ = progress.get("id", 0)
        if id_ not in self._progress:
            return
        try:
            self._progress[id_](progress)
        except Exception as error:  # noqa: BLE001 - raised by the caller's code; the other calls continue
            if not self._waiting[id_].done():
                self._waiting[id_].set_exception(error)

    def _lose(self, error: Unreachable) -> None:
        """Fail all open calls with *error*, and end the iterator of events."""
        if self._lost is None:
            self._lost = error
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(error)
        self._waiting.clear()
        self._events.put_nowait(None)
        self._writer.close()
