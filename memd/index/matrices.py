"""The matrices of an index: the active one, the one that is built for another model; their compaction.

Opening them reads no row: files that nothing names are removed, and what a file has lost at its end is
embedded again. Whether a row is what SQLite says is looked at when a hit rests on it, and by a scrub.

Compaction takes what is not needed any more off the disk, a slice at a time, between saves. The rows that
some chunk still needs are copied into a new matrix beside the old one, which answers meanwhile; one commit
puts the copy in its place. Until then the copy is waste that the next start would remove. Then full-text
search drops the words of deleted chunks: until its segments are merged, the words stay in them.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import structlog

from memd import fsio
from memd.errors import IndexDamagedError, MemdError
from memd.index.columns import ColumnTable
from memd.index.database import Store
from memd.index.vector_table import MatrixFacts, NewRow, VectorTable
from memd.index.vectors import NO_ROWS, Matrix, Rows
from memd.index.writer import Writer

log = structlog.get_logger()

FILE_NAME = re.compile(r"vectors\.\d{1,18}\.f32")
# A row of garbage costs a query as much time as a row that counts: up to a third more is let pass, and in
# small matrices more, since nobody sees those microseconds.
GARBAGE_SHARE = 1 / 4
GARBAGE_ROWS = 4_096
COPIED_ROWS = 512  # between two looks at the clock: a commit and two fsyncs, some 5 ms
MERGED_PAGES = 64  # of a full-text table in one commit: a few ms


@dataclass(frozen=True, slots=True)
class Held:
    """A matrix that is open."""

    number: int
    model_id: str
    file: Matrix


class Matrices:
    """The open matrices of one index. For the writing thread; `rows` is for all."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.ledger = VectorTable(store)
        self.columns = ColumnTable(store, self.ledger)
        self.active: Held | None = None
        self.building: Held | None = None
        self.damaged_rows = 0  # found and forgotten since it was opened
        self._folder = folder
        self._store = store
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def target(self) -> Held | None:
        """Where new vectors go."""
        return self.building or self.active

    @property
    def rows(self) -> Rows:
        """What a query reads."""
        return self.active.file.rows if self.active is not None else NO_ROWS

    def begin(self, model_id: str, dim: int, scripts: frozenset[str] | None) -> list[Held]:
        """Make *model_id* the target: at once where there is nothing yet, else beside the active one.

        *scripts* are those that it reads; texts in others get no vector. None: it reads all.

        Returns:
            Those that are not needed any more; `retire` follows.
        """
        known = None if scripts is None else json.dumps(sorted(scripts))
        if _is_of(self.active, model_id, dim):
            abandoned = self._without_building()
            self._set_scripts(self.active, known)
            return abandoned
        if _is_of(self.building, model_id, dim):
            self._set_scripts(self.building, known)
            return []
        at_once = self.active is None or not self.ledger.has_rows(self.active.number)
        with self.created(model_id, dim, known) as made:
            self._store.set("building", None if at_once else made.number)
            if at_once:
                self._store.set("active", made.number)
                self._store.count_generation_up()
            self.ledger.refill(made.number)
        left = [self.building, self.active if at_once else None]
        self.active, self.building = (made, None) if at_once else (self.active, made)
        return [one for one in left if one is not None]

    def finish(self) -> list[Held]:
        """Let the one that was built answer; return the old one, for `retire`."""
        old, new = self.active, self.building
        assert old is not None
        assert new is not None
        with self._store.transaction():
            self._store.set("active", new.number)
            self._store.set("building", None)
            self.columns.renumber()
            self._store.count_generation_up()
        self.active, self.building = new, None
        return [old]

    def replace(self, old: Held, new: Held) -> None:
        """Put a copy that has every row that is needed in the place of *old*, which is waste then."""
        is_active = old is self.active
        with self._store.transaction():
            self._store.set("active" if is_active else "building", new.number)
            if is_active:
                self.columns.renumber()
                self._store.count_generation_up()
        if is_active:
            self.active = new
        else:
            self.building = new

    @contextmanager
    def created(self, model_id: str, dim: int, scripts: str | None) -> Iterator[Held]:
        """Make a new matrix, in a transaction with what the block does; nothing is left where that fails."""
        made = self._create_file(model_id, dim)
        try:
            with self._store.transaction():
                self.ledger.add_matrix(MatrixFacts(made.number, model_id, dim, 0, scripts))
                yield made
        except BaseException:
            made.file.remove()
            raise

    def retire(self, matrices: Iterable[Held]) -> None:
        """Delete matrices that nothing names any more; after a crash the next start does."""
        for one in matrices:
            one.file.remove()
        for _ in self.drop_waste():
            pass

    def drop_waste(self) -> Iterator[None]:
        """Forget the rows of matrices that are neither active nor building, in small commits."""
        for number in self.ledger.matrices().keys() - self._named():
            more = True
            while more:
                with self._store.transaction():
                    more = self.ledger.drop_some_rows(number)
                    if not more:
                        self.ledger.drop_matrix(number)
                yield

    def forget_rows(self, matrix: int, rows: Sequence[int]) -> int:
        """Drop rows that are not what they should be, so that their texts are embedded again.

        Returns:
            How many; those that were dropped before do not count.
        """
        with self._store.transaction():
            chunks = self.ledger.chunks_at(matrix, rows) if matrix == self._store.number("active") else []
            dropped = self.ledger.drop_rows(matrix, rows)
            if dropped:
                self.columns.change(removed=[], added=[], embedded=dict.fromkeys(chunks, -1))
                self.refill_waiting()
                self._store.count_generation_up()
        self.damaged_rows += dropped
        return dropped

    def look_through(self) -> None:
        """Compare every row with its checksum, now: what SQLite says of some cannot be."""
        for held in (self.active, self.building):
            if held is not None:
                self._look_through(held)

    def refill_waiting(self) -> None:
        """Find out anew, inside a transaction, which chunks have no vector, and which of them wait."""
        self.ledger.refill(self._store.number("building") or self._store.number("active"))

    def close(self) -> None:
        """Close the files; mappings in use stay valid until they are let go."""
        for one in (self.active, self.building):
            if one is not None:
                one.file.close()

    def _create_file(self, model_id: str, dim: int) -> Held:
        """Make the file of the next number that is free; one that is in the way stays as it is."""
        number = max(self.ledger.matrices(), default=0) + 1
        while True:
            path = self._folder / matrix_name(number)
            try:
                return Held(number, model_id, Matrix.create(path, dim=dim, failure=self._store.failure))
            except FileExistsError:
                number += 1

    def _set_scripts(self, held: Held | None, scripts: str | None) -> None:
        """Decide anew which texts get a vector, where the model is said to read other scripts than before."""
        assert held is not None
        if self.ledger.matrices()[held.number].scripts != scripts:
            with self._store.transaction():
                self.ledger.set_scripts(held.number, scripts)
                if held is self.active:
                    self.columns.renumber()
                self.ledger.refill(held.number)
                self.columns.renumber()
                self._store.count_generation_up()

    def _without_building(self) -> list[Held]:
        left = self.building
        if left is None:
            return []
        with self._store.transaction():
            self._store.set("building", None)
            self.ledger.refill(self.active.number if self.active else None)
        self.building = None
        return [left]

    def _named(self) -> set[int]:
        return {number for key in ("active", "building") if (number := self._store.number(key)) is not None}

    def _open(self) -> None:
        known = self.ledger.matrices()
        if not self._named() <= known.keys():
            raise IndexDamagedError(f"{self._folder}: not all of {self._named()} are among {sorted(known)}")
        for _ in self.drop_waste():
            pass
        self._remove_strays(self._named())
        active, building = self._store.number("active"), self._store.number("building")
        if active is not None:
            self.active = self._opened(known[active], "active")
        if building is not None:
            self.building = self._opened(known[building], "building")

    def _opened(self, facts: MatrixFacts, key: str) -> Held:
        path = self._folder / matrix_name(facts.number)
        try:
            matrix = Matrix(path, dim=facts.dim, failure=self._store.failure)
        except FileNotFoundError:
            log.warning("matrix_lost")
            return self._renewed(facts, key)
        held = Held(facts.number, facts.model_id, matrix)
        if 0 <= facts.next_row <= matrix.room:
            matrix.use(facts.next_row)
        else:  # the file has lost its end
            self._look_through(held)
        return held

    def _look_through(self, held: Held) -> None:
        """Compare every row with its checksum, now; drop those that are not what they should be."""
        crcs = self.ledger.crcs(held.number)
        bad = held.file.damaged(crcs)
        lost = set(bad)
        highest = max((row for row, _ in crcs if row not in lost), default=-1)
        next_row = max(min(self.ledger.matrices()[held.number].next_row, held.file.room), highest + 1)
        log.warning("rows_damaged", rows=len(bad))
        with self._store.transaction():
            self.ledger.set_next_row(held.number, next_row)
        self.forget_rows(held.number, bad)
        held.file.use(next_row)

    def _renewed(self, facts: MatrixFacts, key: str) -> Held:
        """Begin again with an empty file."""
        self.damaged_rows += len(self.ledger.crcs(facts.number))
        with self.created(facts.model_id, facts.dim, facts.scripts) as made:
            self._store.set(key, made.number)
            self.columns.renumber()
            self.refill_waiting()
            self._store.count_generation_up()
        for _ in self.drop_waste():
            pass
        self._remove_strays(self._named())  # what stands in its place
        return made

    def _remove_strays(self, named: set[int]) -> None:
        ours = {matrix_name(number) for number in named}
        for path in self._folder.iterdir():
            if FILE_NAME.fullmatch(path.name) and path.name not in ours:
                log.warning("stray_matrix_removed")
                with suppress(OSError):  # a folder of that name is none of ours
                    fsio.remove(path)


