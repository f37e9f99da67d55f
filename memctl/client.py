"""The Python client: one blocking connection to memd.

It imports only msgpack and a few modules of the standard library, so a script or hook starts in milliseconds.
It never starts a daemon: memctl.launch does. `memctl.async_client` is the client for asyncio.

    from memctl.client import Client

    with Client.connect() as memd:
        answer = memd.search("breast cancer gene", workspace="/home/me/notes")
        for hit in answer["hits"]:
            print(hit["path"], hit["start_line"], hit["snippet"])
        for event in memd.events("/home/me/notes"):
            print(event["event"], event.get("paths"))
"""

import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from os import PathLike, environ, fspath, kill
from os.path import dirname
from typing import TYPE_CHECKING, Any, Self

from memctl.errors import NoDaemonError, RpcError, Unreachable
from memctl.methods import CALL_TIMEOUT_S, Methods
from memctl.paths import PathError as MustMendError
from memctl.paths import check_private_dir, check_socket, reason_and_cure, socket_place, state_place
from memctl.protocol import (
    ANSWERS,
    API_LEVEL,
    MAX_ID,
    Decoder,
    FrameTooLargeError,
    Message,
    Notification,
    ProtocolError,
    Request,
    Response,
    pack,
)

if TYPE_CHECKING:
    from memctl.lock import Holder

__all__ = ["Client", "MustMendError", "NoDaemonError", "RpcError", "Unreachable"]  # for users of the client

CONNECT_TIMEOUT_S = 5.0  # a Unix socket connects at once, or its queue is full
LATE_S = 1.0  # wait for memd's MEMD_TIMEOUT answer, which it sends at the deadline

READ_BYTES = 256 << 10
_QUEUE_FULL_S = 0.01  # arbitrary: the daemon accepts a whole queue in less time
_CURES = {  # by the method that got no answer
    "status": "Restart it: memctl restart",
    "extract_memory": "The entry may still be written: check before you try again",
}


class Client(Methods):
    """A connection to memd, for one thread. Every method raises the errors of `call`."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._reader = Decoder(ANSWERS)
        self._last_id = 0
        self._inbox: deque[Message] = deque()  # received, but not processed yet
        self._events: deque[dict[str, Any]] = deque()  # received while waiting for an answer

    @classmethod
    def connect(
        cls, path: str | PathLike[str] | None = None, *, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> Self:
        """Connect to the daemon at *path*; None: at the user's default socket.

        If nothing listens at the default socket, the socket in the lock of the state directory is tried: the
        daemon's environment may have had another XDG_RUNTIME_DIR.

        Raises:
            NoDaemonError: nothing listens at the socket.
            MustMendError: a folder or file must be fixed first.
            Unreachable: a daemon listens, but the connection failed.
        """
        return cls(connected_socket(path, timeout_s))

    @property
    def place(self) -> str:
        """The path of the socket."""
        return str(self._socket.getpeername())

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = CALL_TIMEOUT_S,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Any:
        """Call a method and wait for the answer.

        Args:
            method: a name from docs/protocol.md, as "search".
            params: string keys, values of the types of JSON.
            timeout_s: how long the call may take; None: without limit. With *on_progress*: how long the
                daemon may be silent.
            on_progress: gets each progress notification of this call.

        Raises:
            RpcError: the daemon answered with an error; the connection can still be used.
            Unreachable: there was no answer; the connection is closed.
        """
        self._last_id = self._last_id % MAX_ID + 1
        request = request_of(self._last_id, method, params, timeout_s, reports=on_progress is not None)
        try:
            return self._exchange(request, None if timeout_s is None else timeout_s + LATE_S, on_progress)
        except RpcError:
            raise
        except BaseException:
            self.close()  # a late answer would be taken for the next call's
            raise

    def events(self, workspace: str | None = None) -> Iterator[dict[str, Any]]:
        """Follow the events of one workspace, or of all, from now on.

        All events after this returns are delivered, also those between two steps of the iterator. The
        connection may be used for other calls in between. A second call of `events` replaces the workspace of
        the first.

        Returns:
            An endless iterator over events: `event` is the kind (indexed, removed, embedded, state, trouble;
            lost, if memd had to drop `count` events), `workspace` its root, `at` the time.

        Raises:
            RpcError: there is no such workspace.
            Unreachable: the daemon ended; the iterator raises it, too.
        """
        self.call("subscribe", {"workspace": workspace} if workspace else {})

        def followed() -> Iterator[dict[str, Any]]:
            while True:
                while self._events:
                    yield self._events.popleft()
                try:
                    message = self._next("subscribe", None)
                except BaseException:
                    self.close()  # part of an event may have been read: the stream is no longer aligned
                    raise
                if isinstance(message, Notification) and message.method == "event":
                    yield message.params

        return followed()

    def close(self) -> None:
        """Close the connection; the daemon cancels its open requests."""
        self._socket.close()

    def abort(self) -> None:
        """Abort the call of another thread: it raises Unreachable, and memd cancels its work. Thread-safe."""
        with suppress(OSError):  # the call has just ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(
        self, request: Request, limit_s: float | None, on_progress: Callable[[dict[str, Any]], None] | None
    ) -> Any:
        frame = frame_of(request)
        try:
            self._socket.settimeout(limit_s)
            self._socket.sendall(frame)
        except OSError as error:
            raise Unreachable(f"memd took no request ({error}). Check it: memctl status") from error
        deadline = _deadline(limit_s)
        while True:
            message = self._next(request.method, deadline)
            if isinstance(message, Response) and message.id == request.id:
                return result_of(message, self.place)
            if isinstance(message, Response):
                raise Unreachable("memd answered a request that was not sent. Restart it: memctl restart")
            if isinstance(message, Notification) and message.method == "event":
                self._events.append(message.params)
            if isinstance(message, Notification) and message.method == "progress" and on_progress:
                deadline = _deadline(limit_s)
                on_progress(message.params)

    def _next(self, method: str, deadline: float | None) -> Message:
        while not self._inbox:
            try:
                self._socket.settimeout(None if deadline is None else max(0.001, deadline - time.monotonic()))
                received = self._socket.recv(READ_BYTES)
            except TimeoutError as error:
                cure = _CURES.get(method, "Check it: memctl status")
                raise Unreachable(f"memd did not answer {method} in time. {cure}") from error
            except OSError as error:
                raise Unreachable(f"the connection to memd broke during {method}: {error}") from error
            if not received:
                raise Unreachable(f"memd closed the connection during {method}; its log says why")
            try:
                self._inbox.extend(self._reader.feed(received))
            except ProtocolError as error:
                raise Unreachable(f"the answer to {method} is not in memd's protocol: {error}") from error
        return self._inbox.popleft()


def older_daemon(place: str | None = None) -> "Holder | None":
    """Return the holder of the lock if it is a running daemon older than this client; otherwise None.

    Args:
        place: the socket at which the daemon must listen; None: any.
    """
    from memctl.lock import holder_of

    try:
        holder = holder_of(state_place())
        if holder is None or holder.api_level >= API_LEVEL or (place or holder.socket) != holder.socket:
            return None
        kill(holder.pid, 0)
    except (MustMendError, OSError):  # unknown, or it has ended
        return None
    return holder


def connected_socket(path: str | PathLike[str] | None, timeout_s: float) -> socket.socket:
    """Return a socket that is connected to the daemon. Raises the errors of `Client.connect`."""
    if path is not None:
        return _connected(fspath(path), timeout_s)
    own, is_in_runtime = socket_place()
    try:
        if is_in_runtime:
            # In a folder writable by others, another user's process could listen.
            check_private_dir(dirname(own))  # noqa: PTH120 - a fifth of a start
        return _connected(own, timeout_s)
    except (NoDaemonError, FileNotFoundError) as error:
        place = _socket_of_holder()
        if place is None:
            raise NoDaemonError(f"no memd listens at {own}. Start it: memctl start") from error
    connected = _connected(place, timeout_s)
    if named := environ.get("MEMD_SOCKET"):
        connected.close()
        raise Unreachable(
            f"memd listens at {place}, and MEMD_SOCKET names {named}: unset MEMD_SOCKET, or stop that "
            "memd first: env -u MEMD_SOCKET memctl stop"
        )
    return connected


def request_of(
    id_: int, method: str, params: dict[str, Any] | None, timeout_s: float | None, *, reports: bool
) -> Request:
    """Return a request with its deadline; with *reports*, with a request for progress instead."""
    wanted = dict(params or {})
    if reports:
        wanted["progress"] = True
    elif timeout_s is not None:
        wanted.setdefault("timeout_ms", max(1, round(timeout_s * 1000)))
    return Request(id_, method, wanted)


def frame_of(request: Request) -> bytes:
    """Return the bytes of a request. Raises RpcError if it can't be sent."""
    try:
        return pack(request)
    except (FrameTooLargeError, UnicodeEncodeError, TypeError, ValueError, OverflowError) as error:
        unsent = f"{request.method} can't be sent: {error}"
        raise RpcError("MEMD_INVALID", unsent, callers_fault=True) from error


