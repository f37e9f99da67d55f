"""The tools of the MCP server: their list, their calls, and the fields of an answer that agents get.

`tools.json` has the description of each tool for clients. ``python -m tools.generate`` makes it from the
protocol's structs and the texts in tools/mcp_tools.py, so a new parameter of a method is also one of the
tool.
"""

import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from memctl import jsonrpc, paths, relative_path, session
from memctl.agents import hooks
from memctl.jsonrpc import JsonRpcError
from memctl.mcp.asking import Asking, DaemonError
from memctl.output import caveats

BYTES_PER_TOKEN = 4  # the daemon's estimate
MOST_NOTES = 20  # read by one call of `get`; arbitrary
_KINDS: dict[str, type | tuple[type, ...]] = {
    "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
# Argument → its name in the method, or "" if the server handles it.
OWN_NAMES = {"where": "field", "return": ""}
# Argument → names that models give to it; a name of several belongs to the one that the tool has.
ALIASES = {
    "where": ("field", "filter", "filters"),
    "return": ("fields",),
    "path": ("paths", "file", "file_path", "uri", "id"),
    "content": ("text", "memory", "fact"),
    "query": ("q", "question", "task", "prompt", "text"),
    "limit": ("top_k", "max_results", "k"),
    "budget_tokens": ("max_tokens",),
    "tag": ("tags",),
    "tags": ("tag",),
    "since": ("after", "from", "from_date", "date_from", "start", "start_date"),
    "until": ("before", "to", "to_date", "date_to", "end", "end_date"),
}
QUOTE = '"'
WORDS = {"tags", "tag", "return"}  # lists that models also write as "one, two"
SEARCHES = {"search_memory", "recall"}
NARROWING = {"where", "tag", "path", "since", "until"}
MOST_KEYS = 1000  # of front matter that are compared with a condition: `fields` lists so many
SHOWN_KEYS = 12  # arbitrary: a line
SAME = 0.85  # a similar note with a lower score says something else, and costs the agent a call
MAX_TITLE_CHARS = 80  # of a title that is made of the content
TEAM = re.compile(rb"^[ \t]*\[[ \t]*team[ \t]*\]", re.MULTILINE)
NOTHING = "Nothing in memory is about this."
MODEL_ID_KEY = "memd/model_id"  # in `_meta`, which is for programs: it costs the agent no tokens


def listed() -> list[dict[str, Any]]:
    """Return the tools in the format of `tools/list`; `scope` only if the user's configuration has a team."""
    listed = [entry["tool"] for entry in _table().values()]
    with suppress(OSError, paths.PathError):
        if TEAM.search((paths.config_dir() / "config.toml").read_bytes()):
            return listed
    without = []
    for tool in listed:
        schema = tool["inputSchema"]
        properties = {key: one for key, one in schema["properties"].items() if key != "scope"}
        without.append(tool | {"inputSchema": schema | {"properties": properties}})
    return without


def call(params: dict[str, Any], asking: Asking) -> dict[str, Any]:
    """Call one tool; the daemon's errors become errors of the tool, which lets the agent correct its call.

    Raises:
        JsonRpcError: there is no such tool, or its arguments are not an object.
    """
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name == hooks.TOOL:  # as `memctl hook` answers: with nothing if anything is wrong
        text = ""
        with suppress(Exception):
            given = {key: one for key, one in arguments.items() if isinstance(one, str) and one}
            text = asking.for_prompt(given, asking.named)
        return {"content": [{"type": "text", "text": text or "{}"}], "isError": False}
    entry = _table().get(name) if isinstance(name, str) else None
    if entry is None:
        raise JsonRpcError(
            jsonrpc.INVALID_PARAMS, f"there is no tool {name!r}; there are {', '.join(_table())}"
        )
    with suppress(ValueError, RecursionError):
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(arguments, dict):
        raise JsonRpcError(jsonrpc.INVALID_PARAMS, f"the arguments of {name} must be an object")
    schema = entry["tool"]["inputSchema"]
    known, needed = schema["properties"], schema.get("required", ())
    named = {key: _named(key, arguments, known) for key in arguments}
    arguments = {
        named[key]: meant(value, known.get(named[key], {}))
        for key, value in arguments.items()
        if value is not None and (value not in ("", {}) or named[key] in needed)
    }
    if unknown := sorted(arguments.keys() - known.keys()):
        return _failed(f"unknown argument {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
    for key in WORDS & arguments.keys():
        if isinstance(arguments[key], str):
            arguments[key] = [part.strip() for part in arguments[key].split(",") if part.strip()]
    renamed = [f"{key} is called {new} here" for key, new in named.items() if key != new]
    if isinstance(where := arguments.get("where"), dict | list):
        arguments["where"] = [
            one for part in ([where] if isinstance(where, dict) else where) for one in _conditions(part)
        ]
    if name in SEARCHES and "path" in arguments and asking.named:
        arguments["path"] = _relative(arguments["path"], relative_path.root_of(asking.named))
    for key in {"since", "until"} & arguments.keys():  # 2026 is a year
        arguments[key] = str(arguments[key])
    if name == "search_memory" and not str(arguments.get("query", "")).strip():
        if not arguments.keys() & NARROWING:
            return _failed("pass a query; or since alone, for what is new since then")
        arguments["query"] = ""
    if name == "extract_memory":
        arguments = _derived(arguments)
    source: dict[str, Any] = {}
    if entry["names_source"]:
        source["source"] = {"client": asking.client_name} | session.named(
            session.of_call(params.get("_meta"))
        )
    schema = entry["answer"]
    try:
        if "return" in arguments:
            schema = _with_fields(schema, arguments["return"])
        where = arguments.get("where", [])
        arguments = {
            OWN_NAMES.get(key, key): value for key, value in arguments.items() if OWN_NAMES.get(key, key)
        }
        if name == "recall":  # an agent takes what it gets for an answer
            arguments["nearest"] = False
        if name == "get" and isinstance(arguments.get("path"), list):
            return _several(arguments, schema, asking)
        answer = asking.call(entry["method"], arguments | source)
        found = answer.get("hits", answer.get("sources", True))
        lacking = (
            _unknown_keys([where] if isinstance(where, str) else where, asking) if where and not found else ""
        )
    except (DaemonError, ValueError) as error:
        return _failed(str(error))
    added: dict[str, Any] = {"note": "; ".join(filter(None, [*renamed, lacking, asking.note(answer)]))}
    if "index" in answer:
        added["complete"] = caveats.is_complete(answer["index"])
    if "similar" in answer:
        added["similar"] = _nearest(answer["similar"])
    structured = {
        key: value for key, value in shaped(answer | added, schema).items() if key != "similar" or value
    }
    # The text of a recall is for a prompt, so it is sent as text instead of JSON.
    content = _recalled(structured) if "budget_tokens" in structured else [jsonrpc.as_text(structured)]
    meta = {"_meta": {MODEL_ID_KEY: answer["model_id"]}} if "model_id" in answer else {}
    return {
        "content": [{"type": "text", "text": text} for text in content],
        "structuredContent": structured,
        "isError": False,
        **meta,
    }


def _named(key: str, arguments: dict[str, Any], known: dict[str, Any]) -> str:
    """Return the tool's own name of an argument."""
    plain = re.sub("(?<=[a-z])(?=[A-Z])", "_", key).lower()  # maxResults
    meant = (
        one for one, names in ALIASES.items() if plain in names and one in known and one not in arguments
    )
    return plain if plain in known else next(meant, key)


def _conditions(part: Any) -> list[Any]:
    """Return a part of `where` as conditions: of a map, key → value."""
    if not isinstance(part, dict):
        return [part]
    return [f"{key}={jsonrpc.as_text(one).strip(QUOTE)}" for key, one in part.items()]


def _relative(path: Any, root: str) -> Any:
    """Return the patterns of a search relative to the workspace's root, also if they begin with it."""
    if isinstance(path, list):
        return [_relative(one, root) for one in path]
    return f"{path}/".removeprefix(f"{root}/") if isinstance(path, str) and path.startswith("/") else path


def _derived(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a new entry with a title, its first line, and a topic, its first tag."""
    content, tags = arguments.get("content"), arguments.get("tags")
    if "update" in arguments or not isinstance(content, str):
        return arguments
    lines = (re.sub(r"^[#>*+\s-]+", "", line).strip() for line in content.splitlines())
    first = re.sub(r"[*_`\[\]]", "", next(filter(None, lines), "")) or "empty"  # which memd refuses
    if len(first) > MAX_TITLE_CHARS:
        first = first[:MAX_TITLE_CHARS].rpartition(" ")[0] or first[:MAX_TITLE_CHARS]
    topic = str(tags[0]) if isinstance(tags, list) and tags else "notes"
    given = {key: one for key, one in arguments.items() if key not in {"title", "topic"} or one != ""}
    return {"title": first} | ({} if arguments.get("daily") else {"topic": topic}) | given


def _unknown_keys(where: list[Any], asking: Asking) -> str:
    """Return which keys of conditions no note has, and which there are; "" if some note has each."""
    keys = [found[1] for one in where if (found := re.match(r"\s*([^\s=<>!~:]+)", str(one)))]
    there = [one["name"] for one in asking.call("fields", {"limit": MOST_KEYS})["fields"]]
    missing = [key for key in keys if key.casefold() not in {name.casefold() for name in there}]
    if not missing:
        return ""
    shown = f"there are {', '.join(there[:SHOWN_KEYS])}" if there else "no note has front matter"
    return f"no note has the front matter key {', '.join(missing)}; {shown}"


def meant(value: Any, schema: dict[str, Any]) -> Any:
    """Return an argument as its schema has it: a client may send "5", JSON text, or a list of one text.

    What does not fit is returned as it is: the daemon says what is wrong with it.
    """
    types = {one.get("type") for one in schema.get("anyOf", [schema])}
    if types == {"string"}:
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(value, str) or ("string" in types and not value.lstrip().startswith(("[", "{"))):
        return value
    with suppress(ValueError, RecursionError):
        read = json.loads(value)
        if isinstance(read, dict) and "array" in types:
            return read  # conditions: key → value
        read = int(read) if isinstance(read, float) and read.is_integer() else read
        if any(isinstance(read, kind) for name, kind in _KINDS.items() if name in types):
            return read
    return value


def _with_fields(schema: dict[str, Any], fields: Any) -> dict[str, Any]:
    """Return the schema of a search's answer with only the keys *fields* of each hit; raises ValueError."""
    properties = schema["properties"]["hits"]["items"]["properties"]
    if not isinstance(fields, list) or not fields or not set(map(str, fields)) <= properties.keys():
        raise ValueError(f"return must be a list of some of {', '.join(properties)}; not {fields!r:.200}")
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


def _recalled(answer: dict[str, Any]) -> list[str]:
    """Return the text of a recall, and the caveats if they fit the budget."""
    note, text = answer["note"], answer["text"] or NOTHING
    if answer["confidence"] == "none":
        note = NOTHING if answer["text"] else ""  # the core is to be known whatever was asked
    fits = answer["tokens"] + len(note.encode()) // BYTES_PER_TOKEN < answer["budget_tokens"]
    return [text, f"memd: {note}"] if note and fits else [text]


def _nearest(similar: list[dict[str, Any]]) -> str:
    """Return a line about the most similar note; "" if none says the same."""
    held = (one for one in similar if not one.get("superseded_by"))
    nearest = max(held, key=lambda one: float(one["score"]), default=None)
    if nearest is None or nearest["score"] < SAME:
        return ""
    return f"{nearest['path']} says nearly the same: {nearest['title']}"


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
