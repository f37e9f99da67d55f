"""Explanations of scores: the parts of each score, and how many chunks each stage dropped.

A hit's score is (Σ weight · score of the arms) · decay. An arm's score combines evidence of the chunk with
evidence of its source. The vector arm uses cosines. The keyword arm sums BM25 over the query's words in the
chunk, in the first chunk of the source and in the whole source, divided by what a chunk full of them reaches.
"""

from collections.abc import Sequence

from memd.errors import DeadlineError
from memd.index.columns import count_above, mask_size, require_numpy, stretches, take
from memd.index.snapshot import Snapshot, View
from memd.search import ranking, source_scores
from memd.search.dedup import Dedup, Likeness, fold
from memd.search.explanation import (
    AnswerExplanation,
    Decay,
    Explained,
    Filter,
    KeywordPart,
    Length,
    NamedPart,
    Stages,
    Term,
    TermPart,
    Unseen,
    VectorPart,
)
from memd.search.keyword import K1, POOL, B, KeywordArm, count_between, reachable
from memd.search.query import Query, content_words
from memd.search.ranking import Candidate
from memd.search.score import Judgement, PreparedQuery, meaning_of
from memd.search.search import Answer, why_off
from memd.search.vector import VectorArm


def explain(view: View, found: Answer) -> tuple[AnswerExplanation, list[Explained]]:
    """Explain an answer and each of its hits, in the same view.

    Raises:
        DeadlineError: the caller's deadline passed.
        NumpyMissingError: numpy is missing; a search works without it, an explanation does not.
    """
    require_numpy("an explanation")
    assert found.judged is not None
    request, judged = found.prepared, found.judged
    columns = view.snapshot.columns
    pieces = request.query.pieces
    content = set(content_words(pieces))
    answer = AnswerExplanation(
        terms=judged.keyword.terms if judged.keyword else (),
        left_out=tuple(dict.fromkeys(piece for piece in pieces if piece not in content)),
        spelled=request.spelled,
        unread=request.unread,
        read=judged.named.read,
        filters=filters_of(request.query),
        tier=judged.keyword.tier if judged.keyword else None,
        average_length=columns.total_length / max(columns.count, 1),
        fusion=request.fusion,
        weights=judged.weights,
        matched=judged.matched,
        half_life_days=request.half_life_days,
        decay_floor=request.decay_floor,
        floor=request.floor,
        limit=request.limit,
        per_source=request.per_source,
        pool=POOL,
        vector_pool=len(judged.vector.pool) if judged.vector else None,
        keyword_pool=len(judged.keyword.pool) if judged.keyword else None,
        stages=_stages(view, request, judged),
        model_id=request.model_id or None,
        vector_arm=why_off(request, found.mode, found.degraded) or None,
    )
    return answer, [explain_chunk(view, request, judged, hit.candidate.id) for hit in found.hits]


def explain_chunk(view: View, request: PreparedQuery, judged: Judgement, chunk_id: int) -> Explained:
    """Explain one chunk, which may be outside both pools. Raises as `explain` does."""
    give_up_in_time(request)
    columns = view.snapshot.columns
    candidate = next((candidate for candidate in judged.candidates if candidate.id == chunk_id), None)
    by_vector, by_words = (candidate.vector_rank, candidate.keyword_rank) if candidate else (None, None)
    [row] = take(columns.row, [chunk_id])
    [source_id] = take(columns.source, [chunk_id])
    sees = judged.vector is not None and row >= 0
    read = ranking.weights_read(judged.weights, judged.named.read)
    weights = ranking.weights_seen(read, vector=sees, keyword=judged.keyword is not None)
    vector, keyword = None, None
    if judged.vector is not None and sees:
        [cosine] = judged.vector.scores_of([chunk_id])
        chunks = source_scores.grouped(view.snapshot, [chunk_id])
        [score], [source_cosine], _ = (
            column.tolist() for column in meaning_of(view.snapshot, judged.vector, chunks)
        )
        vector = VectorPart(
            rank=by_vector or _rank_outside(judged.vector, chunk_id),
            in_pool=by_vector is not None,
            cosine=cosine,
            source_cosine=source_cosine,
            source_share=source_scores.SOURCE_SHARE,
            score=score,
            weight=weights.vector,
            part=weights.vector * score,
        )
    if judged.keyword is not None:
        keyword = _keyword_part(view.snapshot, judged.keyword, chunk_id, by_words, weights.keyword)
    unseen: list[Unseen] = []
    if vector is None:
        unseen.append(
            (view.reader.left_out(chunk_id) or "no-vector-yet") if judged.vector else "vector-arm-did-not-run"
        )
    if keyword is None:
        unseen.append("keyword-arm-did-not-run")
    words = judged.named.words.get(chunk_id)
    named = NamedPart(words, judged.named.scores[chunk_id]) if words else None
    total = min(1.0, (vector.part if vector else 0.0) + (keyword.part if keyword else 0.0))
    merged = max(total, named.score if named else 0.0)
    sources = view.snapshot.sources
    source = sources[source_id]
    decay = Decay(
        request.decay_of(source),
        source.dated,
        request.diaries.why(source),
        (request.today - source.day).days,
        request.half_life_days,
        request.decay_floor,
    )
    order = candidate.order if candidate else None
    behind, older = judged.ahead_of.get(chunk_id), judged.newest.get(chunk_id)
    last = source.valid_until
    return Explained(
        vector=vector,
        keyword=keyword,
        unseen=tuple(unseen),
        named=named,
        run=judged.runs.get(chunk_id),
        called=judged.called.get(chunk_id),
        day_named=judged.days.get(chunk_id),
        said=judged.said.get(chunk_id),
        merged=merged,
        decay=decay,
        score=merged * decay.factor,
        superseded_by=view.snapshot.superseded_by(source_id),
        ahead_of=None if behind is None else sources[take(columns.source, [behind])[0]].path,
        newest=None if older is None else sources[take(columns.source, [older])[0]].path,
        expired=last.isoformat() if last and source_id in view.snapshot.expired(request.today) else None,
        order=order,
    )


