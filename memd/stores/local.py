"""One index of this machine behind the interface of a store, for reading.

The view decides what is visible: in one for agents, private notes are missing and secrets are masked, as in
what is published. Methods are for any thread; each opens a view of its own, so a chunk that is gone when its
evidence is asked for is left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from typing import Any, Final

import numpy as np
from msgspec import structs

from memd.errors import MemdError, StoreError
from memd.index.columns import Columns, Ids, Mask, mask_of, mask_size, restrict, stretches, take
from memd.index.postings import Postings, counted
from memd.index.snapshot import View
from memd.index.source_rows import ARCHIVES
from memd.languages import FUNCTION_WORDS, Language
from memd.search import filters
from memd.search.fields import parse as parsed_field
from memd.search.filters import FIELD, Condition
from memd.search.keyword import K1, B, ChunkScores, Stretches, counts_at, idf
from memd.search.query import Query
from memd.search.score import newest_candidates
from memd.search.source_scores import PLACES, places
from memd.search.spelling import CANDIDATES, words_within
from memd.search.vector import vector_arm
from memd.search.word_forms import COMMON_SHARE, FEW_CHUNKS, postings_of_forms
from memd.stores.lean import packed
from memd.stores.published import AMONG, published_sources
from memd.stores.relations import related
from memd.stores.store import (
    MOST_HOLDERS,
    ChunkFacts,
    ChunkKey,
    Evidence,
    Filter,
    Found,
    Holders,
    Listed,
    Near,
    PublishedSource,
    PublishedWorkspace,
    SourceFacts,
    SourceKey,
    Statistics,
    Wanted,
    parts_of,
)

EDITS: Final = 2  # the most that a spelling is corrected by

# Looked up one by one in the order of the list: IN would sort it first, a third of the time of the statement.
_FACTS = """
    SELECT chunks.id, start_line, end_line, start_byte, heading, text, context, hash, signature, entry, origin
    FROM json_each(?) AS wanted CROSS JOIN chunks ON chunks.id = wanted.value
"""
_CHANGED = f"SELECT id, mtime_ns FROM sources WHERE id {AMONG}"
_NAMES_OF = f"SELECT DISTINCT name FROM names WHERE source {AMONG}"
_TARGETS_OF = f"SELECT DISTINCT name FROM links WHERE kind = 'supersedes' AND source {AMONG}"
_NAMED = f"SELECT DISTINCT source FROM names WHERE name {AMONG}"
_LINKING = f"SELECT DISTINCT source FROM links WHERE kind = 'supersedes' AND name {AMONG}"
_LISTED = f"""
    SELECT sources.id, path, sources.hash, count(*) FROM sources JOIN chunks ON chunks.source = sources.id
    WHERE sources.id {AMONG} GROUP BY sources.id ORDER BY path
