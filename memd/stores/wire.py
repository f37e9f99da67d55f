"""The wire between a daemon and a store: frames of MessagePack, one request and one answer at a time.

A frame is its length in four bytes, big-endian, and a MessagePack value: first a `Hello`, answered by a
`Reply` without a result, then `Request`s, each answered by a `Reply`. The methods, their parameters and their
results are those of `memd.stores.store.Store`; the deadline travels as seconds that are left.
"""

import socket
import struct
import time
from collections.abc import Callable
from inspect import signature
from typing import Any, Final, Literal, NamedTuple, Protocol, get_type_hints

import msgspec
from msgspec import Struct

from memd.errors import StoreError, StoreModelError, StoreRefusedError
from memd.stores.store import Store

SCHEMA: Final = 1  # of the wire and of the structs in memd.stores.store; both sides must have the same
MAX_FRAME_BYTES = 256 << 20  # far more than a batch of sources; a longer frame is not from a store
HELLO_BYTES = 64 << 10  # of a first frame, from a peer that has not shown a token yet
_LENGTH = struct.Struct(">I")
_READ_BYTES = 1 << 18  # size of a read; arbitrary

Fault = Literal["", "failed", "refused", "model"]
FAULTS: dict[Fault, type[StoreError]] = {
    "failed": StoreError,
    "refused": StoreRefusedError,
    "model": StoreModelError,
}


class Hello(Struct, frozen=True, array_like=True):
    """The first frame of a connection."""

    schema: int
    token: str


class Request(Struct, frozen=True, array_like=True):
    """A call of one method."""

    number: int
    method: str
    left_s: float
    arguments: msgspec.Raw


class Reply(Struct, frozen=True, array_like=True):
    """The answer to the request of the same number; 0: to the greeting."""

    number: int
    fault: Fault
    text: str  # of the fault, for people
    result: msgspec.Raw


class Peer(Protocol):
    """The part of a socket that frames need."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of *data*."""

    def recv(self, size: int, /) -> bytes:
        """Return up to *size* bytes; none at the end."""

    def settimeout(self, value: float | None, /) -> None:
        """Limit the time of each call."""


class Types(NamedTuple):
    """The types of one method."""

    names: tuple[str, ...]  # of the arguments, without the deadline
    arguments: Any  # a tuple type


def _types(method: Callable[..., Any]) -> Types:
    hints = get_type_hints(method)
    names = tuple(name for name in signature(method).parameters if name not in {"self", "deadline_s"})
    return Types(names, tuple.__class_getitem__(tuple(hints[name] for name in names)))


METHODS: Final = {name: _types(getattr(Store, name)) for name in dir(Store) if not name.startswith("_")}


class CutError(Exception):
    """The connection ended inside of a frame, or between two of them."""


def send(peer: Peer, value: object, stop: float | None = None) -> None:
    """Send one value; *stop* is in monotonic seconds. Raises OSError, TimeoutError among them."""
    raw = msgspec.msgpack.encode(value)
    peer.settimeout(None if stop is None else _left(stop))
    peer.sendall(_LENGTH.pack(len(raw)) + raw)


def receive(peer: Peer, stop: float | None = None, limit: int = MAX_FRAME_BYTES) -> bytes:
    """Return the next frame.

    Raises:
        CutError: the connection ended.
        ValueError: the frame is longer than *limit*: the peer speaks another language.
        OSError: it failed; TimeoutError: the frame was not complete in time.
    """
    [length] = _LENGTH.unpack(_exactly(peer, _LENGTH.size, stop))
    if length > limit:
        raise ValueError(f"a frame of {length:,} bytes")
    return _exactly(peer, length, stop)


def _exactly(peer: Peer, size: int, stop: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        peer.settimeout(None if stop is None else _left(stop))
        part = peer.recv(min(size - len(parts), _READ_BYTES))
        if not part:
            raise CutError
        parts += part
    return bytes(parts)


def _left(stop: float) -> float:
    left_s = stop - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def without_delay(connection: socket.socket) -> None:
    """Send small frames at once; a unix socket does so anyway."""
    if connection.family in {socket.AF_INET, socket.AF_INET6}:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
