"""How is a question answered? Search, recall, get, and the search that proves health."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memd import terms
from memd.embedding import UnavailableError
from memd.errors import InvalidError, MemdError, NotFoundError
from memd.records import Source, SourceText
from memd.search.judging import Request
from memd.search.query import Query, parse, restricted
from memd.search.recall import recall as fit
from memd.search.search import Answer, search
from memd.service import answers, requests
from memd.service.call import Call
from memd.service.opening import Opened
from memd.service.workspaces import Workspaces
from memd.sources.scan import read_source

# A query's vector is worth this much waiting; then the answer comes from the keyword arm.
EMBED_TIMEOUT_S = 0.5
SYNC_DEFAULT_MS = 60_000  # of `sync`, as facebook/watchman waits
REPLY_S = 0.05  # of a client's own timeout, kept for the way back
SYNC_TIMEOUT_S = 4.0  # how long a search waits for what was just saved, unless it says otherwise
ANSWER_S = 0.5  # of the deadline, kept for the answer itself
RECALL_HITS = 50  # candidates for a prompt; the budget is what limits them

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A query's vector, or why there is none."""

    vector: bytes | None
    model_id: str
    degraded: tuple[str, ...]
    took_ms: float


async def search_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``search``, ``search_memory``: ranked hits."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Search)
    answer, frame = await _answered(workspaces, asked, call, asked.limit)
    hits = [answers.hit(hit) for hit in answer.hits]
    return {"hits": hits, **frame, "took_ms": _ms_since(started)}


async def recall_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``recall``: hits as Markdown that fits into a prompt."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Recall)
    answer, frame = await _answered(workspaces, asked, call, asked.limit or RECALL_HITS)
    fitted = answers.recalled(fit(answer.hits, asked.budget_tokens), asked.budget_tokens)
    return {**fitted, **frame, "took_ms": _ms_since(started)}


async def get_method(workspaces: Workspaces, params: Fields, _: Call) -> Fields:
    """``get``: a source, some of its lines, or the chunk of a hit, from the file as it is now."""
    asked = requests.convert(params, requests.Get)
    if (asked.path is None) == (asked.id is None):
        raise InvalidError("$: expected either path or id")
    return await workspaces.using(asked.workspace, lambda opened: _get(workspaces, opened, asked))


async def _get(workspaces: Workspaces, opened: Opened, asked: requests.Get) -> Fields:
    source, start, end = await workspaces.read(_place, opened, asked)
    path = source.path
    found = await workspaces.read(lambda: read_source(opened.workspace.root, path, now_ns=time.time_ns()))
    if not isinstance(found, SourceText):
        raise NotFoundError(f"{path} cannot be read any more; the index will follow")
    lines = found.text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if end is not None and end < start:
        raise InvalidError(f"$.end_line: {end} is before start_line {start}")
    if start > max(len(lines), 1):
        raise InvalidError(f"$.start_line: {path} has {len(lines)} lines, not {start}")
    end = min(end or len(lines), len(lines))
    return {
        "workspace": str(opened.workspace.root),
        "path": path,
        "title": source.title,
        "tags": list(source.tags),
        "start_line": start,
        "end_line": end,
        "lines": len(lines),
        "text": "\n".join(lines[start - 1 : end]),
    }


async def sync_method(workspaces: Workspaces, params: Fields, _: Call) -> Fields:
    """``sync``: wait until what was saved before the call is searchable by its words."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Sync)
    timeout_s = (asked.timeout_ms or SYNC_DEFAULT_MS) / 1000

    async def synced(opened: Opened) -> Fields:
        left_s = timeout_s - (time.perf_counter() - started) - REPLY_S
        reached = await opened.upkeep.synced(left_s)
        return {
            "workspace": str(opened.workspace.root),
            "synced": reached,
            "generation": opened.index.snapshot.generation,
            "index": opened.upkeep.facts,
        }

    return {**await workspaces.using(asked.workspace, synced), "took_ms": _ms_since(started)}


async def health_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``health``: run a real ranked search in each workspace; some damage shows only then."""
    asked = requests.convert(params, requests.Nothing)
    roots = [workspaces.root_of(asked.workspace)] if asked.workspace else workspaces.roots
    checks = [await _health_of(workspaces, str(root), call) for root in roots]
    return {"ok": all(check["ok"] for check in checks), "checks": checks}


async def _health_of(workspaces: Workspaces, root: str, call: Call) -> Fields:
    async def probed(opened: Opened) -> Fields:
        probe = requests.Search(query="memory health", mode="hybrid")
        answer, frame = await _run(workspaces, opened, probe, call, 1)
        detail = ", ".join([f"answered in {sum(answer.timings_ms.values()):.1f} ms", *frame["degraded"]])
        opened.last_health = {"ok": not frame["degraded"], "detail": detail, "at": time.time()}
        return {"name": root, "ok": not frame["degraded"], "detail": detail}

    try:
        return await workspaces.using(root, probed)
    except MemdError as error:
        return {"name": root, "ok": False, "detail": str(error)}


