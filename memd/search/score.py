"""Score all chunks that meet the filters by both arms, then fuse and sort them, without floor or limit.

`PreparedQuery` has every decision, including today's date: this module reads no clock, no text and no
configuration. Fusion makes one pass over an array per step, whatever the number of candidates; each of them
becomes a `Candidate` at the end.

A source past its last day (`valid_until`) sorts with half of its score. Two rules about sources follow the
fusion. A query of only filters returns the newest sources: the first chunk of each, the latest day first,
with the score 1. And a superseded source ranks after the source that replaces it: the best candidate of the
newer source takes the place of the older source's best candidate, which follows it. So a query in the words
of the older note leads to the newer one, and no answer loses its best match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import chain, repeat, starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from memctl.stop_words import STOP_WORDS
from memd.config import Weights
from memd.diaries import Diaries
from memd.index.columns import Mask, mask_of, require_numpy, restrict, restrict_sources
from memd.index.links import Supersession
from memd.index.snapshot import Snapshot, View
from memd.index.source_rows import ARCHIVES
from memd.languages import Language
from memd.named_days import ALL_LANGUAGES, BONUS, WORDS_OF_DAYS, Time, named_days
from memd.records import PER_SOURCE, Mode, Source
from memd.search import filters, ranking, runs
from memd.search.called import aliased, called, chunks_with_day, firsts, is_exact
from memd.search.explanation import Called, DayNamed, Run, Said, Word
from memd.search.identifiers import MEANT, NOTHING, Named, in_few, named
from memd.search.keyword import KeywordArm, Matched, keyword_arm, knows_a_word, phrase_expression
from memd.search.later import later_statements
from memd.search.newest import newest, now_words
from memd.search.query import Query
from memd.search.ranking import RRF_K, Candidate
from memd.search.source_scores import PLACES, SOURCE_SHARE, Grouped, grouped, places, vector_scores
from memd.search.vector import VectorArm, vector_arm
from memd.text import bare, pieces_of, searched_text

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memd.index.columns import Ids

    Floats = NDArray[np.float64]


Fusion = Literal["weighted", "rrf"]
Lap = Callable[[str], None]

# Times the limit: for this many of the best candidates, the vectors in the means of their sources are
# verified, too; nearly every answer shows fewer. For all candidates that would be a thousand checksums, which
# take longer than the rest of the search.
VERIFIED = 2

# Between the sort keys of chunks that only words can judge and that of the chunk that they follow.
_APART = 1e-6

# Of the order of a chunk that an assistant said, for its share of the lines.
ASSISTANT_SHARE = 0.2

_LINK = re.compile(r"\[([^\[\]]*)\](?=\()")  # what it is called

# Newest sources that are listed: twice the highest limit of a request, because some may be deleted or
# near-duplicates of a newer source.
_MOST = 2_000


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query that is ready to run against a view: parsed, embedded, with all settings resolved."""

    query: Query
    query_vec: bytes | None  # embedding of what the model reads of the text as typed; None: keyword only
    model_id: str  # the model of `query_vec`
    mode: Mode
    fusion: Fusion
    weights: Weights | None  # None: the matched words decide
    half_life_days: float
    decay_floor: float  # share of a diary's score that age cannot remove
    min_score: float
    limit: int
    today: date
    alive: Callable[[str], bool]  # whether a source is still on the disk
    expired: Callable[[], bool]  # whether the caller's deadline has passed
    # Is told which sources *alive* will be asked about: one look at the disk for all.
    expect: Callable[[list[str]], None] = lambda _: None
    without: tuple[int, ...] = ()  # ids of excluded chunks
    spelled: tuple[Word, ...] = ()  # words of the query that the tokenizer cuts into pieces
    unread: tuple[str, ...] = ()  # words of the query in scripts that the model does not read
    corrected_vec: bytes | None = None  # embedding of the text with corrected words, if any
    # Why there is no vector: a code of `degraded`, "mode", "no-words", "no-provider" or "script".
    off: str = ""
    degraded: tuple[str, ...] = ()  # codes of what was unavailable during its preparation
    # Step of its preparation → duration.
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    per_source: int = PER_SOURCE  # hits of one source, at most
    languages: tuple[Language, ...] = ()  # languages whose word forms are searched; see `word_forms`
    is_floor_named: bool = False  # by the request: then it applies to all that is found
    diaries: Diaries = field(default_factory=Diaries)  # which notes fade with age
    southern: bool = False  # the hemisphere of the seasons that a query names

    @property
    def floor(self) -> float:
        """The least score of a hit: 0 for a query without a vector.

        There only words can judge, and their score of a question of a sentence is mostly below a floor that
        was chosen for both arms.
        """
        return 0.0 if self.query_vec is None and not self.is_floor_named else self.min_score

    def decay_of(self, source: Source) -> float:
        """Return the decay factor of a source's chunks; 1 if it does not fade."""
        if self.diaries.why(source) is None:
            return 1.0
        age_days = (self.today - source.day).days
        return ranking.half_life_decay(age_days, self.half_life_days, self.decay_floor)


