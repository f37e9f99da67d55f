"""The search of one snapshot: score, drop what is below the floor, fold, join, cut, load texts."""

import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from memd.errors import NUMPY_MISSING, DeadlineError
from memd.index.columns import HAS_NUMPY
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import Confidence, Mode, Source, Tokenizer
from memd.search import fallback
from memd.search.dedup import Comparison, Dedup, fold
from memd.search.identifiers import reading
from memd.search.ranking import Candidate, Candidates, confidence
from memd.search.score import Judgement, PreparedQuery, judge, judge_words, lifted
from memd.search.snippet import Line, Part, Passage, Snippet, Wanted, lines_of, passage, snippet, wanted
from memd.search.spelling import NOTHING_UNKNOWN, Spelling, corrected, spelling
from memd.search.word_forms import with_forms

# A vector that counts is not what was written: words answered alone, and it is made again.
VECTORS_CORRUPT = "vectors-corrupt"
LACKING = () if HAS_NUMPY else (NUMPY_MISSING,)  # codes of what this process searches without


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk stands."""

    id: int
    path: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One place of an answer: a chunk, and the lines that it shows with that chunk's neighbours."""

    candidate: Candidate
    source: Source
    chunk: StoredChunk
    parts: tuple[Part, ...]  # the lines of the chunk, then those of its neighbours
    passage: Passage  # of all of them
    snippet: Snippet
    folded: tuple[Place, ...] = ()  # where nearly the same text stands, best first
    superseded_by: tuple[str, ...] = ()  # paths of what holds in its place, the newest first


@dataclass(slots=True)
class Answer:
    """What a query found, and how."""

    prepared: PreparedQuery
    hits: list[Hit]  # best first
    mode: Mode
    generation: int
    confidence: Confidence
    degraded: tuple[str, ...] = ()  # codes of what was missing
    # Step, of the preparation too → how long it took.
    timings_ms: dict[str, float] = field(default_factory=dict)
    judged: Judgement | None = None  # that it rests on; None without numpy


def begin(view: View, prepared: PreparedQuery, tokenizer: Tokenizer) -> tuple[Spelling, Judgement | None]:
    """Do what needs no vector, so that it can be done while the query is embedded; `search` does the rest.

    Returns:
        How words of the query are spelled, and the judgement by those words; None without numpy: then
        nothing is corrected, and `search` does all of it.

    Raises:
        DeadlineError: the caller's deadline passed.
    """
    if not HAS_NUMPY:
        return NOTHING_UNKNOWN, None
    found = spelling(view, prepared.query, tokenizer, prepared.expired)
    timer = _Timer(prepared)
    right = corrected(prepared.query, found.corrected)
    query, has_forms = with_forms(view, right, prepared.languages)
    found = replace(
        found,
        forms=query.forms,
        language=query.language,
        is_complete=found.is_complete and has_forms,
    )
    words = judge_words(view, replace(prepared, query=query))
    timer.lap("keyword")
    return found, replace(words, words_ms=timer.laps_ms["keyword"])


def search(view: View, prepared: PreparedQuery, words: Judgement | None = None) -> Answer:
    """Return the best chunks of one moment; *words* is what `begin` returned of the same query.

    Raises:
        DeadlineError: the caller's deadline passed between two steps.
    """
    if not HAS_NUMPY:
        return _without_numpy(view, prepared)
    timer = _Timer(prepared, words)
    judged = judge(view, prepared, timer.lap, words)
    terms = judged.keyword.words if judged.keyword else ()
    looked_for = wanted(prepared.query, {term.text: term.idf * term.share for term in terms})
    has_vectors = judged.vector is not None
    answer = _answer(
        view, prepared, judged.candidates, timer, looked_for, has_vectors=has_vectors, knows=judged.knows
    )
    answer.judged = judged
    return answer


def _without_numpy(view: View, prepared: PreparedQuery) -> Answer:
    timer = _Timer(prepared)
    found, has_vectors = fallback.candidates(view, prepared)
    candidates = lifted(found, view.snapshot).candidates
    timer.lap("keyword")  # and vectors: they are read together
    knows = fallback.knows_a_word(view, prepared.query)
    looked_for = wanted(prepared.query, {})
    return _answer(
        view, prepared, candidates, timer, looked_for,
        has_vectors=has_vectors, knows=knows, compared=fallback.NothingAlike,
    )  # fmt: skip


def _answer(
    view: View,
    prepared: PreparedQuery,
    candidates: Candidates,
    timer: "_Timer",
    looked_for: Wanted,
    *,
    has_vectors: bool,
    knows: bool,
    compared: type[Comparison] | None = None,
) -> Answer:
    """Drop what is below the floor, fold, cut, load."""
    kept = candidates.floor(prepared.min_score)
    timer.lap("fuse")
    alive = functools.cache(prepared.alive)
    found = fold(view, kept, prepared.limit, prepared.per_source, alive, compared=compared)
    hits = _load(view, found, looked_for)
    timer.lap("load")
    mode: Mode = prepared.mode if has_vectors else "keyword"
    sure = sureness(prepared, candidates, alive, knows=knows)
    return Answer(prepared, hits, mode, view.snapshot.generation, sure, degraded(view), timer.laps_ms)


