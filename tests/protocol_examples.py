"""One request and its answer for each method, from a real daemon on a few notes, for docs/protocol.md.

What differs from run to run, or from machine to machine, is replaced by a stand-in: in the same way for the
page and for the test that compares it.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from daemon_process import Daemon

WIDTH = 100  # of a line of the page
HOME = "/home/ada"
TODAY = date(2026, 5, 7)  # on the page; the notes are as old on any day, since a score falls with their age
NOTES = {
    "birds/heron.md": "---\ntags: [birds]\nupdated: 2026-05-01\n---\n# Grey heron\n\n"
    "The heron nests in the willows at the weir.\nIt fishes there at dawn.\n",
    "river/weir.md": "---\nupdated: 2026-04-12\n---\n# The weir\n\nThe weir was mended in May.\n",
}
DATES = (TODAY, date(2026, 5, 1), date(2026, 4, 12))
# Key → what stands there in place of times, numbers of commits and processes, sizes and versions.
STAND_INS: dict[str, Any] = {
    "api_level": 3,
    "at": 1778140800.0,
    "modified": 1778140800.0,
    "descriptors": 31,
    "generation": 7,
    "index_generation": 7,
    "instance_id": "5f1d7a94c80b23e6",
    "lag_ms": 0,
    "last_acknowledged": 1778140800.0,
    "last_index": 1778140800.0,
    "last_scan": 1778140800.0,
    "loop_lag_ms": 0.12,
    "memory_mb": 142.5,
    "onnxruntime": "1.23.2",
    "packages": {"apsw": "3.54.0", "numpy": "2.3.4"},
    "paused_until": 1778141400.0,
    "pending": 0,  # a note that was just saved is read once more, at any moment
    "pending_files": 0,
    "pid": 4711,
    "python": "3.13.9",
    "requests": [{"at": 1778140800.0, "method": "search", "ms": 6.1, "answer_bytes": 1204, "failed": False}],
    "size_bytes": 245760,
    "sqlite": "3.54.0",
    "state": "ready",
    "system": "Linux-6.12-x86_64-with-glibc2.41",
    "threads": ["MainThread", "reader_0", "writer_0"],
    "took_ms": 3.4,
    "uptime_s": 61.0,
    "version": "0.2.0",
    "server_version": "0.2.0",
    "watched": [],
    "watching": "inotify",
}
A_CHUNK = 12
A_STEP_MS = 0.4
SCORE_DIGITS = 2  # of a number on the page; a model's last digits differ between processors
_TEXTS = (
    (re.compile(r"answered in [\d.]+ ms"), "answered in 6.1 ms"),
    (re.compile(r"-[0-9a-f]{6}\.md"), "-c0ffee.md"),
    (re.compile(r"^[0-9a-f]{16}$"), "c0ffee5f1d7a94c8"),
    (re.compile(r"^[0-9a-f]{32}$"), "5f1d7a94c80b23e6c0ffee5f1d7a94c8"),
    (re.compile(r"^\d{4}-\d\d-\d\dT[\d:.+-]+$"), "2026-05-07T08:00:00+02:00"),
)


def asked(root: Path, entry: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each request in the order in which it is made; *entry*: path of the one that was written."""
    query = "where does the heron nest?"
    yield "workspace.add", {"path": str(root)}
    yield "index", {"workspace": str(root)}
    yield "sync", {"timeout_ms": 10_000}
    yield "memd.hello", {"client": "example", "version": "1.0", "protocol": [1]}
    yield "ping", {}
    yield "search", {"query": query, "limit": 1}
    yield "search_memory", {"query": query, "mode": "keyword", "limit": 1}
    yield "timeline", {"query": query, "limit": 1}
    yield "recall", {"query": query, "limit": 1, "budget_tokens": 200}
    yield "similar", {"path": "birds/heron.md", "limit": 1, "min_score": 0.0}
    yield "why", {"path": "river/weir.md", "query": "heron tag:birds", "mode": "keyword"}
    yield "get", {"path": "birds/heron.md", "start_line": 5, "end_line": 7}
    yield "links", {"path": "birds/heron.md", "limit": 1}
    yield "names", {"limit": 1}
    yield "resolve", {"link": "[[heron#Food|it]]", "path": "river/weir.md"}
    yield "outline", {"path": "river/weir.md", "text": "# Weir\n\nThe [[heron]] fishes here.\n"}
    yield "sources", {"limit": 1}
    yield "review", {"unused": True, "limit": 1}
    yield "fields", {"field": "updated>=2026-05", "limit": 1}
    yield "health", {}
    yield "check", {}
    yield "status", {}
    yield "debug", {"lag_s": 0.0}
    yield "pause", {"duration_s": 600.0}
    yield "resume", {}
    yield "subscribe", {}
    yield "workspace.list", {}
    yield "extract_memory", {"topic": "birds", "title": "Storks come back", "content": "They come in April."}
    yield (
        "extract_memory",
        {"topic": "birds", "title": "Storks stay", "content": "They do not leave.", "supersedes": [entry[0]]},
    )
    yield "history", {"path": entry[0]}
    yield "journal", {"limit": 1}
    yield "forget", {"path": entry[0]}
    yield "workspace.configure", {"settings": {"half_life_days": 60.0}}
    yield "team.publish", {"path": str(root), "wait": False}
    yield "team.status", {}
    yield "team.unpublish", {"path": str(root), "wait": False}
    yield "workspace.remove", {"path": str(root)}
    yield "shutdown", {}


