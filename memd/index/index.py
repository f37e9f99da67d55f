"""How does one query see one moment? The parts of a workspace's index, opened together.

The writing thread changes the database and the matrix, then publishes a new `Snapshot`; a query takes
one snapshot and a read transaction of the same generation, and keeps both to its end.
"""

import os
import queue
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from memd.errors import DeadlineError, IndexClosedError, ModelMismatchError
from memd.index.database import translated
from memd.index.postings import PostingsCache
from memd.index.reader import Reader
from memd.index.vectors import Matrix, Rows
from memd.index.writer import NewSource, Writer
from memd.kernels import kernel
from memd.records import FileStamp, Source

DATABASE = "index.db"
READERS = 2  # queries that run at once in one workspace; the machine has a few cores, not more
PUBLISH_TIMEOUT_S = 5.0  # a commit is visible some microseconds before its snapshot; far above that


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of an index, as far as scoring needs it. Never changes, but for the postings it caches."""

    generation: int
    sources: Mapping[int, Source]
    columns: kernel.Columns
    rows: Rows
    model_id: str  # whose vectors the rows are; "" while there are none
    postings: PostingsCache = field(default_factory=PostingsCache)

    def folders(self) -> frozenset[str]:
        """Return every folder that has a source somewhere below it."""
        found: set[str] = set()
        for source in self.sources.values():
            folder = source.path.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot with a read transaction of the same generation."""

    snapshot: Snapshot
    reader: Reader

    def postings(self, term: str, *, prefix: bool) -> kernel.Postings:
        """Return where *term* (or, with *prefix*, every term that begins so) stands."""
        found = self.snapshot.postings.get((term, prefix))
        if found is None:
            found = kernel.postings(self.reader.documents(term, prefix=prefix))
            self.snapshot.postings.put((term, prefix), found)
        return found


class Index:
    """The index of one workspace. `changes` is for the one writing thread, `view` for any."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._writer = Writer(folder / DATABASE)
        self._matrix: Matrix | None = None
        self.damaged_rows = 0
        self._readers: queue.SimpleQueue[Reader | None] = queue.SimpleQueue()
        try:
            with translated(folder):
                self._matrix = self._open_matrix()
                self._published = self._load()
            for _ in range(READERS):
                self._readers.put(Reader(folder / DATABASE))
        except BaseException:
            self._close_files()
            raise

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot, for counts; a query uses `view`."""
        return self._published

    @contextmanager
    def view(self) -> Iterator[View]:
        """Hand out one moment: read transaction and snapshot of the same generation."""
        reader = self._readers.get()
        if reader is None:
            self._readers.put(None)  # for who waits behind us
            raise IndexClosedError(f"the index in {self.folder} is being reopened: ask again")
        try:
            yield View(self._same_moment(reader), reader)
        finally:
            reader.end()
            self._readers.put(reader)

    @contextmanager
    def changes(self) -> Iterator["Changes"]:
        """Commit what the block changes as one, then publish it; an exception undoes all of it."""
        changes = Changes(self._writer, self._matrix)
        with self._writer.transaction():
            yield changes
            if changes.visible:
                self._writer.count_generation_up()
            if changes.embedded and self._matrix is not None:
                self._writer.set("next_row", self._matrix.rows.count)
        if changes.visible:
            self._publish_changes(changes)

    def _publish_changes(self, changes: "Changes") -> None:
        old = self._published
        sources = dict(old.sources)
        for source_id in changes.sources_removed:
            del sources[source_id]
        sources.update(changes.sources_put)
        columns = old.columns.changed(removed=changes.removed, added=changes.added, embedded=changes.embedded)
        self._publish(replace(old, sources=sources, columns=columns))

    def begin_model(self, model_id: str, dim: int) -> None:
        """Make the vectors those of *model_id*: rows of any other model are forgotten, never mixed in."""
        if self._writer.get("model_id") == model_id:
            return
        number = (self._writer.get("matrix") or 0) + 1
        with self._writer.transaction():
            self._writer.drop_vectors(None)
            self._writer.count_generation_up()
            for key, value in {"model_id": model_id, "dim": dim, "matrix": number, "next_row": 0}.items():
                self._writer.set(key, value)
        old = self._matrix
        self._matrix = self._open_matrix()
        self._published = self._load()
        if old is not None:
            old.close()
            old.path.unlink(missing_ok=True)  # a mapping in use keeps its bytes

    def pending(self, limit: int) -> dict[bytes, str]:
        """Return hash → text of chunks without a vector, newest first (writing thread)."""
        return self._writer.pending(limit)

    def pending_count(self) -> int:
        """Return how many chunks have no vector (writing thread)."""
        return self._writer.pending_count()

    @property
    def writer(self) -> Writer:
        """The writing connection, for reads between two changes (writing thread)."""
        return self._writer

    def note_complete(self) -> None:
        """Remember that everything has been searchable once (writing thread)."""
        with self._writer.transaction():
            self._writer.set("complete", 1)

    def size_bytes(self) -> int:
        """Return how much of the disk the index takes."""
        total = 0
        with suppress(FileNotFoundError):  # deleted under us, which is allowed
            for entry in os.scandir(self.folder):
                with suppress(FileNotFoundError):  # SQLite's log comes and goes
                    total += entry.stat().st_blocks * 512
        return total

    def close(self) -> None:
        """Close every part; waits for the views in use, later ones raise IndexClosedError."""
        for _ in range(READERS):
            reader = self._readers.get()
            if reader is not None:
                reader.close()
        self._readers.put(None)
        self._close_files()

    def _close_files(self) -> None:
        self._writer.close()
        if self._matrix is not None:
            self._matrix.close()

    def _same_moment(self, reader: Reader) -> Snapshot:
        give_up = time.monotonic() + PUBLISH_TIMEOUT_S
        while time.monotonic() < give_up:
            generation = reader.begin()
            snapshot = self._published
            if snapshot.generation == generation:
                return snapshot
            reader.end()
            time.sleep(0.0002)
        raise DeadlineError(
            f"{self.folder}: no snapshot of the committed generation within {PUBLISH_TIMEOUT_S} s"
        )

    def _publish(self, snapshot: Snapshot) -> None:
        self._published = replace(
            snapshot,
            generation=self._writer.get("generation"),
            rows=_rows(self._matrix),
            postings=PostingsCache(),
        )

    def _open_matrix(self) -> Matrix | None:
        number = self._writer.get("matrix")
        if number is None:
            return None
        path = self.folder / f"vectors.{number}.f32"
        matrix = Matrix(path, dim=self._writer.get("dim"), rows=self._writer.get("next_row"))
        bad = matrix.damaged(self._writer.crcs())
        if bad:
            self.damaged_rows += len(bad)
            with self._writer.transaction():
                self._writer.drop_vectors(bad)
                self._writer.count_generation_up()
        return matrix

    def _load(self) -> Snapshot:
        columns = kernel.Columns.empty().changed(removed=[], added=self._writer.chunk_rows(), embedded=[])
        return Snapshot(
            self._writer.get("generation"),
            self._writer.sources(),
            columns,
            _rows(self._matrix),
            self._writer.get("model_id") or "",
        )


