"""The indexed notes as resources of the MCP server: memory:///PATH, percent-encoded."""

from typing import Any
from urllib.parse import quote, unquote

from memctl import jsonrpc
from memctl.jsonrpc import JsonRpcError
from memctl.mcp.asking import Asking, DaemonError

# The authority is empty, because clients convert it to lower case, like a host name.
PREFIX = "memory:///"
MARKDOWN = "text/markdown"
PLAIN = "text/plain"
PAGE = 100  # notes in one answer, about 20 KB
TEMPLATES = [
    {
        "uriTemplate": PREFIX + "{+path}",
        "name": "note",
        "title": "A note",
        "description": "A note of the user's memory, by its path relative to the workspace, as in a hit",
        "mimeType": MARKDOWN,
    }
]


def list_page(params: dict[str, Any], asking: Asking) -> dict[str, Any]:
    """Return one page of notes ordered by path, and the cursor of the next page."""
    cursor = params.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise JsonRpcError(jsonrpc.INVALID_PARAMS, "the cursor must be the nextCursor of an answer")
    answer = asking.call("sources", {"limit": PAGE} | ({"after": cursor} if cursor else {}))
    more = {"nextCursor": answer["next"]} if answer.get("next") else {}
    resources = [
        {
            "uri": PREFIX + quote(source["path"]),
            "name": source["path"],
            "title": source["title"],
            "mimeType": _mime_type(source["path"]),
            "annotations": {"audience": ["user", "assistant"]},
        }
        for source in answer["sources"]
    ]
    return {"resources": resources, **more}


def read(params: dict[str, Any], asking: Asking) -> dict[str, Any]:
    """Return the current text of one note.

    Raises:
        JsonRpcError: the URI has another form, or names no indexed note.
    """
    uri = params.get("uri")
    if not isinstance(uri, str) or not uri.startswith(PREFIX) or uri == PREFIX:
        what = f"the URI {uri!r} names no note: it must be {PREFIX}PATH, as resources/list has them"
        raise JsonRpcError(jsonrpc.INVALID_PARAMS, what)
    path = unquote(uri.removeprefix(PREFIX))
    try:
        answer = asking.call("get", {"path": path})
    except DaemonError as error:
        if error.code != "MEMD_NOT_FOUND":
            raise
        raise JsonRpcError(jsonrpc.RESOURCE_NOT_FOUND, str(error), {"uri": uri}) from None
    return {"contents": [{"uri": uri, "mimeType": _mime_type(path), "text": answer["text"]}]}


def _mime_type(path: str) -> str:
    return PLAIN if path.lower().endswith(".txt") else MARKDOWN
