"""Serves a store over stream sockets: one thread for each connection, one request at a time on each.

`serve_child` is the whole of a program that a daemon starts for a store whose library must not be loaded into
the daemon itself.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from memd.config import TeamConfig
from memd.errors import StoreError, StoreModelError, StoreRefusedError
from memd.stores import wire
from memd.stores.store import Store
from memd.stores.wire import SCHEMA, CutError, Fault, Hello, Peer, Reply, Request

HELLO_S = 10.0  # for the first frame of a connection
Authenticate = Callable[[str], Store]  # takes the token; raises StoreRefusedError

_NOTHING = msgspec.Raw(msgspec.msgpack.encode(None))
_REQUESTS = msgspec.msgpack.Decoder(Request)


class Connection(Peer, Protocol):
    """An accepted connection."""

    def close(self) -> None:
        """Close it."""


class Listener(Protocol):
    """A listening socket, or what a test puts in its place."""

    def accept(self) -> tuple[Connection, object]:
        """Wait for a connection."""


def serve(listener: Listener, authenticate: Authenticate) -> None:
    """Serve until the listener is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve_one, args=(connection, authenticate), daemon=True).start()


def serve_child(make: Callable[[TeamConfig], Store]) -> None:
    """Serve the store that *make* returns, at the socket in argv[1]; the configuration comes by stdin.

    Ends when stdin does: then the daemon is gone, or needs the store no more. An error of *make* is the
    answer to each connection, so that the daemon can show it.
    """
    listener = socket.socket(fileno=int(sys.argv[1]))
    life = socket.socket(fileno=os.dup(0))
    config = msgspec.msgpack.decode(wire.receive(life), type=TeamConfig)
    threading.Thread(target=_end_with, args=(life,), daemon=True).start()
    try:
        store = make(config)
    except StoreError as error:
        fault = error

        def authenticate(_token: str) -> Store:
            raise fault
    else:

        def authenticate(_token: str) -> Store:
            return store

    serve(listener, authenticate)


def _end_with(life: socket.socket) -> None:
    with suppress(OSError):
        life.settimeout(None)
        life.recv(1)
    os._exit(0)


def _serve_one(connection: Connection, authenticate: Authenticate) -> None:
    try:
        if isinstance(connection, socket.socket):
            wire.without_delay(connection)
        store = _greeted(connection, authenticate)
        while store is not None:
            _answer(connection, store, _REQUESTS.decode(wire.receive(connection)))
    except (OSError, CutError, ValueError, msgspec.DecodeError):
        pass  # the peer is gone, or speaks another language
    finally:
        connection.close()


def _greeted(connection: Connection, authenticate: Authenticate) -> Store | None:
    """Return the store that the peer may use; None: it was refused."""
    stop = time.monotonic() + HELLO_S
    hello = msgspec.msgpack.decode(wire.receive(connection, stop, wire.HELLO_BYTES), type=Hello)
    try:
        if hello.schema != SCHEMA:
            raise StoreRefusedError(f"the store speaks version {SCHEMA}, the daemon version {hello.schema}")
        store = authenticate(hello.token)
    except StoreError as error:
        wire.send(connection, Reply(0, _fault(error), str(error), _NOTHING), stop)
        return None
    wire.send(connection, Reply(0, "", "", _NOTHING), stop)
    return store


def _answer(connection: Connection, store: Store, request: Request) -> None:
    types = wire.METHODS.get(request.method)
    reply = Reply(request.number, "refused", f"the store has no method {request.method!r}", _NOTHING)
    if types is not None:
        try:
            arguments = msgspec.msgpack.decode(request.arguments, type=types.arguments)
            named = dict(zip(types.names, arguments, strict=True))
            result = getattr(store, request.method)(**named, deadline_s=request.left_s)
        except StoreError as error:
            reply = Reply(request.number, _fault(error), str(error), _NOTHING)
        except msgspec.DecodeError as error:
            reply = Reply(request.number, "refused", f"the store can't read the request: {error}", _NOTHING)
        except Exception as error:  # noqa: BLE001 - one request must not end the others
            text = f"the store failed ({type(error).__name__})"  # without its text, which may be of a note
            reply = Reply(request.number, "failed", text, _NOTHING)
        else:
            reply = Reply(request.number, "", "", msgspec.Raw(msgspec.msgpack.encode(result)))
    wire.send(connection, reply)


def _fault(error: StoreError) -> Fault:
    if isinstance(error, StoreModelError):
        return "model"
    return "refused" if isinstance(error, StoreRefusedError) else "failed"
