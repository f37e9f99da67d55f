"""Writing into the store in Milvus: sources of one workspace, one call at a time.

A call first writes what it is about to do (the intent of the workspace), then the chunks, then the rows of
the sources, from when on readers see the new state, then the counts, each with the number of the intent; last
it deletes what was replaced. After a failure the next call of any process completes what the intent names, so
that counts stay exact and no row remains that no source has. For one thread at a time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import date

import msgspec
import numpy as np
from msgspec import Struct

from memd.errors import StoreModelError
from memd.stores.milvus_client import STRONG, Clock, Milvus, Row, Value
from memd.stores.milvus_counts import Counts, WorkspaceCounts
from memd.stores.milvus_rows import (
    chunk_id,
    counts_of_source,
    digest,
    facets_of,
    names_of,
    packed,
    pieces,
    place_of,
    searchable_words,
    unpacked,
)
from memd.stores.milvus_sources import Packed, packed_source
from memd.stores.store import PublishedSource, PublishedWorkspace, SourceKey

INTENT, SOURCE = "i", "s"  # kinds of packed values


class Change(Struct, frozen=True, array_like=True):
    """What a call does to one source."""

    place: str  # key of the source
    path: str
    revision: int
    is_removed: bool
    chunks: int
    parts: int  # rows of its packed value
    old_revision: int  # -1: it is new
    old_chunks: int
    old_parts: int
    delta: Counts  # what it adds to the counts of its workspace


class Intent(Struct, frozen=True, array_like=True):
    """What a call is about to do to a workspace."""

    number: int
    changes: tuple[Change, ...]


class Writer:
    """Writes sources of workspaces."""

    def __init__(self, milvus: Milvus, counts: WorkspaceCounts, threads: ThreadPoolExecutor) -> None:
        """Write nothing yet."""
        self._milvus = milvus
        self._counts = counts
        self._threads = threads
        self._numbers: dict[str, int] = {}  # workspace → last intent, if all of it is done

    def forget(self, workspace: str) -> None:
        """Look again for what a call has left, before the next one."""
        self._numbers.pop(workspace, None)

    def write(
        self,
        clock: Clock,
        workspace: PublishedWorkspace,
        asked: Sequence[tuple[SourceKey, int]],
        new: Sequence[PublishedSource],
    ) -> None:
        """Bring sources of one workspace to a state: those that are *new*, the others removed."""
        milvus = self._milvus
        number = self._completed(clock, workspace.id) + 1
        places = {key: place_of(key) for key, _ in asked}
        stored = milvus.values(clock, [f"{SOURCE}.{one}" for one in places.values()], consistency=STRONG)
        olds = {key: stored.get(f"{SOURCE}.{place}") for key, place in places.items()}
        by_key = {one.key: one for one in new}
        changes: list[Change] = []
        values: list[Value] = []
        chunks: dict[SourceKey, list[str]] = {}  # their rows
        for key, revision in asked:
            old, source = olds[key], by_key.get(key)
            if (old is None and source is None) or (old is not None and old.revision > revision):
                continue
            value = None
            if source is not None:
                head, body, chunks[key] = packed_source(source)
                value = _value_of(source, places[key], head, body)
            changes.append(_change(key, revision, old, source, value))
            values += [value] if value else []
        if not changes:
            return
        new = [one for one in new if one.key in chunks]
        # From here on, whatever fails is completed by the next call.
        self._numbers.pop(workspace.id, None)
        of = digest(workspace.id)
        intent = Intent(number, tuple(changes))
        milvus.put(clock, [Value(f"{INTENT}.{of}", of, number, "", packed(intent))])
        self._put_chunks(clock, new, chunks, workspace.model_id)
        milvus.put(clock, values)
        removed = [f"{SOURCE}.{one.place}" for one in changes if one.is_removed]
        milvus.delete(milvus.rows, clock, removed)
        self._finish(clock, workspace.id, number, changes)
        self._numbers[workspace.id] = number

    def _completed(self, clock: Clock, workspace: str) -> int:
        """Complete what the last call wanted to do, if it may have failed; return its number."""
        if workspace in self._numbers:
            return self._numbers[workspace]
        of = digest(workspace)
        stored = self._milvus.values(clock, [f"{INTENT}.{of}"], consistency=STRONG).get(f"{INTENT}.{of}")
        if stored is None:
            return 0
        intent = msgspec.msgpack.decode(unpacked(stored.body), type=Intent)
        keys = [f"{SOURCE}.{one.place}" for one in intent.changes]
        now = self._milvus.values(clock, keys, consistency=STRONG, has_body=False)
        done: list[Change] = []
        open_: list[Change] = []
        for change in intent.changes:
            is_there = now.get(f"{SOURCE}.{change.place}")
            revision = -1 if is_there is None else is_there.revision
            wanted = -1 if change.is_removed else change.revision
            (done if revision == wanted else open_).append(change)
        # Counts are written after all sources: if one source is not there yet, no count has this number.
        self._finish(clock, workspace, intent.number, done)
        unfinished = [one for one in open_ if one.revision != one.old_revision]
        self._delete_rows(clock, workspace, [(one.path, one.revision, one.chunks) for one in unfinished])
        self._numbers[workspace] = intent.number
        return intent.number

    def _put_chunks(
        self,
        clock: Clock,
        sources: Sequence[PublishedSource],
        shown: Mapping[SourceKey, Sequence[str]],
        model_id: str,
    ) -> None:
        words: list[Row] = []
        vectors: list[Row] = []
        for source in sources:
            row: Row = {
                "ws": digest(source.key.workspace),
                "source": place_of(source.key),
                "day": date.fromisoformat(source.day).toordinal(),
                "mtime": source.mtime_ns,
                "facets": facets_of(source),
            }
            for chunk, its in zip(source.chunks, shown[source.key], strict=True):
                key = {"key": chunk_id(source.key, chunk.ordinal, source.revision), "ordinal": chunk.ordinal}
                words.append({**row, **key, "words": searchable_words(chunk.words), "shown": its})
                if chunk.vector is not None:
                    vectors.append({**row, **key, "vector": np.frombuffer(chunk.vector, "<f4")})
        if vectors:
            if not model_id:
                raise StoreModelError("vectors of a workspace that was published without a model")
            self._milvus.create_vectors(clock, model_id, vectors[0]["vector"].size)
        # Side by side: the client encodes some rows while Milvus takes others.
        beside = self._threads.submit(self._milvus.upsert, self._milvus.vectors, clock, vectors)
        try:
            self._milvus.upsert(self._milvus.words, clock, words)
        finally:
            wait([beside])  # a failed call must not write while the next one completes it
        beside.result()

    def _finish(self, clock: Clock, workspace: str, number: int, changes: Sequence[Change]) -> None:
        """Add to the counts, then delete what was replaced. May be repeated."""
        total: Counter[str] = Counter()
        for change in changes:
            total.update(change.delta)
        of = digest(workspace)
        self._counts.add(clock, of, number, total)
        replaced = [one for one in changes if one.is_removed or one.old_revision not in {-1, one.revision}]
        olds = [(one.path, one.old_revision, one.old_chunks) for one in replaced]
        self._delete_rows(clock, workspace, olds)
        self._milvus.drop_parts(
            clock,
            [
                Value(f"{SOURCE}.{one.place}", of, one.old_revision, "", parts=one.old_parts)
                for one in replaced
            ],
        )

    def _delete_rows(self, clock: Clock, workspace: str, states: Iterable[tuple[str, int, int]]) -> None:
        """Delete the chunks of states of sources: (path, revision, number of chunks)."""
        keys = [
            chunk_id(SourceKey(workspace, path), ordinal, revision)
            for path, revision, chunks in states
            for ordinal in range(chunks)
        ]
        for collection in (self._milvus.words, self._milvus.vectors) if keys else ():
            if self._milvus.exists(collection, clock):
                self._milvus.delete(collection, clock, keys)


def _value_of(source: PublishedSource, place: str, head: str, body: str) -> Value:
    return Value(
        f"{SOURCE}.{place}", digest(source.key.workspace), source.revision, head, body,
        chunks=len(source.chunks), hash=source.hash.hex(), names=names_of(source),
        parts=len(pieces(body)),
    )  # fmt: skip


def _change(
    key: SourceKey, revision: int, old: Value | None, source: PublishedSource | None, new: Value | None
) -> Change:
    delta: Counter[str] = Counter()
    if source is not None:
        delta.update(counts_of_source(source, ((one.words, one.length) for one in source.chunks)))
    if old is not None:
        packed_ = Packed(old.head, old.body)
        delta.subtract(counts_of_source(packed_.source(), packed_.counted()))
    return Change(
        place_of(key), key.path, revision, is_removed=source is None,
        chunks=0 if source is None else len(source.chunks),
        parts=0 if new is None else new.parts,
        old_revision=-1 if old is None else old.revision,
        old_chunks=0 if old is None else old.chunks,
        old_parts=0 if old is None else old.parts,
        delta={term: count for term, count in delta.items() if count},
    )  # fmt: skip
