"""The search of a team's memory: Milvus makes lists and scores, and the functions of a local search rank.

Six calls: the document frequencies of the query's words, while its text is embedded; the two lists; the exact
scores of all candidates, by vector and by word; the texts of the best. Then the scores are fused, decayed and
ordered by `memd.search.ranking`, superseded notes follow what replaces them, near-duplicates are folded by
`memd.search.dedup`, and snippets are cut, all as at home. Other than at home: the words of a long file beyond
a chunk and the first one do not count, phrases and exclusions are tested on the candidates only, corrections
and forms of words are those that the reader's own notes know, and neighbouring chunks are not joined.

Chunks and sources are known by the numbers of their rows. For any thread.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from msgspec import structs

from memd.config import Weights
from memd.index.columns import OF_SOURCE
from memd.index.links import Supersession
from memd.index.snapshot import View
from memd.records import Location, Mode, Tokenizer
from memd.search import ranking, runs
from memd.search.called import by_titles
from memd.search.dedup import MIN_TERMS, Dedup, fingerprint, fold, is_near
from memd.search.explanation import Term, Word
from memd.search.identifiers import FEW, MEANT, NOTHING, Named, named, parts_of, share_read
from memd.search.keyword import CORRECTED_SHARE, POOL, Matched, idf, query_terms, reachable, term_of_forms
from memd.search.query import Query
from memd.search.ranking import Candidate
from memd.search.score import PreparedQuery, in_a_row, is_newest_asked, placed, raised
from memd.search.search import Answer, Hit, StepTimer, sureness
from memd.search.snippet import Line, Part, lines_of, passage, snippet, wanted, with_fence
from memd.search.spelling import corrected, spelling
from memd.search.word_forms import with_forms
from memd.team.filters import both, expression, passes
from memd.team.milvus import Milvus
from memd.team.rows import HitRow, Shown, WorkspaceRow, dimension, number
from memd.text import as_a_word, is_spaceless, prepare

CALL_S = 2.0  # of each call of a search
LIST = 2 * POOL  # asked of each list, because a source counts a few times only
MAX_TERMS = 64  # of a query, those with the highest weights: a pasted log has hundreds
COUNTED_AT_ONCE = 32  # of its terms: 1.2 MB for 1,000 workspaces
TEXTS = 30  # candidates whose texts are read at least; twice as many as hits, if more are wanted
Embed = Callable[[PreparedQuery], PreparedQuery]
Counts = dict[int, float]  # dimension of a term → its saturated count in a chunk


@dataclass(frozen=True, slots=True)
class TeamAnswer:
    """An answer, with the workspace of each of its sources."""

    answer: Answer
    homes: Mapping[int, WorkspaceRow]  # by source


class _Read(NamedTuple):
    """A candidate whose text was read."""

    shown: Shown
    home: WorkspaceRow

    @property
    def text(self) -> str:
        """The heading and the text."""
        return f"{self.shown.chunk.heading}\n{self.shown.chunk.text}"


def search(  # noqa: PLR0917 - the same of each search, then the query
    milvus: Milvus,
    view: View,
    plain: PreparedQuery,
    embed: Embed,
    tokenizer: Tokenizer,
    known: Sequence[str] = (),
) -> TeamAnswer:
    """Answer a query.

    The words of the reader's own notes, in *view*, correct and extend the query; *embed* computes its vector,
    while the store is asked. *known*: keys of passages that are left out.

    Raises:
        StoreError: the store did not answer in time, or lied; or it failed a moment ago.
        DeadlineError: the caller's deadline passed.
    """
    timer = StepTimer(plain)
    workspaces = {one.ws: one for one in milvus.known_workspaces()}
    # The store counts all words that may be searched; a correction stays if the team has only that word, and
    # so do the forms that the team has.
    near = spelling(view, plain.query, tokenizer, plain.expired).corrected
    typed, respelled = (
        with_forms(view, corrected(plain.query, terms), plain.languages)[0] for terms in ({}, near)
    )
    chunks = sum(one.chunks for one in workspaces.values())
    counting = milvus.beside.submit(_frequencies, milvus, _texts_of(view, typed, respelled), chunks)
    prepared = embed(replace(plain, query=respelled))
    frequencies = counting.result()
    kept = {
        word: term
        for word, term in near.items()
        if frequencies[term] and not any(frequencies[one] for one in view.reader.terms(prepare(word)))
    }
    forms = {
        word: tuple(filter(frequencies.get, some))
        for word, some in {**typed.forms, **respelled.forms}.items()
    }
    query = replace(corrected(plain.query, kept), forms={word: some for word, some in forms.items() if some})
    prepared = replace(prepared, query=query, corrected_vec=prepared.corrected_vec if kept else None)
    timer.lap("statistics")
    terms = _terms(view, query, frequencies, chunks)
    timer.lap("keyword")

    # Candidates, then the texts of the best that the filters let pass.
    vectors = _vectors(prepared, workspaces)
    counts: dict[int, Counts] = {}
    if is_newest := is_newest_asked(query):
        candidates = _newest(milvus, query)
    else:
        candidates, counts = _scored(milvus, prepared, terms, vectors, view)
    timer.lap("vector")
    here = _read(milvus, candidates, prepared, view, workspaces, set(known))
    sources = {one.shown.source.id: one.shown.source for one in here.values()}
    found = []
    for one in (one for one in candidates if one.id in here):
        source = here[one.id].shown.source
        found.append(one._replace(source=source.id, path=source.path))
    timer.lap("load")

    # As at home: names, order, supersession, floor, duplicates, snippets.
    has_words = any(one.tier for one in found)
    if not is_newest:
        names = _named(view, prepared, here, found, counts, terms) if vectors and has_words else NOTHING
        found = _ranked(here, found, prepared, names)
    titles = {number: (source.title, source.path) for number, source in sources.items()}
    called = by_titles(query.text, terms, found, titles.__getitem__) if has_words else {}
    texts = {one.id: here[one.id].text for one in found[: runs.FIRST]} if has_words else {}
    by_run = in_a_row(prepared, texts, lambda some: {one: texts[one] for one in some})
    supersession = Supersession.of(
        (newer, one.shown.source.id)
        for one in here.values()
        for newer in (number(one.home.ws, path) for path in one.shown.superseded_by)
        if newer in sources
    )
    found = list(placed(raised(raised(found, by_run), called), supersession)[0])
    # No floor where words alone judge, or a name.
    floor = prepared.floor if vectors or prepared.is_floor_named else 0.0
    shown = fold(
        view, [one for one in found if one.merged >= floor or one.id in called], prepared.limit,
        prepared.per_source, lambda _: True,
        compared=lambda _view, ids, _sources: _ReadTexts([here[one] for one in ids]),
    )  # fmt: skip
    knows = is_newest or any(term.document_frequency for term in terms)
    sure = sureness(view, prepared, found, shown, sources, knows=knows)
    hits = _hits(here, shown, prepared, terms)
    mode: Mode = prepared.mode if vectors else "keyword"
    answer = Answer(prepared, hits, mode, 0, sure, timings_ms=timer.laps_ms)
    timer.lap("fuse")
    return TeamAnswer(answer, {one.shown.source.id: one.home for one in here.values()})


# -- words ---------------------------------------------------------------------------------------------------


def _texts_of(view: View, *queries: Query) -> list[str]:
    """Return all terms that may be searched for some queries: as typed, corrected, and their forms."""
    found: set[str] = set()
    for query in queries:
        found.update(text for text, _ in query_terms(view.reader, query))
        found.update(query.corrected.values(), *query.forms.values())
        found.update(term for word in query.words for term in view.reader.terms(prepare(word)))
    return sorted(found)


def _frequencies(milvus: Milvus, terms: Sequence[str], chunks: int) -> Counter[str]:
    """Return in how many chunks of the team each term is."""
    found: Counter[str] = Counter()
    for start in range(0, len(terms), COUNTED_AT_ONCE):
        some = terms[start : start + COUNTED_AT_ONCE]
        lists = milvus.search(
            milvus.workspaces, [{dimension(term): 1.0} for term in some], CALL_S, limit=1_000
        )
        for term, hits in zip(some, lists, strict=True):
            found[term] = round(min(max(sum(hit.score for hit in hits), 0.0), chunks))
    return found


def _terms(view: View, query: Query, frequencies: Mapping[str, int], chunks: int) -> list[Term]:
    """Return the terms of a query with the team's frequencies; forms come last, as in `keyword.terms_of`."""
    taken = set(query.corrected.values())
    found = []
    for (text, prefix), times in sorted(query_terms(view.reader, query).items()):
        share = CORRECTED_SHARE if text in taken else 1.0
        frequency = frequencies.get(text, 0)
        found.append(Term(text, prefix, times, frequency, idf(chunks, frequency), share))
    found = sorted(found, key=lambda term: -term.weight)[:MAX_TERMS]
    for word in [term for term in found if term.text in query.forms and not term.prefix]:
        forms = query.forms[word.text]
        united = min(sum(frequencies.get(form, 0) for form in forms), chunks - word.document_frequency)
        found.append(term_of_forms(word, forms, united, chunks))
    return found