"""

OpenView = Callable[[Callable[[], bool]], AbstractContextManager[View]]


class LocalStore:
    """A `ReadableStore` over one index."""

    def __init__(self, workspace: PublishedWorkspace, open_view: OpenView) -> None:
        """Read the index of *workspace*.

        Args:
            workspace: as the team knows it.
            open_view: opens a view; its statements end when the given function returns True.
        """
        self.workspace = workspace
        self._open = open_view
        # What the next calls of a search need again, checked before it is used.
        self._named: dict[str, int] = {}  # path → id of the sources of the last candidates
        self._languages: tuple[Columns | None, dict[str, int]] = (None, {})  # of the last generation

    def candidates(self, wanted: Wanted, deadline_s: float) -> Found:
        """Return the best candidates by words and by vector among the sources that meet the filters."""
        with self._view(deadline_s) as view:
            if not self._is_wanted(wanted):
                return Found((), ())
            self._named = {}
            conditions = _conditions(wanted.filters)
            mask = _mask(view, wanted.filters, conditions)
            if conditions and not (parts_of(wanted) or wanted.vector):
                newest = newest_candidates(view, Query("", filters=conditions))[: wanted.pool]
                return Found(self._keys(view, [one.id for one in newest]), (), allowed=mask_size(mask))
            scores = ChunkScores(_weighted(view, wanted), view.snapshot.columns, K1, B)
            by_words = scores.best(mask, wanted.pool)
            return Found(
                self._keys(view, by_words),
                self._keys(view, self._nearest(view, wanted, mask)),
                tuple(self._holders(view, phrase, mask) for phrase in wanted.named),
                mask_size(mask),
            )

    def statistics(self, wanted: Wanted, deadline_s: float) -> Statistics:
        """Return the statistics of the wanted terms, whatever the filters."""
        with self._view(deadline_s) as view:
            columns = view.snapshot.columns
            found = [postings.document_frequency for postings in _postings(view, wanted)]
            languages: dict[str, int] = {}
            if wanted.terms:  # not asked again for the forms of words
                languages = self._spoken(view, deadline_s)
            parts = dict(zip(parts_of(wanted), found, strict=True))
            return Statistics(columns.count, columns.total_length, parts, languages)

    def vocabulary(self, word: str, deadline_s: float, language: str = "") -> Near:
        """Return the words near *word*, a term; its forms if *language* is given."""
        with self._view(deadline_s) as view:
            count = view.snapshot.columns.count
            documents = view.postings(word, prefix=False).document_frequency
            view.vocabulary.read(view.reader, count, deadline_s)
            forms, spellings, endings = dict[str, int](), dict[str, int](), dict[str, int]()
            if language and documents <= max(FEW_CHUNKS, COMMON_SHARE * count):
                forms = _frequencies(view, view.vocabulary.forms(word, _language(language)))
            if not documents:
                spellings = _frequencies(view, words_within(view.vocabulary, word, EDITS))
                endings = _frequencies(view, view.vocabulary.beginning_with(word, CANDIDATES))
            return Near(forms, spellings, endings)

    def lean(self, chunks: tuple[ChunkKey, ...], wanted: Wanted, deadline_s: float) -> Evidence:
        """Return what ranking needs of these chunks; gone ones are left out."""
        with self._view(deadline_s) as view:
            return self._evidence(view, self._ids(view, chunks), wanted)

    def evidence(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return these sources whole; gone ones are left out."""
        with self._view(deadline_s) as view:
            ids = self._source_ids(view, [one.path for one in sources if one.workspace == self.workspace.id])
            return published_sources(view, self.workspace.id, list(ids.values()))

    def related(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return what decides which sources replace these ones, without chunks."""
        with self._view(deadline_s) as view:
            ids = self._source_ids(view, [one.path for one in sources if one.workspace == self.workspace.id])
            archived = [number for path, number in ids.items() if path.startswith(ARCHIVES)]
            known = view.snapshot.sources
            same = {other for one in archived for other in view.reader.of_same_session(one) if other in known}
            found = same | set(archived) if same else set()
            if view.snapshot.supersession.names:
                found |= related(
                    {*ids.values(), *same},
                    names=lambda some: _texts(view, _NAMES_OF, some),
                    targets=lambda some: _texts(view, _TARGETS_OF, some),
                    named=lambda names: _numbers(view, _NAMED, names),
                    linking=lambda names: _numbers(view, _LINKING, names),
                )
            return published_sources(view, self.workspace.id, sorted(found), with_chunks=False)

    def sources(self, workspace: str, after: str, limit: int, deadline_s: float) -> tuple[Listed, ...]:
        """Return the sources of the workspace whose paths sort after *after*, in order of paths."""
        with self._view(deadline_s) as view:
            some = sorted((path, number) for number, path in view.snapshot.sources.paths() if path > after)
            ids = [number for _, number in some[:limit]] if workspace == self.workspace.id else []
            revision = view.snapshot.generation
            return tuple(
                Listed(SourceKey(workspace, path), revision, digest, count)
                for _, path, digest, count in view.reader.each(_LISTED, (json.dumps(ids),))
            )

    def workspaces(self, deadline_s: float) -> tuple[PublishedWorkspace, ...]:
        """Return the workspace."""
        del deadline_s
        return (self.workspace,)

    @contextmanager
    def _view(self, deadline_s: float) -> Iterator[View]:
        stop = time.monotonic() + deadline_s
        try:
            with self._open(lambda: time.monotonic() > stop) as view:
                yield view
        except StoreError:
            raise
        except MemdError as error:
            raise StoreError(f"{self.workspace.name}: {error}") from error

    def _spoken(self, view: View, deadline_s: float) -> dict[str, int]:
        """Return how often the function words of each language occur."""
        columns, known = self._languages
        if columns is not view.snapshot.columns:
            is_read = view.vocabulary.read(view.reader, view.snapshot.columns.count, deadline_s)
            frequency = view.vocabulary.document_frequency
            known = {name: frequency(*words) for name, words in FUNCTION_WORDS.items()}
            if is_read:
                self._languages = view.snapshot.columns, known
        return known

    def _is_wanted(self, wanted: Wanted) -> bool:
        return wanted.workspaces is None or self.workspace.id in wanted.workspaces

    def _holders(self, view: View, phrase: str, mask: Mask) -> Holders:
        ids = view.matching("words", _expression(phrase))
        if len(ids) > MOST_HOLDERS:
            return Holders((), (), is_complete=False)
        return Holders(self._keys(view, ids), tuple(take(mask, ids)))

    def _nearest(self, view: View, wanted: Wanted, mask: Mask) -> list[int]:
        if wanted.vector is None:
            return []
        arm = vector_arm(view, wanted.vector, self.workspace.model_id, mask, wanted.corrected)
        # As in a search of the index: next to a damaged vector only words count.
        return [] if arm is None or view.damaged else arm.pool[: wanted.pool].tolist()

    def _keys(self, view: View, ids: Sequence[int] | Ids) -> tuple[ChunkKey, ...]:
        columns, path = view.snapshot.columns, view.snapshot.sources.path
        first, _ = stretches(columns, ids)
        ordinals = (np.asarray(ids, np.int64) - first).tolist()
        sources, workspace = take(columns.source, ids), self.workspace.id
        paths = {source: path(source) for source in sources}
        self._named.update((name, source) for source, name in paths.items())
        return tuple(
            ChunkKey(workspace, paths[source], ordinal)
            for source, ordinal in zip(sources, ordinals, strict=True)
        )

    def _ids(self, view: View, chunks: Sequence[ChunkKey]) -> Ids:
        """Return the ids of the chunks that exist, ascending."""
        columns = view.snapshot.columns
        ours = [chunk for chunk in chunks if chunk.workspace == self.workspace.id]
        sources = self._source_ids(view, list({chunk.path for chunk in ours}))
        starts = columns.starts()
        if not ours or not len(columns.source):
            return np.zeros(0, np.int64)
        firsts = np.zeros(int(columns.source.max(initial=0)) + 1, np.int64)
        firsts[columns.source[starts[:-1]]] = starts[:-1]
        owners = np.array([sources.get(chunk.path, 0) for chunk in ours], np.int64)
        ids = np.where(owners < len(firsts), firsts[np.minimum(owners, len(firsts) - 1)], 0)
        ids += np.array([chunk.ordinal for chunk in ours], np.int64)
        is_there = (owners > 0) & (ids < len(columns.source))
        is_there &= columns.source[np.where(is_there, ids, 0)] == owners
        found: Ids = np.unique(ids[is_there])
        return found

    def _source_ids(self, view: View, paths: Sequence[str]) -> dict[str, int]:
        """Return path → id of the live sources."""
        live, named = view.snapshot.sources, self._named
        found = {path: named[path] for path in paths if path in named}
        # A file that was deleted and is there again may have another id.
        found = {path: one for path, one in found.items() if one in live and live.path(one) == path}
        if unknown := [path for path in paths if path not in found]:
            found |= {path: one for path, one in view.reader.source_ids(unknown).items() if one in live}
        return found

    def _evidence(self, view: View, ids: Ids, wanted: Wanted) -> Evidence:
        snapshot = view.snapshot
        columns, rows = snapshot.columns, snapshot.rows
        starts, ends = stretches(columns, ids)
        firsts, one_each, number = np.unique(starts, return_index=True, return_inverse=True)
        ends = ends[one_each]
        stretch = Stretches(firsts, ends)
        sizes = np.column_stack([ends - firsts, stretch.sums(columns.length), columns.length[firsts]])
        postings = _postings(view, wanted)
        in_file = [sum(map(stretch.counts, one.parts), start=np.zeros(len(firsts))) for one in postings]
        in_first = [_counts(one, firsts) for one in postings]
        own = [_counts(one, ids) for one in postings]
        spread = places(columns, firsts, PLACES) if len(firsts) else ids
        some = np.unique(np.concatenate([ids, spread]))
        has_rows = bool(rows.count) and snapshot.model_id == self.workspace.model_id
        has_rows = has_rows and not view.has_damaged(some[columns.row[some] >= 0].tolist())
        row = np.where(has_rows, columns.row, -1) if not has_rows else columns.row
        used = np.unique(row[some])
        used = used[used >= 0]
        table = np.frombuffer(rows.buffer, "<f4", rows.count * rows.dim).reshape(rows.count, rows.dim)
        renumbered = np.full(int(used.max(initial=-1)) + 2, -1, np.int64)  # index -1 is the last entry
        renumbered[used] = np.arange(len(used))
        at = np.column_stack([number, ids - starts, columns.length[ids], renumbered[row[ids]]])
        group = np.repeat(np.arange(len(firsts)), PLACES if len(firsts) else 0)
        seen = np.column_stack([group, spread - firsts[group], renumbered[row[spread]]])
        facts = _chunk_facts(view, ids.tolist(), set(ids[row[ids] < 0].tolist()))
        return Evidence(
            self._source_facts(view, take(columns.source, firsts), is_newest=not parts_of(wanted)),
            _packed(sizes),
            _packed(np.column_stack([*in_file, *in_first])) if postings else b"",
            facts,
            _packed(at),
            _packed(np.column_stack(own)) if postings else b"",
            _packed(seen[seen[:, 2] >= 0]),
            table[used].tobytes(),
        )

    def _source_facts(
        self, view: View, sources: Sequence[int], *, is_newest: bool
    ) -> tuple[SourceFacts, ...]:
        # The time of the last change ranks sources only where nothing is searched for.
        changed = dict(view.reader.each(_CHANGED, (json.dumps(list(sources)),))) if is_newest else {}
        known, workspace = view.snapshot.sources, self.workspace.id
        records = map(known.__getitem__ if view.veil is None else view.source, sources)
        return tuple(
            SourceFacts(
                SourceKey(workspace, one.path), one.title, one.tags, one.day.isoformat(), one.day_of,
                one.origin, one.valid_until.isoformat() if one.valid_until else "", one.evergreen,
                one.external, changed.get(number, 0),
            )
            for number, one in zip(sources, records, strict=True)
        )  # fmt: skip


def _chunk_facts(view: View, ids: Sequence[int], without_vector: Collection[int]) -> tuple[ChunkFacts, ...]:
    rows = view.reader.all(_FACTS, (json.dumps(ids),))
    stored = {row[0]: ChunkFacts(*row[1:]) for row in rows}
    for number in without_vector:
        if why := view.reader.left_out(number):
            stored[number] = structs.replace(stored[number], left_out=why)
    if view.veil is not None:
        for number, chunk in view.shown(ids).items():
            context = view.veil.masked(stored[number].context)
            stored[number] = structs.replace(
                stored[number], heading=chunk.heading, text=chunk.text, context=context
            )
    return tuple(map(stored.__getitem__, ids))


def _mask(view: View, wanted: Sequence[Filter], conditions: filters.Filters) -> Mask:
    """Return the chunks that meet the filters."""
    sources = [one.id for one in filters.matching(view, conditions)] if conditions else None
    mask = mask_of(view.snapshot.columns, sources)
    for one in wanted:
        if one.name in filters.OF_WORDS:
            having = {
                number for phrase in one.values for number in view.matching("words", _expression(phrase))
            }
            mask = restrict(mask, having, keep=one.name == "phrase")
    return mask


def _conditions(wanted: Sequence[Filter]) -> filters.Filters:
    """Return the conditions on sources.

    Raises:
        StoreError: a filter is unknown, or has an impossible value.
    """
    found = []
    for one in wanted:
        try:
            if one.name in {"since", "until"}:
                found.append(Condition(one.name, tuple(map(date.fromisoformat, one.values))))
            elif one.name == FIELD:
                found.append(Condition(FIELD, tuple(parsed_field(text, None) for text in one.values)))
            elif one.name not in filters.OF_WORDS:
                filters.BY_NAME[one.name].matcher(one.values, None)
                found.append(Condition(one.name, one.values))
        except (KeyError, ValueError) as error:
            raise StoreError(f"{one.name}={one.values!r:.100} is no filter of this store: {error}") from error
    return tuple(found)


def _postings(view: View, wanted: Wanted) -> list[Postings]:
    """Return the postings of each part of a query."""
    found = [view.postings(term, prefix=False) for term in wanted.terms]
    found += [view.postings(start, prefix=True) for start in wanted.prefixes]
    found += [postings_of_forms(view, one.word, one.forms, _language(one.language)) for one in wanted.forms]
    if wanted.whole:
        found.append(counted(dict.fromkeys(view.matching("words", _expression(wanted.whole)), 1)))
    return found


def _weighted(view: View, wanted: Wanted) -> list[tuple[float, Postings]]:
    """Return the postings of each part with its weight, as `memd.search.keyword` has it."""
    postings = _postings(view, wanted)
    weights = wanted.weights or (1.0,) * len(postings)
    words = {one.word: view.postings(one.word, prefix=False).document_frequency for one in wanted.forms}
    more = dict(zip((f"={word}" for word in words), words.values(), strict=True))
    chunks = view.snapshot.columns.count
    return [
        (weight * idf(chunks, one.document_frequency + more.get(name, 0)), one)
        for name, weight, one in zip(parts_of(wanted), weights, postings, strict=True)
    ]


def _expression(phrase: str) -> str:
    """Return the FTS5 expression for a phrase."""
    return f'"{phrase[:-1]}" *' if phrase.endswith("*") else f'"{phrase}"'


def _frequencies(view: View, words: Collection[str]) -> dict[str, int]:
    found = {word: view.postings(word, prefix=False).document_frequency for word in words}
    return {word: count for word, count in found.items() if count}


def _counts(postings: Postings, ids: Ids) -> Any:
    return sum((counts_at(part, ids) for part in postings.parts), start=np.zeros(len(ids), np.float32))


def _packed(numbers: Any) -> bytes:
    return packed(numbers.astype("<i4"))


def _language(name: str) -> Language:
    return name  # type: ignore[return-value]  # one of a configuration


def _texts(view: View, statement: str, sources: Collection[int]) -> set[str]:
    return {text for [text] in view.reader.each(statement, (json.dumps(list(sources)),))}


def _numbers(view: View, statement: str, names: Collection[str]) -> set[int]:
    rows = view.reader.each(statement, (json.dumps(list(names)),))
    return {number for [number] in rows if number in view.snapshot.sources}
