"""The wire protocol: MessagePack-RPC frames, and what a receiver accepts.

MessagePack-RPC as Neovim speaks it, the only wire format here: bytes in, messages out, no socket and no
clock. Two faults are kept apart: `ProtocolError` (the bytes mean nothing or ask too much: nothing can be
answered, drop the connection) and `Invalid` (a request with an id whose contents can't be served: tell
the caller what is wrong with it).
"""

import math
from typing import Any, NamedTuple

import msgpack

VERSION = 1

API_LEVEL = 4  # counts up with every key or method that is added
MAX_REQUEST_BYTES = 1 << 20  # an entry's content has at most 256 KiB; the rest is room for escapes and growth
MAX_ANSWER_BYTES = 8 << 20  # twice the largest source; Neovim takes it in on its main thread in about 30 ms
MAX_METHOD_CHARS = 64  # Neovim's own bound is 100; ours have at most 20
MAX_ID = 2**32 - 1  # u32 by the MessagePack-RPC specification
MAX_DEPTH = 16  # arbitrary: no parameter goes deeper than 3
MAX_NAME_CHARS = 40  # arbitrary: how much of a key an error text repeats

# Fed in slices, so that what the decoder holds beyond one frame's bound is one slice at most.
_SLICE_BYTES = 64 << 10


class FrameLimits(NamedTuple):
    """How much one frame may hold before its connection is dropped."""

    size_bytes: int
    array_items: int
    map_items: int
    containers: int  # arrays and maps together


# Without a bound on containers 1 MiB of empty maps becomes 74 MB of Python objects. The decoder sets memory
# aside for each array that is announced, 1,024 of them in each other: 8 MB at 1,024 items, 33 MB at 4,096.
REQUESTS = FrameLimits(MAX_REQUEST_BYTES, array_items=1024, map_items=256, containers=10_000)
# Answers come from our own daemon: their size is the bound, and each item takes at least a byte of it.
ANSWERS = FrameLimits(MAX_ANSWER_BYTES, MAX_ANSWER_BYTES, MAX_ANSWER_BYTES, MAX_ANSWER_BYTES)


class ProtocolError(Exception):
    """The peer broke the protocol, or a limit: drop the connection, answer nothing."""


class FrameTooLargeError(ValueError):
    """A message is longer than its receiver would take."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"a message of {size_bytes:,} bytes; at most {limit_bytes:,} are allowed")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


# NamedTuples and not dataclasses: importing dataclasses takes 6 ms of each start of memctl.
class Request(NamedTuple):
    """A call that wants one Response with the same id."""

    id: int
    method: str
    params: dict[str, Any]


class Response(NamedTuple):
    """The answer to one Request; exactly one of *error* and *result* is meant."""

    id: int
    error: Any  # None, or [0 | 1, "CODE: text"] with 1 where the caller is at fault
    result: Any


class Notification(NamedTuple):
    """A message that nobody answers."""

    method: str
    params: dict[str, Any]  # {} where the sender's arguments were anything but one map


class Invalid(NamedTuple):
    """A Request that can't be served but can be answered."""

    id: int
    reason: str


Message = Request | Response | Notification | Invalid


def pack(message: Request | Response | Notification) -> bytes:
    """
    Return the frame of one message.

    Raises:
        FrameTooLargeError: the receiver would drop the connection over it.
        TypeError, ValueError: it holds something that MessagePack has no form for.
    """
    limit_bytes = MAX_ANSWER_BYTES
    if isinstance(message, Request):
        limit_bytes = MAX_REQUEST_BYTES
        frame = [0, message.id, message.method, [message.params]]
    elif isinstance(message, Response):
        frame = [1, message.id, message.error, message.result]
    else:
        frame = [2, message.method, [message.params]]
    return _within(pack_value(frame), limit_bytes)


def pack_value(value: Any) -> bytes:
    """
    Return the MessagePack of one value of a message.

    Raises:
        TypeError, ValueError: as in `pack`.
    """
    # File names may hold bytes that are no UTF-8: they go out as the bytes they are.
    packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return packed


def unpack_value(packed: bytes) -> Any:
    """Return a value that `pack_value` packed."""
    return msgpack.unpackb(packed, unicode_errors="surrogateescape")


def pack_answer(id_: int, result: bytes) -> bytes:
    """
    Return the frame of a Response whose *result* is MessagePack already.

    Raises:
        FrameTooLargeError: as in `pack`.
    """
    # An array of four: 1 for a response, its id, no error, the result.
    return _within(b"\x94\x01" + pack_value(id_) + b"\xc0" + result, MAX_ANSWER_BYTES)


def _within(frame: bytes, limit_bytes: int) -> bytes:
    if len(frame) > limit_bytes:
        raise FrameTooLargeError(len(frame), limit_bytes)
    return frame


