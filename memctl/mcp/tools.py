"""The tools of the MCP server: their list, their calls, and the fields of an answer that agents get.

`tools.json` has the description of each tool for clients. ``python -m tools.generate`` makes it from the
protocol's structs and the texts in tools/mcp_tools.py, so a new parameter of a method is also one of the
tool.
"""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from memctl import jsonrpc, session
from memctl.jsonrpc import JsonRpcError
from memctl.mcp.asking import Asking, DaemonError
from memctl.output import caveats

BYTES_PER_TOKEN = 4  # the daemon's estimate
MOST_NOTES = 20  # read by one call of `get`; arbitrary
_KINDS: dict[str, type | tuple[type, ...]] = {
    "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
MODEL_ID_KEY = "memd/model_id"  # in `_meta`, which is for programs: it costs the agent no tokens


def listed() -> list[dict[str, Any]]:
    """Return the tools in the format of `tools/list`."""
    return [entry["tool"] for entry in _table().values()]


def call(params: dict[str, Any], asking: Asking) -> dict[str, Any]:
    """
    Call one tool; the daemon's errors become errors of the tool, which lets the agent correct its call.

    Raises:
        JsonRpcError: there is no such tool, or its arguments are not an object.
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
    arguments = {
        key: meant(value, known.get(key, {})) for key, value in arguments.items() if value is not None
    }
    if unknown := sorted(arguments.keys() - known.keys()):
        return _failed(f"unknown argument {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
    source: dict[str, Any] = {}
    if entry["names_source"]:
        source["source"] = {"client": asking.client_name} | session.named(
            session.of_call(params.get("_meta"))
        )
    schema = entry["answer"]
    try:
        if "fields" in arguments:
            schema = _with_fields(schema, arguments["fields"])
            arguments = {key: value for key, value in arguments.items() if key != "fields"}
        if name == "get" and isinstance(arguments.get("path"), list):
            return _several(arguments, schema, asking)
        answer = asking.call(entry["method"], arguments | source)
    except (DaemonError, ValueError) as error:
        return _failed(str(error))
    return _succeeded(answer, schema, asking.note(answer))


def meant(value: Any, schema: dict[str, Any]) -> Any:
    """Return an argument as its schema has it, where a client sent "5", 5.0, or a list as JSON text instead.

    What does not fit is returned as it is: the daemon says what is wrong with it.
    """
    types = {one.get("type") for one in schema.get("anyOf", [schema])}
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return int(value)
    if not isinstance(value, str) or ("string" in types and not value.lstrip().startswith("[")):
        return value
    with suppress(ValueError):
        read = json.loads(value)
        if any(isinstance(read, kind) for name, kind in _KINDS.items() if name in types):
            return read
    return value


def _with_fields(schema: dict[str, Any], fields: Any) -> dict[str, Any]:
    """Return the schema of a search's answer with only the keys *fields* of each hit; raises ValueError."""
    properties = schema["properties"]["hits"]["items"]["properties"]
    if not isinstance(fields, list) or not fields or not set(map(str, fields)) <= properties.keys():
        raise ValueError(f"fields must be a list of some of {', '.join(properties)}; not {fields!r:.200}")
    kept = {key: properties[key] for key in fields}
    hits = {"type": "array", "items": {"type": "object", "properties": kept}}
    return schema | {"properties": schema["properties"] | {"hits": hits}}


def _several(arguments: dict[str, Any], schema: dict[str, Any], asking: Asking) -> dict[str, Any]:
    """Read several notes; a note that cannot be read has its error in its place."""
    paths = arguments["path"]
    if not 1 <= len(paths) <= MOST_NOTES or not all(isinstance(path, str) for path in paths):
        raise ValueError(f"path must be one path, or a list of 1 to {MOST_NOTES}; not {paths!r:.200}")
    if arguments.keys() != {"path"}:
        raise ValueError("start_line and end_line belong to one path: call get for each, or leave them out")
    notes: list[dict[str, Any]] = []
    for path in paths:
        try:
            answer = asking.call("get", {"path": path})
        except DaemonError as error:
            notes.append({"path": path, "error": str(error)})
        else:
            notes.append(shaped(answer | {"note": asking.note(answer)}, schema))
    found = {"notes": notes}
    return {
        "content": [{"type": "text", "text": jsonrpc.as_text(found)}],
        "structuredContent": found,
        "isError": all("error" in note for note in notes),
    }


def _succeeded(answer: dict[str, Any], schema: dict[str, Any], note: str) -> dict[str, Any]:
    added: dict[str, Any] = {"note": note}
    if "index" in answer:
        added["complete"] = caveats.is_complete(answer["index"])
    structured = shaped(answer | added, schema)
    # The text of a recall is for a prompt, so it is sent as text instead of JSON.
    content = _recalled(structured) if "budget_tokens" in structured else [jsonrpc.as_text(structured)]
    meta = {"_meta": {MODEL_ID_KEY: answer["model_id"]}} if "model_id" in answer else {}
    return {
        "content": [{"type": "text", "text": text} for text in content],
        "structuredContent": structured,
        "isError": False,
        **meta,
    }


def _recalled(answer: dict[str, Any]) -> list[str]:
    """Return the text of a recall, and the caveats if they fit the budget."""
    note, text = answer["note"], answer["text"] or "Nothing relevant is in memory."
    fits = answer["tokens"] + len(note.encode()) // BYTES_PER_TOKEN < answer["budget_tokens"]
    return [text, f"memd: {note}"] if note and fits else [text]


def _failed(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def shaped(value: Any, schema: dict[str, Any]) -> Any:
    """Return the fields of *value* that are in *schema*; the daemon's other fields are not for agents."""
    if "anyOf" in schema:  # a type or null: answers have no other unions
        return value if value is None else shaped(value, schema["anyOf"][0])
    if isinstance(value, dict) and "properties" in schema:
        promised = schema["properties"]
        return {key: shaped(item, promised[key]) for key, item in value.items() if key in promised}
    if isinstance(value, list) and "items" in schema:
        return [shaped(item, schema["items"]) for item in value]
    return value


@cache
def _table() -> dict[str, dict[str, Any]]:
    """Return name → {tool, method, answer: its schema, names_source: whether the method takes an author}."""
    made = Path(__file__).with_name("tools.json").read_text(encoding="utf-8")
    return {entry["tool"]["name"]: entry for entry in json.loads(made)}