def exchanges() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return method, parameters and answer of each, as they travelled; `shown` makes them readable."""
    with tempfile.TemporaryDirectory(prefix="memd-example-") as home:
        daemon = Daemon(Path(home).resolve())
        config = daemon.home / "config" / "memd" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text('[team]\nuri = "http://127.0.0.1:9"\n')  # where nobody listens
        try:
            return _exchanges(daemon.start())
        finally:
            daemon.close()


def _exchanges(daemon: Daemon) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    root = daemon.home / "notes"
    since = date.today() - TODAY  # noqa: DTZ011 - a note's dates are those of this machine
    moved = {(day + since).isoformat(): day.isoformat() for day in DATES}
    for name, text in NOTES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_replaced(text, {shown: real for real, shown in moved.items()}), encoding="utf-8")
    made, entry = [], [""]
    for method, params in asked(root, entry):
        with daemon.client() as client:
            answer = client.call(method, params, timeout_s=60)
        if method in {"team.publish", "team.unpublish"}:  # when the store has failed is a matter of time
            answer["status"] |= {"reachable": None, "error": "", "last_error": ""}
        if method == "extract_memory":
            entry[0] = answer["path"]
        made.append((method, params, answer))
    moved[str(daemon.home)] = HOME
    return [(method, _moved(params, moved), _moved(answer, moved)) for method, params, answer in made]


def _moved(value: Any, moved: Mapping[str, str]) -> Any:
    return json.loads(_replaced(json.dumps(value), moved))


def _replaced(text: str, pairs: Mapping[str, str]) -> str:
    for old, new in pairs.items():
        text = text.replace(old, new)
    return text


def shown(value: Any, key: str = "") -> Any:
    """Return a value as the page has it."""
    if key in STAND_INS and value is not None:
        return STAND_INS[key]
    if key == "timings_ms":
        return dict.fromkeys(value, A_STEP_MS)
    if isinstance(value, dict):
        return {name: shown(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    return _plain(value, key)


def _plain(value: Any, key: str) -> Any:
    if isinstance(value, float):
        return round(value, SCORE_DIGITS)
    if key == "id" and isinstance(value, int):
        return A_CHUNK
    for pattern, stand_in in _TEXTS if isinstance(value, str) else ():
        value = pattern.sub(stand_in, value)
    return value


def as_json(value: Any, indent: str = "", before: str = "") -> str:
    """Return JSON that breaks a map or a list only where it is too long for a line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(indent + before + text) < WIDTH or not isinstance(value, dict | list) or not value:
        return indent + before + text
    deeper = indent + "  "
    if isinstance(value, dict):
        inner = [as_json(item, deeper, f"{json.dumps(key)}: ") for key, item in value.items()]
    else:
        inner = [as_json(item, deeper) for item in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{indent}{before}{start}\n" + ",\n".join(inner) + f"\n{indent}{end}"
