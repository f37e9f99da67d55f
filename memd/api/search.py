"""``search`` and ``timeline``, and the steps that they share with others that query an index, as ``recall``.

`wait_for` runs on the event loop, before the request's single switch to a reading thread (dispatch.py); the
rest runs there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import UNSET, UnsetType, structs

from memd.api.folders import described
from memd.api.hits import rounded, rounded_record, search_hit
from memd.api.params import (
    AnyQuery,
    FieldsParams,
    FilteredParams,
    QueryParams,
    ReviewParams,
    SearchParams,
    SimilarParams,
    SourcesParams,
    TimelineParams,
)
from memd.api.results import SearchResult, TimelineDay, TimelineResult, WithoutMinus
from memd.config import WorkspaceConfig
from memd.diaries import Diaries
from memd.embedding import UnavailableError
from memd.embedding.queue import QUERY_TIMEOUT_S, EmbeddingQueue
from memd.errors import InvalidError
from memd.index.index import Index
from memd.index.snapshot import View
from memd.lru import LruCache
from memd.records import Freshness, Location, Tokenizer
from memd.registry import Workspace, gone_of
from memd.rpc.context import Call
from memd.search.dates import MAX_CHARS
from memd.search.explain import explain
from memd.search.explanation import AnswerExplanation
from memd.search.filters import BY_KEY, FIELD
from memd.search.identifiers import spelled
from memd.search.keyword import occurs_literally
from memd.search.query import Query, parse, restricted, unfinished
from memd.search.score import PreparedQuery
from memd.search.search import Answer, begin
from memd.search.search import search as search_view
from memd.text import readable_part
from memd.workspace.open import OpenWorkspace
from memd.workspace.scanner import NOT_UTF8_NAMED

MAX_EXPLAINED = 100  # hits; each brings a table of the query's words

EMBEDDING_PAUSED = "embedding-paused"  # chunks wait for vectors because of `pause`
MODEL_WAIT_S = 2.0  # for a loading model: the shipped one takes half a second
LOADING_POLL_S = 0.01  # the loading thread cannot signal the event loop
# A first index of up to this size is waited for, too: the shipped model embeds it in about that time.
FEW_VECTORS = 160
SYNC_TIMEOUT_S = 4.0  # default wait of a search with `sync` for recent saves
TIMELINE_HITS = 100  # where the request names no limit: more than a search, since each day has one line
ANSWER_S = 0.5  # part of the deadline reserved for the answer itself


def search(opened: OpenWorkspace, params: SearchParams, call: Call, fresh: Freshness) -> SearchResult:
    """``search``, ``search_memory``: ranked hits."""
    if params.explain and params.limit is None:
        params = structs.replace(params, limit=min(opened.config.max_results, MAX_EXPLAINED))
    if params.explain and params.limit is not None and params.limit > MAX_EXPLAINED:
        raise InvalidError(f"$.limit: at most {MAX_EXPLAINED} hits can be explained, not {params.limit}")
    with opened.view(call.is_over, agent=params.agent) as view:
        answer = answered(view, opened, params, call)
        explanation: AnswerExplanation | UnsetType = UNSET
        if params.explain:
            with opened.threads.turn():
                explained, reasons = explain(view, answer)
            explanation = rounded_record(explained)
            hits = [
                search_hit(hit, rounded_record(why)) for hit, why in zip(answer.hits, reasons, strict=True)
            ]
        else:
            hits = [search_hit(hit) for hit in answer.hits]
        instead = without_minus(view, opened, params, call, answer)
        # None for an agent, because whether a note that is not read is private is unknown.
        unread = fresh.not_utf8 if not params.agent else ()
        replaced = view.reader.not_utf8(NOT_UTF8_NAMED) if not params.agent else ()
        not_utf8 = sorted({*unread, *replaced})[:NOT_UTF8_NAMED]
        folders = described(view, [hit.source.path for hit in answer.hits]) if params.agent else {}
        if params.agent:
            record_recalls(view, opened, answer, {hit.source.path for hit in answer.hits})
    return SearchResult(
        hits=hits,
        folders=folders or UNSET,
        not_utf8=not_utf8,
        explanation=explanation,
        **query_frame(answer, fresh, without_minus=instead),
    )


def timeline(opened: OpenWorkspace, params: TimelineParams, call: Call, fresh: Freshness) -> TimelineResult:
    """``timeline``: the hits of a query by day, the earliest first, each day with its best one."""
    params = structs.replace(params, limit=params.limit or TIMELINE_HITS)
    with opened.view(call.is_over, agent=params.agent) as view:
        answer = answered(view, opened, params, call)
        instead = without_minus(view, opened, params, call, answer)
        by_day = sorted(answer.hits, key=lambda hit: hit.source.day)  # stable: within a day the best is first
        days = [(day, list(hits)) for day, hits in groupby(by_day, key=lambda hit: hit.source.day)]
        if params.agent:
            record_recalls(view, opened, answer, {hits[0].source.path for _, hits in days})
    return TimelineResult(
        days=[
            TimelineDay(date=day.isoformat(), hits=len(hits), best=search_hit(hits[0])) for day, hits in days
        ],
        **query_frame(answer, fresh, without_minus=instead),
    )


def answered(
    view: View,
    opened: OpenWorkspace,
    params: AnyQuery,
    call: Call,
    without: Sequence[int] = (),
    *,
    excludes: Excludes | None = None,
) -> Answer:
    """Answer a query, as if the chunks *without* did not exist.

    *excludes*: whether the minus of a word is an operator; by default, unless a note has the word with it.
    """
    with opened.threads.turn():
        waited_ms = {"wait": call.age_ms()}
        excludes = excludes or excludes_in(view)
        plain = parsed(opened, params, call.is_over, excludes, without=without, timings_ms=waited_ms)
        # Not in a thread beside the model's: the two wait for each other's hold of Python's lock, so that the
        # answer comes no earlier, for a twentieth more processor time.
        prepared, judged = begin(view, plain, opened.tokenizer)
    prepared = embedded(opened, prepared, typed=plain.query.text)
    with opened.threads.turn():
        return search_view(view, prepared, judged)


def record_recalls(view: View, opened: OpenWorkspace, answer: Answer, paths: Container[str]) -> None:
    """Record that an agent gets the entries at *paths* among the hits, for `review`."""
    by_agents = [
        hit.source for hit in answer.hits if hit.source.origin == "agent" and hit.source.path in paths
    ]
    if by_agents:
        from memd.entries import recalls  # noqa: PLC0415 - only where there are such hits

        ids = view.reader.entry_ids([source.id for source in by_agents])
        recalls.note(opened.workspace.recalls_path, ids.values(), answer.prepared.today)


def query_frame(answer: Answer, fresh: Freshness, *, without_minus: WithoutMinus | None) -> Fields:
    """Return the keys of an answer that `QueryResult` has, except its workspace and time."""
    query = answer.prepared.query
    return {
        **frame(answer, fresh),
        "confidence": answer.confidence,
        "lead": rounded(answer.sure.lead),
        "corrected": dict(query.corrected),
        "forms": {word: list(forms) for word, forms in query.forms.items()},
        "without": list(query.excluded),
        "as_words": list(query.as_words),
        "unmatched": list(answer.unmatched) or UNSET,
        "without_minus": without_minus,
        "model_id": answer.prepared.model_id or None,
    }


def without_minus(
    view: View, opened: OpenWorkspace, params: AnyQuery, call: Call, answer: Answer
) -> WithoutMinus | None:
    """Search the excluded words instead; None if the query excludes none or has a good match."""
    if not answer.prepared.query.excluded or _answers(answer):
        return None
    found = answered(view, opened, params, call, excludes=lambda _: False)
    if not _answers(found):
        return WithoutMinus(hits=0, best=None)
    best, shown = found.hits[0].source.path, found.hits[0].passage
    return WithoutMinus(
        hits=len(found.hits), best=Location(path=best, start_line=shown.start_line, end_line=shown.end_line)
    )


def _answers(answer: Answer) -> bool:
    """Return whether an answer has hits with a confidence other than none."""
    return bool(answer.hits) and answer.confidence != "none"


Fields = dict[str, Any]
Expired = Callable[[], bool]
Excludes = Callable[[str], bool]


class Askable(Protocol):
    """An index that can be queried: of an open workspace, or a temporary one of a measurement."""

    workspace: Workspace
    config: WorkspaceConfig
    index: Index
    tokenizer: Tokenizer  # the model's, or the shipped one as a substitute
    embedding: EmbeddingQueue | None
    diaries: Diaries


async def wait_for(opened: OpenWorkspace, params: FilteredParams, call: Call) -> Freshness:
    """Wait for saved changes, if the request says so, and for a loading model."""
    if isinstance(params, QueryParams):
        is_by_vectors, needs_model = params.mode == "vector", params.mode != "keyword"
    else:  # `similar`: behind the first index the vectors are there, and no model is needed
        is_by_vectors, needs_model = True, opened.sync.first
    synced = await _wait_for_sync(opened, params, call, vectors=is_by_vectors)
    if params.wait and needs_model:
        await _wait_for_model(opened, call)
    return replace(opened.sync.known, synced=synced)


def excludes_in(view: View) -> Excludes:
    """Return a test: a minus is an operator unless a note contains the word with its minus."""
    return lambda typed: not occurs_literally(view, typed)


def parsed(
    opened: Askable,
    params: AnyQuery | SimilarParams,
    expired: Expired,
    excludes: Excludes = lambda _: True,
    *,
    without: Sequence[int] = (),
    timings_ms: Mapping[str, float] = MappingProxyType({}),
) -> PreparedQuery:
    """Parse the query and resolve all settings; the query has no vector yet, see `embedded`.

    *excludes* says whether the minus of a word is an operator, as for `query.parse`; the chunks *without* are
    excluded; *timings_ms* are of earlier steps.

    Raises:
        InvalidError: a path pattern is unusable, or a date is invalid.
    """
    config, today = opened.config, datetime.now().astimezone().date()
    typed = None if isinstance(params, SimilarParams) else params
    query = parse(typed.query, today, excludes) if typed else Query("")
    if params.glob or params.tag or params.field or params.since or params.until:
        query = restricted(query, filter_values(params, today))
    for condition in query.filters:
        condition.matcher()  # report invalid values before any wait
    if query.only_excluded and not query.filters:
        raise InvalidError("only words to exclude were given: add a word to search for, or a filter")
    if isinstance(params, SearchParams) and params.prefix:
        query = unfinished(query, params.query)
    alive = _Alive(opened.workspace)
    return PreparedQuery(
        query=query,
        query_vec=None,
        model_id="",
        mode=typed.mode if typed else "keyword",
        fusion=(typed and typed.fusion) or config.fusion,
        weights=(typed and typed.weights) or config.weights,
        half_life_days=config.half_life_days,
        decay_floor=config.decay_floor,
        min_score=config.min_score if params.min_score is None else params.min_score,
        limit=params.limit or config.max_results,
        today=today,
        alive=alive,
        expect=alive.expect,
        expired=expired,
        without=tuple(without),
        timings_ms=timings_ms,
        per_source=params.per_source,
        languages=config.languages,
        southern=config.southern_seasons,
        is_floor_named=params.min_score is not None,
        diaries=opened.diaries,
    )


def filter_values(
    asked: AnyQuery | SimilarParams | SourcesParams | FieldsParams | ReviewParams, today: date
) -> dict[str, Sequence[Any]]:
    """Return the values of a request's filters by their names; empty ones do not count.

    Raises:
        InvalidError: a date or a condition on a field is invalid.
    """
    listed = (asked.tag, asked.glob, asked.field)
    tags, globs, fields = ([one] if isinstance(one, str) else one for one in listed)
    return {
        "path": globs,
        "tag": tags,
        FIELD: [_field(one, today) for one in fields if one],
        "since": [day("since", asked.since, today)],
        "until": [day("until", asked.until, today)],
    }


def _field(text: str, today: date) -> Any:
    """Return the condition on the front matter that a parameter means, parsed as in a query."""
    try:
        return BY_KEY[FIELD].parse(text, today)
    except (ValueError, OverflowError) as error:
        raise InvalidError(f"$.field: {error}") from None


def day(key: str, text: str | None, today: date) -> date | None:
    """Return the day that a parameter means, parsed as in a query; None for an empty one."""
    if not text:
        return None
    try:
        found: date = BY_KEY[key].parse(text, today)
    except (ValueError, OverflowError):
        raise InvalidError(
            f"$.{key}: {text[:MAX_CHARS]!r} is not a day: expected one like 2026-05-01, 2026-05, yesterday, "
            "7d or last week"
        ) from None
    return found


def frame(answer: Answer, fresh: Freshness) -> Fields:
    """Return the keys of an answer that `SearchedResult` has, except its workspace and time."""
    prepared, index = answer.prepared, structs.replace(fresh.index, generation=answer.generation)
    codes = list(dict.fromkeys([*prepared.degraded, *answer.degraded]))
    if index.state == "missing":
        codes.append("root-missing")
    if prepared.query_vec is not None and index.pending_vectors:
        if fresh.failing:
            codes.append("vectors-incomplete")
        if fresh.held:
            codes.append(EMBEDDING_PAUSED)
    return {
        "mode": answer.mode,
        "degraded": codes,
        "index": index,
        "synced": fresh.synced,
        "timings_ms": answer.timings_ms,
    }


async def _wait_for_sync(
    opened: OpenWorkspace, params: FilteredParams, call: Call, *, vectors: bool
) -> bool | UnsetType:
    """Wait, where that is asked for, until what was saved before is searchable; return whether it is."""
    if not params.sync:
        return UNSET
    timeout_s = SYNC_TIMEOUT_S if params.sync is True else params.sync / 1000
    if call.deadline is not None:
        timeout_s = min(timeout_s, call.deadline - time.monotonic() - ANSWER_S)
    stop = time.monotonic() + timeout_s
    synced = await opened.sync.synced(timeout_s)
    if vectors and synced:
        await opened.sync.embedded(timeout_s=stop - time.monotonic())
        synced = not opened.sync.vectors.pending
    return synced


async def _wait_for_model(opened: OpenWorkspace, call: Call) -> None:
    """Wait for a model that loads; at a first index also for its matrix, and for vectors if they are few."""
    embedding, sync = opened.embedding, opened.sync
    if embedding is None:
        return
    stop = _soon(call)
    while _loads(opened, embedding) and time.monotonic() < stop:  # noqa: ASYNC110 - see LOADING_POLL_S
        await asyncio.sleep(LOADING_POLL_S)
    if sync.first and not sync.first_words and sync.vectors.pending <= FEW_VECTORS:
        await sync.embedded(timeout_s=_soon(call) - time.monotonic())


def _loads(opened: OpenWorkspace, embedding: EmbeddingQueue) -> bool:
    """Tell whether the model will be there soon, or the empty matrix that its vectors go to."""
    model = embedding.embedder_or_none()
    if model is None:
        return embedding.state == "loading"
    return opened.sync.first and not opened.sync.vectors.failing and not opened.index.snapshot.model_id


def _soon(call: Call) -> float:
    """Return until when a search waits for the model, within its deadline."""
    soon = time.monotonic() + MODEL_WAIT_S
    return soon if call.deadline is None else min(soon, call.deadline - ANSWER_S)


def ms_since(started: float) -> float:
    """Return the milliseconds since *started*, as time.perf_counter() gave it."""
    return round((time.perf_counter() - started) * 1000, 3)


def embedded(
    opened: Askable,
    prepared: PreparedQuery,
    *,
    typed: str | None = None,
    kept: LruCache[tuple[str, str], list[bytes]] | None = None,
) -> PreparedQuery:
    """Return *prepared* with the vector of its text; without one words answer, and the answer says so.

    *typed*: the text before its words were corrected; both are embedded. *kept*: vectors by model and text.
    """
    embedding, mode = opened.embedding, prepared.mode
    text = prepared.query.text if typed is None else typed
    started = time.perf_counter()

    def without(off: str, *codes: str, took_ms: float = 0.0) -> PreparedQuery:
        timings_ms = {**prepared.timings_ms, "embed": took_ms}
        codes = (*codes, *prepared.degraded)
        return replace(prepared, query_vec=None, model_id="", off=off, degraded=codes, timings_ms=timings_ms)

    if mode == "keyword" or not text.strip():
        return without("mode" if mode == "keyword" else "no-words")
    if embedding is None:
        return without("no-provider", *(["no-provider"] if mode == "vector" else []))
    try:
        embedder = embedding.embedder()
        scripts = embedder.scripts if mode == "hybrid" else None
        reading, unread = readable_part(text, scripts)
        if not reading:
            return without("script")
        snapshot = opened.index.snapshot
        if (snapshot.model_id, snapshot.rows.dim) != (embedder.model_id, embedder.dim):
            return without("vectors-building", "vectors-building")
        meant = readable_part(prepared.query.text, scripts)[0] or reading
        words = spelled(reading if prepared.query.corrected else meant, embedder.tokenizer)
        texts = [reading] if meant == reading else [reading, meant]
        vectors = kept and kept.get((embedder.model_id, reading))
        if not vectors:
            vectors = embedding.embed_queries(texts, timeout_s=QUERY_TIMEOUT_S)
            if kept:
                kept.put((embedder.model_id, reading), vectors, len(reading))
    except UnavailableError as error:
        return without(error.reason, error.reason, took_ms=ms_since(started))
    return replace(
        prepared,
        query_vec=vectors[0],
        corrected_vec=vectors[1] if len(vectors) > 1 else None,
        model_id=embedder.model_id,
        spelled=words,
        unread=unread,
        timings_ms={**prepared.timings_ms, "embed": ms_since(started)},
    )


class _Alive:
    """Tells whether sources are on the disk; where nothing can be seen, answers go on."""

    def __init__(self, place: Workspace) -> None:
        seen = place.seen
        look = partial(gone_of, place.root) if seen is None else seen.gone
        self._gone = look if place.is_there() and not (seen and seen.is_slow) else None
        self._known: dict[str, bool] = {}

    def expect(self, paths: Sequence[str]) -> None:
        unknown = list(dict.fromkeys(path for path in paths if path not in self._known))
        gone = self._gone(unknown) if self._gone and unknown else ()
        self._known.update((path, path not in gone) for path in unknown)

    def __call__(self, path: str) -> bool:
        if path not in self._known:
            self.expect([path])
        return self._known[path]
