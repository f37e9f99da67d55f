"""The method `similar`; also the notes that are similar to a new entry."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from msgspec import UNSET, UnsetType, structs

from memd import daily
from memd.api.get import below, chunk_of, named_source, note_links
from memd.api.hits import SCORE_DIGITS, chunk_lines, hit_source, search_hit
from memd.api.params import SimilarParams
from memd.api.results import NamedChunk, NoteLinks, SimilarNote, SimilarResult
from memd.api.search import ANSWER_S, embedded, frame, parsed
from memd.entries.entry import Written
from memd.errors import InvalidError, NotFoundError
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.lru import LruCache
from memd.records import Freshness, Mode, Source
from memd.rpc.context import Call
from memd.search.score import PreparedQuery
from memd.search.search import Hit
from memd.search.similar import shared_words, similar_to_text, telling_count
from memd.search.similar import similar as most_similar
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

ENTRY_NOTES = 5  # named to an agent: enough to notice a repetition, few enough to read
ENTRY_CHUNKS = 20  # of them: a long note may have several
# Cosine from which a note is worth a look: below, two notes on one subject say different things. Arbitrary;
# docs/confidence.md calls a score of as much strong.
ENTRY_MEANING = 0.6
ENTRY_WORDS = 8  # that are named of those that both have; arbitrary
# Of the words that say most about the shorter of two texts, so many in both are a reason. Arbitrary.
WORDS_SHARE = 1 / 3
# Of texts, up to 100,000 characters of them: an editor asks again for the paragraph where the cursor stays,
# whose vector takes the model longer than all other steps take. Arbitrary.
_VECTORS: LruCache[tuple[str, str], list[bytes]] = LruCache(100_000)
VECTOR_POLL_S = 0.02  # a vector takes about 30 ms


def similar(opened: OpenWorkspace, params: SimilarParams, call: Call, fresh: Freshness) -> SimilarResult:
    """``similar``: the chunks of other sources most similar to a chunk, given by id or by path and line."""
    if params.text is None and (params.path is None) == (params.id is None):
        raise InvalidError("$: expected either path or id")
    if params.line is not None and params.path is None:
        raise InvalidError("$.line: a line needs the path that it is in")
    root = opened.workspace.root
    request = parsed(opened, params, call.is_over)
    if params.text is not None:
        request = replace(request, mode="hybrid", query=replace(request.query, text=params.text))
        request = replace(embedded(opened, request, kept=_VECTORS), timings_ms={})
    to: NamedChunk | UnsetType = UNSET
    superseded_by: Sequence[str] = ()
    links = NoteLinks(outgoing=[], outgoing_total=0, incoming=[], incoming_total=0)
    with opened.view(request.expired, agent=params.agent) as view:
        timings_ms = {"wait": call.age_ms()}
        if params.text is not None:
            without = view.snapshot.source_at(below(root, params.path)) if params.path else None
            answer = similar_to_text(view, params.text, request, without.id if without else None)
        else:
            timings_ms["embed"] = 0.0
            chunk = _named(view, opened, params)
            source = view.snapshot.sources[chunk.source]
            shown = chunk_lines(view.chunks([chunk.id])[chunk.id])
            to = NamedChunk(path=source.path, **structs.asdict(shown))
            superseded_by = view.snapshot.superseded_by(chunk.source)
            links = note_links(view, root, source)
            answer = most_similar(view, chunk, request)
            if answer.mode == "keyword" and not answer.degraded:
                if opened.embedding is None:
                    answer.degraded = ("no-provider",)
                elif view.reader.left_out(chunk.id) is None:  # else it gets no vector: nothing is missing
                    answer.degraded = ("vectors-building",)
    answer.timings_ms = timings_ms | dict(answer.timings_ms)
    return SimilarResult(
        to=to,
        superseded_by=list(superseded_by),
        links=links,
        hits=[search_hit(hit) for hit in answer.hits],
        **frame(answer, fresh),
    )


async def similar_to_entry(
    workspaces: Workspaces, opened: OpenWorkspace, entry: Written, give_up: float, *, agent: bool
) -> list[SimilarNote] | None:
    """Return the notes similar to an entry; None if the entry has no vector by *give_up*, or in a pause.

    *agent*: one reads it, and is not told of private notes.
    """
    sync = opened.sync
    while True:
        found: list[SimilarNote] | None = await workspaces.read(_like_entry, opened, entry, give_up, agent)
        left_s = give_up - time.monotonic()
        if found is not None or sync.vectors.failing or sync.vectors.held or left_s <= 0:
            return found
        # Its own vector is among the next; all of them may take an hour.
        await asyncio.sleep(min(VECTOR_POLL_S, left_s))


def _like_entry(
    opened: OpenWorkspace,
    entry: Written,
    give_up: float,
    agent: bool,  # noqa: FBT001 - handed on by position
) -> list[SimilarNote] | None:
    wanted = SimilarParams(limit=ENTRY_CHUNKS)
    request = parsed(opened, wanted, lambda: time.monotonic() > give_up + ANSWER_S)
    with opened.view(request.expired, agent=agent) as view:
        source = view.snapshot.source_at(entry.path)
        chunks = view.reader.chunks_of(source.id) if source is not None else []
        entry_id = entry.id if daily.PATH.fullmatch(entry.path) else ""
        chunk = next((chunk for chunk in chunks if chunk.entry == entry_id), None)
        if chunk is None:
            return None
        answer = most_similar(view, chunk, request)
        is_left_out = view.reader.left_out(chunk.id) is not None
    if opened.embedding is not None and not is_left_out and answer.mode == "keyword":
        return None
    best: dict[str, SimilarNote] = {}  # by path: one note is named once
    is_by_meaning = answer.mode == "vector"
    for hit in answer.hits:
        if is_by_meaning and hit.candidate.score < ENTRY_MEANING:
            break  # the rest is less like it
        best.setdefault(hit.source.path, _similar_note(hit, chunk.text, answer.mode))
    return list(best.values())[:ENTRY_NOTES]


def newer_note(
    view: View, chunk: StoredChunk, request: PreparedQuery, is_newer: Callable[[Source], bool]
) -> SimilarNote | None:
    """Return the most similar note that is newer, if it is similar enough to be named to an agent."""
    answer = most_similar(view, chunk, request)
    for hit in answer.hits:
        if is_newer(hit.source):
            found = _similar_note(hit, chunk.text, answer.mode)
            if answer.mode == "vector":
                return found if found.score >= ENTRY_MEANING else None
            count = len(shared_words(chunk.text, hit.chunk.text))
            return found if count >= WORDS_SHARE * telling_count(chunk.text, hit.chunk.text) else None
    return None


def _similar_note(hit: Hit, entry: str, mode: Mode) -> SimilarNote:
    """Return what an agent is told of a note that is like the text of its *entry*."""
    words = shared_words(entry, hit.chunk.text)
    by: list[Literal["meaning", "words"]] = [] if mode == "keyword" else ["meaning"]
    if mode == "keyword" or len(words) >= WORDS_SHARE * telling_count(entry, hit.chunk.text):
        by.append("words")
    return SimilarNote(
        path=hit.source.path,
        title=hit.source.title,
        start_line=hit.passage.start_line,
        end_line=hit.passage.end_line,
        score=round(hit.candidate.score, SCORE_DIGITS),
        by=by,
        words=list(words[:ENTRY_WORDS]),
        date=hit.source.day.isoformat(),
        date_of=hit.source.day_of,
        source=hit_source(hit),
        superseded_by=list(hit.superseded_by),
    )


def _named(view: View, opened: OpenWorkspace, params: SimilarParams) -> StoredChunk:
    """Return the chunk that is meant: of a path the first one, or the first at its line."""
    if params.id is not None:
        return chunk_of(view, params.id)
    assert params.path is not None
    source = named_source(view, opened.workspace.root, params.path, agent=params.agent)
    for chunk in view.reader.chunks_of(source.id):
        if params.line is None or chunk.start_line <= params.line <= chunk.end_line:
            return chunk
    where = "" if params.line is None else f" at line {params.line}"
    raise NotFoundError(f"{params.path} has no text that is searched{where}")
