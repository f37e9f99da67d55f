"""Answers as the daemon gives them, for tests that turn them into text."""

from typing import Any

from memctl import __version__

# Of `index`, with everything searchable.
READY = {
    "state": "ready", "sources": 3, "chunks": 9, "vectors": 9, "skipped": 0, "changed": True, "took_ms": 1500,
}  # fmt: skip


def hit(**changes: Any) -> dict[str, Any]:
    """Return one hit; *changes* replace its keys."""
    return {
        "id": 7, "path": "notes/genetics.md", "start_line": 12, "end_line": 18,
        "heading": "Genetics > BRCA1 mutation analysis", "title": "Genetics",
        "snippet": "The BRCA1 gene is a tumour suppressor.\nBreast cancer risk rises.", "score": 0.8312,
        "arms": {"vector": {"rank": 1, "score": 0.71}, "keyword": {"rank": None, "score": 0.0, "tier": None}},
        "weights": {"vector": 0.7, "keyword": 0.3}, "decay": 1.0, "date": "2026-05-01",
        "date_of": "created", "source": {"origin": "human"}, "match_line": 13, "match_column": 5,
        "match_text": "The BRCA1 gene is a tumour suppressor.", "folded": [], "superseded_by": [],
    } | changes  # fmt: skip


def found(*hits: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a search answer of *hits*; *changes* replace its keys."""
    return {
        "workspace": "/home/ada/work",
        "hits": list(hits),
        "confidence": "strong",
        "mode": "hybrid",
        "degraded": [],
        "index": {
            "state": "ready", "first": False, "pending": 0, "pending_files": 0, "pending_vectors": 0,
            "generation": 4, "lag_ms": 0,
        },
        "took_ms": 6.1,
        "timings_ms": {"embed": 3.0, "vector": 0.5, "keyword": 1.0, "fuse": 0.1, "load": 0.2},
    } | changes  # fmt: skip


def known(**changes: Any) -> dict[str, Any]:
    """Return what `status` says of one workspace; *changes* replace its keys."""
    return {
        "root": "/home/ada/work", "state": "ready", "sources": 1864, "chunks": 9001, "vectors": 9000,
        "pending": 0, "pending_files": 0, "pending_vectors": 0, "skipped": [], "skipped_total": 0,
        "lag_ms": 0, "last_scan": 1_780_000_000.0, "last_index": None, "model_id": "0123456789abcdef",
        "errors": [], "size_bytes": 30_400_000, "generation": 4, "degraded": [],
    } | changes  # fmt: skip


def status(*workspaces: dict[str, Any]) -> dict[str, Any]:
    """Return a status answer."""
    model = {"provider": "onnx", "state": "ready", "id": "0123456789abcdef", "error": None}
    server = {
        "version": __version__, "pid": 4711, "uptime_s": 3700.2, "instance_id": "i", "memory_mb": 105.4,
        "models": [model],
    }  # fmt: skip
    return {"server": server, "workspaces": list(workspaces)}