def sureness(
    prepared: PreparedQuery, candidates: Candidates, alive: Callable[[str], bool], *, knows: bool
) -> Confidence:
    """Return how good the best match of all *candidates* is; *knows*: some chunk has a word of the query."""
    # How well the model reads the query counts only where no chunk has a word of it.
    reads = "whole" if knows else reading(prepared.query.text, prepared.spelled)
    return confidence(candidates, alive, knows=knows, reads=reads)


def degraded(view: View) -> tuple[str, ...]:
    """Return the codes of what a query of a view could not use."""
    return (VECTORS_CORRUPT, *LACKING) if view.damaged else LACKING


def why_off(prepared: PreparedQuery, mode: str, missing: tuple[str, ...] = ()) -> str:
    """Return why the vector arm did not run in an answer of *mode*, or was not used; "" where it was.

    *missing*: codes of what search found missing by itself.
    """
    if missing:
        return missing[0]
    if prepared.query_vec is None:
        return prepared.off
    return "other-model" if mode == "keyword" else ""


def _load(view: View, found: Dedup, looked_for: Wanted) -> list[Hit]:
    """Read what the answer shows: of what is folded only where it stands."""
    beside = {one.id: found.beside(one.id) for one in found.kept}
    chunks = view.shown([number for kept in beside for number in (kept, *beside[kept])])
    places = _places(view, [one for many in found.folded.values() for one in many])
    shown: dict[int, set[Line]] = {}  # by source: the lines of better hits
    hits = []
    for candidate in found.kept:
        source, better = candidate.source, shown.setdefault(candidate.source, set())
        chunk, *others = (chunks[number] for number in (candidate.id, *beside[candidate.id]))
        others = [one for one in others if one.entry == chunk.entry]  # of another daily entry: other words
        parts = [Part(found.ranks[one.id], lines_of(one, better)) for one in (chunk, *others)]
        passages = [passage([part]) for part in parts]
        if passages[0] is None:
            # A chunk has a line that the one in front and the one behind lack, unless it is half of one that
            # the model could not read: then it may be shown twice rather than not at all.
            parts[0] = Part(parts[0].rank, lines_of(chunk))
            passages[0] = passage(parts[:1])
        whole = passages[0] if len(parts) == 1 else passage(parts)
        assert whole is not None
        same = found.folded.get(chunk.id)
        hits.append(
            Hit(
                candidate,
                view.source(source),
                chunk,
                tuple(parts),
                whole,
                _snippet(filter(None, passages), looked_for),
                _joined([places[one] for one in same]) if same else (),
                view.snapshot.superseded_by(source),
            )
        )
        better.update(*(part.lines for part in parts))
    return hits


def _snippet(shown: Iterable[Passage], looked_for: Wanted) -> Snippet:
    """Return the snippet of the passage that says most of the query, the first of equal ones."""
    found = [snippet(one.text, one.start_line, looked_for, start_byte=one.start_byte) for one in shown]
    return max(found, key=lambda one: one.weight)


def _joined(places: list[Place]) -> tuple[Place, ...]:
    """Return places, best first; chunks that follow each other in a source are one."""
    ranks = {place.id: rank for rank, place in enumerate(places)}
    runs: list[list[Place]] = []
    for place in sorted(places, key=lambda one: one.id):
        before = runs[-1][-1] if runs else None
        if before and (before.path, before.id + 1) == (place.path, place.id):
            runs[-1].append(place)
        else:
            runs.append([place])
    runs.sort(key=lambda run: min(ranks[one.id] for one in run))
    return tuple(Place(run[0].id, run[0].path, run[0].start_line, run[-1].end_line) for run in runs)


def _places(view: View, ids: list[int]) -> dict[int, Place]:
    found = view.lines(ids) if ids else {}
    return {
        number: Place(number, view.snapshot.sources[source].path, first, last)
        for number, (source, first, last) in found.items()
    }


class _Timer:
    """Laps in milliseconds; between two laps the deadline is looked at."""

    def __init__(self, prepared: PreparedQuery, words: Judgement | None = None) -> None:
        self.laps_ms = dict(prepared.timings_ms)
        if words is not None:
            self.laps_ms["keyword"] = words.words_ms
        self._expired = prepared.expired
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps_ms[name] = round((now - self._last) * 1000, 3)
        self._last = now
        if self._expired():
            raise DeadlineError(f"the search took longer than its deadline (in step {name!r}); ask for less")
