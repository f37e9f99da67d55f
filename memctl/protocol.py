"""The wire protocol: MessagePack-RPC frames, and what a receiver accepts.

MessagePack-RPC as in Neovim, the only wire format of memd. Bytes in, messages out: no socket and no clock.
Two kinds of errors are distinguished: `ProtocolError` (invalid bytes or a limit exceeded: drop the connection
without an answer) and `Invalid` (a request with an id but invalid contents: answer with an error).
"""

import math
from typing import Any, NamedTuple

import msgpack

VERSION = 1
API_LEVEL = 5  # increases with every new key or method
MAX_REQUEST_BYTES = 1 << 20  # an entry's content has at most 256 KiB; the rest is for escapes and growth
MAX_ANSWER_BYTES = 8 << 20  # twice the largest source; Neovim decodes it on its main thread in about 30 ms
MAX_METHOD_CHARS = 64  # Neovim's limit is 100; memd's names have at most 20
MAX_ID = 2**32 - 1  # u32 by the MessagePack-RPC specification
MAX_DEPTH = 16  # arbitrary: no parameter is nested deeper than 3
MAX_NAME_CHARS = 40  # arbitrary: the part of a key that an error message quotes

# Received bytes are fed in slices, so that the decoder buffers at most one slice beyond a frame's limit.
_SLICE_BYTES = 64 << 10


class FrameLimits(NamedTuple):
    """The limits of one frame; the connection is dropped if one is exceeded."""

    size_bytes: int
    array_items: int
    map_items: int
    containers: int  # arrays and maps together


# Without a limit on containers, 1 MiB of empty maps becomes 74 MB of Python objects. The decoder allocates
# memory for each announced array, up to 1,024 nested ones: 8 MB with 1,024 items each, 33 MB with 4,096.
REQUESTS = FrameLimits(MAX_REQUEST_BYTES, array_items=1024, map_items=256, containers=10_000)
# Answers come from the user's daemon, so only their size is limited; each item takes at least one byte.
ANSWERS = FrameLimits(MAX_ANSWER_BYTES, MAX_ANSWER_BYTES, MAX_ANSWER_BYTES, MAX_ANSWER_BYTES)


class ProtocolError(Exception):
    """The peer violated the protocol or a limit: drop the connection without an answer."""


class FrameTooLargeError(ValueError):
    """A message is larger than its receiver accepts."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"a message of {size_bytes:,} bytes; at most {limit_bytes:,} are allowed")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


# NamedTuples, because importing dataclasses takes 6 ms of each start of memctl.
class Request(NamedTuple):
    """A call, answered by one Response with the same id."""

    id: int
    method: str
    params: dict[str, Any]


class Response(NamedTuple):
    """The answer to one Request: *result* counts only if *error* is None."""

    id: int
    error: Any  # None, or [0 | 1, "CODE: text"] with 1 if the caller is at fault
    result: Any


class Notification(NamedTuple):
    """A message without an answer."""

    method: str
    params: dict[str, Any]  # {} unless the sender's arguments were a single map


class Invalid(NamedTuple):
    """A Request with an id but invalid contents, which can be answered with an error."""

    id: int
    reason: str


Message = Request | Response | Notification | Invalid


def pack(message: Request | Response | Notification) -> bytes:
    """Return the frame of one message.

    Raises:
        FrameTooLargeError: the receiver would drop the connection over it.
        TypeError, ValueError: it contains a value that MessagePack cannot represent.
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
    """Return the MessagePack of one value of a message.

    Raises:
        TypeError, ValueError: as in `pack`.
    """
    # File names may contain bytes that are not UTF-8: they are sent unchanged.
    packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return packed


def unpack_value(packed: bytes) -> Any:
    """Return a value that `pack_value` packed."""
    return msgpack.unpackb(packed, unicode_errors="surrogateescape")


