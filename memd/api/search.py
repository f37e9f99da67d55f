"""``search`` and ``recall``: ranked hits, alone or as text for a prompt."""

import dataclasses
import threading
import time

from memd.api.params import RecallParams, SearchParams
from memd.api.prepare import Asked, Fields, answer_frame, ms_since, prepare, why_off
from memd.api.results import (
    AnswerExplanation,
    RecallResult,
    SearchResult,
    recall_result,
    rounded_record,
    search_hit,
)
from memd.errors import InvalidError
from memd.rpc.context import Call
from memd.search import search as pipeline
from memd.search.explain import Explained, Explanation, explain
from memd.search.recall import recall as fit
from memd.search.score import SearchRequest
from memd.search.search import Answer
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

TURN_S = 0.05  # some five searches
_TURN = threading.Lock()
NO_GOOD_MATCH = "No good match: these are only the nearest notes."  # in front of what a prompt gets
RECALL_HITS = 50  # candidates for a prompt; the budget is what limits them
MAX_EXPLAINED = 100  # hits; each brings a table of the query's words


async def search(
    workspaces: Workspaces, opened: OpenWorkspace, asked: SearchParams, call: Call
) -> SearchResult:
    """``search``, ``search_memory``: ranked hits."""
    if asked.explain:
        return await _explained_search(workspaces, opened, asked, call)
    answer, made = await answered(workspaces, opened, asked, call, asked.limit)
    return SearchResult(hits=[search_hit(hit) for hit in answer.hits], **made)


async def recall(
    workspaces: Workspaces, opened: OpenWorkspace, asked: RecallParams, call: Call
) -> RecallResult:
    """``recall``: hits as Markdown that fits into a prompt."""
    answer, made = await answered(workspaces, opened, asked, call, asked.limit or RECALL_HITS)
    preface = NO_GOOD_MATCH if answer.confidence == "none" else ""
    return recall_result(fit(answer.hits, asked.budget_tokens, preface=preface), asked.budget_tokens, made)


async def answered(
    workspaces: Workspaces,
    opened: OpenWorkspace,
    query: SearchParams | RecallParams,
    call: Call,
    limit: int | None,
) -> tuple[Answer, Fields]:
    """Answer a query; return the hits and how the answer was made.

    *limit* None: as many as the workspace is configured for.
    """
    asked = await prepare(opened, query, call, glob=query.path, limit=limit)
    answer, waited_ms = await workspaces.read(_search, opened, asked.request, time.perf_counter())
    waited = dataclasses.replace(asked, waited_ms=round(asked.waited_ms + waited_ms, 3))
    return answer, answer_frame(opened, waited, answer)


def _search(opened: OpenWorkspace, request: SearchRequest, since: float) -> tuple[Answer, float]:
    """Return the answer, and the ms since *since* that it waited for a thread, its turn and a reader."""
    # Two threads that search wait for each other at each step of numpy: one after the other, both are done
    # sooner, and so is a ping. For a slow search nobody waits long.
    has_turn = _TURN.acquire(timeout=TURN_S)
    try:
        with opened.index.view(request.expired) as view:
            waited_ms = ms_since(since)
            return pipeline.search(view, request), waited_ms
    finally:
        if has_turn:
            _TURN.release()


async def _explained_search(
    workspaces: Workspaces, opened: OpenWorkspace, query: SearchParams, call: Call
) -> SearchResult:
    """Return the same answer, each hit with what made its score."""
    if query.limit is not None and query.limit > MAX_EXPLAINED:
        raise InvalidError(f"$.limit: at most {MAX_EXPLAINED} hits can be explained, not {query.limit}")
    limit = query.limit or min(opened.config.max_results, MAX_EXPLAINED)
    asked = await prepare(opened, query, call, glob=query.path, limit=limit)
    answer, told, reasons = await workspaces.read(_explained, opened, asked.request)
    hits = [search_hit(hit, reason) for hit, reason in zip(answer.hits, reasons, strict=True)]
    explanation = _answer_explanation(asked, answer, told)
    return SearchResult(hits=hits, explanation=explanation, **answer_frame(opened, asked, answer))


def _explained(opened: OpenWorkspace, request: SearchRequest) -> tuple[Answer, Explanation, list[Explained]]:
    with opened.index.view(request.expired) as view:
        answer, judged = pipeline.searched(view, request)
        told, reasons = explain(view, request, judged, answer.hits)
    return answer, rounded_record(told), [rounded_record(reason) for reason in reasons]


def _answer_explanation(asked: Asked, answer: Answer, told: Explanation) -> AnswerExplanation:
    known = {field.name: getattr(told, field.name) for field in dataclasses.fields(told)}
    off = why_off(asked, answer.mode, answer.degraded)
    return AnswerExplanation(**known, model_id=asked.meaning.model_id or None, vector_arm=off or None)
