"""The search of a team's memory: Milvus makes lists and scores, and the functions of a local search rank.

Six calls: the document frequencies of the query's words, while its text is embedded; the two lists; the exact
scores of all candidates, by vector and by word; the texts of the best. Then the scores are fused, decayed and
ordered by `memd.search.ranking`, superseded notes follow what replaces them, near-duplicates are folded by
`memd.search.dedup`, and snippets are cut, all as at home. Other than at home: the words of a long file beyond
a chunk and the first one do not count, phrases and exclusions are tested on the candidates only, corrections
and forms of words are those that the reader's own notes know, and neighbouring chunks are not joined.

For any thread.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memd.config import Weights
from memd.errors import DeadlineError
from memd.index.columns import OF_SOURCE
from memd.index.links import Supersession
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import Mode, Source, Tokenizer
from memd.search import ranking, runs
from memd.search.called import by_titles
from memd.search.dedup import MIN_TERMS, Dedup, fingerprint, fold, is_near
from memd.search.explanation import Term, Word
from memd.search.identifiers import FEW, MEANT, SYLLABLES, parts_of, share_read, with_names
from memd.search.keyword import CORRECTED_SHARE, POOL, Matched, idf, query_terms, reachable, term_of_forms
from memd.search.query import Query
from memd.search.ranking import Candidate
from memd.search.score import NO_WEIGHTS, PreparedQuery, in_a_row, is_newest_asked, placed, raised
from memd.search.search import Answer, Hit, Place, StepTimer, sureness
from memd.search.snippet import Line, Part, lines_of, passage, snippet, wanted, with_fence
from memd.search.spelling import corrected, spelling
from memd.search.word_forms import with_forms
from memd.team.filters import expression, passes
from memd.team.milvus import ListHit, Milvus
from memd.team.rows import HitRow, WorkspaceRow, as_frequency, as_struct, chunk_of, dimension, source_of
from memd.text import is_spaceless, prepare

CALL_S = 2.0  # of each call of a search
LIST = 2 * POOL  # asked of each list, because a source counts a few times only
MAX_TERMS = 64  # of a query, those with the highest weights: a pasted log has hundreds
COUNTED_AT_ONCE = 32  # of its terms: 1.2 MB for 1,000 workspaces
TEXTS = 30  # candidates whose texts are read at least; twice as many as hits, if more are wanted
Embed = Callable[[PreparedQuery], PreparedQuery]


@dataclass(frozen=True, slots=True)
class TeamAnswer:
    """An answer, with the workspace of each of its sources."""

    answer: Answer
    homes: Mapping[int, WorkspaceRow]  # by the number of a source in this answer
    keys: Mapping[int, str]  # by the number of a chunk: what a client names to get it no more


@dataclass(slots=True)
class _Scored:
    """A candidate."""

    row: HitRow
    vector: float | None = None
    words: dict[int, float] = field(default_factory=dict)  # by dimension
    keyword: float | None = None
    weights: Weights = NO_WEIGHTS
    merged: float = 0.0
    decay: float = 1.0


def search(  # noqa: PLR0917 - the same of each search, then the query
    milvus: Milvus,
    workspaces: Mapping[str, WorkspaceRow],
    view: View,
    plain: PreparedQuery,
    embed: Embed,
    tokenizer: Tokenizer,
    beside: ThreadPoolExecutor,
    known: Sequence[str] = (),
) -> TeamAnswer:
    """Answer a query.

    The words of the reader's own notes, in *view*, correct and extend the query; *embed* computes its vector,
    while the store is asked in the threads *beside*. *known*: keys of passages that are left out.

    Raises:
        StoreError: the store did not answer in time, or lied.
        DeadlineError: the caller's deadline passed.
    """
    timer = StepTimer(plain)
    # Words: the store is asked about those that may be searched, with corrections and without.
    near = spelling(view, plain.query, tokenizer, plain.expired)
    respelled, _ = with_forms(view, corrected(plain.query, near.corrected), plain.languages)
    typed, _ = with_forms(view, plain.query, plain.languages)
    asked = sorted({*_all_terms(view, respelled), *_all_terms(view, typed)})
    count = sum(one.chunks for one in workspaces.values())
    counting = beside.submit(_frequencies, milvus, asked, count)
    prepared = embed(replace(plain, query=respelled))
    frequencies = counting.result()
    kept = {
        word: term
        for word, term in near.corrected.items()
        if frequencies[term] and not any(frequencies[one] for one in view.reader.terms(prepare(word)))
    }
    if kept != near.corrected:
        respelled, _ = with_forms(view, corrected(plain.query, kept), plain.languages)
        prepared = replace(prepared, corrected_vec=prepared.corrected_vec if kept else None)
    # Of the forms of its words those that the team has.
    forms = {word: tuple(filter(frequencies.get, its)) for word, its in respelled.forms.items()}
    query = replace(respelled, forms={word: its for word, its in forms.items() if its})
    prepared = replace(prepared, query=query)
    timer.lap("statistics")
    terms = _terms(view, query, frequencies, count)
    own = [term for term in terms if not term.forms]
    timer.lap("keyword")

    # Candidates: the best of two lists, with exact scores by both.
    vectors: list[list[float]] = []
    if is_newest_asked(query):  # the first chunks of the newest sources that the filters let pass
        rows = sorted(milvus.firsts(expression(query), CALL_S), key=lambda one: (-one.day, one.key))
        candidates = {one.key: _Scored(HitRow(one.source, 0, 0), keyword=1.0) for one in rows[:LIST]}
        timer.lap("lists")
    else:
        vectors = _vectors(milvus, prepared, workspaces)
        candidates = _candidates(milvus, prepared, terms, vectors)
        timer.lap("lists")
        if candidates:
            _score(milvus, candidates, terms, vectors, view)
    timer.lap("vector")

    # The texts of the best, of those that the filters let pass.
    has_words = prepared.mode != "vector" or not vectors
    parts = parts_of(view, prepared.spelled)
    weights = prepared.weights or Weights()
    if prepared.weights is None and vectors and has_words:
        matched = _matched(candidates, terms)
        weights = ranking.weights_matched(matched.most, has_all=0 < matched.most >= matched.every)
    weights = ranking.weights_read(weights, share_read(view, own, parts, prepared.unread) if vectors else 1.0)
    for one in candidates.values():
        one.weights = ranking.weights_seen(weights, vector=one.vector is not None, keyword=has_words)
        one.merged = min(1.0, ranking.weighted(one.vector, one.keyword, one.weights))
        if one.row.decays:
            age = prepared.today.toordinal() - one.row.decays
            one.decay = ranking.half_life_decay(age, prepared.half_life_days, prepared.decay_floor)
    here = _read(milvus, candidates, prepared, view, workspaces, set(known))
    sources = {one.source.id: one.source for one in here.values()}
    timer.lap("load")

    # As at home: names, order, supersession, floor, duplicates, snippets.
    named = _named(here, parts, terms) if vectors and has_words else {}
    by_score = _ranked(here, prepared, named, has_words=has_words)
    names = {number: (source.title, source.path) for number, source in sources.items()}
    called = by_titles(query.text, terms, by_score, names.__getitem__) if has_words else {}
    texts = {one.id: here[one.id].text for one in by_score[: runs.FIRST]} if has_words else {}
    by_run = in_a_row(prepared, texts, lambda some: {number: texts[number] for number in some})
    by_score = raised(raised(by_score, by_run), called)
    at = {(one.home.ws, one.source.path): one.source.id for one in here.values()}
    supersession = Supersession.of(
        (at[one.home.ws, newer], one.source.id)
        for one in here.values()
        for newer in one.superseded_by
        if (one.home.ws, newer) in at
    )
    ranked = placed(by_score, supersession)[0]
    # As at home: no floor where words alone judge, or a name.
    floor = prepared.floor if vectors or prepared.is_floor_named else 0.0
    found = fold(
        view, [one for one in ranked if one.merged >= floor or one.id in called], prepared.limit,
        prepared.per_source, lambda _: True,
        compared=lambda _view, ids, _sources: _ReadTexts([here[number] for number in ids]),
    )  # fmt: skip
    knows = any(one.scored.keyword for one in here.values()) or any(t.document_frequency for t in terms)
    sure = sureness(view, prepared, ranked, found, sources, knows=knows)
    hits = _hits(here, found, prepared, {term.text: term.idf * term.share for term in own})
    mode: Mode = prepared.mode if vectors else "keyword"
    answer = Answer(prepared, hits, mode, 0, sure, timings_ms=timer.laps_ms)
    timer.lap("fuse")
    homes = {one.source.id: one.home for one in here.values()}
    return TeamAnswer(answer, homes, {number: one.key for number, one in here.items()})


# -- words ---------------------------------------------------------------------------------------------------


def _all_terms(view: View, query: Query) -> set[str]:
    return (
        {text for text, _ in query_terms(view.reader, query)}
        | {form for forms in query.forms.values() for form in forms}
        | set(query.corrected.values())
        | {term for word in query.words for term in view.reader.terms(prepare(word))}
    )


def _frequencies(milvus: Milvus, terms: Sequence[str], chunks: int) -> Counter[str]:
    """Return in how many chunks of the team each term is."""
    found: Counter[str] = Counter()
    for start in range(0, len(terms), COUNTED_AT_ONCE):
        some = terms[start : start + COUNTED_AT_ONCE]
        lists = milvus.search(
            milvus.workspaces, [{dimension(term): 1.0} for term in some], CALL_S, limit=1_000
        )
        for term, hits in zip(some, lists, strict=True):
            found[term] = min(sum(as_frequency(hit.score, chunks) for hit in hits), chunks)
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


def _texts(term: Term) -> tuple[str, ...]:
    """Return what a term stands for: its forms, or itself."""
    return term.forms or (term.text,)


# -- candidates ----------------------------------------------------------------------------------------------


def _vectors(
    milvus: Milvus, prepared: PreparedQuery, workspaces: Mapping[str, WorkspaceRow]
) -> list[list[float]]:
    """Return the vectors of a query, if they are of the team's model."""
    model = next((one.model for _, one in sorted(workspaces.items()) if one.model), "")
    if prepared.mode == "keyword" or prepared.model_id != model or not model:
        return []
    raw = (one for one in (prepared.query_vec, prepared.corrected_vec) if one is not None)
    found = [np.frombuffer(one, np.float32).tolist() for one in raw]
    return [one for one in found if len(one) == milvus.dimensions]


