"""``search``: ranked hits; also what else asks a question of an index, as ``recall`` does."""

import dataclasses
from dataclasses import dataclass
from typing import Generic, TypeVar

from memd.api.hits import rounded_record, search_hit
from memd.api.params import RecallParams, SearchParams
from memd.api.prepare import (
    Asked,
    Excludes,
    Fields,
    Respelled,
    Waited,
    embedded,
    excludes_in,
    frame,
    looked_up,
    parsed,
    respelled,
    wait_for,
    why_off,
    with_vector,
)
from memd.api.results import AnswerExplanation, Location, SearchResult, WithoutMinus
from memd.errors import InvalidError
from memd.index.snapshot import View
from memd.rpc.context import Call
from memd.rpc.encode import Packed, packed
from memd.search import search as pipeline
from memd.search.explain import explain
from memd.search.explanation import Explanation
from memd.search.query import unfinished
from memd.search.score import SearchRequest
from memd.search.search import NOTHING_BEGUN, Answer, Begun, Hit
from memd.workspace.open import OpenWorkspace
from memd.workspace.threads import Threads
from memd.workspace.workspaces import Workspaces

Params = TypeVar("Params", SearchParams, RecallParams)

MAX_EXPLAINED = 100  # hits; each brings a table of the query's words


async def search(
    workspaces: Workspaces, opened: OpenWorkspace, asked: SearchParams, call: Call
) -> Packed[SearchResult]:
    """``search``, ``search_memory``: ranked hits."""
    if asked.explain and asked.limit is not None and asked.limit > MAX_EXPLAINED:
        raise InvalidError(f"$.limit: at most {MAX_EXPLAINED} hits can be explained, not {asked.limit}")
    waited = await wait_for(opened, asked, call)
    work = _explained_search if asked.explain else _search
    question = Question(workspaces.threads, opened, asked, call, waited, agent=asked.agent)
    return await workspaces.read(work, question)


@dataclass(frozen=True, slots=True)
class Question(Generic[Params]):
    """One request for hits, on its way to a reading thread."""

    threads: Threads
    opened: OpenWorkspace
    params: Params
    call: Call
    waited: Waited
    agent: bool  # whether one reads the answer


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, and how it was made."""

    asked: Asked
    answer: Answer
    waited_ms: float  # until its thread had a view
    without_minus: WithoutMinus | None = None  # where no hit may answer because of it

    def frame(self, opened: OpenWorkspace, waited: Waited) -> Fields:
        """Return what an answer says beside its hits."""
        answer, meaning = self.answer, self.asked.meaning
        made = frame(
            opened,
            waited,
            meaning,
            mode=answer.mode,
            generation=answer.generation,
            timings_ms={
                "wait": self.waited_ms,
                "embed": meaning.took_ms,
                **self.asked.spelling_ms,
                **answer.timings_ms,
            },
            degraded=(*self.asked.degraded, *answer.degraded),
        )
        query = self.asked.request.query
        return {
            "confidence": answer.confidence,
            "corrected": dict(query.corrected),
            "without": list(query.excluded),
            "without_minus": self.without_minus,
            "model_id": meaning.model_id or None,
            **made,
        }


# In a reading thread


def answered(question: Question[SearchParams] | Question[RecallParams], limit: int | None) -> Answered:
    """Answer a query; *limit* None: with as many hits as the workspace is configured for."""
    with question.opened.view(question.call.is_over, agent=question.agent) as view:
        return answered_in(view, question, limit)


def answered_in(
    view: View, question: Question[SearchParams] | Question[RecallParams], limit: int | None
) -> Answered:
    """Do the same with a view of the caller's."""
    asked, begun, waited_ms = _asked(view, question, limit, excludes_in(view))
    with question.threads.turn():
        answer = pipeline.search(view, asked.request, begun)
    return Answered(asked, answer, waited_ms, _without_minus(view, question, asked, answer, limit))


