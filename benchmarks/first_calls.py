"""Which calls that the MCP tools' list suggests are right the first time, and what their answers cost.

A real daemon and `memctl mcp`; no model: whether one calls a tool at all cannot be measured without one. What
is measured is what a model meets that calls them:

* each tool with what its schema requires, and with each value of an optional argument that the schema or a
  description names (bounds, defaults, words of an enum, examples), in a call of its own: accepted or not;
* the notes of files as of `injection --unasked`, each stored by `extract_memory` with its text alone;
* the files' prompts as they are, as the `query` of `search_memory` and `recall`: whether the answer has what
  was stored, and its tokens, of four bytes.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.home import Home, home
from memd.search.recall import BYTES_PER_TOKEN

Call = Callable[[str, dict[str, Any]], dict[str, Any]]

FILES = sorted(Path(__file__).parent.glob("prompts*.jsonl"))
BLANK = {"what": "", "n": 0, "right": 0, "first": "", "tokens p50": "", "most": ""}
QUERY = "When is the stand-up?"
ENTRY = "an entry that was stored"
# What descriptions name, by tool and argument; that they still do is checked, except of ENTRY.
NAMED: dict[str, list[Any]] = {
    "search_memory.since": ["2026-05-01", "yesterday", "7d", "last-week"],
    "search_memory.until": ["2026-05"],
    "search_memory.path": [["daily/*.md"]],
    "search_memory.where": [["status=published"], ["priority>=2"], ["status!=draft"]],
    "search_memory.return": [["path"], ["path", "title"]],
    "get.path": [[ENTRY, ENTRY]],
    "extract_memory.topic": ["deploy"],
    "extract_memory.supersedes": [[ENTRY]],
    "extract_memory.related": [[ENTRY]],
    "extract_memory.update": [ENTRY],
}
NEEDED = {"query": QUERY, "content": "The tram leaves at six.", "path": ENTRY}


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--prompts", type=Path, nargs="+", default=FILES, metavar="JSONL")
    options = parser.parse_args()
    texts = [file.read_text(encoding="utf-8") for file in options.prompts]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    with home() as place:
        with place.client() as client:
            place.index(client)
        with _server(place) as (tools, call):
            stored = {}
            for line in (line for line in lines if "text" in line):
                answer = call("extract_memory", {"content": line["text"]})
                stored[line["path"]] = answer.get("structuredContent", {}).get("path")
            own = [(line["prompt"], stored[line["path"]]) for line in lines if line.get("kind") == "own"]
            call("search_memory", {"query": QUERY, "sync": True})
            rows = [
                {
                    "what": "stored with the text alone",
                    "n": len(stored),
                    "right": sum(map(bool, stored.values())),
                },
                *_asked(call, own),
                *(_suggested(call, tool, next(filter(None, stored.values()))) for tool in tools),
            ]
    report.show("first_calls", [BLANK | row for row in rows], options)


def _asked(call: Call, own: list[tuple[str, str | None]]) -> Iterator[dict[str, Any]]:
    for tool, key in (("search_memory", "hits"), ("recall", "sources")):
        answers = [(call(tool, {"query": prompt}), path) for prompt, path in own]
        paths = [
            ([one["path"] for one in answer["structuredContent"][key]], path) for answer, path in answers
        ]
        sizes = [len(answer["content"][0]["text"].encode()) / BYTES_PER_TOKEN for answer, _ in answers]
        yield {
            "what": f"{tool}: the answer has the note",
            "n": len(own),
            "right": sum(path in found for found, path in paths),
            "first": sum(path in found[:1] for found, path in paths),
            "tokens p50": f"{statistics.median(sizes):.0f}",
            "most": f"{max(sizes):.0f}",
        }


def _suggested(call: Call, tool: dict[str, Any], entry: str) -> dict[str, Any]:
    """Make the calls of a tool that its schema and descriptions suggest, and count the accepted ones."""
    arguments = tool["inputSchema"]["properties"]
    required = tool["inputSchema"]["required"] or ["path"]
    least = {key: NEEDED[key] for key in required}
    calls = [least]
    for name, schema in arguments.items():
        calls += [least | {name: value} for value in _values(f"{tool['name']}.{name}", schema)]
    known = json.dumps(calls).replace(ENTRY, entry)
    refused = [one for one in json.loads(known) if call(tool["name"], one)["isError"]]
    for one in refused:
        print(f"refused: {tool['name']} {json.dumps(one)}", file=sys.stderr)
    return {"what": f"{tool['name']}: accepted", "n": len(calls), "right": len(calls) - len(refused)}


def _values(argument: str, schema: dict[str, Any]) -> list[Any]:
    if argument in NAMED:
        named = [text for one in NAMED[argument] for text in ([one] if isinstance(one, str) else one)]
        missing = [text for text in named if text != ENTRY and text not in schema["description"]]
        assert not missing, (argument, missing)
        return NAMED[argument]
    if schema.get("type") == "boolean":
        return [True, False]
    return [
        *schema.get("enum", []),
        *(schema[key] for key in ("minimum", "default", "maximum") if key in schema),
    ]


@contextmanager
def _server(place: Home) -> Iterator[tuple[list[dict[str, Any]], Call]]:
    """A running MCP server: its tools, and a function that calls one."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "memctl", "mcp"]
    with subprocess.Popen(command, env=place.environment, cwd=place.notes, stdin=pipe, stdout=pipe) as server:

        def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
            assert server.stdin
            assert server.stdout
            line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            server.stdin.write(f"{json.dumps(line)}\n".encode())
            server.stdin.flush()
            answer: dict[str, Any] = json.loads(server.stdout.readline())["result"]
            return answer

        client = {"name": "benchmark", "version": "1"}
        request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        listed = request("tools/list", {})["tools"]
        yield listed, lambda name, arguments: request("tools/call", {"name": name, "arguments": arguments})
        server.terminate()


if __name__ == "__main__":
    main()
