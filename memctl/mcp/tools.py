"""The tools of the MCP server: their list, their calls, and the part of an answer that an agent gets.

`tools.json` has each tool as a client is told of it. ``python -m tools.generate`` makes it of the protocol's
structs and of the texts in tools/mcp_tools.py: a parameter that a method gains is the tool's, too.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from memctl.mcp import jsonrpc
from memctl.mcp.asking import Asking, DaemonError
from memctl.mcp.jsonrpc import JsonRpcError
from memctl.output import caveats

BYTES_PER_TOKEN = 4  # as the daemon estimates them
MODEL_ID_KEY = "memd/model_id"  # in `_meta`, which is for programs: no agent pays for it


def listed() -> list[dict[str, Any]]:
    """Return the tools as `tools/list` has them."""
    return [entry["tool"] for entry in _table().values()]


def call(params: dict[str, Any], asking: Asking) -> dict[str, Any]:
    """
    Call one tool. An error of the daemon is the tool's error, so that the agent can correct its call.

    Raises:
        JsonRpcError: there is no such tool, or its arguments are no object.
    """
    name, arguments = params.get("name"), params.get("arguments") or {}
    entry = _table().get(name) if isinstance(name, str) else None
    if entry is None:
        raise JsonRpcError(
            jsonrpc.INVALID_PARAMS, f"there is no tool {name!r}; there are {', '.join(_table())}"
        )
    if not isinstance(arguments, dict):
        raise JsonRpcError(jsonrpc.INVALID_PARAMS, f"the arguments of {name} must be an object")
    known = entry["tool"]["inputSchema"]["properties"]
    if unknown := sorted(arguments.keys() - known.keys()):
        return _failed(f"unknown argument {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
    source = {"source": {"client": asking.client_name}} if entry["names_source"] else {}
    try:
        answer = asking.call(entry["method"], arguments | source)
    except DaemonError as error:
        return _failed(str(error))
    return _succeeded(answer, entry["tool"]["outputSchema"], asking.note(answer))


def _succeeded(answer: dict[str, Any], schema: dict[str, Any], note: str) -> dict[str, Any]:
    added: dict[str, Any] = {"note": note}
    if "index" in answer:
        added["complete"] = caveats.is_complete(answer["index"])
    structured = shaped(answer | added, schema)
    # The text of a recall is for a prompt: it is sent as text and not as JSON.
    content = _recalled(structured) if "budget_tokens" in structured else [jsonrpc.as_text(structured)]
    meta = {"_meta": {MODEL_ID_KEY: answer["model_id"]}} if "model_id" in answer else {}
    return {
        "content": [{"type": "text", "text": text} for text in content],
        "structuredContent": structured,
        "isError": False,
        **meta,
    }


def _recalled(answer: dict[str, Any]) -> list[str]:
    """Return the text of a recall, and what it lacks where the budget has room for that."""
    note, text = answer["note"], answer["text"] or "Nothing relevant is in memory."
    fits = answer["tokens"] + len(note.encode()) // BYTES_PER_TOKEN < answer["budget_tokens"]
    return [text, f"memd: {note}"] if note and fits else [text]


def _failed(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def shaped(value: Any, schema: dict[str, Any]) -> Any:
    """Return the fields of *value* that *schema* promises; the daemon's other fields are not for agents."""
    if "anyOf" in schema:  # something or nothing: the structs have no other union in an answer
        return value if value is None else shaped(value, schema["anyOf"][0])
    if isinstance(value, dict) and "properties" in schema:
        promised = schema["properties"]
        return {key: shaped(one, promised[key]) for key, one in value.items() if key in promised}
    if isinstance(value, list) and "items" in schema:
        return [shaped(one, schema["items"]) for one in value]
    return value


@cache
def _table() -> dict[str, dict[str, Any]]:
    """Return name → the tool, its method, and whether the method takes the name of the client."""
    made = Path(__file__).with_name("tools.json").read_text(encoding="utf-8")
    return {entry["tool"]["name"]: entry for entry in json.loads(made)}
