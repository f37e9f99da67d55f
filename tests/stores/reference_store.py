"""A small, exact store: all of it in memory, written through to one SQLite file, answers by going through it.

What it promises, any real store may be held against: a revision replaces lower ones only, what it has
acknowledged is on the disk, a token sees the workspaces of its group and writes its own ones, and what was
removed is in no byte of the file.
"""

import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import msgspec
import numpy as np

from memd.errors import StoreError, StoreModelError, StoreRefusedError
from memd.index.source_rows import ARCHIVES, SESSION
from memd.languages import FUNCTION_WORDS
from memd.records import Source
from memd.search import filters
from memd.search.fields import parse as parsed_field
from memd.search.keyword import K1, B, idf
from memd.stores.lean import counter, has_phrase, lean_of
from memd.stores.relations import related
from memd.stores.store import (
    MOST_HOLDERS,
    ChunkKey,
    Evidence,
    Filter,
    Found,
    Holders,
    Listed,
    Near,
    PublishedChunk,
    PublishedSource,
    PublishedWorkspace,
    SourceKey,
    Statistics,
    Wanted,
    parts_of,
)

SCHEMA = """
CREATE TABLE workspaces (id TEXT PRIMARY KEY, token TEXT, grp TEXT, stored BLOB);
CREATE TABLE sources (workspace TEXT, path TEXT, stored BLOB, PRIMARY KEY (workspace, path));
CREATE TABLE removed (key BLOB PRIMARY KEY, revision INTEGER);  -- a hash: no path of what is gone
CREATE TABLE undo (n INTEGER PRIMARY KEY, workspace TEXT, path TEXT, stored BLOB);
"""
Key = tuple[str, str]  # workspace, path


class Body:
    """What all callers share."""

    def __init__(self, file: Path, *, keeps_undo: bool = False) -> None:
        is_new = not file.exists()
        self.db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self.db.execute("PRAGMA secure_delete = 1")
        self.db.execute("PRAGMA synchronous = FULL")
        if is_new:
            self.db.executescript(SCHEMA)
        self.keeps_undo = keeps_undo
        self.lock = threading.RLock()
        self.lag_s = 0.0
        self.is_full = False
        self.writes = 0  # sources stored since the start
        self.load()

    def load(self) -> None:
        decode = msgspec.msgpack.decode
        self.workspaces = {
            row[0]: (decode(row[3], type=PublishedWorkspace), row[1], row[2])
            for row in self.db.execute("SELECT * FROM workspaces")
        }
        self.sources: dict[Key, PublishedSource] = {
            (row[0], row[1]): decode(row[2], type=PublishedSource)
            for row in self.db.execute("SELECT * FROM sources")
        }
        self.shown = dict(self.sources)
        self.later: list[tuple[float, Key]] = []  # when readers see what is stored now

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.lock:
            if self.is_full:
                raise StoreError("the disk of the store is full")
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.db.execute("ROLLBACK")
                self.load()
                raise
            self.db.execute("COMMIT")

    def put(self, key: Key, source: PublishedSource | None) -> None:
        old = self.db.execute("SELECT stored FROM sources WHERE workspace = ? AND path = ?", key).fetchone()
        if self.keeps_undo:
            self.db.execute("INSERT INTO undo VALUES (NULL, ?, ?, ?)", (*key, old and old[0]))
        if source is None:
            self.db.execute("DELETE FROM sources WHERE workspace = ? AND path = ?", key)
            self.sources.pop(key, None)
        else:
            stored = msgspec.msgpack.encode(source)
            self.db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?)", (*key, stored))
            self.sources[key] = source
            self.writes += 1
        self.later.append((time.monotonic() + self.lag_s, key))

    def lose(self, count: int) -> None:
        """Forget the last writes, as a store that had not flushed them."""
        with self.lock:
            rows = self.db.execute("SELECT * FROM undo ORDER BY n DESC LIMIT ?", (count,)).fetchall()
            for number, workspace, path, stored in rows:
                self.db.execute("DELETE FROM undo WHERE n = ?", (number,))
                self.db.execute("DELETE FROM sources WHERE workspace = ? AND path = ?", (workspace, path))
                self.db.execute("DELETE FROM removed WHERE key = ?", (_hashed((workspace, path)),))
                if stored is not None:
                    self.db.execute("INSERT INTO sources VALUES (?, ?, ?)", (workspace, path, stored))
            self.load()

    def removed(self, key: Key) -> int:
        row = self.db.execute("SELECT revision FROM removed WHERE key = ?", (_hashed(key),)).fetchone()
        return row[0] if row else -1

    def seen(self, groups: set[str]) -> dict[Key, PublishedSource]:
        with self.lock:
            now = time.monotonic()
            due = [key for at, key in self.later if at <= now]
            self.later = [one for one in self.later if one[0] > now]
            for key in due:
                if key in self.sources:
                    self.shown[key] = self.sources[key]
                else:
                    self.shown.pop(key, None)
            seen = {one for one, (_, _, group) in self.workspaces.items() if group in groups}
            return {key: source for key, source in self.shown.items() if key[0] in seen}


