"""The stages of a search applied to one source: the first stage that dropped it, with the values there.

Covers only indexed sources: the caller checks whether a file is a source, and whether the index is current.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memd.index.columns import require_numpy
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import Confidence, Location, Source
from memd.search import filters, ranking
from memd.search.explain import explain_chunk, give_up_in_time, standing, term_counts
from memd.search.explanation import Explained, Filter
from memd.search.keyword import phrase_expression
from memd.search.query import Query
from memd.search.ranking import Candidate
from memd.search.score import Judgement, PreparedQuery, judge
from memd.search.search import sureness

Stage = Literal[
    "empty", "filtered", "unmatched", "outside-pools", "below-floor", "gone",
    "folded", "per-source", "outranked", "returned",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for a source, or for its chunks at one line."""

    stage: Stage
    chunk: StoredChunk | None = None  # the chunk that got furthest; None: there is no chunk
    explained: Explained | None = None  # its scores; None if a filter excludes it
    rank: int | None = None  # among all hits, of the hit that it is, is shown with or is folded into
    missed: tuple[Filter, ...] = ()  # the filters that exclude it
    last: Candidate | None = None  # the last hit of the answer; None if the answer is empty
    into: Location | None = None  # the chunk that it is folded into, or shown with
    better: tuple[int, ...] = ()  # ranks of the hits of its source
    confidence: Confidence | None = None  # of the answer; None if the source is not in it


def why(
    view: View, request: PreparedQuery, source: Source, line: int | None, words: Judgement | None = None
) -> Verdict:
    """Follow a live source, or its chunks at one line, through every stage of a search.

    *words* is the result of `search.begin` for the same query.

    Raises:
        DeadlineError: the caller's deadline passed.
    """
    chunks = [
        chunk
        for chunk in view.reader.chunks_of(source.id)
        if line is None or chunk.start_line <= line <= chunk.end_line
    ]
    if not chunks:
        return Verdict("empty")
    require_numpy("an explanation")
    view.has_damaged([chunk.id for chunk in chunks])  # if so, only words are used, as in the search
    judged = judge(view, request, lambda _: give_up_in_time(request), words)
    verdict = (
        _filtered(view, request.query, judged, source, chunks)
        or _unranked(request, judged, chunks)
        or _ranked(view, request, judged, chunks)
    )
    if verdict.stage == "returned":
        found = standing(view, request, judged)[1]
        sources = view.snapshot.sources
        sure = sureness(view, request, judged.candidates, found, sources, knows=judged.knows)
        verdict = replace(verdict, confidence=sure.confidence)
    if verdict.chunk is None or verdict.stage == "filtered":
        return verdict
    return replace(verdict, explained=explain_chunk(view, request, judged, verdict.chunk.id))


def _filtered(
    view: View, query: Query, judged: Judgement, source: Source, chunks: Sequence[StoredChunk]
) -> Verdict | None:
    """If filters exclude all chunks, return the filters of the chunk that fewest filters exclude."""
    if any(judged.mask[chunk.id] for chunk in chunks):
        return None
    of_source = (Filter(one.name, one.shown) for one in filters.missed(view, source, query.filters))
    of_chunks: dict[int, list[Filter]] = {chunk.id: [] for chunk in chunks}
    for phrase in query.phrases:
        having = of_chunks.keys() & set(view.matching("words", phrase_expression(phrase)))
        # If the note has the phrase elsewhere, the chunks without it are left out, but not the note.
        for lacking in () if having else of_chunks:
            of_chunks[lacking].append(Filter("phrase", phrase))
    for word in query.excluded:
        having = of_chunks.keys() & set(view.matching("words", phrase_expression(word)))
        for chunk in of_chunks if having else ():
            of_chunks[chunk].append(Filter("excluded", word))
    closest = min(chunks, key=lambda chunk: len(of_chunks[chunk.id]))
    return Verdict("filtered", closest, missed=(*of_source, *of_chunks[closest.id]))


def _unranked(request: PreparedQuery, judged: Judgement, chunks: Sequence[StoredChunk]) -> Verdict | None:
    """Return why no chunk is ranked: outside both pools, or below the floor."""
    by_id = {chunk.id: chunk for chunk in chunks if judged.mask[chunk.id]}
    candidates = [candidate for candidate in judged.candidates if candidate.id in by_id]
    if candidates:
        if not by_id.keys().isdisjoint(one.id for one in judged.good_enough(request)):
            return None
        best = max(candidates, key=lambda candidate: candidate.merged)
        return Verdict("below-floor", by_id[best.id])
    ids = list(by_id)
    cosines = judged.vector.scores_of(ids) if judged.vector else [0.0] * len(ids)
    words = judged.keyword.scores_of(ids) if judged.keyword else [0.0] * len(ids)
    weights = ranking.weights_read(judged.weights, judged.named.read)
    scores = [
        ranking.weighted(max(0.0, cosine), word, weights) for cosine, word in zip(cosines, words, strict=True)
    ]
    place = max(range(len(ids)), key=scores.__getitem__)
    # Words elsewhere in its source do not bring a chunk into a pool.
    found = judged.keyword is not None and any(term_counts(judged.keyword, ids[place], ids[place] + 1))
    stage: Stage = "outside-pools" if found or cosines[place] > 0 else "unmatched"
    return Verdict(stage, by_id[ids[place]])


def _ranked(view: View, request: PreparedQuery, judged: Judgement, chunks: Sequence[StoredChunk]) -> Verdict:
    above, found = standing(view, request, judged)
    by_id = {chunk.id: chunk for chunk in chunks}
    own = [candidate for candidate in above if candidate.id in by_id]  # best first
    ranks = {candidate.id: rank for rank, candidate in enumerate(found.kept, 1)}
    shown = found.kept[: request.limit]
    last = shown[-1] if shown else None
    in_hits = (candidate.id for candidate in own if candidate.id in found.shown)
    best = min(in_hits, key=lambda number: ranks[found.shown[number]], default=own[0].id)
    hit = found.shown.get(best, found.into.get(best))
    if hit is not None:
        into = None if hit == best else _place(view, hit)
        stage: Stage = "returned" if ranks[hit] <= request.limit else "outranked"
        if best in found.into:
            stage = "folded"
        return Verdict(stage, by_id[best], rank=ranks[hit], last=last, into=into)
    if best in found.crowded:
        better = tuple(ranks[candidate.id] for candidate in found.kept if candidate.source == own[0].source)
        return Verdict("per-source", by_id[best], last=last, better=better)
    return Verdict("gone", by_id[best], last=last)


def _place(view: View, chunk_id: int) -> Location:
    chunk = view.chunks([chunk_id])[chunk_id]
    path = view.snapshot.sources[chunk.source].path
    return Location(path=path, start_line=chunk.start_line, end_line=chunk.end_line)