def _dimensions(term: Term) -> list[int]:
    """Return the dimensions of a term: those of its forms, or its own."""
    return [dimension(text) for text in term.forms or (term.text,)]


# -- candidates ----------------------------------------------------------------------------------------------


def _vectors(prepared: PreparedQuery, workspaces: Mapping[str, WorkspaceRow]) -> list[list[float]]:
    """Return the vectors of a query, if they are of the team's model."""
    model = next((one.model for _, one in sorted(workspaces.items()) if one.model), None)
    if prepared.mode == "keyword" or prepared.model_id != model:
        return []
    raw = (one for one in (prepared.query_vec, prepared.corrected_vec) if one is not None)
    return [np.frombuffer(one, np.float32).tolist() for one in raw]


def _newest(milvus: Milvus, query: Query) -> list[Candidate]:
    """Return the first chunks of the newest sources that the filters let pass."""
    found = sorted(milvus.firsts(expression(query), CALL_S), key=lambda one: (-one.day, one.key))[:LIST]
    plain = Candidate(0, 0, "", None, None, None, None, None, 1.0, Weights(), 1.0, 0.0)
    return [plain._replace(id=one.key, source=one.source, order=float(one.day)) for one in found]


def _scored(
    milvus: Milvus, prepared: PreparedQuery, terms: Sequence[Term], vectors: Sequence[list[float]], view: View
) -> tuple[list[Candidate], dict[int, Counts]]:
    """Return the best chunks of both lists, the best first, and the counts of the query's words in each.

    The scores of all are exact: a missing score is not that of the end of a list.
    """
    where = expression(prepared.query)
    has_words = prepared.mode != "vector" or not vectors
    has_vector = both("has_u == true", where)
    lists = milvus.search(milvus.chunks, vectors, CALL_S, limit=LIST, where=has_vector, of=HitRow)
    asked: dict[int, float] = {}
    for term in sorted(terms, key=lambda term: term.weight):  # of a word and its forms the larger counts
        asked |= dict.fromkeys(_dimensions(term) if term.weight > 0 else (), term.weight)
    if asked and has_words:
        lists += milvus.search(milvus.chunks, [asked], CALL_S, limit=LIST, where=where, of=HitRow)
    rows: dict[int, HitRow] = {}
    for hits in lists:  # at most some of each source
        of_source: Counter[int] = Counter()
        few: dict[int, HitRow] = {}
        for hit in hits:
            of_source[hit.row.source] += 1
            is_one_of_few = of_source[hit.row.source] <= max(OF_SOURCE, prepared.per_source)
            if hit.score > 0 and is_one_of_few and len(few) < POOL:
                few[hit.key] = hit.row
        rows |= few
    if not rows:
        return [], {}

    keys, meaning = list(rows), dict[int, float]()
    for hits in milvus.search(milvus.chunks, vectors, CALL_S, keys=keys, where="has_u == true"):
        for hit in hits:
            score = min(max(view.snapshot.cosines.score(hit.score), 0.0), 1.0)
            meaning[hit.key] = max(score, meaning.get(hit.key, 0.0))
    counts: dict[int, Counts] = {key: {} for key in keys}
    places = sorted({place for term in terms for place in _dimensions(term)}) if has_words else []
    lists = milvus.search(milvus.chunks, [{place: 1.0} for place in places], CALL_S, keys=keys)
    for place, hits in zip(places, lists, strict=True):
        for hit in hits:
            counts[hit.key][place] = min(max(hit.score, 0.0), 1.0)

    weights = prepared.weights or Weights()
    if prepared.weights is None and vectors and has_words:
        matched = _matched(counts.values(), terms)
        weights = ranking.weights_matched(matched.most, has_all=0 < matched.most >= matched.every)
    if vectors:
        parts, own = parts_of(view, prepared.spelled), [term for term in terms if not term.forms]
        weights = ranking.weights_read(weights, share_read(view, own, parts, prepared.unread))
    tier = ("ngram" if any(map(is_spaceless, prepared.query.pieces)) else "fts") if has_words else None
    today, found = prepared.today.toordinal(), []
    for key, row in rows.items():
        vector, keyword = meaning.get(key), keyword_score(counts[key], terms) if has_words else None
        seen = ranking.weights_seen(weights, vector=vector is not None, keyword=has_words)
        merged, decay = min(1.0, ranking.weighted(vector, keyword, seen)), 1.0
        if row.decays:
            decay = ranking.half_life_decay(today - row.decays, prepared.half_life_days, prepared.decay_floor)
        order = merged * decay * (ranking.EXPIRED_SHARE if 0 < row.expires < today else 1.0)
        found.append(
            Candidate(key, row.source, "", None, vector, None, keyword, tier, decay, seen, merged, order)
        )
    return sorted(found, key=lambda one: -one.order), counts