def pack_answer(id_: int, result: bytes) -> bytes:
    """Return the frame of a Response whose *result* is already packed.

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
    """Decodes the bytes of one connection into messages; unusable after its first error."""

    def __init__(self, limits: FrameLimits = REQUESTS) -> None:
        self._limits = limits
        self._fed_bytes = 0
        self._taken_bytes = 0  # up to the end of the last whole frame
        self._containers = 0
        self._unpacker: Any = msgpack.Unpacker(
            raw=False,
            # Neovim sends any bytes as text. After an error, a strict decoder would lose its position.
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
        """Number of received bytes of an incomplete frame."""
        return self._fed_bytes - self._taken_bytes

    def feed(self, received: bytes) -> list[Message]:
        """Process received bytes and return the messages that they complete.

        Raises:
            ProtocolError: drop the connection; earlier messages in *received* are lost.
        """
        if self._unpacker is None:
            raise ProtocolError("this decoder failed with an earlier error")
        try:
            return self._decode(received)
        except ProtocolError:
            self._unpacker = None
            raise
        except Exception as error:  # noqa: BLE001 - the decoder raises many types, and each ends the stream
            # After an error, an Unpacker continues in the middle of the stream, and was seen to crash.
            self._unpacker = None
            # Only the type: the message may quote what was sent.
            raise ProtocolError(f"not MessagePack within our limits ({type(error).__name__})") from None

    def _decode(self, received: bytes) -> list[Message]:
        messages: list[Message] = []
        for start in range(0, len(received), _SLICE_BYTES):
            part = received[start : start + _SLICE_BYTES]
            self._unpacker.feed(part)
            self._fed_bytes += len(part)
            # The unpacker keeps an incomplete frame, which the next slice continues.
            for frame in self._unpacker:
                before, self._taken_bytes = self._taken_bytes, self._unpacker.tell()
                self._expect_size(self._taken_bytes - before)
                self._containers = 0
                messages.append(_message(frame))
            # The unpacker's own limit does not count bytes that it has already converted to objects.
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
                number = _id(id_)
                try:
                    return Request(number, _method(method), _params(params))
                except _RefusedError as refused:
                    return Invalid(number, str(refused))
            case 1, [id_, error, result]:
                return Response(_id(id_), error, result)
            case 2, [str(method), list(params)]:
                one_map = len(params) == 1 and type(params[0]) is dict
                return Notification(method, params[0] if one_map else {})
    raise ProtocolError("a frame that is not a request, response or notification")


def _id(value: Any) -> int:
    # Without an id there is no answer, and an invented one (0) closes Neovim's channel.
    if type(value) is not int or not 0 <= value <= MAX_ID:
        raise ProtocolError("a message id that is not an unsigned 32-bit integer")
    return value


class _RefusedError(Exception):
    """The reason why a request is Invalid; raised by checks that do not know its id."""


def _method(method: Any) -> str:
    if type(method) is not str or not method.isascii() or not method.isprintable():
        raise _RefusedError("the method must be a name in ASCII")
    if not 0 < len(method) <= MAX_METHOD_CHARS:
        raise _RefusedError(
            f"the method's name has {len(method)} characters; 1 to {MAX_METHOD_CHARS} are allowed"
        )
    return method


def _params(params: Any) -> dict[str, Any]:
    # Lua's {} arrives as an empty array instead of a map; other clients send null without parameters.
    if params in ([], [[]], [None]):
        return {}
    if type(params) is not list or len(params) != 1 or type(params[0]) is not dict:
        got = f"{len(params)} arguments" if type(params) is list and len(params) > 1 else "another shape"
        raise _RefusedError(f'params must be an array with one map, as in [{{"query": "…"}}]; got {got}')
    one_map: dict[str, Any] = params[0]
    _check(one_map, "$", 1)
    return one_map


def _check(value: Any, where: str, depth: int) -> None:
    """Refuse values that no parameter may have: invalid UTF-8, binary, extensions, NaN, deep nesting."""
    if depth > MAX_DEPTH:
        raise _RefusedError(f"params are nested deeper than {MAX_DEPTH} levels")
    match value:
        case str():
            _check_text(value, where)
        case dict():
            for key, item in value.items():
                if type(key) is not str:
                    raise _RefusedError(f"a key of {where} is binary; keys must be text")
                _check_text(key, f"a key of {where}")
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


def _check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _RefusedError(f"{where} is not UTF-8 at character {error.start + 1}; send UTF-8 text") from None
