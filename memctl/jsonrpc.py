"""JSON-RPC 2.0 messages over stdio: one on each line for MCP, each behind a header for LSP."""

import json
import sys
from typing import Any, BinaryIO, NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# Codes of MCP.
RESOURCE_NOT_FOUND = -32002  # until 2025-11-25; later versions use INVALID_PARAMS
UNSUPPORTED_PROTOCOL_VERSION = -32022
# Codes of this server.
TOO_MANY = -32000
MEMD_FAILED = -32001  # memd answered with an error, or does not answer

# A request to the daemon has at most 1 MiB; JSON may escape each character as six.
MAX_LINE_BYTES = 6 << 20
MAX_HEADER_BYTES = 4 << 10  # of one line of a header; arbitrary: it has a name and a number

Id = str | int


class JsonRpcError(Exception):
    """An error of the protocol, which answers a request."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class InvalidLineError(JsonRpcError):
    """A line is not a message; *id* is the id of its request if that could be read."""

    def __init__(self, code: int, message: str, id_: Id | None = None) -> None:
        super().__init__(code, message)
        self.id = id_


class JsonRpcRequest(NamedTuple):
    """A call that gets one answer."""

    id: Id
    method: str
    params: dict[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """`_meta` of the parameters: the progress token, in later versions also client and version."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class JsonRpcNotification(NamedTuple):
    """A message without an answer."""

    method: str
    params: dict[str, Any]


def decode(line: bytes) -> JsonRpcRequest | JsonRpcNotification | None:
    """Return the message of one line; None for a response, and for a notification that cannot be meant.

    Raises:
        InvalidLineError: the line is not a message.
    """
    if len(line) > MAX_LINE_BYTES:
        raise InvalidLineError(INVALID_REQUEST, f"a message of more than {MAX_LINE_BYTES:,} bytes")
    try:
        message = json.loads(line, parse_float=_number)
        if b"\\ud" in line.lower():  # half an emoji, as JavaScript cuts it, is no character
            message = json.loads(as_text(message).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidLineError(PARSE_ERROR, f"a line is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise InvalidLineError(
            INVALID_REQUEST, "a message is one object on a line; only version 2025-03-26 had batches"
        )
    id_ = _id(message)
    method, params = message.get("method"), message.get("params")
    if method is None and ("result" in message or "error" in message):
        return None
    if not isinstance(method, str):
        raise InvalidLineError(INVALID_REQUEST, "a request needs a method, which is text", id_)
    if params is not None and not isinstance(params, dict):
        if id_ is None:  # a notification is never answered, not even with an error
            return None
        raise InvalidLineError(INVALID_PARAMS, f"params of {method} must be an object", id_)
    return (
        JsonRpcNotification(method, params or {})
        if id_ is None
        else JsonRpcRequest(id_, method, params or {})
    )


def _number(text: str) -> float:
    """Return a number as an integer if it is one: JSON has one kind of number, and Lua writes 3 as 3.0."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _id(message: dict[str, Any]) -> Id | None:
    id_ = message.get("id")
    if "id" in message and (isinstance(id_, bool) or not isinstance(id_, str | int)):
        raise InvalidLineError(INVALID_REQUEST, "the id of a request must be text or an integer")
    return id_


def result(id_: Id, answer: Any) -> bytes:
    """Return the line of a successful answer."""
    return _line({"id": id_, "result": answer})


def failure(id_: Id | None, error: JsonRpcError) -> bytes:
    """Return the line of an error."""
    fields = {"code": error.code, "message": str(error)} | ({"data": error.data} if error.data else {})
    return _line({"id": id_, "error": fields})


def unforeseen(id_: Id, method: str, server: str, error: Exception) -> bytes:
    """Return the line that answers a request after a bug, whose place goes to stderr."""
    report(error)
    what = f"{method} failed inside {server} ({type(error).__name__}): please report it"
    return failure(id_, JsonRpcError(INTERNAL_ERROR, what))


def report(error: Exception) -> None:
    """Say on stderr where an error happened, without its text, which may quote a note: clients log it."""
    import traceback  # rarely needed

    print(*traceback.format_tb(error.__traceback__), type(error).__name__, file=sys.stderr)


def notification(method: str, params: dict[str, Any]) -> bytes:
    """Return the line of a notification."""
    return _line({"method": method, "params": params})


def request(id_: Id, method: str, params: dict[str, Any]) -> bytes:
    """Return the line of a request to the client."""
    return _line({"id": id_, "method": method, "params": params})


def frame(line: bytes) -> bytes:
    """Return a message with the header of LSP."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(line), line)


def framed(stream: BinaryIO) -> bytes | None:
    """Return the next message behind a header of LSP; None at the end.

    Raises:
        InvalidLineError: it is too long, and was skipped.
    """
    length = None
    while line := stream.readline(MAX_HEADER_BYTES):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
        elif not line.strip() and length is not None:
            break
    if length is None:
        return None
    if length > MAX_LINE_BYTES:
        while length > 0 and (part := stream.read(min(length, MAX_LINE_BYTES))):
            length -= len(part)
        raise InvalidLineError(INVALID_REQUEST, f"a message of more than {MAX_LINE_BYTES:,} bytes")
    body = b""
    while len(body) < length and (part := stream.read(length - len(body))):
        body += part
    return body if len(body) == length else None


def as_text(value: Any) -> str:
    """Return a value as JSON on one line, without escaping characters beyond ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _line(message: dict[str, Any]) -> bytes:
    # An error text may quote a lone surrogate that the client sent, which UTF-8 cannot encode.
    return as_text({"jsonrpc": "2.0", **message}).encode("utf-8", "replace") + b"\n"