async def _answered(
    workspaces: Workspaces, asked: requests.Search, call: Call, limit: int | None
) -> tuple[Answer, Fields]:
    """Answer a query; return the hits and what every answer says of how it was made.

    *limit* None: as many as the workspace is configured for.
    """
    return await workspaces.using(
        asked.workspace, lambda opened: _run(workspaces, opened, asked, call, limit)
    )


async def _run(
    workspaces: Workspaces, opened: Opened, asked: requests.Search, call: Call, limit: int | None
) -> tuple[Answer, Fields]:
    synced = await _synced(opened, asked, call)
    query = _query(asked)
    meaning = await _meaning(opened, query, asked.mode)
    config = opened.config
    request = Request(
        query=query,
        query_vec=meaning.vector,
        model_id=meaning.model_id,
        mode=asked.mode,
        fusion=asked.fusion or config.fusion,
        weights=asked.weights or config.weights,
        half_life_days=config.half_life_days,
        min_score=config.min_score if asked.min_score is None else asked.min_score,
        limit=limit or config.max_results,
        today=datetime.now().astimezone().date(),
        alive=_alive(opened),
        expired=lambda: call.deadline is not None and time.monotonic() > call.deadline,
    )
    answer: Answer = await workspaces.read(_search, opened, request)
    facts = opened.upkeep.facts
    degraded = list(meaning.degraded)
    if facts["state"] == "missing":
        degraded.append("root-missing")
    if meaning.vector is not None and facts["pending_vectors"] and opened.upkeep.vectors.failing:
        degraded.append("vectors-incomplete")
    return answer, {
        "workspace": str(opened.workspace.root),
        "mode": answer.mode,
        "degraded": degraded,
        "index": facts | {"generation": answer.generation},
        **synced,
        "timings_ms": {"embed": meaning.took_ms, **answer.timings_ms},
    }


async def _synced(opened: Opened, asked: requests.Search, call: Call) -> Fields:
    """Wait, where that is asked for, until what was saved before is searchable; say whether it is."""
    if not asked.sync:
        return {}
    timeout_s = SYNC_TIMEOUT_S if asked.sync is True else asked.sync / 1000
    if call.deadline is not None:
        timeout_s = min(timeout_s, call.deadline - time.monotonic() - ANSWER_S)
    stop = time.monotonic() + timeout_s
    synced = await opened.upkeep.synced(timeout_s)
    if asked.mode == "vector" and synced:
        await opened.upkeep.embedded(timeout_s=stop - time.monotonic())
        synced = not opened.upkeep.vectors.pending
    return {"synced": synced}


def _search(opened: Opened, request: Request) -> Answer:
    with opened.index.view(request.expired) as view:
        return search(view, request)


def _query(asked: requests.Search) -> Query:
    tags = [asked.tag] if isinstance(asked.tag, str) else asked.tag
    paths = [asked.path] if asked.path else []
    return restricted(parse(asked.query), paths=paths, tags=tags, since=asked.since, until=asked.until)


async def _meaning(opened: Opened, query: Query, mode: str) -> _Meaning:
    """Return the query's vector; where there is none, the answer comes from the keyword arm and says why."""
    embedding = opened.embedding
    if mode == "keyword" or not query.text.strip():
        return _Meaning(None, "", (), 0.0)
    if embedding is None:
        return _Meaning(None, "", ("no-provider",) if mode == "vector" else (), 0.0)
    started = time.perf_counter()
    try:
        embedder = embedding.embedder()
        if mode == "hybrid" and not terms.readable(query.text, embedder.scripts):
            return _Meaning(None, "", (), 0.0)
        snapshot = opened.index.snapshot
        if (snapshot.model_id, snapshot.rows.dim) != (embedder.model_id, embedder.dim):
            return _Meaning(None, "", ("vectors-building",), 0.0)
        vector = await asyncio.wrap_future(embedding.query(query.text, timeout_s=EMBED_TIMEOUT_S))
    except UnavailableError as error:
        return _Meaning(None, "", (error.reason,), _ms_since(started))
    return _Meaning(vector, embedder.model_id, (), _ms_since(started))


def _alive(opened: Opened) -> Callable[[str], bool]:
    """Return what tells whether a source is on the disk; where nothing can be seen, answers go on."""
    root = str(opened.workspace.root)
    if not opened.workspace.is_there():
        return lambda _: True
    return lambda path: os.path.exists(f"{root}/{path}")  # noqa: PTH110 - Path.exists raises where it may not look


def _place(opened: Opened, asked: requests.Get) -> tuple[Source, int, int | None]:
    """Return source and lines of what is asked for; only what is indexed can be had."""
    with opened.index.view() as view:
        if asked.id is not None:
            chunk = view.reader.chunks([asked.id]).get(asked.id)
            if chunk is None:
                raise NotFoundError(f"there is no chunk {asked.id} (any more): search again")
            return view.snapshot.sources[chunk.source], chunk.start_line, chunk.end_line
        assert asked.path is not None
        root = opened.workspace.root
        path = asked.path.removeprefix(f"{root}/")
        source = next((one for one in view.snapshot.sources.values() if one.path == path), None)
        if source is None:
            raise NotFoundError(
                f"{asked.path} is not an indexed source of {root}; memctl status names skipped files"
            )
        return source, asked.start_line, asked.end_line


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
