"""The search of one snapshot: score, apply the floor, fold duplicates, join neighbours, cut, load texts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from msgspec import structs

from memd.errors import NUMPY_MISSING, DeadlineError
from memd.index.columns import HAS_NUMPY
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import (
    SHIPPED_COSINES,
    Confidence,
    CosineScale,
    LaterStatement,
    Location,
    Mode,
    Source,
    Tokenizer,
)
from memd.search import fallback
from memd.search.called import line_called, names_of, words_of
from memd.search.confidence import Sureness, confidence, led, of_hit
from memd.search.dedup import Comparison, Dedup, Likeness, fold
from memd.search.filters import unmatched
from memd.search.identifiers import reading
from memd.search.keyword import with_held_phrases, with_words_as_written
from memd.search.later import later_statements
from memd.search.ranking import Candidate
from memd.search.runs import FIRST
from memd.search.score import (
    Judgement,
    PreparedQuery,
    days_asked,
    days_named,
    judge,
    judge_words,
    lifted,
    raised,
    said_by_assistants,
    source_days,
)
from memd.search.snippet import (
    CODE_CHUNKS,
    Line,
    Part,
    Passage,
    Snippet,
    Wanted,
    heading_at,
    in_section,
    lines_of,
    passage,
    snippet,
    wanted,
    with_fence,
)
from memd.search.spelling import corrected, spelling
from memd.search.word_forms import with_forms

# A vector that affects the result has a wrong checksum: only words were used, and it is computed again.
VECTORS_CORRUPT = "vectors-corrupt"
VOCABULARY_LOADING = "vocabulary-loading"  # until it is read, words have no corrections or forms
LACKING = () if HAS_NUMPY else (NUMPY_MISSING,)  # codes of features that this process lacks


@dataclass(slots=True)
class Hit:
    """One hit of an answer: a chunk, and the lines shown of it and its neighbours."""

    candidate: Candidate
    source: Source
    chunk: StoredChunk
    parts: tuple[Part, ...]  # the lines of the chunk, then the lines of its neighbours
    passage: Passage  # of all parts
    snippet: Snippet
    heading: str  # the headings above the line that the snippet names
    folded: Sequence[Location] = ()  # locations of near-duplicates, best first
    superseded_by: tuple[str, ...] = ()  # paths of the sources that replace it, newest first
    expired: date | None = None  # the last day on which its source held, if that is past
    entries: tuple[str, ...] = ()  # of an archived conversation: see `View.entries_from`
    later: LaterStatement | None = None  # where a later note says that it has changed


@dataclass(slots=True)
class Answer:
    """The hits of a query, and how they were found."""

    prepared: PreparedQuery
    hits: list[Hit]  # best first
    mode: Mode
    generation: int
    sure: Sureness
    degraded: tuple[str, ...] = ()  # codes of what was unavailable
    read: float = 1.0  # share of the query that the model reads
    # Step, including those of the preparation → duration.
    timings_ms: dict[str, float] = field(default_factory=dict)
    judged: Judgement | None = None  # the scores behind the hits; None without numpy
    cosines: CosineScale = SHIPPED_COSINES  # of the model
    unmatched: Sequence[str] = ()  # without hits: the filters that no source meets

    @property
    def confidence(self) -> Confidence:
        """How good the best match is."""
        return self.sure.confidence

    def said_of(self, hit: Hit) -> Confidence:
        """Return the confidence of one hit."""
        if hit.candidate.id == self.sure.first:
            return "strong"
        return of_hit(hit.candidate, self.confidence, self.cosines)


def begin(view: View, plain: PreparedQuery, tokenizer: Tokenizer) -> tuple[PreparedQuery, Judgement | None]:
    """Run the steps that need no vector; `search` runs the rest.

    Returns:
        The query with the corrections and forms of its words, and its judgement by words; without numpy None,
        and the query unchanged: then `search` runs all steps.

    Raises:
        DeadlineError: the caller's deadline passed.
    """
    plain = replace(plain, query=with_words_as_written(view, with_held_phrases(view, plain.query)))
    if not HAS_NUMPY:
        return plain, None
    found = spelling(view, plain.query, tokenizer, plain.expired)
    timer = StepTimer(plain)
    query, has_forms = with_forms(view, corrected(plain.query, found.corrected), plain.languages)
    took_ms = {"spelling": found.took_ms} if found.took_ms else {}
    prepared = replace(
        plain,
        query=query,
        degraded=() if found.is_complete and has_forms else (VOCABULARY_LOADING,),
        timings_ms={**plain.timings_ms, **took_ms},
    )
    words = judge_words(view, prepared)
    timer.lap("keyword")
    return prepared, replace(words, words_ms=timer.laps_ms["keyword"])


def search(view: View, prepared: PreparedQuery, words: Judgement | None = None) -> Answer:
    """Return the best chunks of one moment; *words* is the result of `begin` for the same query.

    Raises:
        DeadlineError: the caller's deadline passed between two steps.
    """
    timer = StepTimer(prepared, words)
    judged: Judgement | None = None
    weights: dict[str, float] = {}
    compared: type[Comparison] = Likeness
    if HAS_NUMPY:
        judged = judge(view, prepared, timer.lap, words)
        candidates, knows, has_vectors = judged.candidates, judged.knows, judged.vector is not None
        if judged.keyword is not None:
            weights = {term.text: term.idf * term.share for term in judged.keyword.words}
    else:
        compared = fallback.NothingAlike
        found, has_vectors = fallback.candidates(view, prepared)
        by_day = days_named(view, prepared, found, days_asked(prepared))
        for more in (by_day, said_by_assistants(view, found)):
            if more:
                found = raised(found, more)
        candidates = lifted(found, view.snapshot)[0]
        timer.lap("keyword")  # includes vectors, which are read in the same step
        knows = fallback.knows_a_word(view, prepared.query)

    # Apply the floor, fold duplicates, join neighbours, and cut to the limit; only then load texts.
    floor = prepared.floor
    kept = judged.good_enough(prepared) if judged else [one for one in candidates if one.merged >= floor]
    timer.lap("fuse")
    prepared.expect([one.path for one in kept[: 2 * prepared.limit]])
    shown = fold(view, kept, prepared.limit, prepared.per_source, prepared.alive, compared=compared)
    called = judged.called if judged else {}
    headed = {number: name.name for number, name in called.items() if name.how == "heading"}
    hits = _load(view, shown, prepared, wanted(prepared.query, weights), headed)
    if judged:
        shown_first = [hit.candidate for hit in hits]
        compared_ones = [*candidates[:FIRST], *shown_first]
        later = later_statements(view, shown_first, candidates, lambda: source_days(view, compared_ones))
        for hit in hits:
            hit.later = later[hit.candidate.id][1] if hit.candidate.id in later else None
    timer.lap("load")

    return Answer(
        prepared,
        hits,
        mode=prepared.mode if has_vectors else "keyword",
        generation=view.snapshot.generation,
        sure=sureness(view, prepared, candidates, shown, view.snapshot.sources, knows=knows),
        degraded=degraded(view),
        timings_ms=timer.laps_ms,
        judged=judged,
        read=judged.named.read if judged else 1.0,
        cosines=view.snapshot.cosines,
        unmatched=() if hits else unmatched(view, prepared.query.filters),
    )


def sureness(
    view: View,
    prepared: PreparedQuery,
    candidates: Sequence[Candidate],
    found: Dedup,
    sources: Mapping[int, Source],
    *,
    knows: bool,
) -> Sureness:
    """Return how sure an answer is.

    *found*: its hits; *sources*: of the candidates; *knows*: some chunk has a word of the query.
    """
    # How well the model reads the query matters only if no chunk has a word of it.
    reads = "whole" if knows else reading(prepared.query.text, prepared.spelled)
    cosines = view.snapshot.cosines
    plain = confidence(candidates, prepared.alive, knows=knows, reads=reads, cosines=cosines)
    asked = words_of(prepared.query.text)

    def is_in_title(one: Candidate) -> bool:
        source = sources[one.source]
        return len(asked) == 1 and asked[0] in names_of(source.title, source.path).title

    alike = found.folded.get(found.kept[0].id, ()) if found.kept else ()
    return led(plain, candidates, prepared.alive, alike, cosines, is_in_title=is_in_title)


def degraded(view: View) -> tuple[str, ...]:
    """Return the codes of what a query of *view* could not use."""
    return (VECTORS_CORRUPT, *LACKING) if view.damaged else LACKING


def why_off(prepared: PreparedQuery, mode: str, missing: tuple[str, ...] = ()) -> str:
    """Return why the vector arm did not run or was not used in an answer of *mode*; "" if it was used.

    *missing*: codes of problems that the search itself found.
    """
    if missing:
        return missing[0]
    if prepared.query_vec is None:
        return prepared.off
    return "other-model" if mode == "keyword" else ""


def _load(
    view: View, found: Dedup, prepared: PreparedQuery, wanted_words: Wanted, headed: Mapping[int, str]
) -> list[Hit]:
    """Load the shown texts, and the locations of folded chunks; *headed*: chunk → how the query calls it."""
    beside = {candidate.id: found.beside(candidate.id) for candidate in found.kept}
    chunks = view.chunks([number for kept in beside for number in (kept, *beside[kept])])
    folded = [number for many in found.folded.values() for number in many]
    known = view.snapshot.sources
    lines = view.lines(folded).items() if folded else ()
    places = {
        number: Location(path=known[source].path, start_line=first, end_line=last)
        for number, (source, first, last) in lines
    }
    shown: dict[int, set[Line]] = {}  # by source: the lines of better hits
    hits: list[Hit] = []
    shown_of: list[StoredChunk] = []  # the chunk that the snippet of each hit is of
    for candidate in found.kept:
        source, better = candidate.source, shown.setdefault(candidate.source, set())
        chunk, *others = (chunks[number] for number in (candidate.id, *beside[candidate.id]))
        others = [other for other in others if other.entry == chunk.entry]  # not those of other daily entries
        parts = [Part(found.ranks[part.id], lines_of(part, better)) for part in (chunk, *others)]
        passages = [passage([part]) for part in parts]
        if passages[0] is None:
            # A chunk has lines that its neighbours lack, unless it is half of a chunk that was too long for
            # the model: then its lines may be shown twice rather than not at all.
            parts[0] = Part(parts[0].rank, lines_of(chunk))
            passages[0] = passage(parts[:1])
        whole = passages[0] if len(parts) == 1 else passage(parts)
        assert whole is not None
        # The snippet with the highest weight of query words, the first among equals.
        snippets = [
            (snippet(one.text, one.start_line, wanted_words, start_byte=one.start_byte), of)
            for one, of in zip(passages, (chunk, *others), strict=True)
            if one
        ]
        best, of = max(snippets, key=lambda made: made[0].weight)
        name = headed.get(chunk.id)
        if name and (at := line_called(chunk.text, prepared.query.text, name)) is not None:
            below, byte = chunk.text.split("\n", at)[at], 0 if at else chunk.start_byte
            best, of = snippet(below, chunk.start_line + at, wanted_words, start_byte=byte), chunk
        heading, named = heading_at(view, of, best, wanted_words)
        shown_of.append(of)
        same, record = found.folded.get(chunk.id), view.source(source)
        hits.append(
            Hit(
                candidate,
                record,
                chunk,
                tuple(parts),
                whole,
                named,
                heading,
                _joined(same, places) if same else (),
                view.snapshot.superseded_by(source),
                record.expired(prepared.today),
                view.entries_from(record),
            )
        )
        better.update(*(part.lines for part in parts))
    within = [of.id for of in shown_of if in_section(of)]
    fences = view.reader.fenced(within, CODE_CHUNKS) if within else []
    for hit, of in zip(hits, shown_of, strict=True):
        before = [one for one in fences if one.source == of.source and of.id - CODE_CHUNKS <= one.id < of.id]
        hit.snippet = with_fence(of, before if in_section(of) else (), hit.snippet)
    return hits


def _joined(numbers: Sequence[int], places: Mapping[int, Location]) -> list[Location]:
    """Return the places of chunks, best first, with consecutive chunks of a source merged into one."""
    ranks = {number: rank for rank, number in enumerate(numbers)}
    runs: list[list[int]] = []
    for number in sorted(numbers):
        before = runs[-1][-1] if runs else None
        if before == number - 1 and places[before].path == places[number].path:
            runs[-1].append(number)
        else:
            runs.append([number])
    runs.sort(key=lambda run: min(ranks[number] for number in run))
    return [structs.replace(places[run[0]], end_line=places[run[-1]].end_line) for run in runs]


class StepTimer:
    """Measures the steps in milliseconds, and checks the deadline after each."""

    def __init__(self, prepared: PreparedQuery, words: Judgement | None = None) -> None:
        self.laps_ms = dict(prepared.timings_ms)
        if words is not None:
            self.laps_ms["keyword"] = words.words_ms
        self._expired = prepared.expired
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """End a step. Raises DeadlineError."""
        now = time.perf_counter()
        self.laps_ms[name] = round((now - self._last) * 1000, 3)
        self._last = now
        if self._expired():
            raise DeadlineError(f"the search took longer than its deadline (in step {name!r}); ask for less")
