"""The matrices of an index: the active one, the one being built for another model, and their compaction.

Opening them reads no row: files without a record are removed, and an index whose file is missing or too short
is damaged. Rows are compared with their checksums when a result uses them, and by the scrub.

Compaction removes unneeded data from the disk, in slices between saves. The rows that chunks still use are
copied into a new matrix while the old one answers; one commit then replaces it. Until then the copy is waste
that a start would remove. Finally the full-text segments are merged, since they contain the words of deleted
chunks until then.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

import structlog

from memd import fsio
from memd.errors import IndexDamagedError, MemdError
from memd.index.columns import ColumnTable
from memd.index.database import Database, damaged
from memd.index.vector_table import READ, MatrixFacts, VectorTable
from memd.index.vectors import NO_ROWS, Matrix, Rows, matrix_name
from memd.index.writer import Writer
from memd.records import SHIPPED_COSINES, CosineScale

log = structlog.get_logger()

FILE_NAME = re.compile(r"vectors\.\d{1,18}\.f32")
# A garbage row costs a query as much time as a used one: up to a third more is tolerated, and in small
# matrices more, as this takes only microseconds.
GARBAGE_SHARE = 1 / 4
GARBAGE_ROWS = 4_096
COPIED_ROWS = 512  # between two checks of the time: a commit and two fsyncs, some 5 ms
COSINES = "cosines:"  # precedes the model's id in the key of its measurement
MERGED_PAGES = 64  # of a full-text table in one commit: a few ms


class Matrices:
    """The open matrices of one index. For the writing thread; `rows` is for any thread."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.vectors = VectorTable(database)
        self.columns = ColumnTable(database, self.vectors)
        self.active: Matrix | None = None
        self.building: Matrix | None = None
        self.damaged_rows = 0  # found and dropped since opening
        self._folder = folder
        self._database = database
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def target(self) -> Matrix | None:
        """The matrix that receives new vectors."""
        return self.building or self.active

    @property
    def rows(self) -> Rows:
        """The rows that queries read."""
        return self.active.rows if self.active is not None else NO_ROWS

    def begin(self, model_id: str, dim: int, scripts: frozenset[str] | None) -> list[Matrix]:
        """Make *model_id* the target: at once if there are no vectors yet, otherwise beside the active one.

        Texts in scripts other than *scripts* get no vector; None: the model reads all. Returns matrices that
        are no longer needed, for `retire`.
        """
        known = None if scripts is None else json.dumps(sorted(scripts))
        if _is_of(self.active, model_id, dim):
            assert self.active is not None
            abandoned = self.building
            if abandoned is not None:
                with self._database.transaction():
                    self._database.set("building", None)
                    self.vectors.refill(self.active.number)
                self.building = None
            self._set_scripts(self.active, known)
            return [] if abandoned is None else [abandoned]
        if _is_of(self.building, model_id, dim):
            self._set_scripts(self.building, known)
            return []
        at_once = self.active is None or not self.vectors.has_rows(self.active.number)
        with self.created(model_id, dim, known) as made:
            self._database.set("building", None if at_once else made.number)
            if at_once:
                self._database.set("active", made.number)
                self._database.count_generation_up()
            self.vectors.refill(made.number)
        left = [self.building, self.active if at_once else None]
        self.active, self.building = (made, None) if at_once else (self.active, made)
        return [matrix for matrix in left if matrix is not None]

    def measured(self, model_id: str) -> CosineScale | None:
        """Return the stored measurement of a model's cosines, None if there is none."""
        stored = self._database.get(f"{COSINES}{model_id}")
        try:
            return None if stored is None else CosineScale(*map(float, json.loads(stored)))
        except (TypeError, ValueError) as error:
            raise IndexDamagedError(f"{self._folder}: the cosines of {model_id!r} are {stored!r}") from error

    def cosines_of(self, model_id: str) -> CosineScale:
        """Return the cosines of a model; not stored are those of the shipped model, and of old indexes."""
        return self.measured(model_id) or SHIPPED_COSINES

    def learn_cosines(self, model_id: str, cosines: CosineScale) -> None:
        """Store a measurement."""
        if cosines != self.cosines_of(model_id):
            with self._database.transaction():
                values = json.dumps([cosines.zero, cosines.scale, cosines.random_sd])
                self._database.set(f"{COSINES}{model_id}", values)
                self._database.count_generation_up()

    def finish(self) -> list[Matrix]:
        """Make the matrix that was built the active one; return the old one, for `retire`."""
        old, new = self.active, self.building
        assert old is not None
        assert new is not None
        with self._database.transaction():
            self._database.set("active", new.number)
            self._database.set("building", None)
            self.columns.renumber()
            self._database.count_generation_up()
        self.active, self.building = new, None
        return [old]

    def replace(self, old: Matrix, new: Matrix) -> None:
        """Replace *old* by a copy with all needed rows; *old* is waste then."""
        is_active = old is self.active
        with self._database.transaction():
            self._database.set("active" if is_active else "building", new.number)
            if is_active:
                self.columns.renumber()
                self._database.count_generation_up()
        if is_active:
            self.active = new
        else:
            self.building = new

    @contextmanager
    def created(self, model_id: str, dim: int, scripts: str | None) -> Iterator[Matrix]:
        """Create a matrix in one transaction with the block; if that fails, its file is removed.

        The file has the next free number; existing files are left unchanged.
        """
        number = max(self.vectors.matrices(), default=0) + 1
        while os.path.lexists(self._folder / matrix_name(number)):
            number += 1
        failure = self._database.failure
        made = Matrix.create(self._folder, number, dim=dim, failure=failure, model_id=model_id)
        try:
            with self._database.transaction():
                self._database.run(
                    "INSERT INTO matrices VALUES (?, ?, ?, 0, ?)", (number, model_id, dim, scripts)
                )
                yield made
        except BaseException:
            made.remove()
            raise

    def retire(self, matrices: Iterable[Matrix]) -> None:
        """Delete matrices that are no longer in use; after a crash the next start does it."""
        for matrix in matrices:
            matrix.remove()
        for _ in self.drop_waste():
            pass

    def drop_waste(self) -> Iterator[None]:
        """Delete the records of unused matrices and their rows, in small commits."""
        for number in self.vectors.matrices().keys() - self._named():
            more = True
            while more:
                with self._database.transaction():
                    more = self.vectors.drop_some(number)
                yield

    def forget_rows(self, matrix: int, rows: Sequence[int]) -> int:
        """Drop damaged rows: their texts are embedded again. Return how many were not dropped before."""
        with self._database.transaction():
            chunks = self._database.run(
                "SELECT id FROM placed WHERE ? AND row IN (SELECT value FROM json_each(?))",
                (matrix == self._database.number("active"), json.dumps(list(rows))),
            )
            dropped = self.vectors.drop_rows(matrix, rows)
            if dropped:
                self.columns.change(removed=[], added=[], embedded={chunk: -1 for [chunk] in chunks})
                self.refill_waiting()
                self._database.count_generation_up()
        self.damaged_rows += dropped
        return dropped

    def refill_waiting(self) -> None:
        """Compute again, inside a transaction, which chunks have no vector and which of them wait."""
        self.vectors.refill(self._database.number("building") or self._database.number("active"))

    def close(self) -> None:
        """Close the files; mappings stay valid while they are referenced."""
        for matrix in (self.active, self.building):
            if matrix is not None:
                matrix.close()

    def _set_scripts(self, held: Matrix | None, scripts: str | None) -> None:
        """Set the model's scripts; if they changed, compute again which texts get a vector."""
        assert held is not None
        if self.vectors.matrices()[held.number].scripts != scripts:
            with self._database.transaction():
                # Rows of texts in other scripts are dropped.
                self._database.run("UPDATE matrices SET scripts = ? WHERE number = ?", (scripts, held.number))
                self._database.run(
                    f"""
                    DELETE FROM vectors
                    WHERE matrix = ?1 AND hash IN (SELECT chunks.hash FROM chunks WHERE NOT {READ})
                    """,
                    (held.number,),
                )
                self.vectors.refill(held.number)
                self.columns.renumber()
                self._database.count_generation_up()

    def _named(self) -> set[int]:
        return {
            number for key in ("active", "building") if (number := self._database.number(key)) is not None
        }

    def _open(self) -> None:
        known = self.vectors.matrices()
        if not self._named() <= known.keys():
            raise IndexDamagedError(f"{self._folder}: not all of {self._named()} are among {sorted(known)}")
        for _ in self.drop_waste():
            pass
        self._remove_strays(self._named())
        active, building = self._database.number("active"), self._database.number("building")
        if active is not None:
            self.active = self._opened(known[active])
        if building is not None:
            self.building = self._opened(known[building])

    def _opened(self, facts: MatrixFacts) -> Matrix:
        path, failure = self._folder / matrix_name(facts.number), self._database.failure
        try:
            matrix = Matrix(
                self._folder, facts.number, dim=facts.dim, failure=failure, model_id=facts.model_id
            )
        except FileNotFoundError as error:
            raise damaged(path, "it is missing") from error
        room = matrix.room
        if not 0 <= facts.next_row <= room:
            matrix.close()
            raise damaged(path, f"it has room for {room} rows, not for {facts.next_row}")
        matrix.use(facts.next_row)
        return matrix

    def _remove_strays(self, named: set[int]) -> None:
        named_files = {matrix_name(number) for number in named}
        for path in self._folder.iterdir():
            if FILE_NAME.fullmatch(path.name) and path.name not in named_files:
                log.warning("stray_matrix_removed")
                fsio.remove_leftover(path)


