"""Every method with every parameter there is, about one workspace."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ["notes.md", "2026-05-01.md", "memory/facts/one.md"]


def calls(root: str, word: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every call that answers with something of a workspace, with every parameter there is."""
    everything = {"limit": 1000, "min_score": 0.0}
    yield "memd.hello", {"client": "test", "version": "1", "protocol": [1]}
    yield "ping", {"timeout_ms": 1000}
    yield "search", {"query": word}
    yield "search", {"query": f'"{word}"'}
    yield "search", {"query": "the same sentence", **everything}
    yield "search", {"query": "the same sentence", "mode": "vector", **everything}
    yield "search", {"query": "the same", "weights": {"vector": 0.0, "keyword": 1.0}, **everything}
    yield "search", {"query": "x", "mode": "keyword", "fusion": "rrf", "path": "**"}
    for folder in ("first", "second"):
        yield "search", {"query": f"the same path:../{folder}/**", **everything}
        yield "search", {"query": "the same", "path": f"../{folder}/**", **everything}
    yield "search", {"query": "sentence", "tag": "shared", "since": "2020-01-01", "until": "2030-01-01"}
    yield "search", {"query": "sentence", "field": ["updated>=2020-01-01", "!nothing"], **everything}
    yield "search", {"query": word, "sync": True}
    yield "search", {"query": "the same sentence", "scope": "team"}
    yield "search", {"query": f'{word} "the same" path:**', **everything, "explain": True, "limit": 100}
    yield (
        "search",
        {"query": "the same sentence", "mode": "keyword", **everything, "explain": True, "limit": 100},
    )
    for name in NAMES:
        yield "why", {"path": name, "query": "the same sentence"}
        yield "why", {"path": name, "query": "nothing", "line": 4, "mode": "keyword", **everything}
        yield "why", {"path": name, "query": "the same", "glob": "../**", "limit": 1}
    for folder in ("first", "second"):
        for name in (*NAMES, "memory/config.toml", "nothing.md"):
            yield "why", {"path": f"../{folder}/{name}", "query": "the same sentence"}
            yield "why", {"path": str(Path(root).parent / folder / name), "query": "the same sentence"}
            yield "similar", {"path": f"../{folder}/{name}"}
    yield "timeline", {"query": "the same sentence", **everything}
    yield "timeline", {"query": word, "glob": "../**", "since": "2020-01-01", "agent": True}
    for name in NAMES:
        yield "similar", {"path": name, "line": 4, **everything}
        yield "similar", {"path": name, "glob": "../**", "tag": "shared", "since": "2020-01-01"}
    for number in range(1, 12):
        yield "similar", {"id": number, **everything}
    yield "search_memory", {"query": word, "agent": True}
    yield "search", {"query": word[:6], "prefix": True}
    yield "search", {"query": "the same sentence", "per_source": 1, **everything}
    yield "recall", {"query": "the same sentence", "budget_tokens": 60_000, "superseded": True}
    yield (
        "recall",
        {
            "query": "the same", "format": "xml", "core": False, "nearest": False, "sure": True,
            "known": ["0" * 16],
        },
    )  # fmt: skip
    yield "recall", {"query": "", "begins": {"folder": "", "project": word, "sessions": [word], "since": 0}}
    yield from _sources()
    yield "index", {"wait": True, "vectors": False}
    yield "index", {"rebuild": True, "progress": True}
    yield "sync", {}
    yield "check", {"repair": True, "progress": True}
    yield "index", {"purge": True}
    yield from ((name, {}) for name in ("subscribe", "resume", "status", "health", "workspace.list"))
    yield from ((f"team.{name}", {}) for name in ("status", "check"))
    yield from ((f"team.{name}", {"path": root}) for name in ("publish", "unpublish"))
    yield "pause", {"duration_s": 0.01}
    yield "debug", {"lag_s": 0.0}
    yield "workspace.configure", {"settings": {"half_life_days": 31}}
    yield from _entries(word)
    yield "workspace.remove", {"path": root}
    yield "workspace.add", {"path": root, "force": False, "nested": True}
    yield "index", {}
    yield "search", {"query": "the same sentence", **everything}


def _sources() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the calls that read and list files."""
    for name in NAMES:
        yield "get", {"path": name}
        yield "get", {"path": name, "start_line": 1, "end_line": 3}
        yield "get", {"path": f"[[{name}]]", "links": False}
        for which in ("out", "in", "files", "mentions"):
            yield "links", {"path": name, "which": which, "limit": 1000}
        yield "resolve", {"link": f"[x](../second/{name}#y)", "path": name}
        yield "outline", {"path": f"../second/{name}", "text": f"[[{name}]] [x](../second/{name})"}
        yield "similar", {"text": "the same sentence -x tag:shared", "path": name, "limit": 1000}
    for number in range(1, 12):
        yield "get", {"id": number}
    yield "links", {"which": "broken"}
    yield "links", {"which": "orphans", "offset": 0}
    yield "names", {"since": 1, "after": ""}
    yield "sources", {"limit": 1000}
    yield "sources", {"after": "../", "limit": 1}
    yield "sources", {"skipped": True}
    yield "sources", {"keys": ["0123456789abcdef"]}
    yield "fields", {"limit": 1000}
    yield "review", {"unused": True, "glob": "../**", "limit": 1}
    yield "review", {"limit": 1000}
    yield "fields", {"key": "tags", "field": ["tags", "title!=x"], "glob": "../**", "limit": 1}


def _entries(word: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the calls that change entries, and those that tell of it."""
    yield "extract_memory", {
        "topic": "facts", "title": "one", "content": "a fact", "tags": ["t"], "source": {"client": "test"},
        "derived_from": "external",
    }  # fmt: skip
    yield "extract_memory", {"title": "said", "content": "a thing of the day", "daily": True}
    yield "extract_memory", {"topic": f"../{word}", "title": "one", "content": "a fact"}
    yield from _revisions()
    human = {"origin": "human"}
    yield "extract_memory", {"topic": "t", "title": "two", "content": "kept", "source": human, "force": True}
    for folder in ("first", "second"):
        yield "forget", {"path": f"../{folder}/{NAMES[0]}"}
    yield "forget", {"path": NAMES[0]}
    yield "forget", {"id": "0123456789abcdef", "source": {"client": "test"}}
    for folder in ("first", "second"):
        yield "forget", {"path": f"../{folder}/{NAMES[1]}", "keep_file": True}
    yield "journal", {"client": "test", "conversation": "c", "since": "2020-01-01", "limit": 5}
    yield "journal", {}


def _revisions() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in (*NAMES, "../first/notes.md", "../second/notes.md"):
        yield "history", {"path": name}
        for key in ("supersedes", "related"):
            yield "extract_memory", {"topic": "facts", "title": "two", "content": "a fact", key: [name]}
        yield "extract_memory", {"content": "a fact", "update": name}
        yield "extract_memory", {"content": "a fact", "update": name, "hash": "0" * 32}