def _without_minus(
    view: View,
    question: Question[SearchParams] | Question[RecallParams],
    asked: Asked,
    answer: Answer,
    limit: int | None,
) -> WithoutMinus | None:
    """Return what the query finds if what it excludes is looked for; None where there is no need to ask."""
    if _answers(answer) or not asked.request.query.excluded:
        return None
    other, begun, _ = _asked(view, question, limit, lambda _: False)
    with question.threads.turn():
        found = pipeline.search(view, other.request, begun)
    hits = found.hits if _answers(found) else []
    return WithoutMinus(hits=len(hits), best=_place(hits[0]) if hits else None)


def _answers(answer: Answer) -> bool:
    """Return whether there is a hit that may answer: where none is a good match, there is nothing."""
    return bool(answer.hits) and answer.confidence != "none"


def _place(hit: Hit) -> Location:
    shown = hit.passage
    return Location(path=hit.source.path, start_line=shown.start_line, end_line=shown.end_line)


def _asked(
    view: View,
    question: Question[SearchParams] | Question[RecallParams],
    limit: int | None,
    excludes: Excludes,
) -> tuple[Asked, Begun, float]:
    """Look up the words while the model embeds the query; return also how many ms that had to wait."""
    opened, asked, threads = question.opened, question.params, question.threads
    with threads.turn():
        waited_ms = question.call.age_ms()
        request = parsed(
            opened, asked, question.call.is_over, glob=asked.path, limit=limit, excludes=excludes
        )
        if isinstance(asked, SearchParams) and asked.prefix:
            request = dataclasses.replace(request, query=unfinished(request.query, asked.query))
        if request.mode == "keyword":
            found = looked_up(opened, view, request.query, request.expired)
            plain = with_vector(request, embedded(opened, request))
            return respelled(opened, plain, found), NOTHING_BEGUN, waited_ms
        begun = threads.beside(_begin, view, opened, request)
    try:
        meaning = embedded(opened, request)
    finally:
        found, words = begun()  # whatever the model does: a view must not end while another thread reads it
    return respelled(opened, with_vector(request, meaning), found), words, waited_ms


def _begin(view: View, opened: OpenWorkspace, request: SearchRequest) -> tuple[Respelled, Begun]:
    found = looked_up(opened, view, request.query, request.expired)
    return found, pipeline.begin(view, dataclasses.replace(request, query=found.query))


def _search(question: Question[SearchParams]) -> Packed[SearchResult]:
    found = answered(question, question.params.limit)
    hits = [search_hit(hit) for hit in found.answer.hits]
    made = found.frame(question.opened, question.waited)
    not_utf8 = _not_utf8(question)
    return packed(SearchResult(hits=hits, not_utf8=not_utf8, **made, took_ms=question.call.age_ms()))


def _not_utf8(question: Question[SearchParams]) -> list[str]:
    """Return notes that nobody can find; to an agent none, as whether these are private is not known."""
    return [] if question.agent else list(question.opened.sync.scanner.not_utf8)


def _explained_search(question: Question[SearchParams]) -> Packed[SearchResult]:
    """Return the same answer, each hit with what made its score."""
    limit = question.params.limit or min(question.opened.config.max_results, MAX_EXPLAINED)
    with question.opened.view(question.call.is_over, agent=question.agent) as view:
        asked, begun, waited_ms = _asked(view, question, limit, excludes_in(view))
        with question.threads.turn():
            answer, judged = pipeline.searched(view, asked.request, begun)
            told, reasons = explain(view, asked.request, judged, answer.hits)
        instead = _without_minus(view, question, asked, answer, limit)
    hits = [search_hit(hit, rounded_record(reason)) for hit, reason in zip(answer.hits, reasons, strict=True)]
    made = Answered(asked, answer, waited_ms, instead).frame(question.opened, question.waited)
    explanation = _answer_explanation(asked, answer, rounded_record(told))
    return packed(
        SearchResult(
            hits=hits,
            not_utf8=_not_utf8(question),
            explanation=explanation,
            **made,
            took_ms=question.call.age_ms(),
        )
    )


def _answer_explanation(asked: Asked, answer: Answer, told: Explanation) -> AnswerExplanation:
    known = {field.name: getattr(told, field.name) for field in dataclasses.fields(told)}
    off = why_off(asked.meaning, answer.mode, answer.degraded)
    return AnswerExplanation(**known, model_id=asked.meaning.model_id or None, vector_arm=off or None)
