"""The shapes of the parameters of LSP's requests. No I/O."""

from collections.abc import Iterable
from typing import Any

from memctl.jsonrpc import INVALID_PARAMS, JsonRpcError

# A list has one shape, that of its elements; what is behind a key with "?" may be missing or null.
Shape = type | dict[str, Any] | list[Any]

_POSITION: Shape = {"line": int, "character": int}
ANYTHING: dict[str, Shape] = {}
DOCUMENT: dict[str, Shape] = {"textDocument": {"uri": str}}
PLACE = DOCUMENT | {"position": _POSITION}
RANGE = DOCUMENT | {"range": {"start": _POSITION, "end": _POSITION}}
INITIALIZE: dict[str, Shape] = {
    "workspaceFolders?": [{"uri": str}],
    "rootUri?": str,
    "clientInfo?": dict,
    "capabilities?": {"general?": {"positionEncodings?": [str]}},
}


def check(method: str, params: dict[str, Any], shape: Shape) -> None:
    """Refuse parameters of another shape. Raises JsonRpcError."""
    if wrong := _wrong(params, shape, "params"):
        raise JsonRpcError(INVALID_PARAMS, f"{method}: {wrong}")


def _wrong(value: Any, shape: Shape, place: str) -> str:
    """Return what is wrong with the value at *place*; "" if nothing is."""
    kind: Any = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is int and value < 0):
        return f"{place} must be {'an integer from 0 on' if kind is int else kind.__name__}"
    inner: Iterable[tuple[Any, Shape, str]] = ()
    if isinstance(shape, dict):
        named = ((key.removesuffix("?"), key.endswith("?"), below) for key, below in shape.items())
        inner = (
            (value.get(key), below, f"{place}.{key}")
            for key, may_miss, below in named
            if not (may_miss and value.get(key) is None)
        )
    elif isinstance(shape, list):
        inner = ((one, shape[0], f"{place}[{at}]") for at, one in enumerate(value))
    return next(filter(None, (_wrong(*one) for one in inner)), "")