def matrix_name(number: int) -> str:
    """Return the name of a matrix's file."""
    return f"vectors.{number}.f32"


def is_worth_it(garbage: int, rows: int) -> bool:
    """Tell whether a matrix with so much garbage should be compacted."""
    return garbage >= GARBAGE_ROWS and garbage > rows * GARBAGE_SHARE


class Compaction:
    """One compaction, in steps. A model that changes meanwhile ends it."""

    def __init__(self, writer: Writer, matrices: Matrices, *, publish: Callable[[], None]) -> None:
        self._writer = writer
        self._matrices = matrices
        self._ledger = matrices.ledger
        self._publish = publish
        self._copy: Held | None = None  # what is being filled
        self._steps = self._all_steps()

    def step(self, budget_s: float) -> bool:
        """Go on for about so long; True when all is done."""
        stop = time.monotonic() + budget_s
        return all(time.monotonic() <= stop for _ in self._steps)

    def abandon(self) -> None:
        """Give up; what was copied is deleted."""
        self._steps = iter(())
        if self._copy is not None:
            with suppress(MemdError):  # a full disk: the next start does it
                self._matrices.retire([self._copy])
            self._copy = None

    def _all_steps(self) -> Iterator[None]:
        yield from self._matrices.drop_waste()
        for held in (self._matrices.active, self._matrices.building):
            if held is not None and self._ledger.used_count(held.number) < held.file.count:
                yield from self._replaced(held)
        yield from self._merged()

    def _replaced(self, old: Held) -> Iterator[None]:
        scripts = self._ledger.matrices()[old.number].scripts
        with self._matrices.created(old.model_id, old.file.dim, scripts) as copy:
            self._copy = copy
        after = b""
        while True:
            rows = self._ledger.rows_to_copy(old.number, copy.number, after=after, limit=COPIED_ROWS)
            if rows:
                self._copy_rows(old, copy, rows)
                after = rows[-1][1]
                yield
            elif not after:
                break  # a look from the first hash on: also texts that came back behind us are there
            else:
                after = b""
        self._matrices.replace(old, copy)
        self._copy = None
        self._publish()
        old.file.remove()
        yield from self._matrices.drop_waste()

    def _copy_rows(self, old: Held, copy: Held, rows: list[NewRow]) -> None:
        vectors = {row: old.file.read(row) for row, _, _ in rows}
        sound = [(row, digest) for row, digest, crc in rows if crc32(vectors[row]) == crc]
        if len(sound) < len(rows):
            self._forget(old, sorted(vectors.keys() - {row for row, _ in sound}))
        places = copy.file.append([vectors[row] for row, _ in sound])
        with self._writer.transaction():
            self._ledger.put_rows(
                copy.number,
                ((new, digest, crc) for (new, crc), (_, digest) in zip(places, sound, strict=True)),
            )
            self._ledger.set_next_row(copy.number, copy.file.count)

    def _forget(self, held: Held, rows: list[int]) -> None:
        """Drop rows that the disk has changed, so that their texts are embedded again."""
        log.warning("rows_damaged", rows=len(rows))
        self._matrices.forget_rows(held.number, rows)
        self._publish()

    def _merged(self) -> Iterator[None]:
        for table in ("words", "trigrams"):
            is_merged, pages = False, -MERGED_PAGES  # negative: begin with all segments, whatever their size
            while not is_merged:
                with self._writer.transaction():
                    is_merged = self._writer.merge_full_text(table, pages)
                pages = MERGED_PAGES
                yield


def _is_of(held: Held | None, model_id: str, dim: int) -> bool:
    return held is not None and held.model_id == model_id and held.file.dim == dim