class Decoder:
    """Turns one connection's bytes into messages; dead after its first error."""

    def __init__(self, limits: FrameLimits = REQUESTS) -> None:
        self._limits = limits
        self._fed_bytes = 0
        self._taken_bytes = 0  # up to the end of the last whole frame
        self._containers = 0
        self._unpacker: Any = msgpack.Unpacker(
            raw=False,
            # Neovim puts any bytes into a text. A strict decoder would lose its place in the stream.
            unicode_errors="surrogateescape",
            strict_map_key=True,
            max_buffer_size=limits.size_bytes + _SLICE_BYTES,
            max_str_len=limits.size_bytes,
            max_bin_len=limits.size_bytes,
            max_ext_len=limits.size_bytes,
            max_array_len=limits.array_items,
            max_map_len=limits.map_items,
            list_hook=self._count,
            object_hook=self._count,
        )

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return self._fed_bytes - self._taken_bytes

    def feed(self, received: bytes) -> list[Message]:
        """
        Take bytes as they came and return the messages that they complete.

        Raises:
            ProtocolError: drop the connection; messages before the fault in *received* are lost with it.
        """
        if self._unpacker is None:
            raise ProtocolError("this reader ended with an earlier error")
        try:
            return self._decode(received)
        except ProtocolError:
            self._unpacker = None
            raise
        except Exception as error:  # noqa: BLE001 - the decoder raises many kinds, and each ends the stream
            # An Unpacker goes on in the middle of the stream after an error, and was seen to crash.
            self._unpacker = None
            # The class alone: the text may quote what was sent.
            raise ProtocolError(f"not MessagePack within our limits ({type(error).__name__})") from None

    def _decode(self, received: bytes) -> list[Message]:
        messages: list[Message] = []
        for start in range(0, len(received), _SLICE_BYTES):
            part = received[start : start + _SLICE_BYTES]
            self._unpacker.feed(part)
            self._fed_bytes += len(part)
            # Stopping the iteration keeps the half frame; the next slice goes on in it.
            for frame in self._unpacker:
                before, self._taken_bytes = self._taken_bytes, self._unpacker.tell()
                self._expect_size(self._taken_bytes - before)
                self._containers = 0
                messages.append(_message(frame))
            # The decoder's own bound does not see what it already turned into objects.
            self._expect_size(self.unfinished_bytes)
        return messages

    def _expect_size(self, frame_bytes: int) -> None:
        if frame_bytes > self._limits.size_bytes:
            raise ProtocolError(f"a frame longer than {self._limits.size_bytes:,} bytes")

    def _count(self, container: Any) -> Any:
        self._containers += 1
        if self._containers > self._limits.containers:
            raise ProtocolError(f"a frame with more than {self._limits.containers:,} arrays and maps")
        return container


def _message(frame: Any) -> Message:
    if type(frame) is list and frame and type(frame[0]) is int:
        match frame[0], frame[1:]:
            case 0, [id_, method, params]:
                return _request(_id(id_), method, params)
            case 1, [id_, error, result]:
                return Response(_id(id_), error, result)
            case 2, [str(method), list(params)]:
                one_map = len(params) == 1 and type(params[0]) is dict
                return Notification(method, params[0] if one_map else {})
    raise ProtocolError("a frame that is no request, response or notification")


def _id(value: Any) -> int:
    # Without an id there is no answer, and a made-up one (0) closes Neovim's channel.
    if type(value) is not int or not 0 <= value <= MAX_ID:
        raise ProtocolError("a message id that is no unsigned 32-bit integer")
    return value


class _RefusedError(Exception):
    """Why a request is Invalid; raised where its id is not known."""


def _request(id_: int, method: Any, params: Any) -> Request | Invalid:
    try:
        return Request(id_, _method(method), _params(params))
    except _RefusedError as refused:
        return Invalid(id_, str(refused))


def _method(method: Any) -> str:
    if type(method) is not str or not method.isascii() or not method.isprintable():
        raise _RefusedError("the method must be a name in ASCII")
    if not 0 < len(method) <= MAX_METHOD_CHARS:
        raise _RefusedError(
            f"the method's name has {len(method)} characters; 1 to {MAX_METHOD_CHARS} are allowed"
        )
    return method


def _params(params: Any) -> dict[str, Any]:
    # Lua's {} arrives as an empty array in place of a map; others send null for no parameters.
    if params in ([], [[]], [None]):
        return {}
    if type(params) is not list or len(params) != 1 or type(params[0]) is not dict:
        got = f"{len(params)} arguments" if type(params) is list and len(params) > 1 else "another shape"
        raise _RefusedError(f'params must be an array with one map, as in [{{"query": "…"}}]; got {got}')
    one_map: dict[str, Any] = params[0]
    _check(one_map, "$", 1)
    return one_map


def _check(value: Any, where: str, depth: int) -> None:
    """Refuse what no parameter may be: text that is no UTF-8, binary, extension types, NaN, deep nests."""
    if depth > MAX_DEPTH:
        raise _RefusedError(f"params are nested deeper than {MAX_DEPTH} levels")
    match value:
        case str():
            _check_text(value, where)
        case dict():
            for key, item in value.items():
                _check_key(key, where)
                _check(item, f"{where}.{key[:MAX_NAME_CHARS]}", depth + 1)
        case list():
            for index, item in enumerate(value):
                _check(item, f"{where}[{index}]", depth + 1)
        case float() if not math.isfinite(value):
            raise _RefusedError(f"{where} must be a finite number")
        case None | bool() | int() | float():
            pass
        case _:
            raise _RefusedError(f"{where} is binary or an extension type; send text, numbers, arrays or maps")


def _check_key(key: Any, where: str) -> None:
    if type(key) is not str:
        raise _RefusedError(f"a key of {where} is binary; keys must be text")
    _check_text(key, f"a key of {where}")


def _check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _RefusedError(f"{where} is not UTF-8 at character {error.start + 1}; send UTF-8 text") from None