NO_WEIGHTS = Weights()
DAY_WORDS = 5  # of a query that is a day: "4 de mayo de 2021"
_COMPACT_DAY = re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)")
_DAY_AND_YEAR = re.compile(r"\d{1,2}\W.*\W(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The scores of the chunks that meet the filters; `judge_words` fills only mask and keyword arm."""

    mask: Mask  # chunks that meet the filters
    keyword: KeywordArm | None  # None: only the vector arm runs
    words_ms: float = 0.0  # duration of these two
    vector: VectorArm | None = None  # None: the arm did not run
    weights: Weights = NO_WEIGHTS  # before scripts and missing arms change them
    matched: float | None = None  # distinct query words in the best-matching candidate; None: not counted
    named: Named = NOTHING  # by words that the tokenizer cuts into pieces
    # Whether a chunk that meets the filters has a word of the query; where words alone judge, enough of them.
    knows: bool = False
    # Chunk → the most words of the query that it has in a row, among the best candidates.
    runs: Mapping[int, Run] = field(default_factory=dict)
    # Chunk → the name by which the query calls its note or section.
    called: Mapping[int, Called] = field(default_factory=dict)
    is_name: bool = False  # whether the whole query is one of these
    # Chunk → the time that the query names and its source is of.
    days: Mapping[int, DayNamed] = field(default_factory=dict)
    said: Mapping[int, Said] = field(default_factory=dict)  # chunk → the share that an assistant said
    # Candidates in scripts that the model does not read, where it reads the query.
    unread: frozenset[int] = frozenset()
    # Chunks of either pool, best first; superseded sources after their replacements.
    candidates: Sequence[Candidate] = ()
    # Chunk → the chunk of a superseded source whose place it took.
    ahead_of: Mapping[int, int] = field(default_factory=dict)
    # The newest statement → the better chunk whose place it took.
    newest: Mapping[int, int] = field(default_factory=dict)

    def words_in(self, chunk: int) -> list[str]:
        """Return the words of the query that a chunk has, in some form."""
        if self.keyword is None:
            return []
        has = self.keyword.words_in(np.array([chunk], np.int64))
        return [word for word, (is_there,) in has.items() if is_there]

    def good_enough(self, request: PreparedQuery) -> list[Candidate]:
        """Return the candidates that may be hits: by their scores before decay, so none vanishes with age.

        What the query calls by its name, and what words alone can judge, has no floor unless one was named.
        Who types a name looks for what has it, and not for what only means something like it.
        """
        floor = request.floor
        if request.is_floor_named:
            return [one for one in self.candidates if one.merged >= floor]
        return [
            one
            for one in self.candidates
            if one.id in self.called
            or (
                (one.merged >= floor or (one.id in self.unread and one.keyword_score))
                and (one.keyword_score or not self.is_name)
            )
        ]


def judge_words(view: View, request: PreparedQuery) -> Judgement:
    """Compute what needs no vector, while the query may still be embedded. Raises as `judge` does."""
    require_numpy("an explanation")
    mask = _mask(view, request.query)
    if request.without:
        mask = restrict(mask, request.without, keep=False)
    is_used = request.mode != "vector"
    return Judgement(mask, keyword_arm(view, request.query, mask, request.per_source) if is_used else None)


def judge(view: View, request: PreparedQuery, lap: Lap, words: Judgement | None = None) -> Judgement:
    """Run both arms; *lap* is called after each step and may raise to end the search.

    *words* is the result of `judge_words` for the same request; None: it is computed now.

    If the checksum of a vector that affects the result is wrong, only the keyword arm is used: the score of
    such a vector is meaningless, and other chunks may have taken its place.

    Raises:
        NumpyMissingError: numpy is missing; a search works without it, an explanation does not.
    """
    if words is None:
        words = judge_words(view, request)
        lap("keyword")
    judged = _judged(view, request, words, lap)
    if judged.vector is not None and view.damaged:
        return _judged(view, request, words, lap)
    return judged


def _judged(view: View, request: PreparedQuery, words: Judgement, lap: Lap) -> Judgement:
    mask, keyword = words.mask, words.keyword
    vector = None
    if request.query_vec is not None and request.mode != "keyword" and not view.damaged:
        vector = vector_arm(
            view, request.query_vec, request.model_id, mask, request.corrected_vec, request.per_source
        )
    lap("vector")
    if vector is None and keyword is None:
        keyword = keyword_arm(view, request.query, mask, request.per_source)
    # With a single arm, requested or available, its scores are used unchanged.
    names = NOTHING
    if vector and keyword and (request.spelled or request.unread):
        names = named(
            view, request.spelled, keyword.words, request.unread, partial(in_few, view, mask),
            lambda only, ids: keyword.only(only).scores_of(ids),
            is_meant=max(vector.scores_of(vector.pool[:1]), default=0.0) >= MEANT,
        )  # fmt: skip
    asked_days = days_asked(request)
    day = day_asked(request, asked_days) if keyword else ""
    by_name = aliased(view, request.query.text, day) if keyword else {}
    on_day = chunks_with_day(view, day, request.languages)
    also = [number for number in (*firsts(view, by_name), *on_day) if mask[number]]
    pools = [arm.pool for arm in (vector, keyword) if arm is not None]
    ids = np.unique(np.concatenate([np.array([*names.words, *also], np.int64), *pools]))
    has = keyword.matched(ids) if keyword else None
    knows = len(keyword.pool) > 0 if keyword else knows_a_word(view, request.query)
    if vector is None and has is not None:
        knows = knows and not has.is_chance
    weights, matched = request.weights or Weights(), None
    if request.weights is None and vector is not None and has is not None:
        matched = has.most
        weights = ranking.weights_matched(matched, has_all=matched >= has.every)
    unread = _unread(view, keyword) if vector and keyword else frozenset()
    candidates = fused(view.snapshot, request, vector, keyword, names, weights, ids, unread)
    by_run = _runs(view, request, has, candidates[: runs.FIRST]) if has is not None else {}
    names_asked: Mapping[int, Called] = {}
    if keyword and has is not None:
        whole = set(ids[has.at(ids) >= has.every].tolist())
        names_asked = called(
            view, request.query.text, keyword.words, candidates, by_name,
            day=day, with_day=on_day, whole=whole,
        )  # fmt: skip
    days = days_named(view, request, candidates, asked_days)
    said = said_by_assistants(view, candidates)
    for more in (by_run, names_asked, days, said):
        if more:
            candidates = raised(candidates, more)
    ahead_as_newest = {}
    if keyword and candidates and (now := now_words(request.query.pieces, request.languages)):
        best, days_of = candidates[0], source_days(view, candidates)
        changed = later_statements(view, [best], candidates, lambda: days_of).get(best.id)
        latest = changed[0] if changed else newest(candidates, keyword, now, days_of)
        if latest:
            ahead_as_newest[latest.id] = best.id
            candidates.remove(latest)
            candidates.insert(0, latest._replace(order=best.order))
    if vector is not None:
        first = [candidate.id for candidate in candidates[: VERIFIED * request.limit]]
        vector.verify(places(view.snapshot.columns, np.array(first, np.int64), PLACES))
    if is_newest_asked(request.query):
        candidates = newest_candidates(view, request.query, _first_chunks(view.snapshot, mask))
    ranked, ahead_of = lifted(candidates, view.snapshot)
    return Judgement(
        mask,
        keyword,
        words.words_ms,
        vector,
        weights,
        matched,
        names,
        knows or any(by_name.values()),
        by_run,
        names_asked,
        is_exact(request.query.text, names_asked.values()),
        days,
        said,
        unread,
        ranked,
        ahead_of,
        ahead_as_newest,
    )


def _unread(view: View, keyword: KeywordArm) -> frozenset[int]:
    """Return the chunks of the pools in scripts that the model does not read."""
    pool = keyword.pool[view.snapshot.columns.row[keyword.pool] < 0]
    return view.reader.unread(pool.tolist()) if len(pool) else frozenset()


def _runs(view: View, request: PreparedQuery, has: Matched, first: Sequence[Candidate]) -> dict[int, Run]:
    """Return `in_a_row` for those of *first* with enough words of the query."""
    asked = [bare(piece) for piece in request.query.pieces]
    if len(asked) < runs.LEAST:
        return {}
    ids = np.array([candidate.id for candidate in first], np.int64)
    each = has.at(ids)
    enough = (each > 0) & (each >= min(runs.LEAST, has.every / 2))
    # The texts of these are read: a fifth to a half of those with enough words.
    read = ids[enough & has.neighbours(ids, asked, runs.least(asked))].tolist()
    return in_a_row(request, view.reader.searched(read), view.reader.with_links)


def in_a_row(
    request: PreparedQuery, texts: Mapping[int, str], with_links: Callable[[Sequence[int]], Mapping[int, str]]
) -> dict[int, Run]:
    """Return chunk → the words of the query in a row, where they are enough, but not for a link's text alone.

    A list of links has titles of other notes, and says nothing itself; a sentence may go on through a link.
    *texts*: what is searched. *with_links* returns some of these texts as they are written.
    """
    asked = [bare(piece) for piece in request.query.pieces]
    most = runs.SHARE * (1.0 if request.fusion == "weighted" else 2 / (RRF_K + 1))

    def longest(text: str) -> int:
        return runs.longest_run(asked, pieces_of(bare(text)))

    found = {number: run for number, text in texts.items() if (run := longest(text))}
    for number, text in with_links(list(found)).items():
        parts = [longest(searched_text(part)) for part in _LINK.split(text)]
        if max(parts[::2]) < found[number] <= max(parts[1::2], default=0):
            del found[number]
    return {number: Run(run, len(asked), most * run / len(asked)) for number, run in found.items()}


def days_asked(request: PreparedQuery) -> Sequence[Time]:
    """Return the times that the query names."""
    return named_days(request.query.text, request.today, request.languages, southern=request.southern)


def days_named(
    view: View, request: PreparedQuery, candidates: Sequence[Candidate], asked: Sequence[Time]
) -> dict[int, DayNamed]:
    """Return chunk → the time that the query names, for candidates whose source is of then or just after.

    A query that filters by days means the filter. *asked*: as `days_asked` returns it.
    """
    if not asked or any(condition.name in {"since", "until"} for condition in request.query.filters):
        return {}
    days = source_days(view, candidates)
    most = BONUS * (1.0 if request.fusion == "weighted" else 2 / (RRF_K + 1))
    found = {}
    for number, day in days.items():
        share, first, last = max(one.near(day) for one in asked)
        if share:
            found[number] = DayNamed(str(day), str(first), str(last), most * share)
    return {one.id: found[one.source] for one in candidates if one.source in found}


def said_by_assistants(view: View, candidates: Sequence[Candidate]) -> dict[int, Said]:
    """Return chunk → what it loses for an assistant's share of its lines, on pages of conversations.

    Most of what is asked of a conversation was said by the person; the assistant's advice has more words.
    """
    orders = {one.id: min(one.order, one.score) for one in candidates if one.path.startswith(ARCHIVES)}
    shares = view.reader.assistants(list(orders)) if orders else {}
    return {one: Said(share, -ASSISTANT_SHARE * share * orders[one]) for one, share in shares.items()}


def source_days(view: View, candidates: Iterable[Candidate]) -> dict[int, date]:
    """Return source → its day, without days of a last change that most such files share.

    These were copied or cloned on that day.
    """
    sources = {one.source: view.snapshot.sources[one.source] for one in candidates}
    changed = Counter(source.day for source in sources.values() if source.day_of == "changed")
    copied = {day for day, count in changed.items() if 2 * count > changed.total()}
    return {
        number: source.day
        for number, source in sources.items()
        if not (source.day_of == "changed" and source.day in copied)
    }


def day_asked(request: PreparedQuery, asked: Sequence[Time]) -> str:
    """Return the day that a query is: "3 June 2021" asks for the note that is called by it.

    So does "what did I do yesterday", which says nothing else. A day with its year is read in every language
    that has a table.

    *asked*: what `days_asked` found.
    """
    text = request.query.text
    said = {word for word in pieces_of(text.casefold()) if not word.isdecimal()}
    says_more = bool(said - STOP_WORDS - WORDS_OF_DAYS)
    if says_more and len(text.split()) > DAY_WORDS:
        return ""

    def day(found: Sequence[Time]) -> str:
        one = found[0] if len(found) == 1 else None
        is_said = one and (str(one.first.year) in text or not says_more)
        is_day = one and one.first == one.last and not one.is_yearly and is_said
        return str(one.first) if one and is_day else ""

    if compact := _COMPACT_DAY.fullmatch(text):
        asked = named_days("-".join(compact.groups()), request.today)
    elif not day(asked) and _DAY_AND_YEAR.fullmatch(text):
        asked = named_days(text, request.today, ALL_LANGUAGES)
    return day(asked)


def raised(
    candidates: Iterable[Candidate], by: Mapping[int, Run | Called | DayNamed | Said]
) -> list[Candidate]:
    """Return the candidates in the order with what is added to their sort keys."""
    higher = (one._replace(order=one.order + by[one.id].added) if one.id in by else one for one in candidates)
    return sorted(higher, key=attrgetter("order"), reverse=True)


def _mask(view: View, query: Query) -> Mask:
    """Return the chunks that meet the filters, which apply before every cut.

    Phrases and exclusions speak of notes: each phrase stands in one of a note's chunks, and no chunk of it
    has an excluded word. Of such a note the chunks with a phrase may answer.
    """
    sources = [one.id for one in filters.matching(view, query.filters)] if query.filters else None
    mask = mask_of(view.snapshot.columns, sources)
    columns = view.snapshot.columns
    having = [list(view.matching("words", phrase_expression(phrase))) for phrase in query.phrases]
    for ids in having:
        mask = restrict_sources(mask, columns, ids, keep=True)
    if having:
        mask = restrict(mask, chain(*having), keep=True)
    for word in query.excluded:
        ids = list(view.matching("words", phrase_expression(word)))
        mask = restrict_sources(mask, columns, ids, keep=False)
    return mask


def fused(  # noqa: PLR0917 - what was decided before, each once
    snapshot: Snapshot,
    request: PreparedQuery,
    vector: VectorArm | None,
    keyword: KeywordArm | None,
    names: Named,
    given: Weights,
    ids: Ids,
    unread: frozenset[int] = frozenset(),
) -> list[Candidate]:
    """Score every chunk of either pool by both arms, so that the edge of a pool does not lower a score.

    Args:
        snapshot: the snapshot that the arms searched.
        request: has the method of fusion.
        vector: None: it did not run.
        keyword: likewise.
        names: the chunks that the query names.
        given: the weights, before scripts and missing arms change them.
        ids: of these chunks, sorted: both pools, what the query names, and what it calls by name.
        unread: chunks that only words can judge. Scores of words are higher than those of both arms, so these
            sort by `_among`.
    """
    named = np.fromiter(names.words, np.int64)
    chunks = grouped(snapshot, ids)
    meaning, has_vector = np.zeros(len(ids)), np.zeros(len(ids), np.bool_)
    if vector is not None:
        meaning, _, has_vector = meaning_of(snapshot, vector, chunks)
    words = keyword.evidence_of(chunks) if keyword else np.zeros(len(ids))
    ranks = [_ranks(snapshot, arm, chunks, scores) for arm, scores in ((vector, meaning), (keyword, words))]
    weights = ranking.weights_read(given, names.read)
    has_words = keyword is not None
    used = tuple(ranking.weights_seen(weights, vector=sees, keyword=has_words) for sees in (False, True))
    shares = np.array([(weights.vector, weights.keyword) for weights in used])[has_vector.astype(np.intp)]
    merged = np.minimum(1.0, shares[:, 0] * meaning + shares[:, 1] * words)
    decay = _decays(snapshot, chunks, request)[chunks.group]
    at = np.searchsorted(ids, named)
    if names.words:
        merged[at] = np.maximum(merged[at], [names.scores[number] for number in names.words])
    fair = merged
    if unread and has_vector.any() and not request.unread:  # a query in their script may mean them first
        fair = np.where(np.isin(ids, list(unread)), _among(words, merged, has_vector), merged)
    reciprocal = (np.where(one > 0, 1 / (RRF_K + one), 0.0) for one in ranks)  # 0: the arm did not rank it
    order = decay * (fair if request.fusion == "weighted" else sum(reciprocal))
    if names.words:
        order[at] += [len(some) for some in names.words.values()]
    if expired := snapshot.expired(request.today):
        order[np.isin(chunks.sources, list(expired))] *= ranking.EXPIRED_SHARE
    best = _best_first(snapshot, chunks, order)
    known, tier_of = snapshot.sources, keyword.tier_of if keyword else lambda _: None
    columns = ids, chunks.sources, ranks[0], meaning, has_vector, ranks[1], words, decay, merged, order
    numbers, sources, by_vector, meanings, sees, by_words, evidence, factors, scores, keys = (
        column[best].tolist() for column in columns
    )
    fields = (
        numbers,
        sources,
        [known[source].path for source in sources],
        [rank or None for rank in by_vector],
        [score if seen else None for score, seen in zip(meanings, sees, strict=True)],
        [rank or None for rank in by_words],
        evidence if has_words else repeat(None, len(best)),
        map(tier_of, numbers),
        factors,
        [used[seen] for seen in sees],
        scores,
        keys,
    )
    return list(starmap(Candidate, zip(*fields, strict=True)))


def _among(words: Floats, merged: Floats, others: Mask) -> Floats:
    """Return where each chunk sorts among the *others* if it is compared with them by words alone.

    It follows as many of these, in the order of both arms, as have more of the words: a score of words is
    higher than one of both arms, so that notes in the script of the query would come last. With the mean
    vector score of the others instead, two Latin words of a Chinese, Japanese or Korean note find it first in
    .38 instead of .47 of 120, and those of an English title in .72 instead of .71.
    """
    best_first = -np.sort(-merged[others])
    before = len(best_first) - np.searchsorted(np.sort(words[others]), words, side="right")
    place = best_first[np.maximum(before - 1, 0)]
    among: Floats = place + _APART * np.where(before > 0, words - 2, words)
    return among


def meaning_of(snapshot: Snapshot, vector: VectorArm, chunks: Grouped) -> tuple[Floats, Floats, Mask]:
    """Return each chunk's vector score, the mean cosine of its source, and whether it has a vector.

    The vectors of the chunks are verified; the other vectors in the means are not.
    """
    vector.verify(chunks.ids)
    every = np.concatenate([chunks.ids, places(snapshot.columns, chunks.one_each, PLACES)])
    there = snapshot.columns.row[every] >= 0
    scores, means = vector_scores(vector.cosines_of(every), there, chunks.group, share=SOURCE_SHARE)
    return scores, means, there[: len(chunks.ids)]


def _ranks(snapshot: Snapshot, arm: VectorArm | KeywordArm | None, chunks: Grouped, scores: Floats) -> Ids:
    """Return each chunk's rank by *scores* in an arm's pool, 0 outside the pool."""
    ranks = np.zeros(len(chunks.ids), np.int64)
    if arm is not None:
        at = np.searchsorted(chunks.ids, arm.pool)
        at = at[_best_first(snapshot, chunks, scores[at], at)]
        ranks[at] = np.arange(1, len(at) + 1)
    return ranks


def _best_first(snapshot: Snapshot, chunks: Grouped, scores: Floats, at: Ids | None = None) -> Ids:
    """Return the order of *scores*, the highest first, ties by path and line.

    The ids of a source's chunks rise with their lines.

    Args:
        snapshot: the snapshot of the chunks.
        chunks: the chunks that *at* selects from.
        scores: the score of each selected chunk.
        at: the selected places in *chunks*; None: all of them.
    """
    ids, sources = (chunks.ids, chunks.sources) if at is None else (chunks.ids[at], chunks.sources[at])
    order = np.lexsort((ids, -scores))
    following = scores[order]
    ties = np.flatnonzero(following[1:] == following[:-1])
    if not len(ties):
        return order
    tied = np.unique(sources[order[np.union1d(ties, ties + 1)]])
    if len(tied) < 2:  # noqa: PLR2004 - of one source
        return order
    paths = [snapshot.sources[source].path for source in tied.tolist()]
    by_path = np.empty(len(tied), np.int64)
    by_path[sorted(range(len(paths)), key=paths.__getitem__)] = np.arange(len(paths))
    place = np.searchsorted(tied, sources).clip(max=len(tied) - 1)  # irrelevant for untied chunks
    return np.lexsort((ids, by_path[place], -scores))


def _decays(snapshot: Snapshot, chunks: Grouped, request: PreparedQuery) -> Floats:
    """Return the decay factor of each source."""
    if not chunks.dated.any():
        return np.ones(len(chunks.dated))
    sources = snapshot.columns.source[chunks.one_each].tolist()
    return np.array([request.decay_of(snapshot.sources[source]) for source in sources], np.float64)


def is_newest_asked(query: Query) -> bool:
    """Return whether a query has only filters, without words to search."""
    return bool(query.filters) and not query.text.strip()


def newest_candidates(view: View, query: Query, first: Mapping[int, int]) -> list[Candidate]:
    """Return the first chunks of the newest sources that meet the filters, the newest first.

    *first*: source → its first chunk that may answer; behind one that the reader has, this is the next.
    """
    written = view.reader.change_times()
    found = [source for source in filters.matching(view, query.filters) if source.id in first]
    found.sort(key=lambda source: (-source.day.toordinal(), -written[source.id], source.path))
    return [
        Candidate(
            id=first[source.id],
            source=source.id,
            path=source.path,
            vector_rank=None,
            vector_score=None,
            keyword_rank=None,
            keyword_score=None,
            tier=None,
            decay=1.0,
            weights=Weights(),
            merged=1.0,
            order=1.0,
        )
        for source in found[:_MOST]
    ]


def _first_chunks(snapshot: Snapshot, mask: Mask) -> dict[int, int]:
    ids = np.flatnonzero(mask)
    sources, first = np.unique(snapshot.columns.source[ids], return_index=True)
    return dict(zip(sources.tolist(), ids[first].tolist(), strict=True))


# Candidates in an order that respects supersession, and lifted chunk → the chunk whose place it took.
Lifted = tuple[Sequence[Candidate], Mapping[int, int]]


def lifted(candidates: Sequence[Candidate], snapshot: Snapshot) -> Lifted:
    """Lift each source's best candidate to the best place of any source that it supersedes.

    Likewise, lift an original to the place of its conflict copies, which a sync program wrote: it is unknown
    which text is the right one.
    """
    supersession = snapshot.supersession
    if not supersession.edges and not snapshot.sources.copies:
        return candidates, {}
    if snapshot.sources.copies:
        supersession = _with_copies(snapshot, {candidate.source for candidate in candidates})
    return placed(candidates, supersession)


def placed(candidates: Sequence[Candidate], supersession: Supersession) -> Lifted:
    """Lift each source's best candidate to the best place of any source that it supersedes."""
    sources = [candidate.source for candidate in candidates]
    first: dict[int, int] = {}  # source → its best place
    for place, source in enumerate(sources):
        if source in supersession:
            first.setdefault(source, place)
    places = {first[source]: place for source, place in supersession.lifted(first).items()}
    if not places:
        return candidates, {}
    # At the same place the newest source is first: newer sources have lower step numbers.
    order = sorted(
        range(len(candidates)),
        key=lambda place: (places.get(place, place), supersession.step(sources[place]), place),
    )
    ahead_of = {candidates[place].id: candidates[better].id for place, better in places.items()}
    keys = {place: candidates[better].order for place, better in places.items()}
    return [
        candidates[at]._replace(order=keys[at]) if at in keys else candidates[at] for at in order
    ], ahead_of


def _with_copies(snapshot: Snapshot, found: set[int]) -> Supersession:
    """Return the supersession, extended by original → conflict copy where both are among *found*."""
    known, sources = snapshot.supersession, snapshot.sources
    copies = {source: sources.copies[source] for source in found if source in sources.copies}
    if not copies:
        return known
    at = {sources[source].path: source for source in found}
    pairs = {(at[original], copy) for copy, original in copies.items() if original in at}
    return Supersession.of(known.edges | pairs, known.names) if pairs else known
