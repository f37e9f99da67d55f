"""A view made for one query, out of a store's candidates, evidence and statistics.

It satisfies all that search, explanation and recall ask of a `View`, so these run unchanged. It has a few
hundred chunks and the counts of the whole store: of the chunks, of their terms, and of those with a term.

The ids of a source's chunks are consecutive, as in an index, also of those that are not there: length and
counts of these are summed in one of them, which scores 0 by itself. So sums over a source are right, and no
chunk without evidence is a candidate. An id beyond all is that of a chunk which only the store has.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np

from memd.index.columns import Columns, Ids
from memd.index.database import open_scratch, terms_of
from memd.index.links import SUPERSEDING, WHO, Supersession, supersession
from memd.index.postings import Part, Postings, Stored, Term, TermPostings, no_part
from memd.index.reader import LeftOut, Reader, Sources, StoredChunk, copies_in
from memd.index.snapshot import Snapshot, View
from memd.index.source_rows import NO_FRONT, SESSION, read_by_model, searchable
from memd.index.vectors import FLOAT_BYTES, NO_ROWS, Rows, no_crcs
from memd.index.vocabulary import CountedVocabulary
from memd.languages import Language
from memd.records import SHIPPED_COSINES, CosineScale, DayOf, Source
from memd.search.keyword import K1, B
from memd.stores.lean import has_phrase
from memd.stores.store import (
    MOST_HOLDERS,
    ChunkFacts,
    ChunkKey,
    Evidence,
    Found,
    Near,
    PublishedSource,
    SourceFacts,
    SourceKey,
    Statistics,
    Wanted,
    parts_of,
)
from memd.text import bare, paired

PLACE: Final = Path("team")  # in the place of a database's path, in error messages
KEY_BYTES: Final = 8  # of a hash, as `memd.index.reader` cuts it
_OF_THREAD = threading.local()  # the tokenizers of FTS5, whose connection is for one thread at a time


class NearVocabulary(CountedVocabulary):
    """The words of a store near those of a query."""

    def __init__(self, near: Mapping[str, Near] = MappingProxyType({})) -> None:
        """Take what is near each word."""
        super().__init__(
            {
                word: count
                for one in near.values()
                for words in (one.spellings, one.endings)
                for word, count in words.items()
            }
        )
        self._near = near

    def forms(self, word: str, language: Language) -> tuple[str, ...]:
        """Return the forms of a word as the store has them."""
        del language
        return tuple(self._near[word].forms) if word in self._near else ()


class MiniReader(Reader):
    """What search reads of a database, out of the evidence. For one thread."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self.facts: dict[int, ChunkFacts] = {}
        self.owners: dict[int, int] = {}  # chunk → source
        self.starts: dict[int, int] = {}  # source → id of its first chunk
        self.paths: dict[int, str] = {}
        self.changed: dict[int, int] = {}  # source → mtime_ns
        self.sessions: dict[int, frozenset[str]] = {}  # source → the conversations that it names
        self.fields: list[tuple[int, str, str]] = []  # of whole sources
        self._words: dict[int, str] = {}
        self._scratch: sqlite3.Connection | None = None

    def add(self, number: int, source: int, facts: ChunkFacts) -> None:
        """Add a chunk of a source that is known."""
        self.facts[number] = facts
        self.owners[number] = source

    def terms(self, prepared: str) -> tuple[str, ...]:
        """Return the terms of a prepared text as FTS5 splits a query."""
        return tuple(_tokenizers()[0](prepared))

    def indexed_terms(self, prepared: str) -> list[str]:
        """Return the terms of a prepared text as FTS5 indexes them."""
        return _tokenizers()[1](prepared)

    def words(self, number: int) -> str:
        """Return the terms of a chunk, joined by blanks."""
        if number not in self._words:
            [text] = self.searched([number]).values()
            self._words[number] = " ".join(self.indexed_terms(paired(text)))
        return self._words[number]

    def counted(self, term: Term, after: int = 0) -> Part:
        """Return no postings: the view has those of all parts of the query."""
        del term, after
        return no_part()

    def stored(self, term: Term) -> Stored | None:
        """Return None, likewise."""
        del term
        return None

    def searched(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the searched text of the chunks that are there."""
        return {
            number: searchable(
                read_by_model(facts.context, facts.text),
                self.paths[source],
                NO_FRONT if number == self.starts[source] else None,
            )
            for number, facts, source in (
                (number, self.facts[number], self.owners[number]) for number in ids if number in self.facts
            )
        }

    def chunks(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks among *ids* that are there."""
        return {number: self._chunk(number) for number in ids if number in self.facts}

    def stretches(self, ids: Sequence[int]) -> list[tuple[int, int, int, int]]:
        """Return (source, first line, offset in it, last line) of the chunks that are there."""
        return [
            (chunk.source, chunk.start_line, chunk.start_byte, chunk.end_line)
            for chunk in self.chunks(ids).values()
        ]

    def lines(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Return (source, first line, last line) of the chunks that are there."""
        return {
            number: (chunk.source, chunk.start_line, chunk.end_line)
            for number, chunk in self.chunks(ids).items()
        }

    def signatures(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the signatures of the chunks that are there."""
        return {number: self.facts[number].signature for number in ids if number in self.facts}

    def keys(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the keys of the chunks that are there."""
        return {number: self.facts[number].hash[:KEY_BYTES].hex() for number in ids if number in self.facts}

    def keyed(self, keys: Sequence[str]) -> list[int]:
        """Return the ids of the chunks that have one of these keys."""
        wanted = set(keys)
        return [number for number, key in self.keys(list(self.facts)).items() if key in wanted]

    def chunks_of(self, source: int, limit: int = -1) -> list[StoredChunk]:
        """Return up to *limit* of the chunks of a source that are there, in line order; -1: all."""
        found = sorted(number for number, owner in self.owners.items() if owner == source)
        return [self._chunk(number) for number in (found if limit < 0 else found[:limit])]

    def of_same_session(self, source: int) -> list[int]:
        """Return the sources that name the same conversation as *source*."""
        named = self.sessions.get(source, frozenset())
        return [
            other
            for other, theirs in self.sessions.items()
            if other != source and not named.isdisjoint(theirs)
        ]

    def left_out(self, chunk_id: int) -> LeftOut | None:
        """Return why a chunk gets no vector; None if it has one or waits for it."""
        facts = self.facts.get(chunk_id)
        return cast("LeftOut", facts.left_out) if facts is not None and facts.left_out else None

    def each(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement over chunks, sources and fields."""
        if self._scratch is None:
            self._scratch = scratch = sqlite3.connect(":memory:", check_same_thread=False)
            scratch.execute("CREATE TABLE chunks (id, source)")
            scratch.execute("CREATE TABLE sources (id, mtime_ns)")
            scratch.execute("CREATE TABLE fields (source, key, value)")
            scratch.executemany("INSERT INTO chunks VALUES (?, ?)", self.owners.items())
            scratch.executemany("INSERT INTO sources VALUES (?, ?)", self.changed.items())
            scratch.executemany("INSERT INTO fields VALUES (?, ?, ?)", self.fields)
        yield from self._scratch.execute(statement, values)

    def close(self) -> None:
        """Forget all."""
        if self._scratch is not None:
            self._scratch.close()

    def _chunk(self, number: int) -> StoredChunk:
        facts = self.facts[number]
        return StoredChunk(
            number, self.owners[number], facts.start_line, facts.end_line, facts.start_byte, facts.heading,
            facts.text, facts.entry, facts.origin,
        )  # fmt: skip


class MiniSources(Sources):
    """The sources of a view; records are made on demand, since most candidates are not shown."""

    def __init__(
        self,
        known: Mapping[int, SourceFacts | PublishedSource],
        copies: Mapping[int, str],
        expiring: Mapping[int, date],
    ) -> None:
        """Take what is known of each source; the rest as in `Sources`."""
        super().__init__(PLACE, {}, copies, expiring)
        self._facts = known
        self._known: dict[int, Source] = {}  # type: ignore[assignment]  # records that were asked for

    def __getitem__(self, source_id: int) -> Source:
        """Return the record. Raises KeyError: there is no source with this id."""
        found = self._known.get(source_id)
        if found is None:
            found = self._known[source_id] = source_of(source_id, self._facts[source_id])
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __contains__(self, source_id: object) -> bool:
        return source_id in self._facts

    def paths(self) -> Iterator[tuple[int, str]]:
        """Yield every (id, path)."""
        return ((source_id, facts.key.path) for source_id, facts in self._facts.items())

    def path(self, source_id: int) -> str:
        """Return the path of a source."""
        return self._facts[source_id].key.path

    def decay_days(self, source_ids: Sequence[int]) -> list[int]:
        """Return the ordinal of each source's day; 0 for one whose score does not decay."""
        return [self[one].day.toordinal() if self._is_dated(one) else 0 for one in source_ids]

    def _is_dated(self, source_id: int) -> bool:
        return self._facts[source_id].day_of == "name" and self[source_id].dated

    def _records(self) -> dict[int, Source]:
        return {source_id: self[source_id] for source_id in self._facts}


@dataclass(frozen=True, slots=True)
class MiniView(View):
    """A view of the evidence for one query."""

    parts: Mapping[Term, Postings] = field(default_factory=dict)
    held: Mapping[str, Sequence[int]] = field(default_factory=dict)  # FTS5 expression → chunks that match it
    keys: Sequence[SourceKey] = ()  # of the sources, in the order of their ids, which begin with 1
    outside: tuple[int, ...] = ()  # chunks that are no candidates

    def has_damaged(self, ids: Sequence[int]) -> bool:
        """Return False: the store vouches for its vectors."""
        del ids
        return False

    def postings(self, term: str, *, prefix: bool) -> Postings:
        """Return the postings of a term or prefix with the frequency that it has in the store."""
        return self.parts.get((term, prefix)) or Postings((no_part(),), 0)

    def matching(self, table: str, expression: str) -> list[int]:
        """Return the chunks that match the expression of a phrase; for a phrase of the query also others."""
        del table
        known = self.held.get(expression)
        if known is not None:
            return list(known)
        reader = cast("MiniReader", self.reader)
        phrase = phrase_of(reader, expression)
        lists = [
            [part.ids for part in self.parts[term, False].parts if part.ids is not None]
            for term in set(phrase.split(" "))
            if (term, False) in self.parts
        ]
        having = set(reader.facts)
        for ids in lists:
            having &= {number for some in ids for number in some.tolist()}
        return [number for number in sorted(having) if has_phrase(reader.words(number), phrase)]

    def inside(self, piece: str, limit: int, among: Callable[[int], object] = bool) -> dict[int, int]:
        """Return how often *piece* occurs within words, per chunk.

        If no candidate has a word of the query, nothing: what has it only within its words are chunks of the
        store that are not known here.
        """
        if not any(part.size for postings in self.parts.values() for part in postings.parts):
            return {}
        wanted = bare(piece)
        ids = [number for number in sorted(cast("MiniReader", self.reader).facts) if among(number)][:limit]
        counts = {number: bare(text).count(wanted) for number, text in self.reader.searched(ids).items()}
        return {number: count for number, count in counts.items() if count}

    def with_candidates(self, chunks: Iterable[ChunkKey]) -> MiniView:
        """Return the view in which some chunks that are there may be in the answer, too."""
        reader = cast("MiniReader", self.reader)
        numbers = {key: number for number, key in enumerate(self.keys, 1)}
        more = {reader.starts[numbers[SourceKey(one.workspace, one.path)]] + one.ordinal for one in chunks}
        return replace(self, outside=tuple(number for number in self.outside if number not in more))

    def key(self, source: int) -> SourceKey:
        """Return the key of a source."""
        return self.keys[source - 1]


def phrase_of(reader: Reader, expression: str) -> str:
    """Return the phrase of an FTS5 expression that `memd.search.keyword.phrase_expression` made."""
    is_beginning = expression.endswith(" *")
    return " ".join(reader.terms(expression.removesuffix(" *").strip('"'))) + "*" * is_beginning


def asking_view(
    statistics: Statistics, near: Mapping[str, Near], cosines: CosineScale = SHIPPED_COSINES
) -> MiniView:
    """Return a view without chunks, which knows how many chunks of the store have the words of a query."""
    counts = dict(statistics.frequencies)
    for words in (words for one in near.values() for words in (one.forms, one.spellings, one.endings)):
        counts |= words
    nothing = np.zeros(0, np.int32)
    columns = Columns(nothing, nothing, nothing, statistics.chunks, statistics.total_length)
    snapshot = Snapshot(
        0, Sources(PLACE, {}), columns, NO_ROWS, "", TermPostings(columns, 0, 0), cosines=cosines
    )
    parts = {_term(name): Postings((), count) for name, count in counts.items()}
    vocabulary = NearVocabulary(near)
    return MiniView(snapshot, MiniReader(), vocabulary, parts=parts)


def mini_view(
    wanted: Wanted,
    found: Found,
    evidence: Evidence,
    statistics: Statistics,
    related: Sequence[PublishedSource] = (),
    *,
    model_id: str,
    cosines: CosineScale = SHIPPED_COSINES,
    named: Sequence[str] = (),
) -> MiniView:
    """Return the view of a query.

    Args:
        wanted: what the candidates were asked for, and the evidence was counted for.
        found: the candidates.
        evidence: of them, and of other chunks.
        statistics: of the parts of the query.
        related: sources that decide which sources replace those of the evidence.
        model_id: of the vectors; "": there are none.
        cosines: of that model.
        named: the FTS5 expression of each phrase of `wanted.named`.
    """
    made = _Made(wanted, evidence)
    columns = Columns(made.source, made.row, made.length, statistics.chunks, statistics.total_length)
    columns.norms(K1, B)[~made.known] = np.inf
    frequencies = statistics.frequencies
    words = TermPostings(columns, 0, 0)
    parts: dict[Term, Postings] = {}
    for number, name in enumerate(parts_of(wanted)):
        part = made.part(number)
        parts[_term(name)] = Postings((part,), max(frequencies.get(name, 0), part.size))
    for forms in wanted.forms:
        postings = parts.pop((f"={forms.word}", False))
        words.unions.put((forms.language, forms.word, forms.forms), postings)
    held: dict[str, Sequence[int]] = {}
    end = len(made.source)
    if wanted.whole:
        whole = parts.pop((f'"{wanted.whole}"', False))
        ids = made.spread(len(parts_of(wanted)) - 1)
        held[_expression(wanted.whole)] = [*ids, *range(end, end + whole.document_frequency - len(ids))]
    for expression, holders in zip(named, found.named, strict=False):
        chunks = sorted(filter(None, map(made.ids.get, holders.chunks)))
        held[expression] = chunks if holders.is_complete else range(end, end + MOST_HOLDERS + 1)
    meeting = (key for one in found.named for key, meets in zip(one.chunks, one.meets, strict=True) if meets)
    candidates = {made.ids.get(key, 0) for some in (found.by_words, found.by_vector, meeting) for key in some}
    reader, facts = _read(evidence, made, related)
    count = 1 + int(made.row.max(initial=-1))
    dim = len(evidence.vectors) // (FLOAT_BYTES * count) if count else 0
    keys = [one.key for one in facts.values()]
    snapshot = Snapshot(
        0,
        _sources(facts),
        columns,
        Rows(evidence.vectors, count, dim, no_crcs(count)),
        model_id if count else "",
        words,
        supersession=_supersession(related, {key: number for number, key in enumerate(keys, 1)}),
        cosines=cosines,
    )
    outside = tuple(number for number in range(1, end) if number not in candidates)
    vocabulary = NearVocabulary()
    return MiniView(snapshot, reader, vocabulary, parts=parts, held=held, keys=keys, outside=outside)


def _term(name: str) -> Term:
    return (name[:-1], True) if name.endswith("*") else (name, False)


def _expression(phrase: str) -> str:
    return f'"{phrase[:-1]}" *' if phrase.endswith("*") else f'"{phrase}"'


class _Made:
    """The arrays of the columns, by chunk id, and the counts of each part of the query."""

    def __init__(self, wanted: Wanted, evidence: Evidence) -> None:
        parts = len(parts_of(wanted))
        sizes = _table(evidence.sizes, 3)
        counts = _table(evidence.counts, 2 * parts).reshape(len(sizes), 2 * parts)
        at, places = _table(evidence.at, 4), _table(evidence.places, 3)
        self.starts = 1 + np.concatenate([[0], np.cumsum(sizes[:, 0])]).astype(np.int64)
        starts, end = self.starts[:-1], int(self.starts[-1])
        self.chunk_ids: Ids = starts[at[:, 0]] + at[:, 1]
        self.owners = (at[:, 0] + 1).tolist()
        self.source = np.zeros(end, np.int32)
        self.source[1:] = np.repeat(np.arange(1, len(sizes) + 1), sizes[:, 0])
        self.row = np.full(end, -1, np.int32)
        self.row[starts[places[:, 0]] + places[:, 1]] = places[:, 2]
        self.row[self.chunk_ids] = at[:, 3]
        self.length = np.zeros(end, np.int32)
        self.length[starts], self.length[self.chunk_ids] = sizes[:, 2], at[:, 2]
        self.known = np.zeros(end, np.bool_)  # chunks with a score of their own
        self.known[starts] = self.known[self.chunk_ids] = self.known[0] = True
        self.counts = np.zeros((parts, end), np.int32)
        self.counts[:, starts] = counts[:, parts:].T
        self.counts[:, self.chunk_ids] = _table(evidence.chunk_counts, parts).reshape(len(at), parts).T
        self._unknown = np.flatnonzero(~self.known)
        owners = self.source[self._unknown]  # ascending
        rest = self._unknown[np.flatnonzero(np.diff(owners, prepend=0))]
        if len(rest):
            owners = self.source[rest]
            sums = np.add.reduceat(self.counts, starts, axis=1)
            lengths = np.add.reduceat(self.length, starts)
            self.length[rest] = (sizes[:, 1] - lengths)[owners - 1]
            self.counts[:, rest] = (counts[:, :parts].T - sums)[:, owners - 1]
        keys = [one.key for one in evidence.sources]
        asked = [keys[owner] for owner in at[:, 0].tolist()]
        self.ids = {
            ChunkKey(key.workspace, key.path, ordinal): number
            for key, ordinal, number in zip(asked, at[:, 1].tolist(), self.chunk_ids.tolist(), strict=True)
        }

    def part(self, number: int) -> Part:
        """Return the postings of a part of the query."""
        ids = np.flatnonzero(self.counts[number])
        # Counts of several chunks together may be above 255.
        return Part(ids.astype(np.int32), cast("Any", self.counts[number, ids]))

    def spread(self, number: int) -> list[int]:
        """Return the chunks that have a phrase; of those without evidence as many as there are."""
        counts = self.counts[number]
        found: list[int] = np.flatnonzero((counts > 0) & self.known).tolist()
        at = np.flatnonzero(counts[self._unknown] > 0)  # the first such chunk of a source has the sum of all
        for place, rest in zip(at.tolist(), self._unknown[at].tolist(), strict=True):
            # As many chunks without evidence as have it; these follow in the same source.
            found += self._unknown[place : place + int(counts[rest])].tolist()
        return sorted(found)


def _table(packed: bytes, columns: int) -> Any:
    """Return rows of int32; one empty row less where there is no column."""
    return np.frombuffer(packed, "<i4").reshape(-1, columns) if columns else np.zeros((0, 0), np.int32)


def _read(
    evidence: Evidence, made: _Made, related: Sequence[PublishedSource]
) -> tuple[MiniReader, dict[int, SourceFacts | PublishedSource]]:
    reader = MiniReader()
    sources: dict[int, SourceFacts | PublishedSource] = dict(enumerate(evidence.sources, 1))
    reader.starts = dict(zip(sources, made.starts.tolist(), strict=False))
    reader.paths = {number: facts.key.path for number, facts in sources.items()}
    reader.changed = {number: facts.mtime_ns for number, facts in sources.items()}
    ids = made.chunk_ids.tolist()
    reader.facts = dict(zip(ids, evidence.chunks, strict=True))
    reader.owners = dict(zip(ids, made.owners, strict=True))
    known = {facts.key: number for number, facts in sources.items()} if related else {}
    for one in related:
        if one.key not in known:
            known[one.key] = len(sources) + 1
            sources[len(sources) + 1] = one
        named = frozenset(value for key, value in one.fields if key == SESSION and value)
        if named:
            reader.sessions[known[one.key]] = frozenset(f"{one.key.workspace} {name}" for name in named)
    return reader, sources


def source_of(number: int, facts: SourceFacts | PublishedSource) -> Source:
    """Return the record of a source."""
    return Source(
        number,
        facts.key.path,
        facts.title,
        facts.tags,
        date.fromisoformat(facts.day),
        cast("DayOf", facts.day_of),
        facts.origin,
        date.fromisoformat(facts.valid_until) if facts.valid_until else None,
        facts.evergreen,
        facts.external,
    )


def _sources(known: dict[int, SourceFacts | PublishedSource]) -> Sources:
    """Return the records; a conflict copy has its original in its own workspace, so not if two have it."""
    copies = copies_in((number, facts.key.path) for number, facts in known.items())
    if copies and len({facts.key.workspace for facts in known.values()}) > 1:
        homes: dict[str, set[str]] = {}
        for facts in known.values():
            homes.setdefault(facts.key.path, set()).add(facts.key.workspace)
        copies = {
            number: original
            for number, original in copies.items()
            if homes.get(original) == {known[number].key.workspace}
        }
    expiring = {
        number: date.fromisoformat(facts.valid_until) for number, facts in known.items() if facts.valid_until
    }
    return MiniSources(known, copies, expiring)


def _supersession(related: Sequence[PublishedSource], ids: Mapping[SourceKey, int]) -> Supersession:
    """Return the relation of superseding among some sources, each resolved in its own workspace."""
    edges: set[tuple[int, int]] = set()
    names: set[str] = set()
    for workspace in {one.key.workspace for one in related}:
        some = sorted(
            (one for one in related if one.key.workspace == workspace), key=lambda one: one.key.path
        )
        found = supersession(_run_over(some, ids))
        edges |= found.edges
        names |= found.names
    return Supersession.of(edges, names)


def _run_over(
    some: Sequence[PublishedSource], ids: Mapping[SourceKey, int]
) -> Callable[[str, Sequence[Any]], Iterable[tuple[Any, ...]]]:
    """Return what answers the statements of `memd.index.links` out of sources, which are sorted by path."""
    by_path = {one.key.path: ids[one.key] for one in some}
    by_name: dict[str, list[tuple[int, str, str]]] = {}
    for one in some:
        for kind, name in one.names:
            by_name.setdefault(name, []).append((ids[one.key], one.key.path, kind))

    def run(statement: str, values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        if statement == WHO:
            return by_name.get(values[0], [])
        assert statement == SUPERSEDING
        return [
            (ids[one.key], one.key.path, target, name, by_path.get(target))
            for one in some
            for kind, target, name, _ in one.links
            if kind == "supersedes"
        ]

    return run


def _tokenizers() -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    found: tuple[Callable[[str], list[str]], Callable[[str], list[str]]] | None
    found = getattr(_OF_THREAD, "tokenizers", None)
    if found is None:
        database = open_scratch()
        found = terms_of(database, of_query=True), terms_of(database, of_query=False)
        _OF_THREAD.database, _OF_THREAD.tokenizers = database, found
    return found