def _hashed(key: Key) -> bytes:
    return hashlib.blake2b("\0".join(key).encode(), digest_size=16).digest()


class ReferenceStore:
    """The store as one token has it."""

    def __init__(self, body: Body, token: str, groups: list[str]) -> None:
        self._body = body
        self._token = token
        self._groups = groups  # what it publishes belongs to the first

    # Writing

    def publish(self, workspace: PublishedWorkspace, deadline_s: float) -> None:
        del deadline_s
        with self._body.writing():
            self._expect_own(workspace.id, may_be_new=True)
            models = {
                one.model_id
                for one, _, group in self._body.workspaces.values()
                if group == self._groups[0] and one.id != workspace.id and one.model_id
            }
            if workspace.model_id and models - {workspace.model_id}:
                raise StoreModelError(f"its vectors are of {models.pop()}")
            stored = msgspec.msgpack.encode(workspace)
            row = (workspace.id, self._token, self._groups[0], stored)
            self._body.db.execute("INSERT OR REPLACE INTO workspaces VALUES (?, ?, ?, ?)", row)
            self._body.workspaces[workspace.id] = (workspace, self._token, self._groups[0])

    def unpublish(self, workspace: str, deadline_s: float) -> None:
        del deadline_s
        with self._body.writing():
            if workspace not in self._body.workspaces:
                return
            self._expect_own(workspace)
            for key in [key for key in self._body.sources if key[0] == workspace]:
                self._body.put(key, None)
            self._body.db.execute("DELETE FROM workspaces WHERE id = ?", (workspace,))
            del self._body.workspaces[workspace]

    def replace(self, sources: tuple[PublishedSource, ...], deadline_s: float) -> None:
        del deadline_s
        with self._body.writing():
            for source in sources:
                key = (source.key.workspace, source.key.path)
                self._expect_own(key[0])
                if any("unacceptable to this store" in chunk.text for chunk in source.chunks):
                    raise StoreRefusedError("a text that this store never takes")
                known = self._body.sources.get(key)
                newest = max(known.revision if known else -1, self._body.removed(key))
                if source.revision > newest:
                    self._body.put(key, source)

    def remove(self, sources: tuple[tuple[SourceKey, int], ...], deadline_s: float) -> None:
        del deadline_s
        with self._body.writing():
            for (workspace, path), revision in (((one.workspace, one.path), at) for one, at in sources):
                self._expect_own(workspace)
                known = self._body.sources.get((workspace, path))
                if known is not None and known.revision <= revision:
                    self._body.put((workspace, path), None)
                if revision > self._body.removed((workspace, path)):
                    row = (_hashed((workspace, path)), revision)
                    self._body.db.execute("INSERT OR REPLACE INTO removed VALUES (?, ?)", row)

    def _expect_own(self, workspace: str, *, may_be_new: bool = False) -> None:
        known = self._body.workspaces.get(workspace)
        if known is None and not may_be_new:
            raise StoreError("this workspace is not published")
        if known is not None and known[1] != self._token:
            raise StoreRefusedError("this workspace belongs to somebody else")

    # Listings

    def workspaces(self, deadline_s: float) -> tuple[PublishedWorkspace, ...]:
        del deadline_s
        with self._body.lock:  # what is being written is not there yet
            known = list(self._body.workspaces.values())
        return tuple(one for one, _, group in known if group in self._groups)

    def sources(self, workspace: str, after: str, limit: int, deadline_s: float) -> tuple[Listed, ...]:
        del deadline_s
        seen = self._seen()
        some = sorted(path for one, path in seen if one == workspace and path > after)[:limit]
        found = [seen[workspace, path] for path in some]
        return tuple(Listed(one.key, one.revision, one.hash, len(one.chunks)) for one in found)

    # Reading

    def evidence(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        del deadline_s
        seen = self._seen()
        keys = [(one.workspace, one.path) for one in sources]
        return tuple(seen[key] for key in keys if key in seen)

    def lean(self, chunks: tuple[ChunkKey, ...], wanted: Wanted, deadline_s: float) -> Evidence:
        keys = tuple(dict.fromkeys(SourceKey(one.workspace, one.path) for one in chunks))
        return lean_of(self.evidence(keys, deadline_s), chunks, wanted)

    def related(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        del deadline_s
        seen = self._seen()

        def names(some: set[Key], kind: str = "") -> set[Key]:
            if kind:
                return {(one[0], name) for one in some for at, _, name, _ in seen[one].links if at == kind}
            return {(one[0], name) for one in some for _, name in seen[one].names}

        asked = {(one.workspace, one.path) for one in sources} & seen.keys()
        archived = {one for one in asked if one[1].startswith(ARCHIVES)}
        sessions = {
            (one[0], value) for one in archived for key, value in seen[one].fields if key == SESSION
        } - {(one[0], "") for one in archived}
        same = {
            one
            for one, source in seen.items()
            if one not in archived and any(k == SESSION and (one[0], v) in sessions for k, v in source.fields)
        }
        found = related(
            asked | same,
            names=names,
            targets=lambda some: names(some, "supersedes"),
            named=lambda wanted: {one for one in seen if names({one}) & wanted},
            linking=lambda wanted: {one for one in seen if names({one}, "supersedes") & wanted},
        )
        found |= (same | archived) if same else set()
        return tuple(msgspec.structs.replace(seen[one], chunks=()) for one in sorted(found))

    def candidates(self, wanted: Wanted, deadline_s: float) -> Found:
        del deadline_s
        places = self._places(wanted)
        allowed = [place for place in places if _meets(place[1], place[2], wanted.filters)]
        if wanted.filters and not (parts_of(wanted) or wanted.vector):
            first = [place for place in allowed if place[2].ordinal == 0]
            first.sort(key=lambda place: (place[1].day, place[1].mtime_ns), reverse=True)
            return Found(tuple(place[0] for place in first[: wanted.pool]), ())
        scores = self._scores(wanted, places)
        by_words = sorted(
            (place for place in allowed if scores.get(place[0], 0) > 0), key=lambda one: -scores[one[0]]
        )
        return Found(
            tuple(place[0] for place in by_words[: wanted.pool]),
            tuple(self._nearest(wanted, allowed)[: wanted.pool]),
            tuple(_holders(phrase, places, wanted.filters) for phrase in wanted.named),
            len(allowed),
        )

    def statistics(self, wanted: Wanted, deadline_s: float) -> Statistics:
        del deadline_s
        places = self._places(wanted)
        frequencies = self._frequencies(wanted, places)
        terms = [set(chunk.words.split()) for _, _, chunk in places]
        languages = {
            name: sum(len(words & found) for found in terms) for name, words in FUNCTION_WORDS.items()
        }
        length = sum(chunk.length for _, _, chunk in places)
        return Statistics(len(places), length, frequencies, dict(languages))

    def vocabulary(self, word: str, deadline_s: float, language: str = "") -> Near:
        del deadline_s, language
        counts: dict[str, int] = {}
        for source in self._seen().values():
            for chunk in source.chunks:
                for term in set(chunk.words.split()):
                    counts[term] = counts.get(term, 0) + 1
        if word in counts:
            return Near({}, {})
        near = {term: count for term, count in counts.items() if abs(len(term) - len(word)) <= 2}
        return Near({}, near, {term: count for term, count in counts.items() if term.startswith(word)})

    def _seen(self) -> dict[Key, PublishedSource]:
        return self._body.seen(set(self._groups))

    def _places(self, wanted: Wanted) -> list[tuple[ChunkKey, PublishedSource, PublishedChunk]]:
        return [
            (ChunkKey(*key, chunk.ordinal), source, chunk)
            for key, source in sorted(self._seen().items())
            if wanted.workspaces is None or key[0] in wanted.workspaces
            for chunk in source.chunks
        ]

    def _frequencies(self, wanted: Wanted, places: list) -> dict[str, int]:
        counted = counter(wanted)
        rows = [counted(chunk.words) for _, _, chunk in places]
        return {name: sum(row[n] > 0 for row in rows) for n, name in enumerate(parts_of(wanted))}

    def _scores(self, wanted: Wanted, places: list) -> dict[ChunkKey, float]:
        counted = counter(wanted)
        frequencies = self._frequencies(wanted, places)
        words = {f"={one.word}": sum(one.word in c.words.split() for *_, c in places) for one in wanted.forms}
        weights = wanted.weights or (1.0,) * len(frequencies)
        idfs = [
            weight * idf(len(places), frequencies[name] + words.get(name, 0))
            for name, weight in zip(parts_of(wanted), weights, strict=True)
        ]
        mean = sum(chunk.length for *_, chunk in places) / max(len(places), 1) or 1.0
        return {
            key: sum(
                value * tf * (K1 + 1) / (tf + K1 * (1 - B + B * chunk.length / mean))
                for value, tf in zip(idfs, counted(chunk.words), strict=True)
            )
            for key, _, chunk in places
        }

    def _nearest(self, wanted: Wanted, allowed: list) -> list[ChunkKey]:
        having = [place for place in allowed if place[2].vector is not None]
        if wanted.vector is None:
            return []
        having = [place for place in having if len(place[2].vector) == len(wanted.vector)]
        if not having:
            return []
        rows = np.stack([np.frombuffer(chunk.vector, "<f4") for *_, chunk in having])
        cosines = rows @ np.frombuffer(wanted.vector, "<f4")
        if wanted.corrected is not None:
            cosines = np.maximum(cosines, rows @ np.frombuffer(wanted.corrected, "<f4"))
        return [having[n][0] for n in np.argsort(-cosines, kind="stable")]


def _holders(phrase: str, places: list, conditions: tuple[Filter, ...]) -> Holders:
    having = [place for place in places if has_phrase(place[2].words, phrase)]
    if len(having) > MOST_HOLDERS:
        return Holders((), (), is_complete=False)
    return Holders(tuple(place[0] for place in having), tuple(_meets(p[1], p[2], conditions) for p in having))


def _meets(source: PublishedSource, chunk: PublishedChunk, conditions: tuple[Filter, ...]) -> bool:
    return all(_meets_one(source, chunk, one) for one in conditions)


def _meets_one(source: PublishedSource, chunk: PublishedChunk, condition: Filter) -> bool:
    name, values = condition.name, condition.values
    if name in filters.OF_WORDS:
        return any(has_phrase(chunk.words, phrase) for phrase in values) == (name == "phrase")
    if name == filters.FIELD:
        return any(_passes(source, text) for text in values)
    record = Source(
        1, source.key.path, source.title, source.tags, date.fromisoformat(source.day), source.day_of,
        source.origin,
    )  # fmt: skip
    typed = tuple(map(date.fromisoformat, values)) if name in {"since", "until"} else values
    return bool(filters.Condition(name, typed).matcher()(record))


def _passes(source: PublishedSource, text: str) -> bool:
    test = parsed_field(text, None)
    values = [value for key, value in source.fields if key == test.key]
    if test.operator in {"has", "lacks"}:
        return bool(values) == (test.operator == "has")
    passed = any(map(test.passes, values))
    return not passed if test.operator == "!=" else passed
