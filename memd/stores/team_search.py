"""A search of a store: statistics and near words, candidates, evidence, then memd's search over a mini view.

What needs nothing of each other is asked for at once. No method of the store waits longer than HOP_S.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

from msgspec import structs

from memd.errors import NotFoundError
from memd.index.reader import Reader
from memd.index.snapshot import View
from memd.languages import spoken
from memd.records import SHIPPED_COSINES, CosineScale, Source, Tokenizer
from memd.search import identifiers
from memd.search.explain import explain
from memd.search.explanation import AnswerExplanation, Explained, Word
from memd.search.fields import FieldTest
from memd.search.filters import OF_WORDS, Condition, missed
from memd.search.identifiers import FEW, MAX_CHUNKS
from memd.search.keyword import MIN_SUBSTRING, POOL, WHOLE_TIMES, phrase_expression, terms_of
from memd.search.query import Query
from memd.search.score import Judgement, PreparedQuery, is_newest_asked, judge_words
from memd.search.search import Answer, search
from memd.search.spelling import Spelling, corrected, plain_words, spelling
from memd.search.why import Verdict, why
from memd.search.word_forms import COMMON_SHARE, FEW_CHUNKS, SPOKEN_SHARE, with_forms
from memd.stores.lean import has_phrase
from memd.stores.mini_view import MiniReader, MiniView, asking_view, mini_view, phrase_of, source_of
from memd.stores.store import (
    ChunkKey,
    Evidence,
    Filter,
    Forms,
    Found,
    Near,
    PublishedSource,
    ReadableStore,
    SourceKey,
    Statistics,
    Wanted,
    parts_of,
)
from memd.text import is_spaceless, pieces_of, prepare

HOP_S: Final = 1.0  # for each answer of a store
NEWEST: Final = 2  # times the limit: sources that a query of only filters gets, as some are near-duplicates
_ANY_DAY: Final = (Condition("since", (date.min,)),)

T = TypeVar("T")
# Return the query with the vector of its text, or without one: `memd.api.search.embedded`.
Embed = Callable[[PreparedQuery], PreparedQuery]


class Together(Protocol):
    """Runs calls side by side."""

    def __call__(self, *calls: Callable[[], Any]) -> list[Any]:
        """Return the results of the calls in their order; raise the first error."""


def one_by_one(*calls: Callable[[], Any]) -> list[Any]:
    """Run calls one after the other: for a store in this process."""
    return [call() for call in calls]


def side_by_side(executor: Executor) -> Together:
    """Return what runs all calls but the last in threads, and the last in the caller's."""

    def together(*calls: Callable[[], Any]) -> list[Any]:
        begun = [executor.submit(call) for call in calls[:-1]]
        last = calls[-1]()
        return [*(one.result() for one in begun), last]

    return together


@dataclass(frozen=True, slots=True)
class StoreSearch:
    """How a store is searched."""

    store: ReadableStore
    tokenizer: Tokenizer
    model_id: str  # of the store's vectors
    cosines: CosineScale = SHIPPED_COSINES  # of that model
    workspaces: tuple[str, ...] | None = None  # only these; None: all
    pool: int = POOL  # candidates of each list
    together: Together = one_by_one


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """The answer of a store, with the view that it was made of."""

    answer: Answer
    view: MiniView
    found: Found
    spelling: Spelling

    def explained(self) -> tuple[AnswerExplanation, list[Explained]]:
        """Explain the answer. Raises as `memd.search.explain.explain` does."""
        whole, each = explain(self.view, self.answer)
        return _of_store(whole, self.view, self.found), list(map(without_far_ranks, each))


def search_store(
    team: StoreSearch,
    plain: PreparedQuery,
    embed: Embed,
    *,
    known: Sequence[str] = (),
) -> StoreAnswer:
    """Answer a query out of a store.

    Args:
        team: the store, and how it is searched.
        plain: the query without a vector.
        embed: computes its vector; called again with the text in which words were corrected.
        known: keys of passages that must not be in the answer.

    Raises:
        StoreError: the store did not answer in time, or refused.
        DeadlineError: the caller's deadline passed.
    """
    asked = _asked(team, plain, embed)
    evidence, related = _evidence(team, asked, _chunks_of(asked.found))
    view = _view(team, asked, evidence, related)
    answer = search_view(view, asked.prepared, view.keyed(known))
    return StoreAnswer(answer, view, asked.found, asked.spelling)


