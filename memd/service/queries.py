"""How is a question answered? Search, recall, get, and the search that proves health."""

import threading
import time
from typing import Any

from memd.errors import InvalidError, MemdError, NotFoundError
from memd.index.ranked import rank_all
from memd.records import Source, SourceText
from memd.rpc.context import Call
from memd.search.judging import Request
from memd.search.recall import recall as fit
from memd.search.search import Answer
from memd.service import answers, explaining, requests
from memd.service.asking import answer_frame, ms_since, prepare
from memd.service.naming import chunk_of, source_of
from memd.sources.scan import read_source
from memd.workspace.open import Opened
from memd.workspace.workspaces import Workspaces

SYNC_DEFAULT_MS = 60_000  # of `sync`, as facebook/watchman waits
TURN_S = 0.05  # some five searches
_TURN = threading.Lock()
REPLY_S = 0.05  # of a client's own timeout, kept for the way back
NO_GOOD_MATCH = "No good match: these are only the nearest notes."  # in front of what a prompt gets
RECALL_HITS = 50  # candidates for a prompt; the budget is what limits them

Fields = dict[str, Any]


async def search_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``search``, ``search_memory``: ranked hits."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Search)
    if asked.explain:
        return await explaining.explained_search(workspaces, asked, call)
    answer, frame = await _answered(workspaces, asked, call, asked.limit)
    hits = [answers.hit(hit) for hit in answer.hits]
    return {"hits": hits, **frame, "took_ms": ms_since(started)}


async def recall_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``recall``: hits as Markdown that fits into a prompt."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Recall)
    answer, frame = await _answered(workspaces, asked, call, asked.limit or RECALL_HITS)
    preface = NO_GOOD_MATCH if answer.confidence == "none" else ""
    fitted = answers.recalled(fit(answer.hits, asked.budget_tokens, preface=preface), asked.budget_tokens)
    return {**fitted, **frame, "took_ms": ms_since(started)}


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

    return {**await workspaces.using(asked.workspace, synced), "took_ms": ms_since(started)}


async def health_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``health``: run a real ranked search in each workspace; some damage shows only then."""
    asked = requests.convert(params, requests.Nothing)
    roots = [workspaces.root_of(asked.workspace)] if asked.workspace else workspaces.roots
    checks = [await _health_of(workspaces, str(root), call) for root in roots]
    return {"ok": all(check["ok"] for check in checks), "checks": checks}


async def _health_of(workspaces: Workspaces, root: str, call: Call) -> Fields:
    async def probed(opened: Opened) -> Fields:
        await workspaces.read(_rank_all, opened)
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
    workspaces: Workspaces, asked: requests.Search | requests.Recall, call: Call, limit: int | None
) -> tuple[Answer, Fields]:
    """Answer a query; return the hits and what every answer says of how it was made.

    *limit* None: as many as the workspace is configured for.
    """
    return await workspaces.using(
        asked.workspace, lambda opened: _run(workspaces, opened, asked, call, limit)
    )


async def _run(
    workspaces: Workspaces,
    opened: Opened,
    question: requests.Search | requests.Recall,
    call: Call,
    limit: int | None,
) -> tuple[Answer, Fields]:
    asked = await prepare(opened, question, call, glob=question.path, limit=limit)
    answer: Answer = await workspaces.read(_search, opened, asked.request)
    return answer, answer_frame(opened, asked, answer)


def _rank_all(opened: Opened) -> None:
    with opened.index.view() as view:
        rank_all(view)


def _search(opened: Opened, request: Request) -> Answer:
    # Two threads that search wait for each other at each step of numpy: one after the other, both are done
    # sooner, and so is a ping. For a slow search nobody waits long.
    has_turn = _TURN.acquire(timeout=TURN_S)
    try:
        with opened.index.view(request.expired) as view:
            return opened.memo.search(view, request)
    finally:
        if has_turn:
            _TURN.release()


def _place(opened: Opened, asked: requests.Get) -> tuple[Source, int, int | None]:
    """Return source and lines of what is asked for; only what is indexed can be had."""
    with opened.index.view() as view:
        if asked.id is not None:
            chunk = chunk_of(view, asked.id)
            return view.snapshot.sources[chunk.source], chunk.start_line, chunk.end_line
        assert asked.path is not None
        return source_of(view, opened.workspace.root, asked.path), asked.start_line, asked.end_line
