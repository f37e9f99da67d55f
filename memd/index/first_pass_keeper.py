"""Which file of codes counts, and when is another one due?

The database names it. So it changes in one commit, and what a crash or an exchanged database leaves in the
folder belongs to nothing. Opening an index only looks for the name: reading the file, which loads a
library, is for a thread that nobody waits for, and until it is read every vector is scanned.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog

from memd import fsio
from memd.errors import NoSpaceError
from memd.index import first_pass
from memd.index.first_pass import FILE_NAME, DamagedFileError, Facts, FirstPass, file_name
from memd.index.first_pass_build import Building
from memd.index.matrices import Matrices
from memd.index.writer import Writer

log = structlog.get_logger()

# Scanned exactly, so many rows of 384 dimensions take 3 ms where nobody else uses the memory, and 10 ms
# where others do; by their codes 1 ms.
MIN_ROWS = 1 << 16
# Rows beyond the file, which are scanned exactly, as a share of those in it: a fiftieth of a million is
# 1 ms of each query. All codes are made again, 10 s of one core for a million.
TAIL_SHARE = 1 / 50
BUSY_TAIL_SHARE = 1 / 4  # the same while there is other work: in a first import it is made ten times
NAMED = "first_pass_file"  # in meta: the name of the file that counts

Load = Callable[[], FirstPass]


class FirstPassKeeper:
    """The codes of one index. For the writing thread; `loaded` and `owns` are for any.

    What *publish* does with other codes is seen by the next query.
    """

    def __init__(
        self, folder: Path, writer: Writer, matrices: Matrices, publish: Callable[[FirstPass | None], None]
    ) -> None:
        self.loaded: FirstPass | None = None
        self._facts: Facts | None = None  # of the file that counts
        self._folder = folder
        self._writer = writer
        self._matrices = matrices
        self._publish = publish
        self._building: Building | None = None
        self._refused = (0, 0)  # the matrix that could not be coded, and its rows then
        self._open()

    def owns(self, path: Path) -> bool:
        """Tell whether a file of the folder is the one that counts, or the one that is being made."""
        building, facts = self._building, self._facts
        return path.name in {
            building.path.name if building is not None else "",
            file_name(facts.name) if facts is not None else "",
        }

    def stored(self) -> Load | None:
        """Return what reads the file that is there, for any thread; None where there is nothing to read.

        `take` follows, or `drop` if it raises DamagedFileError or OSError.
        """
        facts = self._facts
        if facts is None or self.loaded is not None or not first_pass.can_code(facts.dim):
            return None
        return partial(first_pass.read, self._folder, facts)

    def take(self, found: FirstPass) -> None:
        """Let codes that were read be used, if they still count."""
        if found.facts == self._facts:
            self.loaded = found
            self._publish(found)

    def is_due(self, *, is_busy: bool) -> bool:
        """Tell whether a file should be made; *is_busy*: there is other work."""
        active = self._matrices.active
        if active is None or active.file.count < MIN_ROWS or not first_pass.can_code(active.file.dim):
            return False
        rows = active.file.count
        matrix, then = self._refused
        if matrix == active.number and rows < 2 * then:
            return False
        covered = self.loaded.facts.rows if self.loaded is not None else 0
        return rows - covered > (BUSY_TAIL_SHARE if is_busy else TAIL_SHARE) * covered

    def begin(self) -> Building:
        """Begin to make a file; `adopt` follows when it is whole, `refuse` or `Building.abandon` else.

        Another one that was begun is given up.
        """
        active = self._matrices.active
        assert active is not None
        self.close()
        self._building = Building(self._folder, active.number, self._matrices.rows)
        return self._building

    def adopt(self, building: Building) -> bool:
        """Let a file that is whole take the place of the one before; False where its matrix is gone."""
        made = building.made
        is_whole = building is self._building and building.is_whole
        if made is None or not is_whole or not self._is_true(made.facts):
            building.abandon()
            return False
        try:
            with self._writer.transaction():
                self._writer.set(NAMED, made.facts.name)
        except BaseException:
            building.abandon()
            raise
        self._building = None
        self._change(made.facts, made)
        return True

    def refuse(self, building: Building) -> None:
        """Remember that these vectors could not be coded: tried again when there are twice as many."""
        self._refused = (building.matrix, building.rows.count)

    def drop(self) -> None:
        """Do without a file."""
        with self._writer.transaction():
            self._writer.set(NAMED, None)
        self._change(None, None)

    def look(self) -> None:
        """Let go of a file whose matrix does not answer any more; the caller publishes."""
        if self._facts is not None and not self._is_true(self._facts):
            self._remove(self._facts)
            self._facts = self.loaded = None

    def close(self) -> None:
        """Give up what is being made; the file that is there stays."""
        if self._building is not None:
            self._building.abandon()

    def _is_true(self, facts: Facts) -> bool:
        active = self._matrices.active
        return active is not None and first_pass.is_of(facts, active.number, self._matrices.rows)

    def _change(self, facts: Facts | None, loaded: FirstPass | None) -> None:
        old, self._facts, self.loaded = self._facts, facts, loaded
        self._publish(loaded)
        if old is not None:
            self._remove(old)

    def _open(self) -> None:
        name = self._writer.get(NAMED)
        if name is not None:
            self._facts = self._facts_of(str(name))
            if self._facts is None:
                with suppress(NoSpaceError), self._writer.transaction():
                    self._writer.set(NAMED, None)
        for path in self._folder.iterdir():
            if FILE_NAME.fullmatch(path.name) and not self.owns(path):
                log.warning("stray_codes_removed")
                with suppress(OSError):  # a folder of that name is none of ours
                    fsio.remove(path)

    def _facts_of(self, name: str) -> Facts | None:
        if not FILE_NAME.fullmatch(file_name(name)):  # a bit that flipped
            return None
        try:
            return first_pass.facts_of(self._folder, name)  # `look` tells whether they are true
        except FileNotFoundError:
            log.info("codes_missing")  # deleted, or of a matrix that another one took the place of
        except (DamagedFileError, OSError) as error:
            log.warning("codes_not_usable", kind=type(error).__name__)
        return None

    def _remove(self, facts: Facts) -> None:
        with suppress(OSError):  # a name that stays is removed at the next start
            fsio.remove(self._folder / file_name(facts.name))
