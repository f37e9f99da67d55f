"""The Python client for an event loop: one connection to memd, many calls at once.

from memctl.async_client import AsyncClient

async with await AsyncClient.connect() as memd:
    one, other = await asyncio.gather(memd.search("breast cancer gene"), memd.search("sqlite wal"))
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from os import PathLike
from types import TracebackType
from typing import Any, Self

from memctl.client import (
    CONNECT_TIMEOUT_S,
    LATE_S,
    READ_BYTES,
    RpcError,
    Unreachable,
    connected_socket,
    frame_of,
    request_of,
    result_of,
    told_by_older,
)
from memctl.methods import CALL_TIMEOUT_S, AsyncMethods
from memctl.protocol import ANSWERS, MAX_ID, Decoder, Message, Notification, ProtocolError, Response

IN_FLIGHT = 16  # memd's limit for a connection: it tells one request more that it is busy
_CLOSED = "memd closed the connection; its log says why"

Progress = Callable[[dict[str, Any]], None]


class AsyncClient(AsyncMethods):
    """A connection to memd, for one event loop. Every method raises as `call` does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._places = asyncio.Semaphore(IN_FLIGHT)
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._progress: dict[int, Progress] = {}  # id of a call → who wants to hear of it
        self._events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()  # None: there is no more
        self._lost: Unreachable | None = None
        self._receiving = asyncio.create_task(self._receive())

    @classmethod
    async def connect(
        cls, path: str | PathLike[str] | None = None, *, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> Self:
        """Connect as `memctl.client.Client.connect` does, with the same errors."""
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
        """
        Ask and wait for the answer; of more than IN_FLIGHT calls the last ones wait for the first.

        Args:
            method: as docs/protocol.md lists them, "search".
            params: string keys, values of JSON's kinds.
            timeout_s: how long the call may take; None: as long as the daemon lives.
            on_progress: gets each progress notification of this call.

        Raises:
            RpcError: the daemon answered with an error; the connection is still good.
            Unreachable: there was no answer; after a timeout, other calls go on.
        """
        async with self._places:
            if self._lost is not None:
                raise self._lost
            self._last_id = id_ = self._free_id()
            frame = frame_of(request_of(id_, method, params, timeout_s, reports=on_progress is not None))
            answered = self._waiting[id_] = asyncio.get_running_loop().create_future()
            if on_progress is not None:
                self._progress[id_] = on_progress
            try:
                self._writer.write(frame)
                async with asyncio.timeout(None if timeout_s is None else timeout_s + LATE_S):
                    return result_of(await answered)
            except RpcError as error:
                told = told_by_older(error, str(self._writer.get_extra_info("peername")))
                if told is error:
                    raise
                raise told from error
            except TimeoutError as error:
                raise Unreachable(
                    f"memd did not answer {method} in time. Is it well? memctl status"
                ) from error
            finally:
                self._progress.pop(id_, None)
                if not answered.cancelled():  # else the answer may still come, and the id is in use
                    self._waiting.pop(id_, None)

    async def events(self, workspace: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """
        Yield what happens from the first step on: in one workspace, or in all of them.

        memd tells nothing while a request of the connection is open: who follows for long uses a connection
        of its own. The keys are those of `memctl.client.Client.events`.
        """
        await self.call("subscribe", {"workspace": workspace} if workspace else {})
        while (event := await self._events.get()) is not None:
            yield event
        raise self._lost or Unreachable("the connection to memd was closed")

    async def lost(self) -> Unreachable:
        """Wait until there is no connection any more; return why."""
        await asyncio.wait([self._receiving])
        return self._lost or Unreachable("the connection to memd was closed")

    async def close(self) -> None:
        """Close the connection; what the daemon still does for it is cancelled."""
        self._writer.close()
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        self._lose(Unreachable("the connection to memd was closed"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _free_id(self) -> int:
        """Return the next id whose answer is not waited for."""
        id_ = self._last_id % MAX_ID + 1
        while id_ in self._waiting:
            id_ = id_ % MAX_ID + 1
        return id_

    async def _receive(self) -> None:
        decoder = Decoder(ANSWERS)
        try:
            while received := await self._reader.read(READ_BYTES):
                for message in decoder.feed(received):
                    self._take(message)
        except ConnectionResetError:  # it was killed, and had not read all that was sent to it
            self._lose(Unreachable(_CLOSED))
        except (ProtocolError, OSError) as error:
            self._lose(Unreachable(f"the connection to memd broke: {error}"))
        else:
            self._lose(Unreachable(_CLOSED))

    def _take(self, message: Message) -> None:
        if isinstance(message, Response):
            answered = self._waiting.get(message.id)
            if answered is None:
                raise ProtocolError("an answer to a question that was not asked")
            if answered.cancelled():  # nobody waits for it any more
                del self._waiting[message.id]
            elif not answered.done():
                answered.set_result(message)
        elif isinstance(message, Notification) and message.method == "event":
            self._events.put_nowait(message.params)
        elif isinstance(message, Notification) and message.method == "progress":
            self._report(message.params)

    def _report(self, progress: dict[str, Any]) -> None:
        """Tell a call of its progress; what its listener raises is that call's error."""
        id_ = progress.get("id", 0)
        if id_ not in self._progress:
            return
        try:
            self._progress[id_](progress)
        except Exception as error:  # noqa: BLE001 - the caller's own, and the other calls go on
            if not self._waiting[id_].done():
                self._waiting[id_].set_exception(error)

    def _lose(self, error: Unreachable) -> None:
        """Let every call know that there will be no answer."""
        if self._lost is None:
            self._lost = error
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(error)
        self._waiting.clear()
        self._events.put_nowait(None)
        self._writer.close()
