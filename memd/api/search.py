"""The methods `search`, `search_memory` and `recall`; `search` with `explain` as well."""

import threading
import time
from typing import Any

from memd.api import params as requests
from memd.api import results
from memd.api.prepare import answer_frame, ms_since, prepare, why_off
from memd.errors import InvalidError
from memd.rpc.context import Call
from memd.search.explain import explain
from memd.search.recall import recall as fit
from memd.search.score import SearchRequest
from memd.search.search import Answer, search, searched
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

TURN_S = 0.05  # some five searches
_TURN = threading.Lock()
NO_GOOD_MATCH = "No good match: these are only the nearest notes."  # in front of what a prompt gets
RECALL_HITS = 50  # candidates for a prompt; the budget is what limits them

Fields = dict[str, Any]


async def search_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``search``, ``search_memory``: ranked hits."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Search)
    if asked.explain:
        return await explained_search(workspaces, asked, call)
    answer, frame = await _answered(workspaces, asked, call, asked.limit)
    hits = [results.hit(hit) for hit in answer.hits]
    return {"hits": hits, **frame, "took_ms": ms_since(started)}


async def recall_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``recall``: hits as Markdown that fits into a prompt."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Recall)
    answer, frame = await _answered(workspaces, asked, call, asked.limit or RECALL_HITS)
    preface = NO_GOOD_MATCH if answer.confidence == "none" else ""
    fitted = results.recalled(fit(answer.hits, asked.budget_tokens, preface=preface), asked.budget_tokens)
    return {**fitted, **frame, "took_ms": ms_since(started)}


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
    opened: OpenWorkspace,
    question: requests.Search | requests.Recall,
    call: Call,
    limit: int | None,
) -> tuple[Answer, Fields]:
    asked = await prepare(opened, question, call, glob=question.path, limit=limit)
    answer: Answer = await workspaces.read(_search, opened, asked.request)
    return answer, answer_frame(opened, asked, answer)


def _search(opened: OpenWorkspace, request: SearchRequest) -> Answer:
    # Two threads that search wait for each other at each step of numpy: one after the other, both are done
    # sooner, and so is a ping. For a slow search nobody waits long.
    has_turn = _TURN.acquire(timeout=TURN_S)
    try:
        with opened.index.view(request.expired) as view:
            return search(view, request)
    finally:
        if has_turn:
            _TURN.release()


MAX_EXPLAINED = 100  # hits; each brings a table of the query's words


async def explained_search(workspaces: Workspaces, question: requests.Search, call: Call) -> Fields:
    """``search`` with ``explain``: the same answer, each hit with what made its score."""
    started = time.perf_counter()
    if question.limit is not None and question.limit > MAX_EXPLAINED:
        raise InvalidError(f"$.limit: at most {MAX_EXPLAINED} hits can be explained, not {question.limit}")

    async def run(opened: OpenWorkspace) -> Fields:
        limit = question.limit or min(opened.config.max_results, MAX_EXPLAINED)
        asked = await prepare(opened, question, call, glob=question.path, limit=limit)
        answer, told = await workspaces.read(_explained, opened, asked.request)
        reasons = told.pop("hits")
        hits = [
            results.hit(hit) | {"explanation": reason}
            for hit, reason in zip(answer.hits, reasons, strict=True)
        ]
        off = why_off(asked, answer.mode, answer.degraded)
        told |= {"model_id": asked.meaning.model_id or None, "vector_arm": off or None}
        return {"hits": hits, "explanation": told, **answer_frame(opened, asked, answer)}

    return {**await workspaces.using(question.workspace, run), "took_ms": ms_since(started)}


def _explained(opened: OpenWorkspace, request: SearchRequest) -> tuple[Answer, Fields]:
    with opened.index.view(request.expired) as view:
        answer, judged = searched(view, request)
        return answer, results.record(explain(view, request, judged, answer.hits))