def _candidates(
    milvus: Milvus, prepared: PreparedQuery, terms: Sequence[Term], vectors: Sequence[list[float]]
) -> dict[int, _Scored]:
    """Return the best chunks of each list by key, at most some of each source."""
    where, fields = expression(prepared.query), HitRow.__struct_fields__
    lists: list[list[ListHit]] = []
    if vectors:
        has_vector = f"has_u == true and {where}" if where else "has_u == true"
        lists += milvus.search(milvus.chunks, vectors, CALL_S, limit=LIST, where=has_vector, fields=fields)
    asked: dict[int, float] = {}
    for term in sorted(terms, key=lambda term: term.weight):  # of a word and its forms the larger counts
        asked |= dict.fromkeys(map(dimension, _texts(term) if term.weight > 0 else ()), term.weight)
    if asked and not (prepared.mode == "vector" and vectors):
        lists += milvus.search(milvus.chunks, [asked], CALL_S, limit=LIST, where=where, fields=fields)
    found: dict[int, _Scored] = {}
    for hits in lists:
        of_source: Counter[int] = Counter()
        few: dict[int, _Scored] = {}
        for hit in hits:
            row = as_struct(hit.row, HitRow)
            of_source[row.source] += 1
            is_one_of_few = of_source[row.source] <= max(OF_SOURCE, prepared.per_source)
            if hit.score > 0 and is_one_of_few and len(few) < POOL:
                few[hit.key] = _Scored(row)
        found |= few
    return found