def keyword_score(counts: Counts, terms: Sequence[Term]) -> float:
    """Return the keyword score of a chunk with these counts: of a word and its forms the larger."""
    best: dict[str, float] = {}
    for term in terms:
        count = max(counts.get(place, 0.0) for place in _dimensions(term))
        best[term.text] = max(best.get(term.text, 0.0), term.weight * count)
    most = reachable(terms)
    return math.tanh(2 * sum(best.values()) / most) if most else 0.0


def _matched(chunks: Iterable[Counts], terms: Sequence[Term]) -> Matched:
    """Count the query's words in the candidates, as `KeywordArm.matched` does."""
    some = list(chunks)
    words = dict.fromkeys((term.text for term in terms), np.zeros(len(some), np.bool_))
    for term in terms:
        has = [any(counts.get(place) for place in _dimensions(term)) for counts in some]
        words[term.text] = words[term.text] | np.array(has, np.bool_)
    return Matched(np.arange(len(some)), words, dict.fromkeys(words, 0.0), 0.0)


def _read(  # noqa: PLR0917 - called once
    milvus: Milvus,
    candidates: Sequence[Candidate],
    prepared: PreparedQuery,
    view: View,
    workspaces: Mapping[str, WorkspaceRow],
    known: set[str],
) -> dict[int, _Read]:
    """Read the texts of the best *candidates* that may answer, by their numbers."""
    here: dict[int, _Read] = {}
    left = [one.id for one in candidates if f"{one.id:016x}" not in known]
    while left and len(here) < max(TEXTS, 2 * prepared.limit) and not prepared.expired():
        some, left = left[:TEXTS], left[TEXTS:]
        for whole in milvus.texts(some, CALL_S):
            home = workspaces.get(whole.ws)
            if home and passes(prepared.query, whole.shown, view.reader.indexed_terms):
                here[whole.key] = _Read(whole.shown, home)
    return here


