"""One client's connection: parses requests, runs each as a task, sends replies and events.

Each request is a task; each finished task causes one reply, sent by one write, in the order in which tasks
finish. The peer's uid comes from the kernel and is checked before the first byte is read. Events are sent
only while the connection has no open request, because a notification can close the channel of a Neovim that
waits for an answer. Nothing more is sent to a client that does not read. Knows limits but no methods; a
misbehaving client can only lose its own connection. For the event loop's thread.
"""

import asyncio
import math
import resource
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from memctl.protocol import Decoder, Invalid, Message, Notification, ProtocolError, Request, Response, pack
from memd import diagnostics
from memd.errors import BusyError, DeadlineError, InvalidError, MemdError, MethodError, StoppingError
from memd.events import Listener, Unlisten
from memd.logs import log_unforeseen
from memd.rpc.context import Call, Deadlines, Handler, Limits, event_frame, frame_of, wire_error


@dataclass(slots=True)
class Shared:
    """The state that all connections of one server share."""

    handle: Handler
    limits: Limits
    deadline_s: Deadlines
    uid: int  # the only user that may connect
    connections: set["Connection"] = field(default_factory=set)
    tasks: set[asyncio.Future[Any]] = field(default_factory=set)
    stopping: bool = False
    descriptors: int = field(default_factory=lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    @property
    def served(self) -> int:
        """The number of connections, without those that will only be told that there are too many."""
        return sum(not connection.over_limit for connection in self.connections)

    def has_room(self, descriptor: int) -> bool:
        """Return whether one more connection, with this file descriptor, can be served."""
        limits, served = self.limits, self.served
        enough = self.left_after(descriptor) >= limits.spare_descriptors or served < limits.least_connections
        return enough and served < limits.connections

    def make_room(self) -> "Connection | None":
        """Close the connection that has been idle for longest, and return it; None if none is idle."""
        since = {
            connection: at for connection in self.connections if (at := connection.idle_since()) is not None
        }
        return next(
            (connection for connection in sorted(since, key=since.__getitem__) if connection.give_way()), None
        )

    def is_full(self, descriptor: int) -> bool:
        """Return whether further clients must wait after the connection with this file descriptor."""
        limits, taken = self.limits, len(self.connections)
        few = self.left_after(descriptor) < limits.spare_descriptors // 2 and taken > limits.least_connections
        return few or taken >= limits.connections + limits.refused_connections

    def left_after(self, descriptor: int) -> int:
        """Return the minimum number of free descriptors: the system assigns the lowest free number."""
        return self.descriptors - descriptor - 1


# sys/un.h and sys/ucred.h of macOS, which Python does not define.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 0x001
_LOCAL_PEERPID = 0x002
_XUCRED_BYTES = 76  # version u32, uid u32, ngroups i16, padding, 16 groups


def peer_of(connected: socket.socket) -> dict[str, int]:
    """Return `uid` and `pid` of the process at the other end of a socket, or of asyncio's wrapper of one.

    The kernel has checked the uid; the process may have ended since.

    Raises:
        OSError: unknown to the kernel (the peer is gone, or this is not a Unix socket).
    """
    if sys.platform == "darwin":
        credentials = connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        _version, uid = struct.unpack_from("=II", credentials)
        (pid,) = struct.unpack("=i", connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))
    else:
        credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid, uid, _gid = struct.unpack("=iII", credentials)
    return {"uid": uid, "pid": pid}


def polled(descriptor: int) -> int:
    """Return what a peer has done that is not read yet: 0 if it has neither sent anything nor ended.

    One that no longer reads is gone; on Linux, one that only shut down its writing side still reads, and
    macOS reports both in the same way.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return next((event for _, event in poll.poll(0)), 0)


def is_gone(descriptor: int) -> bool:
    """Return whether a peer does not read any more; what it has sent may still be there."""
    return bool(polled(descriptor) & (select.POLLHUP | select.POLLERR))


def has_left(connected: socket.socket) -> bool:
    """Return whether a peer is gone and has asked nothing."""
    if not is_gone(connected.fileno()):
        return False
    try:
        return not connected.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return True


def budget_s(request: Request, own_s: float | None) -> float | None:
    """Return the time limit of a request: a client may lower its method's limit, never raise it."""
    asked_ms: int | None = request.params.get("timeout_ms")
    if asked_ms is None:
        return own_s
    return min(asked_ms / 1000, math.inf if own_s is None else own_s)


# Arbitrary: at about 150 bytes each, far less than a client may leave unread; a client that is further behind
# is told so, and should request `status` instead.
EVENTS_KEPT = 1_000


