"""A socket that answers as the test says, and counts what it was asked.

For what a real daemon does not do on request: old versions, errors, a first index that is never complete.
"""

import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from patience import PATIENCE

from memctl import __version__
from memctl.protocol import REQUESTS, Decoder, Notification, Request, Response, pack

# memctl as a terminal starts it: what a shell starts in the background is told to pass over Ctrl-C, and
# what nohup starts to pass over the end of the terminal.
STARTED = """import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
runpy.run_module("memctl", run_name="__main__", alter_sys=True)"""
AS_IN_A_TERMINAL = [sys.executable, "-c", STARTED]

WAIT_S = 80 * PATIENCE
Answer = Callable[[dict[str, Any]], Any]


class Refusal(Exception):  # noqa: N818 (an answer, not a fault of the test)
    """An answer that is an error: code, text."""


class Peer:
    """Listens at *path*; `asked` holds each request's method and parameters.

    Who subscribes gets its answer and *events* in one piece; at a None among them the peer hangs up.
    """

    def __init__(
        self, path: Path, answers: dict[str, Answer], events: Sequence[dict[str, Any] | None] = ()
    ) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answers = answers
        self._events = events
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5 * PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(ConnectionError):  # a client may leave before its answer
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        reader = Decoder()
        while received := connection.recv(65536):
            for request in reader.feed(received):
                assert isinstance(request, Request)
                self.asked.append((request.method, request.params))
                if request.params.get("progress"):
                    progress = {"id": request.id, "stage": "index", "done": 1, "total": 3}
                    connection.sendall(pack(Notification("progress", progress)))
                events = self._events if request.method == "subscribe" else ()
                told = [pack(Notification("event", event)) for event in events if event is not None]
                connection.sendall(b"".join([pack(self._answer(request)), *told]))
                if None in events:
                    return

    def _answer(self, request: Request) -> Response:
        try:
            default = _hello if request.method == "memd.hello" else _unknown
            answer = self._answers.get(request.method, default)
            return Response(request.id, None, answer(request.params))
        except Refusal as refusal:
            return Response(request.id, [1, f"{refusal.args[0]}: {refusal.args[1]}"], None)


def refuse(code: str, text: str = "it is refused") -> Answer:
    """Return an answer that is an error."""

    def answer(_params: dict[str, Any]) -> Any:
        raise Refusal(code, text)

    return answer


def _hello(_params: dict[str, Any]) -> Any:
    return {"server_version": __version__}


def _unknown(_params: dict[str, Any]) -> Any:
    raise Refusal("MEMD_METHOD", "there is no such method")


def taken(listening: socket.socket) -> tuple[socket.socket, Request]:
    """Return the next connection and the one request on it."""
    connection, _ = listening.accept()
    connection.settimeout(WAIT_S)
    [request] = Decoder(REQUESTS).feed(connection.recv(65536))
    assert isinstance(request, Request)
    return connection, request
