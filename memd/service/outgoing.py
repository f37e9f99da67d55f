"""What leaves a connection, and when?

Replies as they are finished; events only while nothing is asked, because a notification can close the
channel of a Neovim that waits for an answer. A client that does not read is sent nothing more.
"""

import asyncio
from collections import deque
from collections.abc import Sized
from typing import Any, NamedTuple

import structlog

from memctl.protocol import Notification, Response, pack
from memd import diagnostics
from memd.service.replies import event_frame, frame_of

log = structlog.get_logger()

# Arbitrary: at about 150 bytes each far less than a client may leave unread; whoever is further behind is
# told so, and better off with one look at `status`.
EVENTS_KEPT = 1_000


class Reply(NamedTuple):
    """One answer on its way out."""

    response: Response
    method: str = ""  # "" where the request was refused before it got to one
    started: float | None = None  # in loop.time()


class Outgoing:
    """The writing half of one connection. On the event loop's thread."""

    def __init__(self, transport: asyncio.Transport, asked: Sized) -> None:
        self.paused = False  # unsent bytes are above the high water
        self._transport = transport
        self._asked = asked  # the ids without a reply yet; the connection's own, and it changes
        self._replies: deque[Reply] = deque()
        self._events: deque[dict[str, Any]] = deque()
        self._lost = 0  # events that were dropped since the last one that was sent

    @property
    def replies(self) -> int:
        """How many answers wait until the client reads."""
        return len(self._replies)

    def reply(self, reply: Reply) -> None:
        """Send one answer, after those that wait."""
        self._replies.append(reply)
        self.flush()

    def progress(self, id_: int, message: dict[str, Any]) -> None:
        """Send how far a request is; dropped where the client does not read."""
        if self._open():
            self._transport.write(pack(Notification("progress", {"id": id_, **message})))

    def event(self, fields: dict[str, Any]) -> None:
        """Send one event once nothing is asked; the oldest that waits is dropped for the one too many."""
        if len(self._events) == EVENTS_KEPT:
            self._events.popleft()
            self._lost += 1
        self._events.append(fields)
        self.flush()

    def flush(self) -> None:
        """Send what may leave now."""
        while self._replies and self._open():
            self._send_reply(self._replies.popleft())
        while self._events and not self._asked and self._open():
            self._send_event()

    def clear(self) -> None:
        """Forget what waits: the client is gone."""
        self._replies.clear()
        self._events.clear()

    def _open(self) -> bool:
        return not self.paused and not self._transport.is_closing()

    def _send_reply(self, reply: Reply) -> None:
        frame = frame_of(reply.response, reply.method)
        self._transport.write(frame)  # one write a reply: Neovim 0.7 can't take two in one read
        if reply.started is not None:
            ms = (asyncio.get_running_loop().time() - reply.started) * 1000
            failed = reply.response.error is not None
            diagnostics.note_request(reply.method, ms=ms, answer_bytes=len(frame), failed=failed)
            sizes = {"ms": round(ms, 1), "answer_bytes": len(frame), "failed": failed}
            log.debug("request", id=reply.response.id, method=reply.method, **sizes)

    def _send_event(self) -> None:
        if self._lost:
            fields, self._lost = {"event": "lost", "count": self._lost}, 0
        else:
            fields = self._events.popleft()
        if frame := event_frame(fields):
            self._transport.write(frame)
