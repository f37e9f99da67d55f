"""The index of one workspace: its database, matrices and caches, opened together, and snapshots of them.

The writing thread changes the database and the matrix, then publishes a new `Snapshot`; a query uses one
snapshot and a read transaction of the same generation until it ends.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from memd.entries.secrets import mask
from memd.errors import DeadlineError, StorageError, storage_error
from memd.fsio import Failure
from memd.index import codes, matrices
from memd.index.ann import Codes
from memd.index.codes import CodesKeeper
from memd.index.database import SEEN
from memd.index.matrices import Compaction, Matrices
from memd.index.postings import TermPostings
from memd.index.postings_table import PostingsTable
from memd.index.reader import Pool, Reader
from memd.index.snapshot import Snapshot, View
from memd.index.source_rows import PEOPLE, NewSource, hash_of, read_by_model
from memd.index.transaction import WASTE_CHUNKS, Staged, Transaction, stage_some
from memd.index.vector_table import Why
from memd.index.vectors import Rows, matrix_name
from memd.index.visibility import Visibility
from memd.index.vocabulary import Vocabulary
from memd.index.writer import Writer
from memd.records import SHIPPED_COSINES, UNMEASURED, CosineScale


def changed(old: Snapshot, changes: Transaction, writer: Writer, matrices: Matrices) -> Snapshot:
    """Return the snapshot after *changes* were committed."""
    sources = old.sources.changed(removed=changes.sources_removed, put=changes.sources_put)
    columns = old.columns.changed(
        removed=sorted(changes.removed),
        added=list(changes.added.values()),
        embedded=[pair for pair in changes.embedded.items() if pair[0] not in changes.removed],
    )
    newest = max(old.postings.newest, *changes.added, 0)
    generation = writer.number("generation") or 0
    is_read_again = changes.supersedes or not old.supersession.names.isdisjoint(changes.names)
    # After late chunks, cached postings up to `newest` lack them.
    if changes.late_from:
        words = TermPostings(columns, newest, generation)
    else:
        words = old.postings.after(columns, newest, generation)
    return replace(
        old,
        generation=generation,
        sources=sources,
        columns=columns,
        rows=matrices.rows,
        postings=words,
        supersession=writer.supersession() if is_read_again else old.supersession,
        seen=writer.number(SEEN) or 0,
        meant={} if changes.sources_removed or changes.sources_put else old.meant,
    )


DATABASE = "index.db"
FILE_NAMES = (matrices.FILE_NAME, codes.FILE_NAME)  # of the files beside it
# Size of SQLite's log, which cannot be truncated while a reader holds a state, as a check does for minutes.
LONG_LOG_BYTES = 48 * 1024 * 1024
PUBLISH_TIMEOUT_S = 5.0  # a commit is visible some microseconds before its snapshot; far more than that


class Index:
    """The index of one workspace. The methods are grouped by thread: any thread, or the writing one."""

    def __init__(self, folder: Path) -> None:
        """Open the index in *folder*; create it if it does not exist.

        Raises:
            SchemaError: it has another version of the tables.
            IndexDamagedError: it cannot be read.
            StorageError: the disk fails.
        """
        self.folder = folder
        self._failure = Failure()
        self._compaction: Compaction | None = None
        # Called, from any thread, after a query met damaged rows.
        self.tell_damaged: Callable[[], None] = lambda: None
        self._visible = Visibility()
        self._garbage: tuple[int, tuple[int, int]] = (-1, (0, 0))  # `changes_made`, garbage then
        self.snapshot: Snapshot  # the newest, for counts; a query uses `view`. For any thread
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(str(folder), error) from error
        with ExitStack() as opened:
            self.writer = opened.enter_context(closing(Writer(folder / DATABASE, self._failure)))
            self.matrices = opened.enter_context(closing(Matrices(folder, self.writer)))
            self.postings = PostingsTable(
                self.writer, lambda: self.snapshot, self.view_apart, self._read_postings_again
            )
            self.codes = opened.enter_context(
                closing(CodesKeeper(folder, self.writer, self.matrices, self._with_codes))
            )
            self.publish_again()
            self._pool = Pool(folder / DATABASE)
            self._vocabulary = Vocabulary(self._pool.apart)
            self._parts = opened.pop_all()

    # For any thread

    @property
    def failed(self) -> StorageError | None:
        """The error of the disk after which nothing is written until the index is reopened."""
        return self._failure.error

    @property
    def building(self) -> str:
        """The model whose vectors are being made while older ones answer; usually ""."""
        held = self.matrices.building
        return held.model_id if held else ""

    @contextmanager
    def view(
        self, expired: Callable[[], bool] | None = None, *, visible: Visibility | None = None
    ) -> Iterator[View]:
        """Provide one consistent state: a read transaction and the snapshot of the same generation.

        *expired* is polled while SQLite works; when it returns True, the statement ends with DeadlineError.
        *visible*: the part that may be seen; None: all.
        """
        with self._pool.borrowed(expired) as reader:
            snapshot = self._same_moment(reader)
            reader.for_people = visible is None
            view = View(visible.of(snapshot, reader) if visible else snapshot, reader, self._vocabulary)
            yield view
        if view.damaged:
            self.tell_damaged()

    @contextmanager
    def view_apart(self, expired: Callable[[], bool] | None = None) -> Iterator[View]:
        """Provide a state as `view` does, by a connection outside of the pool: for long reads."""
        with self._pool.apart(expired) as reader:
            reader.for_people = True
            yield View(self._same_moment(reader), reader, self._vocabulary)

    def read_vocabulary(self) -> None:
        """Read new terms into the vocabulary, mostly in a background thread. For any thread."""
        with self.view() as view:
            view.vocabulary.read(view.reader, view.snapshot.columns.count, 0.0)

    def owns(self, path: Path) -> bool:
        """Return whether *path* is one of the matrices or a file of codes in use."""
        if self.codes.owns(path):
            return True
        with self.view_apart() as view:
            numbers = list(view.reader.each("SELECT number FROM matrices"))
        return path.name in {matrix_name(number) for [number] in numbers}

    def log_is_long(self) -> bool:
        """Return whether SQLite's log is so long that long readers should end to let it be truncated."""
        try:
            return (self.folder / f"{DATABASE}-wal").stat().st_size > LONG_LOG_BYTES
        except OSError:
            return False

    def size_bytes(self) -> int:
        """Return the disk space that the index takes."""
        total = 0
        with suppress(FileNotFoundError):  # deleted while we read, which is allowed
            for entry in os.scandir(self.folder):
                with suppress(FileNotFoundError):  # SQLite's log comes and goes
                    total += entry.stat().st_blocks * 512
        return total

    # For the writing thread

    def keep_from_agents(self, visible: Visibility, rules: str) -> None:
        """Set what is kept from agents; other *rules* than before are a change that they see."""
        self._visible = visible
        if (self.writer.get("agents_ignore") or "") != rules:
            with self.writer.transaction():
                self.writer.set("agents_ignore", rules)
                self.writer.count_generation_up()
            self._republish()

    @contextmanager
    def changes(self) -> Iterator[Transaction]:
        """Commit the changes of the block as one, then publish them; an exception rolls all back."""
        changes = Transaction(self.writer, self.matrices)
        with self.writer.transaction():
            yield changes
            self.matrices.columns.change(
                removed=changes.removed, added=changes.added.values(), embedded=changes.embedded
            )
            if changes.visible:
                is_seen = any(
                    not self._visible.hides(path, is_private=own) for path, own in changes.changed_sources()
                )
                self.writer.count_generation_up(is_seen=is_seen)
        if changes.visible:
            self.snapshot = changed(self.snapshot, changes, self.writer, self.matrices)

    def stage(self, new: NewSource, staged: Staged | None, budget_s: float) -> tuple[Staged, bool]:
        """Store some chunks of a large source, invisible to queries; `Transaction.put` and `let_go` follow.

        *staged* is the result of the call before, None to begin. Returns the state for the next call, and
        whether all chunks are stored.
        """
        with self.writer.transaction():
            staged = Staged(new, *self.writer.stage(new)) if staged is None else replace(staged)
            done = stage_some(self.writer, staged, budget_s)
        self.writer.staged[staged.source_id] = staged.first_chunk
        return staged, done

    def let_go(self, staged: Staged) -> None:
        """End the staging of a source; chunks that were not put are waste."""
        self.writer.staged.pop(staged.source_id, None)
        self.writer.has_waste = True

    def drop_some_waste(self) -> bool:
        """Delete some chunks of incompletely staged sources; return False when none is left."""
        if not self.writer.has_waste:
            return False
        with self.writer.transaction():
            return self.writer.drop_some_waste(WASTE_CHUNKS)

    def begin_model(
        self,
        model_id: str,
        dim: int,
        scripts: frozenset[str] | None = None,
        cosines: CosineScale | None = SHIPPED_COSINES,
    ) -> None:
        """Make *model_id* the model that is wanted: at once if there are no vectors yet.

        Otherwise its vectors are made beside the old ones, which answer until `finish_building`. Chunks in
        other *scripts* get no vector (None: the model reads all). *cosines*: None as measured before, or not
        yet.
        """
        self._abandon_compaction()
        self.matrices.learn_cosines(model_id, cosines or self.matrices.measured(model_id) or UNMEASURED)
        unused = self.matrices.begin(model_id, dim, scripts)
        self._republish()
        self.matrices.retire(unused)

    def learn_cosines(self, model_id: str, cosines: CosineScale) -> None:
        """Note what a measurement of *model_id* found."""
        self.matrices.learn_cosines(model_id, cosines)
        self._republish()

    def finish_building(self, refused: AbstractSet[bytes]) -> bool:
        """Switch to the new model if all texts except *refused* have vectors; return whether it switched."""
        if self.matrices.building is None or not self.matrices.vectors.only_waits_for(refused):
            return False
        self._abandon_compaction()
        unused = self.matrices.finish()
        self._republish()
        self.matrices.retire(unused)
        return True

    def pending(self, limit: int, first: Collection[str] = ()) -> dict[bytes, str]:
        """Return hash → text of waiting chunks: those of the sources *first*, then the newest."""
        found = self.matrices.vectors.waiting_texts(limit, first=sorted(first))
        texts = {digest: read_by_model(*parts) for digest, parts in found.items()}
        return {digest: text if hash_of(text) == digest else mask(text) for digest, text in texts.items()}

    def unembedded_count(self, why: Why = "waiting") -> int:
        """Return how many chunks have no vector for this reason."""
        # Twins of chunks with secrets wait, but are in no total.
        twins = f"(SELECT id FROM chunks WHERE hidden_from = {PEOPLE})"
        others = "" if why == "waiting" else f"AND why != 'waiting' AND chunk NOT IN {twins}"
        [[count]] = self.writer.run(f"SELECT count(*) FROM unembedded WHERE why = ? {others}", (why,))
        return int(count)

    def purge(self, before_s: int | None, limit: int, path: str | None = None) -> int:
        """Delete up to *limit* gone sources: all, those gone since *before_s*, or the one at *path*.

        Returns how many were deleted. Compaction later removes their words and vectors from the disk.
        """
        with self.writer.transaction():
            purged = self.writer.purge(before_s, limit, path)
            if purged:
                self.postings.note_purged()
        if purged:  # a running compaction may have copied purged data: begin again
            self._abandon_compaction()
        return purged

    def note_forgotten(self) -> None:
        """Record that text was removed from a live source; the next compaction must erase it."""
        with self.writer.transaction():
            self.postings.note_purged()
        self._abandon_compaction()

    def garbage(self) -> tuple[int, int]:
        """Return (rows that no chunk uses, all rows) of the active matrix."""
        changes = self.writer.changes_made
        if self._garbage[0] != changes:
            active = self.matrices.active
            rows = active.count if active else 0
            used = self.matrices.vectors.used_count(active.number) if active else 0
            self._garbage = (changes, (rows - used, rows))
        return self._garbage[1]

    def compact(self, budget_s: float) -> bool:
        """Compact for about *budget_s*; return True when it is complete."""
        if self._compaction is None:
            self._compaction = Compaction(self.writer, self.matrices, publish=self._republish)
        done = False
        try:
            done = self._compaction.step(budget_s)
        except BaseException:
            self._abandon_compaction()
            raise
        if done:
            self._compaction = None
        return done

    def forget_rows(self, matrix: int, rows: Sequence[int]) -> int:
        """Drop damaged vectors, so that their texts are embedded again; return how many."""
        dropped = self.matrices.forget_rows(matrix, rows)
        self._republish()
        return dropped

    def forget_damaged(self, rows: Rows, damaged: Sequence[int]) -> int:
        """Drop damaged rows of the matrix that *rows* belongs to, if still in use; return how many."""
        for held in (self.matrices.active, self.matrices.building):
            if held is not None and held.rows.crcs is rows.crcs:
                return self.forget_rows(held.number, damaged)
        return 0

    def refill_waiting(self) -> None:
        """Compute again which chunks have no vector, and which of them wait for one."""
        with self.writer.transaction():
            self.matrices.refill_waiting()

    def refill_columns(self) -> None:
        """Rebuild the stored columns from chunks and vectors."""
        with self.writer.transaction():
            self.matrices.columns.refill()
        self.publish_again()

    def publish_again(self) -> None:
        """Load a new snapshot from the database."""
        self.codes.look()
        self.snapshot = self._load()

    def close(self) -> None:
        """Close every part; waits for open views, later ones raise IndexClosedError."""
        self._vocabulary.close()
        self._pool.close()
        self._abandon_compaction()
        self._parts.close()  # the matrices, then the database

    def _abandon_compaction(self) -> None:
        if self._compaction is not None:
            self._compaction.abandon()
            self._compaction = None

    def _load(self) -> Snapshot:
        """Read the snapshot of the committed state. Raises IndexDamagedError if values are impossible."""
        sources, active = self.writer.sources(), self.matrices.active
        columns = self.matrices.columns.load(sources.keys(), self.matrices.rows.count)
        generation = self.writer.number("generation") or 0
        seen = self.writer.number(SEEN)
        return Snapshot(
            generation,
            sources,
            columns,
            self.matrices.rows,
            active.model_id if active else "",
            TermPostings(columns, self.matrices.vectors.newest_chunk(), generation),
            self.codes.usable,
            self.writer.supersession(),
            self.matrices.cosines_of(active.model_id) if active else SHIPPED_COSINES,
            seen=generation if seen is None else seen,
        )

    def _same_moment(self, reader: Reader) -> Snapshot:
        give_up = time.monotonic() + PUBLISH_TIMEOUT_S
        while time.monotonic() < give_up:
            generation = reader.begin()
            snapshot = self.snapshot
            if snapshot.generation == generation:
                return snapshot
            reader.rollback()
            time.sleep(0.0002)
        raise DeadlineError(
            f"{self.folder}: no snapshot of the committed generation within {PUBLISH_TIMEOUT_S} s"
        )

    def _read_postings_again(self) -> None:
        old = self.snapshot
        words = TermPostings(old.columns, old.postings.newest, old.generation)
        self.snapshot = replace(old, postings=words)

    def _with_codes(self, codes: Codes | None) -> None:
        self.snapshot = replace(self.snapshot, codes=codes)

    def _republish(self) -> None:
        """Publish the committed state, unless the published one has the same generation."""
        if self.writer.number("generation") != self.snapshot.generation:
            self.publish_again()