def _score(
    milvus: Milvus,
    candidates: dict[int, _Scored],
    terms: Sequence[Term],
    vectors: Sequence[list[float]],
    view: View,
) -> None:
    """Fill in the exact scores of all candidates: those of one list are not in the other."""
    keys = list(candidates)
    for hits in milvus.search(milvus.chunks, vectors, CALL_S, keys=keys, where="has_u == true"):
        for hit in hits:
            score = min(max(view.snapshot.cosines.score(hit.score), 0.0), 1.0)
            candidates[hit.key].vector = max(score, candidates[hit.key].vector or 0.0)
    places = sorted({dimension(text) for term in terms for text in _texts(term)})
    lists = milvus.search(milvus.chunks, [{place: 1.0} for place in places], CALL_S, keys=keys)
    for place, hits in zip(places, lists, strict=True):
        for hit in hits:
            candidates[hit.key].words[place] = min(max(hit.score, 0.0), 1.0)
    for one in candidates.values():
        one.keyword = keyword_score(one.words, terms)


def keyword_score(words: Mapping[int, float], terms: Sequence[Term]) -> float:
    """Return the keyword score of a chunk with these saturated counts: of a word and its forms the larger."""
    best: dict[str, float] = {}
    for term in terms:
        count = max([words.get(dimension(text), 0.0) for text in _texts(term)], default=0.0)
        best[term.text] = max(best.get(term.text, 0.0), term.weight * count)
    most = reachable(terms)
    return math.tanh(2 * sum(best.values()) / most) if most else 0.0