def result_of(response: Response, place: str) -> Any:
    """Return the result of a response of the daemon at *place*. Raises RpcError if it is an error."""
    if response.error is None:
        return response.result
    match response.error:
        case [int(fault), str(text)]:
            code, colon, message = text.partition(": ")
            if not (colon and code.startswith("MEMD_")):
                code, message = "MEMD_INTERNAL", text
            is_unknown = code == "MEMD_METHOD" or ": unknown parameter" in message
            if is_unknown and (holder := older_daemon(place)):
                from memctl.versions import older_line

                fault, message = 0, f"it does not know the method or a parameter: {older_line(holder)}"
            raise RpcError(code, message, callers_fault=fault == 1)
    unknown = f"memd answered with an error of unknown shape: {response.error!r}"
    raise RpcError("MEMD_INTERNAL", unknown, callers_fault=False)


def _socket_of_holder() -> str | None:
    """Return the socket named by the lock if its folder is private to this user; otherwise None."""
    from memctl.lock import holder_of  # rarely needed

    holder = holder_of(state_place())
    if holder is None or not holder.socket or holder.is_stopping:
        return None
    try:
        check_private_dir(dirname(holder.socket))  # noqa: PTH120 - as above
    except (MustMendError, FileNotFoundError):
        return None
    return holder.socket


def _connected(place: str, timeout_s: float) -> socket.socket:
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(connected, place, timeout_s)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        connected.close()
        check_socket(place)
        raise NoDaemonError(f"no memd listens at {place}. Start it: memctl start") from error
    except (TimeoutError, BlockingIOError, ConnectionError) as error:
        connected.close()
        raise Unreachable(f"can't connect to memd at {place}: {error}") from error
    except OSError as error:
        connected.close()
        cure = reason_and_cure(place, error)
        raise MustMendError(f"can't connect to memd at {place}: {cure}") from error
    return connected


def _connect(connected: socket.socket, place: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    connected.settimeout(timeout_s)
    while True:
        try:
            return connected.connect(place)
        except BlockingIOError:
            # The daemon's listen queue is full. With a timeout set, Linux does not wait for a place in it.
            if time.monotonic() > deadline:
                raise
            time.sleep(_QUEUE_FULL_S)


def _deadline(limit_s: float | None) -> float | None:
    return None if limit_s is None else time.monotonic() + limit_s