# -- as at home ----------------------------------------------------------------------------------------------


def _named(  # noqa: PLR0917 - called once
    view: View,
    prepared: PreparedQuery,
    here: Mapping[int, _Read],
    found: Sequence[Candidate],
    counts: Mapping[int, Counts],
    terms: Sequence[Term],
) -> Named:
    """Return the chunks that the query names, of those that were read."""
    own = [term for term in terms if not term.forms]

    def few(word: Word, rarest: int, is_alone: bool) -> list[int]:  # noqa: FBT001 - as `named` wants it
        if not rarest or (is_alone and rarest > FEW):
            return []
        typed = as_a_word(word.text)
        having = [key for key, one in here.items() if typed.search(one.text)]
        return having if len(having) <= FEW or len({here[key].shown.source.id for key in having}) == 1 else []

    def scores(only: AbstractSet[str], keys: Sequence[int]) -> list[float]:
        some = [term for term in own if term.text.casefold() in only]
        return [keyword_score(counts[key], some) for key in keys]

    nearest = max((one.vector_score or 0.0 for one in found), default=0.0)
    return named(view, prepared.spelled, own, prepared.unread, few, scores, is_meant=nearest >= MEANT)


def _ranked(
    here: Mapping[int, _Read], found: Sequence[Candidate], prepared: PreparedQuery, names: Named
) -> list[Candidate]:
    """Return the candidates that were read in the order of their scores, with their ranks by each."""
    by_vector = ranking.ranks({one.id: one.vector_score for one in found if one.vector_score is not None})
    by_words = ranking.ranks({one.id: one.keyword_score for one in found if one.keyword_score})
    ranked = []
    for one in found:
        ranks = by_vector.get(one.id), by_words.get(one.id)
        merged = max(one.merged, names.scores.get(one.id, 0.0))
        order = one.decay * (merged if prepared.fusion == "weighted" else ranking.reciprocal_rank(ranks))
        order += len(names.words.get(one.id, ()))
        shown = here[one.id].shown
        if shown.source.expired(prepared.today) and not shown.superseded_by:
            order *= ranking.EXPIRED_SHARE
        ranked.append(one._replace(vector_rank=ranks[0], keyword_rank=ranks[1], merged=merged, order=order))
    return ranking.ordered(ranked)


