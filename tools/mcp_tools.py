"""The table of memctl's tools for agents, and the JSON that its MCP server returns for `tools/list`.

`python -m tools.generate` writes memctl/mcp/tools.json. A tool has the parameters and the answer of its
method, except for those hidden here with a reason: new parameters and keys of the protocol appear in the tool
when the file is generated again.
"""

import inspect
import json
import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from memd.api.methods import METHODS
from memd.search.filters import FILTER_KEYS
from tools.generate import comments_of

# By default the help of the command line's option.
_FILTERS = {one.key: one.help.capitalize() for one in FILTER_KEYS if one.option} | {
    "tag": "Only notes with all of these tags",
    "since": "Only notes of this day or later: 2026-05-01, yesterday, 7d, last-week",
    "until": "Only notes of this day or earlier; 2026-05: that month included",
    "path": "Only notes whose path matches one of these, as daily/*.md",
}
del _FILTERS["field"]
_FILTERS["where"] = "By front matter: status=published, priority>=2, status!=draft"
_AS_SEARCH = dict.fromkeys(_FILTERS, "See search_memory")
_WHERE = {"field": "agents take it for the keys of the answer: it is `where`"}
# Parameter → why no tool has it.
HIDDEN_PARAMS = {
    "workspace": "the server serves one, and no argument leads out of it",
    "agent": "the server says that one asks",
    "progress": "the server asks for it where its client gave a token",
    "timeout_ms": "the server's",
    "source": "the server says who writes",
    "force": "a person's word",
    "weights": "for people who tune",
    "fusion": "for people who tune",
    "explain": "for people who tune",
    "per_source": "for lists of files",
    "wait": "an agent has the time",
}
# Struct → keys that no tool returns: they are for tuning or measuring, and each costs an agent tokens.
HIDDEN_KEYS = {
    "SearchResult": ("took_ms", "index", "timings_ms", "model_id", "not_utf8", "explanation", "as_words"),
    "SearchHit": ("id", "arms", "weights", "decay", "date_of", "match_line", "match_column", "match_text",
                  "explanation"),
    "RecallResult": ("took_ms", "keys", "named", "folders", "workspace", "mode", "index", "timings_ms",
                     "model_id", "estimator", "as_words"),
    "RecallSource": ("id",),
    "RecallOmission": ("id",),
    "WhyResult": ("took_ms", "workspace", "mode", "index", "timings_ms", "line", "facts", "confidence"),
    "GetResult": ("workspace",),
    "ExtractMemoryResult": ("workspace",),
    "ForgetResult": ("took_ms", "workspace"),
}  # fmt: skip
# Added to an answer by the server.
NOTE = {"type": "string"}  # what the answer lacks; "" where all is well
COMPLETE = {"type": "boolean"}  # whether everything that is saved could be searched

# The other hints have a meaning for tools that write alone.
READS = {"readOnlyHint": True, "openWorldHint": False}
# Destructive, because `update` replaces the text of an entry.
WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
DELETES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": False}


class Tool(NamedTuple):
    """One tool, without what the protocol defines."""

    name: str
    title: str
    hints: Mapping[str, bool]
    description: str  # read by an agent to choose among the tools
    texts: Mapping[str, str]  # parameter → its description for agents; by default the struct's own comment
    method: str = ""  # "": the tool's name
    hidden: Mapping[str, str] = {}  # parameter → why this tool does not have it
    required: tuple[str, ...] = ()  # parameters that are optional in the method
    optional: tuple[str, ...] = ()  # parameters that are required in the method: the server has a default
    schemas: Mapping[
        str, Any
    ] = {}  # argument that the server handles itself, or takes in another form → type


_QUERY = 'A question or some words, in any language; "quoted words" occur together, -word excludes'
_SYNC = "First wait, some seconds at most, until all that is saved is searchable"
_BUDGET = "the budget says how much"
_FLAG = {"type": "boolean"}  # a number of milliseconds is for programs
_TEXTS = {"type": "array", "items": {"type": "string"}}
_TEAM = {"type": "string", "enum": ["team"]}  # the default is left out

