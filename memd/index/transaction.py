"""One write transaction of an index, and the staging of a source that is too large for one.

A transaction keeps what it changes, so that the next snapshot needs no reading back.

The chunks of a large source are staged before it: stored in slices, each a commit of which queries see
nothing. Until all are there they belong to a source of its own that counts as gone; one short commit lets it
take the place of what was known of the path. So queries see the old text until they see the new one, whole,
and a kill between two slices leaves waste, which the next start removes. Saves go between two slices.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memd.errors import ModelMismatchError
from memd.index.matrices import Matrices
from memd.index.source_rows import NewSource
from memd.index.writer import Writer
from memd.records import FileStamp, Source

STAGED_CHUNKS = 1_000  # more go in slices: a commit of so many takes 30 to 60 ms
CHUNKS_AT_ONCE = 100  # between two looks at the clock: 3 to 5 ms
WASTE_CHUNKS = 2_000  # deleted in one commit: 15 to 30 ms


@dataclass(slots=True)
class Staged:
    """A source whose chunks are being stored."""

    new: NewSource
    source_id: int
    first_chunk: int
    stored: int = 0  # of its chunks, from the front


class Transaction:
    """What one transaction changes. Valid inside of the block of `Index.changes`."""

    def __init__(self, writer: Writer, matrices: Matrices) -> None:
        self._writer = writer
        self._matrices = matrices
        self._ledger = matrices.ledger
        self.sources_put: dict[int, Source] = {}
        self.sources_removed: set[int] = set()  # before those are put
        self.removed: set[int] = set()  # chunks that the snapshot has
        self.added: dict[int, tuple[int, int, int, int]] = {}  # chunk → (itself, source, row or -1, length)
        self.embedded: dict[int, int] = {}  # chunk → row
        # First of the ids of chunks that were staged; 0: none were. What was read of words beside them may
        # lack them.
        self.late_from = 0
        self.names: set[str] = set()  # of the sources that come or go
        self.supersedes = False  # whether one of them says that it supersedes another

    @property
    def visible(self) -> bool:
        """Whether a query can see the difference."""
        return bool(self.sources_put or self.sources_removed or self.embedded)

    def put(self, new: NewSource, staged: Staged | None = None) -> None:
        """Insert a source with its chunks, or replace all that is known of it.

        Args:
            new: the source.
            staged: where its chunks are stored already, all of them.
        """
        self._replace(new.path, renewed=staged is not None)
        if staged is None:
            source = self._writer.put_source(new)
            for chunk in new.chunks:
                self._writer.put_chunk(source.id, chunk)
        else:
            self._writer.unveil(staged.source_id, new.path, new.hash)
            source = self._writer.source_of(staged.source_id)
            self.late_from = min(staged.first_chunk, self.late_from or staged.first_chunk)
        self._bring(source.id)
        self._note_names(source.id)
        self.sources_put[source.id] = source

    def touch(self, path: str, stamp: FileStamp) -> None:
        """Note that a source's bytes are the same under a new stamp."""
        self._writer.put_stamp(path, stamp)

    def remove(self, path: str, at_s: int) -> None:
        """Take a source out of every answer; it is kept on the disk until it is purged.

        Args:
            path: where there is no live source nothing happens.
            at_s: since when it is gone, in unix seconds.
        """
        known = self._writer.source(path)
        if known is None or not known[1]:
            return
        source_id = known[0]
        self._note_names(source_id)
        chunks = self._writer.chunks_of(source_id)
        self._writer.mark_gone(source_id, at_s)
        self._ledger.wait_no_more(source_id)
        self._kill(chunks)
        self.sources_put.pop(source_id, None)
        self.sources_removed.add(source_id)

    def restore(self, path: str, stamp: FileStamp) -> None:
        """Bring a source that is gone back as it was: the same bytes are there again.

        Args:
            path: where there is no source that is gone nothing happens.
            stamp: of the file that is there now.
        """
        known = self._writer.source(path)
        if known is None or known[1]:
            return
        source_id = known[0]
        self._writer.mark_gone(source_id, None)
        self._writer.put_stamp(path, stamp)
        self._bring(source_id)
        self._note_names(source_id)
        self.sources_put[source_id] = self._writer.source_of(source_id)

    def embed(self, vectors: Mapping[bytes, bytes], *, model_id: str) -> None:
        """Store vectors by the hash of their text, and give them to the chunks that wait for them.

        Raises:
            ModelMismatchError: the index wants vectors of another model.
        """
        target = self._matrices.target
        if target is None or target.model_id != model_id:
            wanted = target.model_id if target else None
            raise ModelMismatchError(f"the index wants vectors of {wanted!r}, these are of {model_id!r}")
        new = {key: row for key, row in vectors.items() if self._ledger.row_of(target.number, key) < 0}
        # Before the commit: a row without a chunk is garbage that can be dropped; a chunk without its row
        # would answer with another chunk's meaning.
        rows = target.file.append(list(new.values()))
        self._ledger.put_rows(
            target.number, ((row, digest, crc) for (row, crc), digest in zip(rows, new, strict=True))
        )
        self._ledger.set_next_row(target.number, target.file.count)
        for (row, _), digest in zip(rows, new, strict=True):
            served = self._ledger.served(digest)
            if target is self._matrices.active:
                self.embedded.update((chunk_id, row) for chunk_id in served)

    def _replace(self, path: str, *, renewed: bool) -> None:
        """Take the chunks of what is known of a path away.

        Where they are many, or the source is *renewed* under another id, it is deleted later, in slices.
        """
        known = self._writer.source(path)
        if known is None:
            return
        source_id, is_live = known
        self._note_names(source_id)
        chunks = self._writer.chunks_of(source_id)
        if renewed or len(chunks) > STAGED_CHUNKS:
            self._ledger.wait_no_more(source_id)
            self._writer.discard(source_id, path)
            self.sources_put.pop(source_id, None)
            if is_live:
                self.sources_removed.add(source_id)
        else:
            self._writer.delete_chunks(source_id)
        if is_live:
            self._kill(chunks)

    def _note_names(self, source_id: int) -> None:
        """Note what of a source can change who supersedes whom."""
        self.names |= self._writer.names(source_id)
        self.supersedes = self.supersedes or self._writer.supersedes(source_id)

    def _bring(self, source_id: int) -> None:
        """Make the chunks of a source live."""
        active, target = self._matrices.active, self._matrices.target
        self._ledger.wait(source_id, target.number if target else None)
        found = self._ledger.chunks_with_rows(source_id, active.number if active else None)
        self.added.update((chunk[0], chunk) for chunk in found)

    def _kill(self, chunks: Iterable[int]) -> None:
        """Make chunks dead."""
        for chunk_id in chunks:
            self.embedded.pop(chunk_id, None)
            if self.added.pop(chunk_id, None) is None:
                self.removed.add(chunk_id)


def begin_staging(writer: Writer, new: NewSource) -> Staged:
    """Begin to store a source, inside a transaction."""
    return Staged(new, *writer.stage(new))


def stage_some(writer: Writer, staged: Staged, budget_s: float) -> bool:
    """Store some of its chunks, at least CHUNKS_AT_ONCE, inside a transaction, for about so long.

    Returns:
        Whether all are stored.
    """
    stop = time.monotonic() + budget_s
    chunks = staged.new.chunks
    while staged.stored < len(chunks):
        for number in range(staged.stored, min(staged.stored + CHUNKS_AT_ONCE, len(chunks))):
            writer.put_chunk(staged.source_id, chunks[number], staged.first_chunk + number)
        staged.stored = number + 1
        if time.monotonic() > stop:
            break
    return staged.stored == len(chunks)