def _matched(candidates: Mapping[int, _Scored], terms: Sequence[Term]) -> Matched:
    """Count the query's words in the candidates, as `KeywordArm.matched` does."""
    words: dict[str, NDArray[np.bool_]] = {}
    for term in terms:
        each = [any(one.words.get(dimension(text)) for text in _texts(term)) for one in candidates.values()]
        has = np.array(each, np.bool_)
        words[term.text] = words.get(term.text, has) | has
    return Matched(np.arange(len(candidates)), words, dict.fromkeys(words, 0.0), 0.0)


# -- as at home ----------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A candidate whose text was read."""

    scored: _Scored
    key: str
    chunk: StoredChunk
    source: Source
    home: WorkspaceRow
    superseded_by: tuple[str, ...]

    @property
    def text(self) -> str:
        """The heading and the text."""
        return f"{self.chunk.heading}\n{self.chunk.text}"


def _read(  # noqa: PLR0917 - called once
    milvus: Milvus,
    candidates: dict[int, _Scored],
    prepared: PreparedQuery,
    view: View,
    workspaces: Mapping[str, WorkspaceRow],
    known: set[str],
) -> dict[int, _Read]:
    """Read the texts of the best candidates that may answer, under numbers of this answer.

    These are 2, 4, …, so that no two chunks are neighbours.
    """
    today = prepared.today.toordinal()

    def order(key: int) -> float:
        one = candidates[key]
        is_over = 0 < one.row.expires < today
        return -one.merged * one.decay * (ranking.EXPIRED_SHARE if is_over else 1.0)

    here: dict[int, _Read] = {}
    numbers: dict[tuple[str, str], int] = {}  # (workspace, path) → source
    left = sorted(candidates, key=order)
    while left and len(here) < max(TEXTS, 2 * prepared.limit):
        some, left = left[:TEXTS], left[TEXTS:]
        if prepared.expired():
            raise DeadlineError("the search took longer than its deadline (in step 'load'); ask for less")
        for whole in milvus.texts(some, CALL_S):
            shown, key = whole.parsed(), f"{whole.key:016x}"
            source = source_of(whole, shown, numbers.setdefault((whole.ws, shown.path), len(numbers) + 1))
            home = workspaces.get(whole.ws)
            if home and key not in known and passes(prepared.query, source, shown, view.reader.indexed_terms):
                chunk = chunk_of(shown, 2 * (len(here) + 1), source.id)
                here[chunk.id] = _Read(candidates[whole.key], key, chunk, source, home, shown.superseded_by)
    return here


def _ranked(
    here: Mapping[int, _Read], prepared: PreparedQuery, named: Mapping[int, tuple[int, float]], *,
    has_words: bool,
) -> list[Candidate]:  # fmt: skip
    scored = [(number, one.scored.vector, one.scored.keyword) for number, one in here.items()]
    by_vector = ranking.ranks({number: score for number, score, _ in scored if score is not None})
    by_words = ranking.ranks({number: score for number, _, score in scored if has_words and score})
    tier = "ngram" if any(map(is_spaceless, prepared.query.pieces)) else "fts"
    is_newest = is_newest_asked(prepared.query)
    found = []
    for number, (one, _, _, source, _, superseded_by) in here.items():
        count, score = named.get(number, (0, 0.0))
        merged = 1.0 if is_newest else max(one.merged, score)
        both = by_vector.get(number), by_words.get(number)
        order = merged if prepared.fusion == "weighted" else ranking.reciprocal_rank(both)
        order = one.decay * order + count
        if source.expired(prepared.today) and not superseded_by:
            order *= ranking.EXPIRED_SHARE
        found.append(
            Candidate(
                number, source.id, source.path, both[0], one.vector, both[1],
                one.keyword if has_words else None, tier if has_words else None, one.decay, one.weights,
                merged, float(source.day.toordinal()) if is_newest else order,
            )
        )  # fmt: skip
    return ranking.ordered(found)