TOOLS = (
    Tool(
        "search_memory",
        "Search memory",
        READS,
        """\
        Find what the user's notes and earlier memories say, by meaning and by words.

        Use it when a question may have been answered or decided before; `since` alone lists what is new.
        Returns ranked stretches of notes with path, lines, snippet and score (0 to 1). Look at `confidence`
        first: "none" means no good match, only the nearest; `note` says what else the answer lacks. A hit
        with `superseded_by`, `expired` or `later` may be old, and one of a conversation if it has
        `entries`: rely on the notes named. Read more of hits with get; cite path and lines.
        """,
        {
            **_FILTERS,
            "query": _QUERY,
            "limit": "Hits at most",
            "mode": "keyword: exact words alone; vector: meaning alone",
            "min_score": "Lowest score of a hit",
            "sync": _SYNC,
            "return": "Only these keys of each hit, as path, title",
            "scope": "What a whole team publishes",
        },
        hidden={"prefix": "for who types while the hits are shown"} | _WHERE,
        optional=("query",),
        schemas={
            "tag": _TEXTS,
            "path": _TEXTS,
            "where": _TEXTS,
            "sync": _FLAG,
            "return": _TEXTS,
            "scope": _TEAM,
        },
    ),
    Tool(
        "recall",
        "Recall for a prompt",
        READS,
        """\
        Get the text of the most relevant notes as Markdown, within a budget of tokens, sources named.

        Use it at the start of a task to load what is known about its subject. To choose among
        hits, use search_memory.
        """,
        {
            **_AS_SEARCH,
            "query": "See search_memory",
            "budget_tokens": "Tokens at most",
            "sync": "See search_memory",
            "superseded": "Also superseded and expired notes",
            "scope": "See search_memory",
        },
        schemas={"tag": _TEXTS, "path": _TEXTS, "where": _TEXTS, "sync": _FLAG, "scope": _TEAM},
        hidden=_WHERE
        | {
            "limit": _BUDGET,
            "min_score": _BUDGET,
            "mode": "who wants another one searches",
            "format": "one is enough",
            "core": "it is to be known always",
            "sure": "for hooks, which nobody asked",
            "begins": "for hooks, which know the folder",
            "known": "for hooks; an agent sees what it was sent",
            "nearest": "never: an agent takes what it gets for an answer",
        },
    ),
    Tool(
        "get",
        "Read a note",
        READS,
        """\
        Read a note, some lines of it, or several notes.

        `links` names the notes that it links to and those that link to it; `superseded_by` those that hold in
        its place; `hash` is what extract_memory takes to update an entry.
        """,
        {
            "path": "The path of a hit, or several paths, read whole",
            "start_line": "First line",
            "end_line": "Last line, inclusive",
        },
        schemas={"path": {"anyOf": [{"type": "string"}, _TEXTS]}},
        hidden={"id": "hits are named by path and lines"},
        required=("path",),
    ),
    Tool(
        "why_memory",
        "Why is a note not found",
        READS,
        """\
        Say why search_memory does not return an expected note.

        Names the first stage that dropped it, with its values and what to do; "returned" if it is a hit.
        """,
        {"path": "The path of the note", "query": "See search_memory", "line": "Ask about this line"},
        method="why",
        hidden=dict.fromkeys(
            ("limit", "min_score", "tag", "field", "since", "until", "sync", "mode", "glob"),
            "filters can be typed into the query",
        ),
    ),
    Tool(
        "extract_memory",
        "Remember",
        WRITES,
        """\
        Remember one fact, decision or preference for later sessions, as a Markdown entry.

        Use it when something will be true beyond this conversation and nobody wrote it down. One fact an
        entry. Never store passwords, keys or tokens: they are refused. The entry is kept as soon as this
        returns: do not store it again if `indexed` is false. `similar` names a note that says the same.
        When a fact changed, name the old note in `supersedes`: it is kept, ranks behind the new one and says
        so. To correct an entry itself, `update` it; MEMD_CHANGED means that somebody else changed it: read it
        again first.
        """,
        {
            "topic": "A short subject, as deploy (default: the first tag)",
            "title": "The fact in one line, in words to search for (default: its first line)",
            "content": "Markdown that is clear without this conversation: what holds, why, since when",
            "tags": "A few words to filter by",
            "supersedes": "Notes that this one corrects or replaces: paths or entry ids",
            "related": "Notes that it links to, likewise",
            "update": "Id or path of an entry whose text this replaces",
            "hash": "With update: its hash, from get",
            "daily": "Append it to today's log: for what happened, not what holds",
            "derived_from": "external: from the web or a file, not the user's word",
        },
        schemas={
            "supersedes": _TEXTS,
            "related": _TEXTS,
            "derived_from": {"type": "string", "enum": ["external"]},
        },
    ),
    Tool(
        "forget_memory",
        "Forget",
        DELETES,
        """\
        Delete an entry that extract_memory wrote, when the user asks for it or it was stored by mistake.

        The user's own notes, and entries that were changed since, are refused: tell the user where they are.
        """,
        {
            "path": "The path of the entry, as a hit has it",
            "id": "In place of the path its id; needed in a daily log",
        },
        method="forget",
        hidden={"keep_file": "it leaves any note out of the index, whoever wrote it: its owner's choice"},
    ),
)


