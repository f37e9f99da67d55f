"""Write transactions of an index, and the staging of sources that are too large for one transaction.

A transaction records its changes, so that the next snapshot is derived without reading them back.

The chunks of a large source are staged: stored in slices, each in a commit that is invisible to queries.
Until all are stored they belong to a temporary source that counts as gone; one short commit then replaces the
old version at the path. So queries see the old text until the complete new one is available, and a kill
between two slices leaves only waste, which the next start removes. Saves can run between two slices.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memd.errors import ModelMismatchError
from memd.index.columns import LiveChunk
from memd.index.matrices import Matrices
from memd.index.source_rows import PEOPLE, NewSource, calendar_day
from memd.index.writer import Writer
from memd.records import FileStamp, Source

STAGED_CHUNKS = 1_000  # larger sources are staged: a commit of this many takes 30 to 60 ms
CHUNKS_AT_ONCE = 100  # between two checks of the time: 3 to 5 ms
WASTE_CHUNKS = 2_000  # deleted in one commit: 40 ms


@dataclass(slots=True)
class Staged:
    """A source whose chunks are being stored."""

    new: NewSource
    source_id: int
    first_chunk: int
    stored: int = 0  # number of chunks stored so far


class Transaction:
    """The changes of one transaction. Valid inside the block of `Index.changes`."""

    def __init__(self, writer: Writer, matrices: Matrices) -> None:
        self._writer = writer
        self._matrices = matrices
        self._vectors = matrices.vectors
        self.sources_put: dict[int, Source] = {}
        self.sources_removed: set[int] = set()  # applied before `sources_put`
        self.removed: set[int] = set()  # chunks of the last snapshot
        self.added: dict[int, LiveChunk] = {}
        self.embedded: dict[int, int] = {}  # chunk → row
        self.embedded_apart: set[int] = set()  # chunks that only agents see
        # Lowest id of a staged chunk, 0 if there is none. Postings that were read meanwhile may lack these
        # chunks.
        self.late_from = 0
        self.names: set[str] = set()  # of added and removed sources
        self.touched: set[tuple[str, bool]] = set()  # path of a changed source, and whether it is private
        self.supersedes = False  # whether one of them supersedes another source

    @property
    def visible(self) -> bool:
        """Whether the changes are visible to queries."""
        return bool(self.sources_put or self.sources_removed or self.embedded or self.embedded_apart)

    def changed_sources(self) -> set[tuple[str, bool]]:
        """Return the path of each source that queries see changed, and whether it is or was private."""
        return self.touched | self._writer.privacy(
            self._writer.sources_of(self.embedded.keys() | self.embedded_apart)
        )

    def put(self, new: NewSource, staged: Staged | None = None) -> None:
        """Insert a source with its chunks, or replace the one at its path; *staged*: they are stored."""
        path = new.source.path
        self.touched.add((path, new.private))
        self._replace(path, renewed=staged is not None)
        if staged is None:
            source = self._writer.put_source(new)
            self._writer.put_chunks(source.id, new.chunks)
        else:
            self._writer.unveil(staged.source_id, path, new.hash)
            source = self._writer.source_of(staged.source_id)
            self.late_from = min(staged.first_chunk, self.late_from or staged.first_chunk)
        self._bring(source.id)
        self._note_names(source.id)
        self.sources_put[source.id] = source
        self._writer.outbox.note(path)

    def remove(self, path: str, at_s: int) -> bool:
        """Remove the live source at *path* from all answers, later from the disk; return if it was there."""
        known = self._writer.source(path)
        if known is None or not known[1]:
            return False
        source_id = known[0]
        self.touched.update(self._writer.privacy([source_id]))
        self._note_names(source_id)
        chunks = self._writer.chunks_of(source_id)
        self._writer.mark_gone(source_id, at_s)
        self._writer.run(
            "DELETE FROM unembedded WHERE chunk IN (SELECT id FROM chunks WHERE source = ?)", (source_id,)
        )
        self._kill(chunks)
        self.sources_put.pop(source_id, None)
        self.sources_removed.add(source_id)
        self._writer.outbox.note(path)
        return True

    def restore(self, path: str, stamp: FileStamp) -> None:
        """Make the gone source at *path*, if any, live again: its file is back with the same bytes."""
        known = self._writer.source(path)
        if known is None or known[1]:
            return
        source_id = known[0]
        self.touched.update(self._writer.privacy([source_id]))
        self._writer.mark_gone(source_id, None)
        self._writer.put_stamp(path, stamp)
        self._bring(source_id)
        self._note_names(source_id)
        self.sources_put[source_id] = self._writer.source_of(source_id)
        self._writer.outbox.note(path)

    def redate(self, path: str, stamp: FileStamp) -> None:
        """Give a source with unchanged bytes the day of its file's change, if it has no other day.

        Who copies or unpacks a file writes it first, and sets its time after that.
        """
        source_id, _ = self._writer.source(path) or (0, False)
        source, day = self._writer.source_of(source_id), calendar_day(stamp.mtime_ns)
        if source.day_of == "changed" and source.day != day:
            self.touched.update(self._writer.privacy([source_id]))
            self._writer.run("UPDATE sources SET day = ? WHERE id = ?", (day.isoformat(), source_id))
            self.sources_put[source_id] = source._replace(day=day)
            self._writer.outbox.note(path)

    def embed(self, vectors: Mapping[bytes, bytes], *, model_id: str) -> None:
        """Store vectors by the hash of their text, and assign them to the waiting chunks.

        Raises:
            ModelMismatchError: the target matrix is for another model.
        """
        target = self._matrices.target
        if target is None or target.model_id != model_id:
            wanted = target.model_id if target else None
            raise ModelMismatchError(f"the index wants vectors of {wanted!r}, these are of {model_id!r}")
        new = {key: row for key, row in vectors.items() if self._vectors.row_of(target.number, key) < 0}
        # Before the commit: a row without a chunk is garbage that can be dropped; a chunk without its row
        # would answer with another chunk's meaning.
        rows = target.append(list(new.values()))
        self._vectors.put_rows(
            target.number, ((row, digest, crc) for (row, crc), digest in zip(rows, new, strict=True))
        )
        self._vectors.set_next_row(target.number, target.count)
        for (row, _), digest in zip(rows, new, strict=True):
            served = self._vectors.served(digest)
            if target is self._matrices.active:
                self.embedded.update((chunk_id, row) for chunk_id, for_people in served if for_people)
                self.embedded_apart.update(chunk_id for chunk_id, for_people in served if not for_people)
        self._writer.outbox.note_embedded([*self.embedded, *self.embedded_apart])

    def _replace(self, path: str, *, renewed: bool) -> None:
        """Remove the old chunks of a path: 20 ms for a thousand. *renewed*: the source gets another id."""
        known = self._writer.source(path)
        if known is None:
            return
        source_id, is_live = known
        if is_live:
            self.touched.update(self._writer.privacy([source_id]))
        self._note_names(source_id)
        if is_live:
            self._kill(self._writer.chunks_of(source_id))
        self._writer.delete_chunks(source_id)
        if renewed:
            self._writer.run("DELETE FROM sources WHERE id = ?", (source_id,))
            self.sources_put.pop(source_id, None)
            if is_live:
                self.sources_removed.add(source_id)

    def _note_names(self, source_id: int) -> None:
        """Record the names and links of a source that can affect which source supersedes which."""
        self.names |= self._writer.names(source_id)
        self.supersedes = self.supersedes or self._writer.supersedes(source_id)

    def _bring(self, source_id: int) -> None:
        """Make the chunks of a source live."""
        target = self._matrices.target
        self._vectors.wait(source_id, target.number if target else None)
        found = self._writer.run(
            "SELECT id, source, row, length FROM placed WHERE source = ? AND hidden_from != ?",
            (source_id, PEOPLE),
        )
        self.added.update((chunk[0], chunk) for chunk in found)

    def _kill(self, chunks: Iterable[int]) -> None:
        """Make chunks dead."""
        for chunk_id in chunks:
            self.embedded.pop(chunk_id, None)
            if self.added.pop(chunk_id, None) is None:
                self.removed.add(chunk_id)


def stage_some(writer: Writer, staged: Staged, budget_s: float) -> bool:
    """Store some chunks, for about *budget_s*, inside a transaction; return whether all are stored."""
    stop = time.monotonic() + budget_s
    chunks = staged.new.chunks
    while staged.stored < len(chunks):
        some = chunks[staged.stored : staged.stored + CHUNKS_AT_ONCE]
        writer.put_chunks(staged.source_id, some, staged.first_chunk + staged.stored)
        staged.stored += len(some)
        if time.monotonic() > stop:
            break
    return staged.stored == len(chunks)
