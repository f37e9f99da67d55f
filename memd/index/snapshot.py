"""Snapshots: the columns and matrix of one generation, and a view that adds a read transaction of it."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeVar

from memd.errors import IndexDamagedError
from memd.index.ann import Codes
from memd.index.columns import Columns, only_living, take
from memd.index.links import MAX_HOLDERS, NOBODY, Meant, Resolver, Supersession
from memd.index.postings import Postings, TermPostings
from memd.index.reader import Reader, Sources, StoredChunk
from memd.index.source_rows import AGENTS, ARCHIVES, PEOPLE
from memd.index.vectors import Rows
from memd.index.vocabulary import Vocabulary
from memd.records import SHIPPED_COSINES, CosineScale, Source
from memd.text import bare, normalized, trigrams


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of an index that scoring needs, for one generation. Immutable except for its caches."""

    generation: int
    sources: Sources  # live ones only, as in all that follows
    columns: Columns
    rows: Rows
    model_id: str  # of the rows' vectors; "" if there are none
    postings: TermPostings
    codes: Codes | None = None  # of these rows, in a large index
    supersession: Supersession = NOBODY
    cosines: CosineScale = SHIPPED_COSINES  # of the model
    seen: int = 0  # generation of the last commit that agents see
    meant: Meant = field(default_factory=dict)  # what the links of this state refer to, as far as asked for

    def source_at(self, path: str | None) -> Source | None:
        """Return the live source at *path*, relative to the root, or None.

        A name that is stored in another normal form (macOS and archives write NFD) is found if it is the
        only one.
        """
        found = [source for source in self.sources.values() if source.path == path]
        if not found and path is not None and not path.isascii():
            wanted = normalized("NFC", path)
            found = [one for one in self.sources.values() if normalized("NFC", one.path) == wanted]
        return found[0] if len(found) == 1 else None

    def named(self, source_id: int) -> tuple[str, str]:
        """Return title and path of a source."""
        return (source := self.sources[source_id]).title, source.path

    def superseded_by(self, source_id: int) -> tuple[str, ...]:
        """Return the paths of the sources that replace *source_id*, the newest first; usually none."""
        if not self.supersession.edges:
            return ()
        holders = [
            self.sources[holder] for holder in self.supersession.holders(source_id) if holder in self.sources
        ]
        holders.sort(key=lambda source: (-source.day.toordinal(), source.path))
        return tuple(source.path for source in holders)

    def expired(self, today: date) -> frozenset[int]:
        """Return the sources whose last day is past, except superseded ones, which another rule ranks."""
        return frozenset(
            source
            for source, last in self.sources.expiring.items()
            if last < today and not self.supersession.holders(source)
        )

    def for_agents(
        self,
        hidden: AbstractSet[int],
        supersession: Supersession,
        chunks: Iterable[tuple[int, int, int, int, int]],
        told: Mapping[int, str],
    ) -> "Snapshot":
        """Return what agents see: as if the *hidden* sources were gone, with this *supersession*.

        *chunks* of `TWOFOLD` are exchanged, and the titles and tags of some sources replaced as *told*.
        """
        known = [chunk for chunk in chunks if chunk[1] in self.sources and chunk[1] not in hidden]
        columns = self.columns.without(hidden).changed(
            removed=[chunk[0] for chunk in known if chunk[4] == AGENTS],
            added=[chunk[:4] for chunk in known if chunk[4] == PEOPLE],
            embedded=(),
        )
        put = {}
        for number in told.keys() & self.sources.keys() - hidden:
            title, tags = json.loads(told[number])
            put[number] = self.sources[number]._replace(title=title, tags=tuple(tags))
        return replace(
            self,
            generation=self.seen,
            sources=self.sources.changed(removed=hidden, put=put),
            columns=columns,
            postings=self.postings.after(columns, self.postings.newest, self.generation),
            supersession=supersession,
            meant={},
        )

    def folders(self) -> frozenset[str]:
        """Return every folder that contains sources, directly or below."""
        found: set[str] = set()
        for source in self.sources.values():
            folder = source.path.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot with a read transaction of the same generation.

    The database also has chunks of gone sources; no method here returns them.
    """

    snapshot: Snapshot
    reader: Reader
    vocabulary: Vocabulary
    damaged: set[int] = field(default_factory=set)  # damaged rows met so far

    def resolver(self) -> Resolver:
        """Return what tells which of the visible sources a link refers to."""
        return Resolver(self.reader.each, self.snapshot.sources.__contains__, self.snapshot.meant)

    def has_damaged(self, ids: Sequence[int]) -> bool:
        """Return whether a vector of these chunks is damaged; such rows are added to `damaged`."""
        return self.has_damaged_at(dict(zip(ids, take(self.snapshot.columns.row, ids), strict=True)))

    def has_damaged_at(self, places: Mapping[int, int]) -> bool:
        """Return the same for {chunk: row}, -1 if it has none."""
        rows = self.snapshot.rows
        # Until the scrub has read all checksums, missing ones are looked up.
        if unknown := [chunk for chunk, row in places.items() if row >= 0 and not rows.crcs[row]]:
            rows.learn(self.reader.checksums(unknown))
        found = rows.damaged(places.values())
        self.damaged.update(found)
        return bool(found)

    def postings(self, term: str, *, prefix: bool) -> Postings:
        """Return the postings of *term*, or of all terms with this *prefix*."""
        return self.snapshot.postings.of((term, prefix), self.reader)

    def matching(self, table: str, expression: str) -> list[int]:
        """Return the ids of the live chunks that match an FTS5 expression made by memd."""
        return only_living(self.reader.matching(table, expression), self.snapshot.columns)

    def keyed(self, keys: Sequence[str]) -> list[int]:
        """Return the ids of the live chunks that have one of these keys; see `Reader.keys`."""
        return only_living(self.reader.keyed(keys), self.snapshot.columns) if keys else []

    def inside(self, piece: str, limit: int, among: Callable[[int], object] = bool) -> dict[int, int]:
        """Return how often *piece*, of three or more characters, occurs within words, per chunk.

        It is as searched, not in a spaceless script. *limit* candidates are verified, the lowest ids first.
        """
        wanted = bare(piece)
        expression = " AND ".join(f'"{trigram}"' for trigram in sorted(trigrams(wanted)))
        if not expression:
            return {}
        ids = [number for number in self.matching("trigrams", expression) if among(number)][:limit]
        texts = self.reader.searched(ids)
        counts = {number: bare(text).count(wanted) for number, text in texts.items()}
        return {number: count for number, count in counts.items() if count}

    def chunks(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return live chunks by id. Raises IndexDamagedError: one of them is missing."""
        return _all_of(ids, self.reader.chunks(ids))

    def entries(self, ids: Collection[str]) -> dict[str, Source]:
        """Return live sources by entry id; of several with the same id, the one with the first path."""
        found = [
            (name, self.snapshot.sources[source])
            for name, source in self.reader.entries(ids)
            if source in self.snapshot.sources
        ]
        return dict(sorted(found, key=lambda one: one[1].path, reverse=True))

    def daily_entries(self, ids: Collection[str]) -> dict[str, StoredChunk]:
        """Return the first chunk of each live daily entry among *ids*."""
        found = dict(self.reader.daily_entries(ids))
        chunks = self.reader.chunks(list(found.values()))
        sources = self.snapshot.sources
        return {
            name: chunks[one]
            for name, one in found.items()
            if one in chunks and chunks[one].source in sources
        }

    def entries_from(self, source: Source) -> tuple[str, ...]:
        """Return the paths of the entries written from an archived conversation, at most MAX_HOLDERS.

        An entry that was superseded is replaced by the notes that hold in its place. These come first, since
        the conversation says the old thing; then the newest.
        """
        if not source.path.startswith(ARCHIVES):
            return ()
        known, found = self.snapshot.sources, dict[int, bool]()
        for one in self.reader.of_same_session(source.id):
            if one in known and not known[one].path.startswith(ARCHIVES):
                holders = [other for other in self.snapshot.supersession.holders(one) if other in known]
                for other in holders or [one]:
                    found[other] = found.get(other, False) or bool(holders)
        ranked = sorted(found, key=lambda one: (not found[one], -known[one].day.toordinal(), known[one].path))
        return tuple(known[one].path for one in ranked[:MAX_HOLDERS])

    def source(self, source_id: int) -> Source:
        """Return the record of a live source."""
        return self.snapshot.sources[source_id]

    def lines(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Return (source, first line, last line) of live chunks. Raises as `chunks` does."""
        return _all_of(ids, self.reader.lines(ids))

    def signatures(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the signatures of live chunks. Raises as `chunks` does."""
        return _all_of(ids, self.reader.signatures(ids))


Found = TypeVar("Found")


def _all_of(ids: Sequence[int], found: dict[int, Found]) -> dict[int, Found]:
    missing = [number for number in ids if number not in found]
    if missing:
        raise IndexDamagedError(f"{len(missing)} chunks are not there: memctl index --rebuild")
    return found