def tools_json() -> str:
    """Return the text of memctl/mcp/tools.json."""
    return json.dumps([_entry(tool) for tool in TOOLS], ensure_ascii=False, indent=1) + "\n"


def method_of(tool: Tool) -> str:
    """Return the protocol's method that a tool calls."""
    return tool.method or tool.name


def _entry(tool: Tool) -> dict[str, Any]:
    method = METHODS[method_of(tool)]
    return {
        "method": method_of(tool),
        "names_source": "source" in method.params.__struct_fields__,
        "tool": {
            "name": tool.name,
            "title": tool.title,
            "description": inspect.cleandoc(textwrap.dedent(tool.description)),
            "inputSchema": _input(tool, method.params),
            "annotations": tool.hints,
        },
        # No client gets this: it would cost an agent as many tokens as all the rest, in each conversation.
        "answer": _answer(method.result),
    }


def _input(tool: Tool, params: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a tool's arguments: those of its method that are not hidden."""
    schema, comments = _schemas(params)[params.__name__], comments_of(params)
    hidden = HIDDEN_PARAMS.keys() | tool.hidden.keys()
    taken = {name: _plain(one) for name, one in schema["properties"].items() if name not in hidden}
    taken |= {name: dict(one) for name, one in tool.schemas.items()}
    for name, one in taken.items():
        one["description"] = tool.texts.get(name) or _sentence(comments.get(name, name))
    required = [name for name in taken if name in {*schema["required"], *tool.required} - {*tool.optional}]
    first = {name: taken[name] for name in (*required, *tool.optional)}
    return {"type": "object", "properties": first | taken, "required": required}


def _answer(result: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a tool's answer: that of its method without hidden keys, plus `note`."""
    schema = _pruned(result.__name__, _schemas(result))
    added = {"complete": COMPLETE} if "index" in result.__struct_fields__ else {}
    return schema | {"properties": schema["properties"] | added | {"note": NOTE}}


def _schemas(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return name → JSON Schema, for a struct and for all structs that it contains."""
    _, schemas = msgspec.json.schema_components([kind], ref_template="{name}")
    return schemas


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without null: an agent omits the parameter instead."""
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    # The daemon checks lengths and patterns with a clear error, and an empty default is no news.
    told = {
        key: one for key, one in schema.items() if key not in {"anyOf", "minLength", "maxLength", "pattern"}
    }
    if told.get("default", ...) in (None, [], False):
        del told["default"]
    if "enum" in told:
        told["type"] = "string"
    return told if not kinds else kinds[0] | told if len(kinds) == 1 else {"anyOf": kinds} | told


def _pruned(name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one struct without hidden keys, with the contained structs inlined.

    No key is required, because the daemon that answers may be older or newer.
    """
    hidden = HIDDEN_KEYS.get(name, ())
    shown = {key: one for key, one in schemas[name]["properties"].items() if key not in hidden}
    return {"type": "object", "properties": {key: _inlined(one, schemas) for key, one in shown.items()}}


def _inlined(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _pruned(schema["$ref"], schemas)
    told = {key: value for key, value in schema.items() if key not in {"default", "title"}}
    if "items" in told:
        told["items"] = _inlined(told["items"], schemas)
    if "anyOf" in told:
        told["anyOf"] = [_inlined(one, schemas) for one in told["anyOf"]]
    return told


def _sentence(comment: str) -> str:
    return comment[:1].upper() + comment[1:]
