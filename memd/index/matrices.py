"""The matrices of an index: the active one, and the one that is being built for another model.

Opening them reads no row: files that nothing names are removed, and what a file has lost at its end is
embedded again. Whether a row is what SQLite says is looked at when a hit rests on it, and by a scrub.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from memd import fsio
from memd.errors import IndexDamagedError
from memd.index.column_table import ColumnTable
from memd.index.vector_table import MatrixFacts, VectorTable
from memd.index.vectors import NO_ROWS, Matrix, Rows
from memd.index.writer import Store

log = structlog.get_logger()

FILE_NAME = re.compile(r"vectors\.\d{1,18}\.f32")


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


def _is_of(held: Held | None, model_id: str, dim: int) -> bool:
    return held is not None and held.model_id == model_id and held.file.dim == dim