def is_worth_it(garbage: int, rows: int) -> bool:
    """Return whether a matrix with *garbage* unused rows should be compacted."""
    return garbage >= GARBAGE_ROWS and garbage > rows * GARBAGE_SHARE


class Stepwise:
    """Work that a generator does in steps, so that a thread does other work between them."""

    _steps: Iterator[None]

    def step(self, budget_s: float) -> bool:
        """Work for about *budget_s*; return True when everything is done."""
        stop = time.monotonic() + budget_s
        return all(time.monotonic() <= stop for _ in self._steps)


class Compaction(Stepwise):
    """One compaction, in steps. A change of the model abandons it."""

    def __init__(self, writer: Writer, matrices: Matrices, *, publish: Callable[[], None]) -> None:
        self._writer = writer
        self._matrices = matrices
        self._vectors = matrices.vectors
        self._publish = publish
        self._copy: Matrix | None = None  # the matrix being filled
        self._steps = self._all_steps()

    def abandon(self) -> None:
        """Abandon the compaction and delete the copy."""
        self._steps = iter(())
        if self._copy is not None:
            with suppress(MemdError):  # a full disk: the next start does it
                self._matrices.retire([self._copy])
            self._copy = None

    def _all_steps(self) -> Iterator[None]:
        yield from self._matrices.drop_waste()
        for held in (self._matrices.active, self._matrices.building):
            if held is not None and self._vectors.used_count(held.number) < held.count:
                yield from self._replaced(held)
        for table in ("words", "trigrams"):
            is_merged, pages = False, -MERGED_PAGES  # negative: merge all segments, whatever their size
            while not is_merged:
                with self._writer.transaction():
                    is_merged = self._writer.merge_full_text(table, pages)
                pages = MERGED_PAGES
                yield
        while self._writer.give_back():
            yield

    def _replaced(self, old: Matrix) -> Iterator[None]:
        scripts = self._vectors.matrices()[old.number].scripts
        with self._matrices.created(old.model_id, old.dim, scripts) as copy:
            self._copy = copy
        after = b""
        while True:
            rows = self._vectors.rows_to_copy(old.number, copy.number, after=after, limit=COPIED_ROWS)
            if rows:
                held = old.rows
                sound = [(row, digest) for row, digest, crc in rows if crc32(held.vector(row)) == crc]
                if len(sound) < len(rows):  # their texts are embedded again
                    log.warning("rows_damaged", rows=len(rows) - len(sound))
                    bad = {row for row, _, _ in rows}.difference(row for row, _ in sound)
                    self._matrices.forget_rows(old.number, sorted(bad))
                    self._publish()
                places = copy.append([held.vector(row) for row, _ in sound])
                with self._writer.transaction():
                    self._vectors.put_rows(
                        copy.number,
                        ((new, digest, crc) for (new, crc), (_, digest) in zip(places, sound, strict=True)),
                    )
                    self._vectors.set_next_row(copy.number, copy.count)
                after = rows[-1][1]
                yield
            elif not after:
                break  # a whole pass found nothing: texts that returned meanwhile are copied, too
            else:
                after = b""
        self._matrices.replace(old, copy)
        self._copy = None
        self._publish()
        old.remove()
        yield from self._matrices.drop_waste()


def _is_of(held: Matrix | None, model_id: str, dim: int) -> bool:
    return held is not None and held.model_id == model_id and held.dim == dim
