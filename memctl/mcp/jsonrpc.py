"""JSON-RPC 2.0 as MCP speaks it over stdio: one message a line, its kinds and its errors. No I/O."""

import json
from typing import Any, NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# Of MCP's own.
RESOURCE_NOT_FOUND = -32002  # until 2025-11-25; later versions say INVALID_PARAMS
UNSUPPORTED_PROTOCOL_VERSION = -32022
# Of this server's own.
TOO_MANY = -32000
MEMD_FAILED = -32001  # memd refused, or does not answer

# A request of the daemon has at most 1 MiB; as JSON each of its characters may be six.
MAX_LINE_BYTES = 6 << 20

Id = str | int


class JsonRpcError(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class InvalidLineError(JsonRpcError):
    """A line that is no message; *id* is the id of its request where that could be read."""

    def __init__(self, code: int, message: str, id_: Id | None = None) -> None:
        super().__init__(code, message)
        self.id = id_


class JsonRpcRequest(NamedTuple):
    """A call that is answered once."""

    id: Id
    method: str
    params: dict[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """`_meta` of the parameters: the progress token, in later versions also client and version."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class JsonRpcNotification(NamedTuple):
    """A message that nobody answers."""

    method: str
    params: dict[str, Any]


def decode(line: bytes) -> JsonRpcRequest | JsonRpcNotification | None:
    """
    Return the message of one line; None for a response, which nobody asked for.

    Raises:
        InvalidLineError: it is none.
    """
    if len(line) > MAX_LINE_BYTES:
        raise InvalidLineError(INVALID_REQUEST, f"a message of more than {MAX_LINE_BYTES:,} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidLineError(PARSE_ERROR, f"a line that is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise InvalidLineError(
            INVALID_REQUEST, "a message is one object a line; batches were in no version but 2025-03-26"
        )
    id_ = _id(message)
    method, params = message.get("method"), message.get("params")
    if method is None and ("result" in message or "error" in message):
        return None
    if not isinstance(method, str):
        raise InvalidLineError(INVALID_REQUEST, "a request needs a method, which is text", id_)
    if params is not None and not isinstance(params, dict):
        raise InvalidLineError(INVALID_PARAMS, f"params of {method} must be an object", id_)
    return (
        JsonRpcNotification(method, params or {})
        if id_ is None
        else JsonRpcRequest(id_, method, params or {})
    )


def _id(message: dict[str, Any]) -> Id | None:
    id_ = message.get("id")
    if "id" in message and (isinstance(id_, bool) or not isinstance(id_, str | int)):
        raise InvalidLineError(INVALID_REQUEST, "the id of a request must be text or an integer")
    return id_


def result(id_: Id, answer: dict[str, Any]) -> bytes:
    """Return the line that answers a request."""
    return _line({"id": id_, "result": answer})


def failure(id_: Id | None, error: JsonRpcError) -> bytes:
    """Return the line that refuses a request."""
    said = {"code": error.code, "message": str(error)} | ({"data": error.data} if error.data else {})
    return _line({"id": id_, "error": said})


def notification(method: str, params: dict[str, Any]) -> bytes:
    """Return the line of a notification."""
    return _line({"method": method, "params": params})


def as_text(value: Any) -> str:
    """Return a value as JSON of one line, characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _line(message: dict[str, Any]) -> bytes:
    # A text may repeat half of a surrogate pair that a client sent: no UTF-8, and no reason to be silent.
    return as_text({"jsonrpc": "2.0", **message}).encode("utf-8", "replace") + b"\n"
