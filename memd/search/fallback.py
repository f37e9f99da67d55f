"""Search without numpy: a reduced search, not a second implementation of the full one.

Vectors are compared row by row in pure Python: the ranking equals numpy's, up to rounding. Words are ranked
as by FTS5's bm25(), chunk by chunk: a source adds nothing to its chunks, and there is no substring tier. The
results of both arms are merged, filtered and cut as usual, but near-duplicates are not folded.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import mul

from memd.config import Weights
from memd.errors import DeadlineError
from memd.index.columns import OF_SOURCE
from memd.index.snapshot import Snapshot, View
from memd.index.vectors import FLOAT_BYTES, Rows
from memd.search import filters, ranking
from memd.search.called import aliased, called
from memd.search.keyword import POOL, phrase_expression, query_terms
from memd.search.query import Query
from memd.search.ranking import Candidate
from memd.search.score import PreparedQuery, day_asked, days_asked, is_newest_asked, newest_candidates, raised
from memd.search.source_scores import PLACES, SOURCE_SHARE

LOOK_EVERY = 256  # rows between two checks of the deadline: about 5 ms
FTS5_K1, FTS5_B = 1.2, 0.75  # as FTS5's bm25() has them
FTS5_MIN_IDF = 1e-6  # of a term that occurs in half of the chunks or more


def candidates(view: View, request: PreparedQuery) -> tuple[list[Candidate], bool]:
    """Return the best chunks of either arm, best first, and whether vectors were compared.

    Raises:
        DeadlineError: the caller's deadline passed.
    """
    sources = view.snapshot.sources
    live = {number: (source, row) for number, source, row in view.reader.all_rows() if source in sources}
    allowed = _allowed(view, request, {number: source for number, (source, _) in live.items()})
    if is_newest_asked(request.query):
        first = {live[number][0]: number for number in sorted(allowed, reverse=True)}
        return newest_candidates(view, request.query, first), False
    cosines: dict[int, float] = {}
    is_there = request.query_vec is not None and request.model_id == view.snapshot.model_id
    has_vectors = is_there and request.mode != "keyword"
    if has_vectors and request.query_vec is not None:
        cosines = _meaning(view.snapshot, request, live, allowed)
        looked_at = {*cosines, *sorted(allowed)[:POOL]}  # a row of zeros has no cosine above 0
        if view.has_damaged_at(
            {number: live[number][1] for number in looked_at}
        ):  # as in `score`: only words are used
            cosines, has_vectors = {}, False
    words = {} if has_vectors and request.mode == "vector" else _words(view, request, live, allowed)
    nearest, by_words = ranking.ranks(cosines), ranking.ranks(words)
    found = []
    expired = view.snapshot.expired(request.today)
    for number in nearest.keys() | by_words.keys():
        source = sources[live[number][0]]
        score = cosines.get(number)
        word = None if has_vectors and request.mode == "vector" else words.get(number, 0.0)
        used = ranking.weights_seen(
            request.weights or Weights(), vector=score is not None, keyword=word is not None
        )
        merged = min(1.0, ranking.weighted(score, word, used))
        decay = request.decay_of(source)
        ranks = nearest.get(number), by_words.get(number)
        order = merged if request.fusion == "weighted" else ranking.reciprocal_rank(ranks)
        order *= ranking.EXPIRED_SHARE if source.id in expired else 1
        found.append(
            Candidate(
                number, source.id, source.path, ranks[0], score, ranks[1], word,
                "fts" if word is not None else None, decay, used, merged, decay * order,
            )
        )  # fmt: skip
    found = ranking.ordered(found)
    if words:
        text, day = request.query.text, day_asked(request, days_asked(request))
        found = raised(found, called(view, text, (), found, aliased(view, text, day), day=day))
    return found, has_vectors


def knows_a_word(view: View, query: Query) -> bool:
    """Return whether some chunk contains a word of the query."""
    live = {number for number, source, _ in view.reader.all_rows() if source in view.snapshot.sources}
    found = (view.reader.occurrences(expression) for expression in _expressions(view, query))
    return any(live & each.keys() for each in found)


def _allowed(view: View, request: PreparedQuery, sources: dict[int, int]) -> set[int]:
    """Return the live chunks that may answer: filters come before every cut."""
    query = request.query
    selected = {source.id for source in filters.matching(view, query.filters)}
    having = [set(view.reader.matching("words", phrase_expression(phrase))) for phrase in query.phrases]
    for ids in having:
        selected &= {sources[number] for number in ids & sources.keys()}
    for word in query.excluded:
        ids = set(view.reader.matching("words", phrase_expression(word)))
        selected -= {sources[number] for number in ids & sources.keys()}
    allowed = {number for number, source in sources.items() if source in selected}
    return (allowed.intersection(set().union(*having)) if having else allowed).difference(request.without)


def _meaning(
    snapshot: Snapshot, request: PreparedQuery, live: dict[int, tuple[int, int]], allowed: set[int]
) -> dict[int, float]:
    """Return the vector scores of the POOL nearest chunks, computed as in `score`."""
    rows = snapshot.rows
    assert request.query_vec is not None
    raw = _cosines(
        rows, request.query_vec, {row for _, row in live.values() if 0 <= row < rows.count}, request.expired
    )
    cosines = {row: snapshot.cosines.score(cosine) for row, cosine in raw.items()}
    near = {number: cosines[live[number][1]] for number in allowed if live[number][1] in cosines}
    ranked = sorted((number for number in near if near[number] > 0), key=lambda chunk: (-near[chunk], chunk))
    pool = _pool(ranked, live, request.per_source)
    chunks: dict[int, list[int]] = {}
    for number, (source, _) in live.items():
        chunks.setdefault(source, []).append(number)
    found = {}
    for number in pool:
        own = chunks[live[number][0]]
        places = [own[(2 * step + 1) * len(own) // (2 * PLACES)] for step in range(PLACES)]
        known = [cosines[live[place][1]] for place in places if live[place][1] in cosines]
        mean = sum(known) / len(known) if known else near[number]
        found[number] = max(0.0, (1 - SOURCE_SHARE) * near[number] + SOURCE_SHARE * mean)
    return found


def _cosines(
    rows: Rows, query_vec: bytes, wanted: Iterable[int], expired: Callable[[], bool]
) -> dict[int, float]:
    """Return row → its cosine with the query: a product of unit vectors."""
    query = memoryview(query_vec).cast("f").tolist()
    found = {}
    with memoryview(rows.buffer) as view, view[: rows.count * rows.dim * FLOAT_BYTES].cast("f") as table:
        for count, row in enumerate(sorted(wanted)):
            if count % LOOK_EVERY == 0 and expired():
                raise DeadlineError("the search took longer than its deadline; numpy would make it faster")
            found[row] = sum(map(mul, table[row * rows.dim : (row + 1) * rows.dim], query))
    return found


def _pool(ranked: Sequence[int], live: dict[int, tuple[int, int]], per_source: int) -> list[int]:
    """Return the POOL best of *ranked*, few of a source as long as others have any: `columns.spread`."""
    taken: Counter[int] = Counter()
    most = max(per_source, OF_SOURCE)
    best: list[int] = []
    others: list[int] = []
    for number in ranked:
        taken[live[number][0]] += 1
        (best if taken[live[number][0]] <= most else others).append(number)
    return [*best[:POOL], *others][:POOL]


def _words(
    view: View, request: PreparedQuery, live: dict[int, tuple[int, int]], allowed: set[int]
) -> dict[int, float]:
    """Return scores in [0, 1) of the POOL best allowed chunks, with the tanh of `keyword_scores`."""
    lengths = view.reader.lengths()
    average = sum(lengths[number] for number in live) / max(len(live), 1)
    reachable, scores = 0.0, dict[int, float]()
    for expression in _expressions(view, request.query):
        found = view.reader.occurrences(expression)
        counts = {number: found[number] for number in found.keys() & live.keys()}
        weight = _idf(len(live), len(counts))
        reachable += weight
        for number in counts.keys() & allowed:
            norm = FTS5_K1 * (1 - FTS5_B + FTS5_B * lengths[number] / average)
            score = weight * counts[number] / (counts[number] + norm)
            scores[number] = scores.get(number, 0.0) + score
    ranked = sorted(scores, key=lambda number: (-scores[number], number))
    best = _pool(ranked, live, request.per_source)
    return {number: math.tanh(2 * scores[number] / reachable) for number in best}


def _idf(chunks: int, document_frequency: int) -> float:
    """Return a term's idf as FTS5's bm25() computes it; always above 0."""
    share = (chunks - document_frequency + 0.5) / (document_frequency + 0.5)
    return max(math.log(share), FTS5_MIN_IDF) if share > 0 else FTS5_MIN_IDF


def _expressions(view: View, query: Query) -> list[str]:
    """Return an FTS5 expression for each term of a query."""
    terms = query_terms(view.reader, query)
    return [f'"{term}" *' if is_prefix else f'"{term}"' for term, is_prefix in terms]


class NothingAlike:
    """The `Comparison` without numpy, which finds no near-duplicates."""

    def __init__(self, view: View, ids: Sequence[int], sources: Sequence[int]) -> None:
        """Ignore the candidates."""

    def keep(self, place: int) -> None:
        """Do nothing."""

    def first_like(self, other: int) -> None:
        """Return None: no candidate counts as a duplicate."""
