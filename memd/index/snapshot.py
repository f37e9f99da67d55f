"""Snapshots: the columns and matrix of one generation, and a view that adds a read transaction of it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from memd.errors import IndexDamagedError
from memd.index.codes_file import CodesFile
from memd.index.columns import Columns, only_living, take
from memd.index.links import NOBODY, Supersession
from memd.index.postings import Part, Postings, TermPostings
from memd.index.reader import Reader, Sources, StoredChunk
from memd.index.vectors import Rows
from memd.index.vocabulary import Vocabulary
from memd.records import Source
from memd.text import bare, trigrams


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of an index, as far as scoring needs it. Never changes, but for the postings it caches."""

    generation: int
    sources: Sources  # live ones, as are all that follows
    columns: Columns
    rows: Rows
    model_id: str  # whose vectors the rows are; "" while there are none
    postings: TermPostings
    codes: CodesFile | None = None  # of these rows, where there are many
    supersession: Supersession = NOBODY

    def source_at(self, path: str | None) -> Source | None:
        """Return the live source at *path*, relative to the root; None where none is."""
        return next((source for source in self.sources.values() if source.path == path), None)

    def superseded_by(self, source_id: int) -> tuple[str, ...]:
        """Return the paths of the sources that hold in the place of one, the newest first; none mostly."""
        holders = [self.sources[one] for one in self.supersession.holders(source_id) if one in self.sources]
        holders.sort(key=lambda source: (-source.day.toordinal(), source.path))
        return tuple(source.path for source in holders)

    def without(self, sources: AbstractSet[int], supersession: Supersession) -> "Snapshot":
        """Return the same moment as it would be if some sources were gone, and *supersession* were left."""
        columns = self.columns.without(sources)
        return replace(
            self,
            sources=self.sources.changed(removed=sources, put={}),
            columns=columns,
            postings=self.postings.after(columns, self.postings.newest),
            supersession=supersession,
        )

    def folders(self) -> frozenset[str]:
        """Return every folder that has a source somewhere below it."""
        found: set[str] = set()
        for source in self.sources.values():
            folder = source.path.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(found)


class Veil(Protocol):
    """What takes secrets out of texts."""

    def shown(self, chunks: Mapping[int, StoredChunk], reader: Reader) -> dict[int, StoredChunk]:
        """Return chunks as they are shown."""

    def masked(self, text: str) -> str:
        """Return a text as it is shown."""


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot with a read transaction of the same generation.

    SQLite also knows chunks of sources that are gone for a while; no method here returns one.
    """

    snapshot: Snapshot
    reader: Reader
    vocabulary: Vocabulary
    veil: "Veil | None" = None  # what an answer shows of texts; None: all of them
    damaged: set[int] = field(default_factory=set)  # rows that were met and are not what was written

    def has_damaged(self, ids: Sequence[int]) -> bool:
        """Tell whether a vector of these chunks is not what was written; it is noted in `damaged`."""
        return self.has_damaged_at(dict(zip(ids, take(self.snapshot.columns.row, ids), strict=True)))

    def has_damaged_at(self, places: Mapping[int, int]) -> bool:
        """Tell the same by the row of each chunk, -1 where it has none."""
        rows = self.snapshot.rows
        # Until a scrub has read all checksums, those of the rows at hand are looked up.
        if unknown := [chunk for chunk, row in places.items() if row >= 0 and not rows.crcs[row]]:
            rows.learn(self.reader.checksums(unknown))
        found = rows.damaged(places.values())
        self.damaged.update(found)
        return bool(found)

    def postings(self, term: str, *, prefix: bool) -> Postings:
        """Return where *term* (or, with *prefix*, every term that begins so) stands."""
        return self.snapshot.postings.of((term, prefix), self._read)

    def matching(self, table: str, expression: str) -> list[int]:
        """Return the ids of the chunks that an FTS5 expression of our own making matches."""
        return only_living(self.reader.matching(table, expression), self.snapshot.columns)

    def inside(self, piece: str, limit: int, among: Callable[[int], object] = bool) -> dict[int, int]:
        """Return chunks that have a word with *piece*, of three or more characters, in it, and how often.

        Args:
            piece: as it is searched, of no spaceless script.
            limit: how many chunks are compared with it, those with the lowest ids first.
            among: whether a chunk counts.
        """
        wanted = bare(piece)
        expression = " AND ".join(f'"{one}"' for one in sorted(trigrams(wanted)))
        if not expression:
            return {}
        ids = [number for number in self.matching("trigrams", expression) if among(number)][:limit]
        texts = self.reader.searched(ids)
        counts = {number: bare(text).count(wanted) for number, text in texts.items()}
        return {number: count for number, count in counts.items() if count}

    def chunks(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks of ids that are live.

        Raises:
            IndexDamagedError: one of them is not there.
        """
        return _all_of(ids, self.reader.chunks(ids))

    def shown(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the same as an answer shows them: to an agent without secrets. Raises as `chunks` does."""
        found = self.chunks(ids)
        return found if self.veil is None else self.veil.shown(found, self.reader)

    def entries(self, ids: Collection[str]) -> dict[str, Source]:
        """Return the live sources that have the ids of entries; of several that have one the first path's."""
        found = [
            (name, self.snapshot.sources[source])
            for name, source in self.reader.entries(ids)
            if source in self.snapshot.sources
        ]
        return dict(sorted(found, key=lambda one: one[1].path, reverse=True))

    def daily_entries(self, ids: Collection[str]) -> dict[str, StoredChunk]:
        """Return the first chunk, as an answer shows it, of the live daily entries that have those ids."""
        found = dict(self.reader.daily_entries(ids))
        chunks = self.reader.chunks(list(found.values()))
        live = [number for number, chunk in chunks.items() if chunk.source in self.snapshot.sources]
        shown = self.shown(live)
        return {name: shown[chunk] for name, chunk in found.items() if chunk in shown}

    def source(self, source_id: int) -> Source:
        """Return the record of a live source as an answer shows it: to an agent without secrets."""
        found = self.snapshot.sources[source_id]
        if self.veil is None:
            return found
        tags = tuple(map(self.veil.masked, found.tags))
        return replace(found, title=self.veil.masked(found.title), tags=tags)

    def lines(self, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Return source, first and last line of chunks that are live. Raises as `chunks` does."""
        return _all_of(ids, self.reader.lines(ids))

    def signatures(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the signatures of chunks that are live. Raises as `chunks` does."""
        return _all_of(ids, self.reader.signatures(ids))

    def _read(self, term: tuple[str, bool], after: int) -> Part:
        return self.reader.counted(term[0], prefix=term[1], after=after)


Found = TypeVar("Found")


def _all_of(ids: Sequence[int], found: dict[int, Found]) -> dict[int, Found]:
    missing = [number for number in ids if number not in found]
    if missing:
        raise IndexDamagedError(f"{len(missing)} chunks are not there: memctl index --rebuild")
    return found
