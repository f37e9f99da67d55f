"""The parameters that a request of LSP must have, by its method. No I/O."""

from collections.abc import Iterable
from typing import Any

from memctl.jsonrpc import INVALID_PARAMS, JsonRpcError

# A list has one shape, that of its elements; what is behind a key with "?" may be missing or null.
Shape = type | dict[str, Any] | list[Any]

_POSITION: Shape = {"line": int, "character": int}
_DOCUMENT: dict[str, Shape] = {"textDocument": {"uri": str}}
_PLACE = _DOCUMENT | {"position": _POSITION}
_RANGE = _DOCUMENT | {"range": {"start": _POSITION, "end": _POSITION}}
_SHAPES: dict[str, Shape] = {
    "initialize": {
        "workspaceFolders?": [{"uri": str}],
        "rootUri?": str,
        "clientInfo?": dict,
        "capabilities?": {"general?": {"positionEncodings?": [str]}},
    },
    "textDocument/documentSymbol": _DOCUMENT,
    "textDocument/documentLink": _DOCUMENT,
    "textDocument/completion": _PLACE,
    "textDocument/definition": _PLACE,
    "textDocument/hover": _PLACE,
    "textDocument/references": _PLACE,
    "textDocument/implementation": _PLACE,
    "textDocument/prepareRename": _PLACE,
    "textDocument/rename": _PLACE | {"newName": str},
    "textDocument/inlayHint": _RANGE,
    "textDocument/codeAction": _RANGE,
    "workspace/symbol": {"query": str},
    "workspace/willRenameFiles": {"files": [{"oldUri": str, "newUri": str}]},
    "workspace/executeCommand": {"command": str},
}


def check(method: str, params: dict[str, Any]) -> None:
    """Refuse parameters of another shape. Raises JsonRpcError."""
    if wrong := _wrong(params, _SHAPES.get(method, {}), "params"):
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