class Reply(NamedTuple):
    """An answer to be sent."""

    response: Response
    method: str = ""  # "" if the request was refused before its method was known
    started: float | None = None  # in loop.time()


class Outgoing:
    """The sending half of one connection. For the event loop's thread."""

    def __init__(self, transport: asyncio.Transport, pending: Sized) -> None:
        self.paused = False  # there are more unsent bytes than the high-water mark
        self._transport = transport
        self._pending = pending  # the ids without a reply yet; owned and changed by the connection
        self._replies: deque[Reply] = deque()
        self._events: deque[dict[str, Any]] = deque()
        self._lost = 0  # events dropped since the last one that was sent

    @property
    def replies(self) -> int:
        """The number of answers that wait until the client reads."""
        return len(self._replies)

    def reply(self, reply: Reply) -> None:
        """Send an answer, after those that wait."""
        self._replies.append(reply)
        self.flush()

    def progress(self, id_: int, message: dict[str, Any]) -> None:
        """Send the progress of a request; dropped if the client does not read."""
        if self._open():
            self._transport.write(pack(Notification("progress", {"id": id_, **message})))

    def event(self, fields: dict[str, Any]) -> None:
        """Send an event as soon as no request is open; if too many wait, the oldest is dropped."""
        if len(self._events) == EVENTS_KEPT:
            self._events.popleft()
            self._lost += 1
        self._events.append(fields)
        self.flush()

    def flush(self) -> None:
        """Send everything that may be sent now."""
        while self._replies and self._open():
            reply = self._replies.popleft()
            frame = frame_of(reply.response, reply.method)
            self._transport.write(frame)  # one write per reply: Neovim 0.7 cannot handle two in one read
            if reply.started is not None:
                ms = round((asyncio.get_running_loop().time() - reply.started) * 1000, 1)
                failed = reply.response.error is not None
                outcome = {"ms": ms, "answer_bytes": len(frame), "failed": failed}
                diagnostics.note_request(reply.method, outcome)
                log.debug("request", id=reply.response.id, method=reply.method, **outcome)
        while self._events and not self._pending and self._open():
            if self._lost:
                fields, self._lost = {"event": "lost", "count": self._lost}, 0
            else:
                fields = self._events.popleft()
            if event := event_frame(fields):
                self._transport.write(event)

    def clear(self) -> None:
        """Drop everything that waits: the client is gone."""
        self._replies.clear()
        self._events.clear()

    def _open(self) -> bool:
        return not self.paused and not self._transport.is_closing()


log = structlog.get_logger()

INSTANT_S = 1.0  # a method with such a deadline answers from memory