def filters_of(query: Query) -> tuple[Filter, ...]:
    """Return the filters of a query and its request; alternative paths form one filter."""
    return (
        *(Filter(condition.name, condition.shown) for condition in query.filters),
        *(Filter("phrase", phrase) for phrase in query.phrases),
        *(Filter("excluded", word) for word in query.excluded),
    )


def term_counts(arm: KeywordArm, first: int, end: int) -> list[int]:
    """Return the count of each term in the chunks from *first* to before *end*."""
    return [count_between(postings, first, end) for postings in arm.postings]


def file_counts(arm: KeywordArm, first: int, end: int) -> list[int]:
    """Return each term's count in a whole source; forms count as their word if the source has it."""
    counts = term_counts(arm, first, end)
    for place, word in arm.instead().items():
        if counts[word]:
            counts[word], counts[place] = counts[word] + counts[place], 0
    return counts


def standing(view: View, request: PreparedQuery, judged: Judgement) -> tuple[list[Candidate], Dedup]:
    """Return the candidates above the floor, best first, and how `fold` without a limit treats them."""
    above = judged.good_enough(request)
    return above, fold(view, above, max(len(above), 1), request.per_source, request.alive, compared=Likeness)


def give_up_in_time(request: PreparedQuery) -> None:
    """Raise DeadlineError if the caller's deadline has passed."""
    if request.expired():
        raise DeadlineError("the explanation took longer than its deadline: ask for fewer hits (limit)")


def _stages(view: View, request: PreparedQuery, judged: Judgement) -> Stages:
    allowed = mask_size(judged.mask)
    above, found = standing(view, request, judged)
    folded = len(found.into)
    dropped = folded + len(found.crowded) + len(found.shown)
    hits = min(request.limit, len(found.kept))
    return Stages(
        chunks=view.snapshot.columns.count,
        filtered=view.snapshot.columns.count - allowed,
        outside_pools=allowed - len(judged.candidates),
        below_floor=len(judged.candidates) - len(above),
        gone=len(above) - dropped,
        folded=folded,
        joined=len(found.shown) - len(found.kept),
        per_source=len(found.crowded),
        limit=len(found.kept) - hits,
        hits=hits,
    )


def _keyword_part(
    snapshot: Snapshot, arm: KeywordArm, chunk_id: int, rank: int | None, weight: float
) -> KeywordPart:
    columns = snapshot.columns
    [score] = arm.scores_of([chunk_id])
    [first], [end] = (edges.tolist() for edges in stretches(columns, [chunk_id]))
    average = max(columns.total_length / max(columns.count, 1), 1)
    parts_of_source = ((chunk_id, chunk_id + 1), (first, first + 1), (first, end))
    totals = [sum(take(columns.length, range(*stretch))) for stretch in parts_of_source]
    lengths = [Length(total, K1 * (1 - B + B * total / average)) for total in totals]
    own, in_first = (term_counts(arm, *stretch) for stretch in parts_of_source[:2])
    in_file = file_counts(arm, first, end)
    parts = tuple(
        _term_part(term, counts, lengths)
        for term, *counts in zip(arm.terms, own, in_first, in_file, strict=True)
        if counts[-1]
    )
    in_source = {part.term for part in parts}
    bm25 = sum(part.part for part in parts)
    first_bm25 = sum(part.first_part for part in parts)
    file_bm25 = sum(part.file_part for part in parts)
    [source] = take(columns.source, [chunk_id])
    shares = source_scores.shares_of(dated=snapshot.sources[source].dated)
    return KeywordPart(
        rank=rank or _rank_outside(arm, chunk_id),
        in_pool=rank is not None,
        tier=arm.tier_of(chunk_id),
        terms=parts,
        lacking=tuple(dict.fromkeys(term.text for term in arm.terms if term.text not in in_source)),
        length=lengths[0],
        first_length=lengths[1],
        file_length=lengths[2],
        bm25=bm25,
        first_bm25=first_bm25,
        file_bm25=file_bm25,
        shares=shares,
        evidence=shares.chunk * bm25 + shares.first * first_bm25 + shares.file * file_bm25,
        reachable=reachable(arm.terms),
        score=score,
        weight=weight,
        part=weight * score,
    )


def _rank_outside(arm: VectorArm | KeywordArm, chunk_id: int) -> int:
    """Return the rank of a chunk outside an arm's pool, by its own score among all that may answer."""
    every = arm.every()
    [own] = take(every, [chunk_id])
    return 1 + count_above(every, arm.mask, own)


def _term_part(term: Term, counts: Sequence[int], lengths: Sequence[Length]) -> TermPart:
    """Return a term's share of BM25, by its counts in the chunk, the first chunk and the file."""
    parts = [
        term.weight * count / (count + length.norm) for count, length in zip(counts, lengths, strict=True)
    ]
    return TermPart(
        term=term.text,
        forms=term.forms,
        prefix=term.prefix,
        times=term.times,
        document_frequency=term.document_frequency,
        idf=term.idf,
        share=term.share,
        count=counts[0],
        first_count=counts[1],
        file_count=counts[2],
        part=parts[0],
        first_part=parts[1],
        file_part=parts[2],
    )