class Changes:
    """What one transaction changes, kept so that the next snapshot is made without reading it back."""

    def __init__(self, writer: Writer, matrix: Matrix | None) -> None:
        self._writer = writer
        self._matrix = matrix
        self.sources_put: dict[int, Source] = {}
        self.sources_removed: set[int] = set()
        self.removed: list[int] = []
        self.added: list[tuple[int, int, int, int]] = []
        self.embedded: list[tuple[int, int]] = []

    @property
    def visible(self) -> bool:
        """Whether a query can see the difference."""
        return bool(self.sources_put or self.sources_removed or self.embedded)

    def put(self, new: NewSource) -> None:
        """Insert a source with its chunks, or replace all that is known of it."""
        source = self._writer.put_source(new)
        self._forget_chunks(source.id)
        self.added += [self._writer.put_chunk(source.id, chunk) for chunk in new.chunks]
        self.sources_put[source.id] = source

    def touch(self, path: str, stamp: FileStamp) -> None:
        """Note that a source's bytes are the same under a new stamp."""
        self._writer.put_stamp(path, stamp)

    def remove(self, path: str) -> None:
        """Remove a source and its chunks; nothing happens where there is none."""
        source_id = self._writer.source_id(path)
        if source_id is None:
            return
        self._forget_chunks(source_id)
        self._writer.delete_source(source_id)
        if self.sources_put.pop(source_id, None) is None:
            self.sources_removed.add(source_id)

    def embed(self, vectors: Mapping[bytes, bytes], *, model_id: str) -> None:
        """Store vectors by the hash of their text, and give them to the chunks that wait for them.

        Raises:
            ModelMismatchError: the index holds vectors of another model.
        """
        built_with = self._writer.get("model_id")
        if self._matrix is None or built_with != model_id:
            raise ModelMismatchError(f"the index holds vectors of {built_with!r}, these are of {model_id!r}")
        # Before the commit: a row without a chunk is garbage that can be dropped; a chunk without its row
        # would answer with another chunk's meaning.
        rows = self._matrix.append(list(vectors.values()))
        named = [(row, digest, crc) for (row, crc), digest in zip(rows, vectors, strict=True)]
        self.embedded += self._writer.put_vectors(named)

    def _forget_chunks(self, source_id: int) -> None:
        gone = set(self._writer.delete_chunks(source_id))
        fresh = {chunk[0] for chunk in self.added}
        self.removed += sorted(gone - fresh)
        self.added = [chunk for chunk in self.added if chunk[0] not in gone]


def _rows(matrix: Matrix | None) -> Rows:
    return Rows(b"", 0, 0) if matrix is None else matrix.rows