def _named(
    here: Mapping[int, _Read], parts: Mapping[Word, frozenset[str]], terms: Sequence[Term]
) -> dict[int, tuple[int, float]]:
    """Return the chunks that the query names, as `memd.search.identifiers`: number of words, their score."""
    known = {term.text.casefold(): term for term in terms if term.document_frequency and not term.forms}
    is_meant = max((one.scored.vector or 0.0 for one in here.values()), default=0.0) >= MEANT
    having: dict[int, list[Word]] = {}
    for word, its in parts.items():
        if is_meant and word.is_read and not word.is_name and word.pieces <= SYLLABLES and len(its) == 1:
            continue
        rarest = min((known[part].document_frequency for part in its if part in known), default=0)
        if not rarest or (len(its) == 1 and rarest > FEW):
            continue
        typed = re.compile(rf"(?<!\w){re.escape(word.text)}(?!\w)", re.IGNORECASE)
        chunks = [number for number, one in here.items() if typed.search(one.text)]
        if len(chunks) <= FEW or len({here[number].source.id for number in chunks}) == 1:
            for number in chunks:
                having.setdefault(number, []).append(word)
    found = {}
    for number, words in with_names(having, parts, known).items():
        naming = set().union(*(parts[word] for word in words))
        only = [term for term in terms if term.text.casefold() in naming and not term.forms]
        found[number] = (len(words), keyword_score(here[number].scored.words, only))
    return found


class _ReadTexts:
    """`Comparison` of chunks whose texts were read."""

    def __init__(self, read: Sequence[_Read]) -> None:
        self._read = read
        self._kept: list[int] = []
        self._print = cache(lambda place: fingerprint(read[place].text))

    def keep(self, place: int) -> None:
        """Note that a candidate is shown."""
        self._kept.append(place)

    def first_like(self, other: int) -> int | None:
        """Return the best shown candidate of another source with nearly the same text."""
        return next((one for one in sorted(self._kept) if one < other and self._is_like(one, other)), None)

    def _is_like(self, place: int, other: int) -> bool:
        one, two = self._read[place].source, self._read[other].source
        days = [source.day if source.dated else None for source in (one, two)]
        if one.id == two.id or days[0] != days[1]:
            return False
        first = self._print(place)
        return len(first.shingles) >= MIN_TERMS and is_near(first, self._print(other))


def _hits(
    here: Mapping[int, _Read], found: Dedup, prepared: PreparedQuery, weights: Mapping[str, float]
) -> list[Hit]:
    """Return the hits with their snippets; no line is shown twice. *weights*: of the query's words."""
    words = wanted(prepared.query, weights)
    shown: dict[int, set[Line]] = {}
    hits = []
    for rank, candidate in enumerate(found.kept):
        _, _, chunk, source, _, superseded_by = here[candidate.id]
        better = shown.setdefault(source.id, set())
        part = Part(rank, lines_of(chunk, better))
        if passage([part]) is None:
            part = Part(rank, lines_of(chunk))
        if (whole := passage([part])) is None:  # a chunk of blank lines; memd makes none
            continue
        better.update(part.lines)
        cut = snippet(whole.text, whole.start_line, words, start_byte=whole.start_byte)
        same = [here[number] for number in found.folded.get(candidate.id, ())]
        places = [
            Place(one.chunk.id, one.source.path, one.chunk.start_line, one.chunk.end_line) for one in same
        ]
        hits.append(
            Hit(
                candidate, source, chunk, (part,), whole, with_fence(chunk, (), cut), chunk.heading,
                tuple(places), superseded_by, source.expired(prepared.today),
            )
        )  # fmt: skip
    return hits