@dataclass(frozen=True, slots=True)
class StoreVerdict:
    """What becomes of a source in a search of a store."""

    verdict: Verdict  # ranks beyond an arm's candidates are 0
    view: MiniView
    prepared: PreparedQuery
    key: SourceKey
    source: Source  # that it is about
    pool: int  # candidates of each list


def why_store(
    team: StoreSearch, plain: PreparedQuery, embed: Embed, source: SourceKey, line: int | None = None
) -> StoreVerdict:
    """Follow a source of a store, or its chunks at one line, through the stages of a search.

    Raises:
        NotFoundError: the store has no such source.
        StoreError: the store did not answer in time, or refused.
    """
    asked = _asked(team, plain, embed)
    whole = next(iter(team.store.evidence((source,), HOP_S)), None)
    if whole is None:
        raise NotFoundError(f"the team's store has no {source.path} of the workspace {source.workspace}")
    own = tuple(ChunkKey(source.workspace, source.path, chunk.ordinal) for chunk in whole.chunks)
    evidence, related = _evidence(team, asked, tuple(dict.fromkeys([*_chunks_of(asked.found), *own])))
    view = _view(team, asked, evidence, related)
    if source not in view.keys:  # it has no text, or was removed a moment ago
        record = source_of(len(view.keys) + 1, whole)
        return StoreVerdict(Verdict("empty"), view, asked.prepared, source, record, team.pool)
    number = view.keys.index(source) + 1
    record = view.snapshot.sources[number]
    cast("MiniReader", view.reader).fields += [(number, key, value) for key, value in whole.fields]
    query = asked.prepared.query
    if not missed(view, record, query.filters):
        of_chunks = [one for one in asked.wanted.filters if one.name in OF_WORDS]
        meeting = [
            key
            for key, chunk in zip(own, whole.chunks, strict=True)
            if all(has_phrase(chunk.words, one.values[0]) == (one.name == "phrase") for one in of_chunks)
        ]
        view = view.with_candidates(meeting)
    words = _words_judged(view, asked.prepared, ())
    verdict = why(view, asked.prepared, record, line, words)
    if verdict.explained is not None:
        verdict = replace(verdict, explained=without_far_ranks(verdict.explained))
    return StoreVerdict(verdict, view, asked.prepared, source, record, team.pool)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query with what the store has said about it before the evidence."""

    prepared: PreparedQuery
    spelling: Spelling
    wanted: Wanted
    named: list[str]  # FTS5 expressions
    found: Found
    statistics: Statistics


def _asked(team: StoreSearch, plain: PreparedQuery, embed: Embed) -> _Asked:
    statistics, near, prepared = _words_known(team, plain, embed)
    asking = asking_view(statistics, near, team.cosines)
    found = spelling(asking, prepared.query, team.tokenizer, prepared.expired)
    if found.corrected and prepared.languages:  # what a word is corrected to may have other forms
        near |= _near_words(team, asking.reader, prepared, found.corrected.values())
        asking = asking_view(statistics, near, team.cosines)
    query, _ = with_forms(asking, corrected(prepared.query, found.corrected), prepared.languages)
    prepared = _respelled(prepared, query, embed)
    wanted, named = wanted_of(team, asking, statistics, prepared)
    candidates, counts = _candidates(team, wanted, statistics, near, prepared)
    return _Asked(prepared, found, wanted, named, candidates, counts)


def _view(
    team: StoreSearch, asked: _Asked, evidence: Evidence, related: Sequence[PublishedSource]
) -> MiniView:
    return mini_view(
        asked.wanted,
        asked.found,
        evidence,
        asked.statistics,
        related,
        model_id=team.model_id,
        cosines=team.cosines,
        named=asked.named,
    )


def _chunks_of(found: Found) -> tuple[ChunkKey, ...]:
    """Return the chunks whose evidence a search needs."""
    holders = (key for one in found.named for key in one.chunks)
    return tuple(dict.fromkeys([*found.by_words, *found.by_vector, *holders]))


def search_view(view: MiniView, prepared: PreparedQuery, without: Sequence[int] = ()) -> Answer:
    """Answer a query out of its view.

    The store has applied the filters: only its candidates count.
    """
    query = prepared.query
    words = _words_judged(view, prepared, without)
    if not is_newest_asked(query):
        return search(view, prepared, words)
    newest = replace(prepared, query=replace(query, filters=_ANY_DAY))
    answer = search(view, newest, words)
    answer.prepared = prepared
    return answer


def _words_judged(view: MiniView, prepared: PreparedQuery, without: Sequence[int]) -> Judgement:
    bare = replace(prepared.query, filters=(), phrases=(), excluded=())
    return judge_words(view, replace(prepared, query=bare, without=(*view.outside, *without)))


def wanted_of(
    team: StoreSearch, asking: MiniView, statistics: Statistics, prepared: PreparedQuery
) -> tuple[Wanted, list[str]]:
    """Return what a query wants of a store, and the FTS5 expressions of the phrases that may name chunks."""
    query = prepared.query
    terms = [term for term, _ in terms_of(asking, query)[0]]
    words = [term for term in terms if not term.prefix and not term.forms]
    beginnings = [term for term in terms if term.prefix]
    of_forms = [term for term in terms if term.forms]
    is_run = (
        len(query.pieces) == 1 and is_spaceless(query.pieces[0]) and len(query.pieces[0]) >= MIN_SUBSTRING
    )
    whole = phrase_of(asking.reader, phrase_expression(query.pieces[0])) if is_run else ""
    weights = [term.times * term.share for term in (*words, *beginnings, *of_forms)]
    others = tuple(
        name
        for name, count in statistics.languages.items()
        if count >= SPOKEN_SHARE * statistics.chunks and name != query.language
    )
    named = [
        phrase_expression(word.text)
        for word in prepared.spelled[: identifiers.MAX_WORDS]
        if prepared.query_vec is not None and prepared.mode == "hybrid" and _may_name(asking, word)
    ]
    named = list(dict.fromkeys(named))
    has_vector = prepared.model_id == team.model_id and not is_newest_asked(query)
    wanted = Wanted(
        terms=tuple(term.text for term in words),
        prefixes=tuple(term.text for term in beginnings),
        vector=prepared.query_vec if has_vector else None,
        workspaces=team.workspaces,
        filters=filters_of(asking.reader, query),
        pool=NEWEST * prepared.limit if is_newest_asked(query) else team.pool,
        weights=(*weights, WHOLE_TIMES) if whole else tuple(weights),
        forms=tuple(Forms(term.text, term.forms, query.language or "", others) for term in of_forms),
        whole=whole,
        named=tuple(phrase_of(asking.reader, one) for one in named),
        corrected=prepared.corrected_vec,
    )
    return wanted, named


def filters_of(reader: Reader, query: Query) -> tuple[Filter, ...]:
    """Return the filters of a query as a store gets them."""
    found = [Filter(one.name, tuple(map(_text_of, one.values))) for one in query.filters]
    for name, phrases in (("phrase", query.phrases), ("excluded", query.excluded)):
        found += [Filter(name, (phrase_of(reader, phrase_expression(phrase)),)) for phrase in phrases]
    return tuple(found)


def _words_known(
    team: StoreSearch, plain: PreparedQuery, embed: Embed
) -> tuple[Statistics, dict[str, Near], PreparedQuery]:
    """Look up the words of a query while its text is embedded."""
    reader = MiniReader()
    query, store = plain.query, team.store
    runs = [piece for piece in query.pieces if is_spaceless(piece)]
    singles = reader.terms(" ".join(run for run in runs if len(run) == 1))
    terms = dict.fromkeys(reader.terms(prepare(query.text)))
    about = Wanted(tuple(terms), tuple(dict.fromkeys(singles)), None, team.workspaces, (), 0)
    known, prepared = team.together(lambda: store.statistics(about, HOP_S), lambda: embed(plain))
    statistics: Statistics = known
    common = max(FEW_CHUNKS, COMMON_SHARE * statistics.chunks) if plain.languages else 0
    each = [reader.terms(prepare(word)) for word in (*plain_words(query), query.begun)]
    words = dict.fromkeys(
        its[0] for its in each if len(its) == 1 and statistics.frequencies.get(its[0], 0) <= common
    )
    return statistics, _near_words(team, reader, plain, words), prepared


def _near_words(
    team: StoreSearch, reader: Reader, prepared: PreparedQuery, words: Iterable[str]
) -> dict[str, Near]:
    """Return the words of the store near some terms of a query, with their forms in its language."""
    terms = reader.terms(prepare(prepared.query.text))
    language = spoken(terms, prepared.languages) if prepared.languages else None
    words = list(words)
    calls = [partial(team.store.vocabulary, word, HOP_S, language or "") for word in words]
    return dict(zip(words, team.together(*calls), strict=True)) if calls else {}


def _respelled(prepared: PreparedQuery, query: Query, embed: Embed) -> PreparedQuery:
    """Return *prepared* with the corrections and forms of its words; the corrected text is embedded, too."""
    vector = None
    if query.corrected and prepared.query_vec is not None:
        other = embed(replace(prepared, query=query))
        if other.model_id == prepared.model_id:
            vector = other.query_vec
    return replace(prepared, query=query, corrected_vec=vector)


def _candidates(
    team: StoreSearch,
    wanted: Wanted,
    words: Statistics,
    near: Mapping[str, Near],
    prepared: PreparedQuery,
) -> tuple[Found, Statistics]:
    """Return the candidates of a query, and the statistics of all of its parts."""
    store, asked = team.store, wanted
    if prepared.mode == "vector" and wanted.vector:
        asked = structs.replace(wanted, terms=(), prefixes=(), forms=(), weights=(), whole="")
    frequencies = dict(words.frequencies)
    for its in near.values():
        frequencies |= its.forms | its.spellings | its.endings
    if not (wanted.forms or wanted.whole):
        found = store.candidates(asked, HOP_S)
        return found, structs.replace(words, frequencies=frequencies)
    more = Wanted((), (), None, team.workspaces, (), 0, forms=wanted.forms, whole=wanted.whole)
    counted, found = team.together(
        lambda: store.statistics(more, HOP_S), lambda: store.candidates(asked, HOP_S)
    )
    for one in wanted.forms:  # a store that cannot count them together: at most
        most = sum(frequencies.get(form, 0) for form in one.forms)
        frequencies[f"={one.word}"] = min(most, words.chunks - frequencies.get(one.word, 0))
    frequencies |= {name: counted.frequencies[name] for name in parts_of(more) if name in counted.frequencies}
    return found, structs.replace(words, frequencies=frequencies)


def _evidence(
    team: StoreSearch, asked: _Asked, chunks: tuple[ChunkKey, ...]
) -> tuple[Evidence, tuple[PublishedSource, ...]]:
    if not chunks:
        return Evidence((), b"", b"", (), b"", b"", b"", b""), ()
    sources = tuple(dict.fromkeys(SourceKey(one.workspace, one.path) for one in chunks))
    related, evidence = team.together(
        partial(team.store.related, sources, HOP_S), partial(team.store.lean, chunks, asked.wanted, HOP_S)
    )
    return evidence, related


def _may_name(view: View, word: Word) -> bool:
    """Return whether a word may be in so few chunks that it names them, see `memd.search.identifiers`."""
    terms = {part.casefold() for part in view.reader.terms(prepare(word.text))}
    each = [view.postings(term, prefix=False).document_frequency for term in terms]
    rarest = min((count for count in each if count), default=0)
    return bool(pieces_of(word.text)) and 0 < rarest <= (FEW if len(terms) == 1 else MAX_CHUNKS)


def _text_of(value: Any) -> str:
    """Return a value of a filter; a relative day becomes the day that it means now."""
    if isinstance(value, FieldTest) and value.operator in {">=", "<="} and value.number is None:
        bound = value.first if value.operator == ">=" else value.last
        return f"{value.key}{value.operator}{bound}"
    return str(value)


def without_far_ranks(one: Explained) -> Explained:
    """Return an explanation in which a rank beyond an arm's candidates is 0: only these are known here."""
    vector, keyword = one.vector, one.keyword
    if vector is not None and not vector.in_pool:
        vector = replace(vector, rank=0)
    if keyword is not None and not keyword.in_pool:
        keyword = replace(keyword, rank=0)
    return replace(one, vector=vector, keyword=keyword)


def _of_store(whole: AnswerExplanation, view: MiniView, found: Found) -> AnswerExplanation:
    """Return the explanation with the counts of the store in the place of those of its few chunks."""
    if found.allowed is None:
        return whole
    stages = whole.stages
    here = len(view.snapshot.columns.source) - 1 - len(view.outside)
    return replace(
        whole,
        stages=replace(
            stages,
            filtered=stages.chunks - found.allowed,
            outside_pools=stages.outside_pools + found.allowed - here,
        ),
    )