class Connection(asyncio.Protocol):
    """The connection of one client. For the event loop's thread."""

    def __init__(self, shared: Shared, *, over_limit: bool = False) -> None:
        """Begin; with *over_limit*, refuse the first request and close, unless there is room by then."""
        self._shared = shared
        self.over_limit = over_limit
        self._loop = asyncio.get_running_loop()
        self._reader = Decoder()
        self._client: dict[str, Any] = {}
        self._open: dict[int, Call | None] = {}  # ids without a reply yet; None: about to be refused
        self._tasks: set[asyncio.Future[Any]] = set()
        self._turns = asyncio.Semaphore(shared.limits.at_once_per_connection)
        self._reads = asyncio.Event()  # set while the client reads its answers
        self._reads.set()
        self._unlisten: Unlisten | None = None  # while this client follows events
        self._asks_no_more = False  # the client has shut down its sending side, and still reads
        self._quiet_since: float | None = None  # in loop.time(); None: reading has not started yet
        self._frame_timer: asyncio.TimerHandle | None = None
        self._drain_timer: asyncio.TimerHandle | None = None
        self.closed: asyncio.Future[None] = self._loop.create_future()

    # -- called by asyncio ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Decide whether this peer may connect, before reading a byte."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._outgoing = Outgoing(transport, self._open)
        connected = transport.get_extra_info("socket")
        self._descriptor = connected.fileno()
        try:
            peer = peer_of(connected)
        except OSError as error:
            self._drop("peer unknown", reason=type(error).__name__)
            return
        if peer["uid"] != self._shared.uid:
            self._drop("another user's connection refused", **peer)
            return
        self._client = {**peer}
        self._quiet_since = self._loop.time()
        transport.set_write_buffer_limits(high=self._shared.limits.write_high_water_bytes)
        if self.over_limit:
            self._time_frame()  # a silent client must not keep its place
        exe = ""  # as far as the system tells it
        with suppress(OSError):
            exe = str(Path(f"/proc/{peer['pid']}/exe").readlink())
        log.debug("connected", pid=peer["pid"], exe=exe)

    def data_received(self, data: bytes) -> None:
        """Start the requests in *data*."""
        self._quiet_since = self._loop.time()
        try:
            messages = self._reader.feed(data)
        except ProtocolError as error:
            self._drop("protocol error", reason=str(error))
            return
        for message in messages:
            self._take(message)
        if messages and not self.over_limit:
            self._stop_frame_timer()
        if self._reader.unfinished_bytes and self._frame_timer is None and not self._outgoing.paused:
            self._time_frame()

    def eof_received(self) -> bool:
        """Keep answering open requests of a client that still reads; drop one that is gone."""
        self._asks_no_more = self._is_owed() and not is_gone(self._descriptor)
        return self._asks_no_more

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read."""
        self._outgoing.paused = True
        self._reads.clear()
        self._transport.pause_reading()
        self._stop_frame_timer()  # it cannot finish its frame now
        self._drain_timer = self._loop.call_later(
            self._shared.limits.drain_s, self._drop, "answers were not read"
        )

    def resume_writing(self) -> None:
        """Undo pause_writing."""
        self._outgoing.paused = False
        if self._drain_timer:
            self._drain_timer.cancel()
        self._outgoing.flush()
        if self._outgoing.paused or self._close_if_done():
            return
        self._reads.set()
        self._transport.resume_reading()
        if self._reader.unfinished_bytes:
            self._time_frame()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the work of a client that is gone; work that must finish shields itself."""
        self._shared.connections.discard(self)
        self._stop_frame_timer()
        if self._drain_timer:
            self._drain_timer.cancel()
        self._open.clear()
        self._outgoing.clear()
        if self._unlisten:
            self._unlisten()
        for task in self._tasks:
            task.cancel()
        if not self.closed.done():
            self.closed.set_result(None)
        log.debug("disconnected", pid=self._client.get("pid"), error=type(exc).__name__ if exc else None)

    # -- called by the server ------------------------------------------------------------------------

    def end(self) -> None:
        """Answer open requests with MEMD_STOPPING, cancel their work, send what the client still reads."""
        for id_, call in list(self._open.items()):
            text = "memd is stopping: ask again after its restart"
            if call and call.goes_on:
                text += f" ({call.goes_on})"
            self._answer(id_, call, error=StoppingError(text))
        for task in self._tasks:
            task.cancel()
        self._transport.close()

    def idle_since(self) -> float | None:
        """Return the loop.time() since when there is no request, event or data; None if there is some."""
        if self._quiet_since is None or self.over_limit or self._unlisten:
            return None
        return None if self._is_owed() or self._reader.unfinished_bytes else self._quiet_since

    def give_way(self) -> bool:
        """Close an idle connection in favour of another; False if its client has just sent a request."""
        if polled(self._descriptor):
            return False
        log.debug("idle connection closed: there were too many", pid=self._client.get("pid"))
        self._shared.connections.discard(self)
        self._transport.close()
        return True

    def abort(self) -> None:
        """Cut the connection without sending the rest."""
        self._transport.abort()

    # -- a request, step by step ---------------------------------------------------------------------

    def _take(self, message: Message) -> None:
        if self._transport.is_closing() or isinstance(message, Notification):
            return  # no notification of a client (nvim_error_event) is of use
        if isinstance(message, Response):
            self._drop("protocol error", reason="a response without a request")
            return
        if message.id in self._open:
            # Two replies with the same id would close the channel of a Neovim, and could not be told apart.
            self._drop("protocol error", reason="a second request with the id of an open one")
            return
        self._open[message.id] = None
        if refusal := self._refusal(message):
            self._answer(message.id, None, error=refusal)
        elif isinstance(message, Request):
            self._start(message)
        if self.over_limit:
            self._transport.close()

    def _refusal(self, message: Request | Invalid) -> MemdError | None:
        if self._shared.stopping:
            return StoppingError("memd is stopping: ask again after its restart")
        if full := self._full(message):
            return BusyError(full)
        if isinstance(message, Invalid):
            return InvalidError(message.reason)
        timeout_ms = message.params.get("timeout_ms")
        if timeout_ms is not None and (type(timeout_ms) is not int or timeout_ms <= 0):
            return InvalidError("timeout_ms must be a positive integer, in milliseconds")
        return None

    def _full(self, message: Request | Invalid) -> str | None:
        limits = self._shared.limits
        self.over_limit = self.over_limit and not self._shared.has_room(self._descriptor)
        if self.over_limit:
            return f"{self._shared.served} connections are open: close one, or try again later"
        if len(self._tasks) + self._outgoing.replies >= limits.in_flight_per_connection:
            most = limits.in_flight_per_connection
            return f"{most} requests of this connection are open: wait for an answer first"
        is_instant = isinstance(message, Request) and self._is_instant(message.method)
        if len(self._shared.tasks) >= limits.in_flight and not is_instant:
            return f"{limits.in_flight} requests are in progress: try again in a moment"
        return None

    def _start(self, request: Request) -> None:
        started = self._loop.time()
        most_s = budget_s(request, self._shared.deadline_s(request.method))
        deadline = None if most_s is None else started + most_s
        call = Call(
            request, self._client, deadline, self._notify, self._follow, self.closed.done, started=started
        )
        self._open[request.id] = call
        task = asyncio.ensure_future(self._in_turn(call))
        if most_s is not None:
            call.timer = self._loop.call_later(most_s, self._expire, call, task, most_s)
        self._tasks.add(task)
        self._shared.tasks.add(task)
        task.add_done_callback(partial(self._finish, call))

    async def _in_turn(self, call: Call) -> Any:
        """Process a few requests at once, and none while their answers would only pile up."""
        request = call.request
        waits = self._shared.deadline_s(request.method) is None  # for an event; it sends little meanwhile
        if not waits and not self._is_instant(request.method):
            await self._turns.acquire()
            call.has_turn = True  # until its answer is being sent: `_finish`
            await self._reads.wait()
        return await self._shared.handle(request.method, request.params, call)

    def _is_instant(self, method: str) -> bool:
        """Return whether a method answers from memory, which it does however busy memd is."""
        most_s = self._shared.deadline_s(method)
        return most_s is not None and most_s <= INSTANT_S

    def _expire(self, call: Call, task: asyncio.Future[Any], most_s: float) -> None:
        # Answered here rather than when the task ends: a method in C code cannot be interrupted.
        method = call.request.method
        then = call.goes_on or "ask for less, or try again"
        late = DeadlineError(f"{method} did not end within {most_s:g} s: {then}")
        self._answer(call.request.id, call, error=late)
        task.cancel()

    def _finish(self, call: Call, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        self._shared.tasks.discard(task)
        if call.timer:
            call.timer.cancel()
        if task.cancelled():
            error: BaseException | None = StoppingError("the request was cancelled inside memd: ask again")
        elif error := task.exception():
            log_unforeseen(error, call.request.method)
        result = None if error else task.result()
        self._answer(call.request.id, call, error=error, result=result)
        if call.has_turn:
            self._turns.release()

    # -- replies -------------------------------------------------------------------------------------

    def _answer(
        self, id_: int, call: Call | None, *, error: BaseException | None = None, result: Any = None
    ) -> None:
        if call:
            if call.is_answered:
                return
            call.is_answered = True
        if id_ not in self._open:
            return  # the client is gone
        del self._open[id_]
        # The name of an unknown method is a client's text, which must not be logged.
        method = call.request.method if call and not isinstance(error, MethodError) else ""
        shape = wire_error(error, method) if error else None
        started = call.started if call else None
        self._quiet_since = self._loop.time()
        self._outgoing.reply(Reply(Response(id_, shape, result), method, started))
        self._close_if_done()

    def _notify(self, call: Call, message: dict[str, Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and there is no client any more
            self._loop.call_soon_threadsafe(self._send_progress, call, message)

    def _send_progress(self, call: Call, message: dict[str, Any]) -> None:
        if not call.is_answered:
            self._outgoing.progress(call.request.id, message)

    def _follow(self, listen: Callable[[Listener], Unlisten]) -> None:
        # The last request determines what is followed: no event is sent twice.
        if self._unlisten:
            self._unlisten()
        self._unlisten = None if self.closed.done() else listen(self._outgoing.event)

    def _is_owed(self) -> bool:
        """Return whether the client has not yet been sent all answers."""
        return bool(self._open or self._outgoing.replies or self._transport.get_write_buffer_size())

    def _close_if_done(self) -> bool:
        if self._asks_no_more and not self._open and not self._outgoing.replies:
            self._transport.close()  # sends pending data first
            return True
        return False

    # -- ends ----------------------------------------------------------------------------------------

    def _time_frame(self) -> None:
        self._frame_timer = self._loop.call_later(
            self._shared.limits.frame_s, self._drop, "a frame took too long"
        )

    def _stop_frame_timer(self) -> None:
        if self._frame_timer:
            self._frame_timer.cancel()
            self._frame_timer = None

    def _drop(self, event: str, **fields: Any) -> None:
        log.warning(event, **fields)
        self._transport.abort()