class _ReadTexts:
    """`Comparison` of chunks whose texts were read."""

    def __init__(self, read: Sequence[_Read]) -> None:
        self._sources = [one.shown.source for one in read]
        self._print = cache(lambda place: fingerprint(read[place].text))
        self._kept: list[int] = []

    def keep(self, place: int) -> None:
        """Note that a candidate is shown."""
        self._kept.append(place)

    def first_like(self, other: int) -> int | None:
        """Return the best shown candidate of another source with nearly the same text."""
        return next((one for one in sorted(self._kept) if one < other and self._is_like(one, other)), None)

    def _is_like(self, place: int, other: int) -> bool:
        one, two = self._sources[place], self._sources[other]
        if one.id == two.id or (one.dated and one.day) != (two.dated and two.day):
            return False
        first = self._print(place)
        return len(first.shingles) >= MIN_TERMS and is_near(first, self._print(other))


def _hits(
    here: Mapping[int, _Read], found: Dedup, prepared: PreparedQuery, terms: Sequence[Term]
) -> list[Hit]:
    """Return the hits with their snippets; no line is shown twice, unless nothing would be left."""
    words = wanted(prepared.query, {term.text: term.idf * term.share for term in terms if not term.forms})
    shown: dict[int, set[Line]] = {}
    hits = []
    for rank, candidate in enumerate(found.kept):
        source, _, superseded_by, chunk = structs.astuple(here[candidate.id].shown)
        better = shown.setdefault(source.id, set())
        parts = [Part(rank, lines_of(chunk, without)) for without in (better, ())]
        part, whole = next((part, whole) for part in parts if (whole := passage([part])))
        better.update(part.lines)
        cut = snippet(whole.text, whole.start_line, words, start_byte=whole.start_byte)
        same = [here[one].shown for one in found.folded.get(candidate.id, ())]
        places = [
            Location(path=one.source.path, start_line=one.chunk.start_line, end_line=one.chunk.end_line)
            for one in same
        ]
        hits.append(
            Hit(
                candidate, source, chunk, (part,), whole, with_fence(chunk, (), cut), chunk.heading,
                places, superseded_by, source.expired(prepared.today),
            )
        )  # fmt: skip
    return hits
