"""Which file of postings counts, and when is another one due?

The database names it. So it changes in one commit, and what a crash or an exchanged database leaves in the
folder belongs to nothing. A file that is not as it was written is dropped, and made again when there is
time.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import structlog

from memd import fsio
from memd.errors import NoSpaceError
from memd.index.columns import HAS_NUMPY
from memd.index.inverted import FILE_NAME, DamagedFileError, Inverted, file_name
from memd.index.inverted_build import Building
from memd.index.view import Snapshot, View
from memd.index.writer import POSTINGS_FILE, Writer

log = structlog.get_logger()

# In smaller indexes FTS5 tells of any term within 10 ms, and once for all queries.
MIN_CHUNKS = 20_000
# Chunks beyond the file, as a share of those in it. FTS5 tells of them when a word is first asked for after
# a start, at 0.5 µs for each that it stands in. A new file costs a look at every term and its copy.
TAIL_SHARE = 1 / 20
BUSY_TAIL_SHARE = 1 / 4  # the same while there is other work: in a first import it is made ten times
HOLDS_PURGED = "postings_hold_purged"  # in meta: the file knows chunks that were purged since


class InvertedKeeper:
    """The file of one index. For the writing thread; `file` and `owns` are for any.

    What *publish* does with another file is seen by the next query.
    """

    def __init__(self, folder: Path, writer: Writer, publish: Callable[[Inverted | None], None]) -> None:
        self.file: Inverted | None = None
        self._folder = folder
        self._writer = writer
        self._publish = publish
        self._building: Building | None = None
        self._purges = 0  # since it was opened
        self._begun_at = (0, 0)  # what `_state` was when the one that is being built was begun
        self._open()

    def owns(self, path: Path) -> bool:
        """Tell whether a file of the folder is the one that counts, or the one that is being made."""
        building, file = self._building, self.file
        return path.name in {
            building.path.name if building is not None else "",
            file_name(file.name) if file is not None else "",
        }

    def is_due(self, now: Snapshot, *, is_busy: bool) -> bool:
        """Tell whether a file should be made; *is_busy*: there is other work."""
        file = self.file
        if self.holds_purged:
            return True
        if now.columns.count < MIN_CHUNKS or not HAS_NUMPY:
            return False
        if file is None or file.is_damaged:
            return True
        return now.postings.newest - file.last > (BUSY_TAIL_SHARE if is_busy else TAIL_SHARE) * file.last

    @property
    def holds_purged(self) -> bool:
        """Whether the file knows chunks that were purged since it was made."""
        return self.file is not None and self._writer.number(HOLDS_PURGED) is not None

    def note_purged(self) -> None:
        """Note, inside a transaction, that chunks were purged."""
        self._purges += 1
        if self.file is not None:
            self._writer.set(HOLDS_PURGED, 1)

    def begin(self, view_apart: Callable[[], AbstractContextManager[View]]) -> Building:
        """Begin to make a file; `adopt` follows when it is whole. Another one that was begun is given up."""
        self.close()
        self._building = Building(self._folder, view_apart)
        self._begun_at = self._state
        return self._building

    def adopt(self, building: Building) -> bool:
        """Let a file that is whole take the place of the one before; False where it is not true any more."""
        is_true = building is self._building and building.is_whole and self._begun_at == self._state
        made = self._opened(building.name) if is_true else None
        if made is None:
            building.abandon()
            return False
        try:
            with self._writer.transaction():
                self._writer.set(POSTINGS_FILE, made.name)
                self._writer.set(HOLDS_PURGED, None)
        except BaseException:
            building.abandon()
            raise
        self._building = None
        self._change(made)
        return True

    def drop(self) -> None:
        """Do without a file."""
        with self._writer.transaction():
            self._writer.set(POSTINGS_FILE, None)
            self._writer.set(HOLDS_PURGED, None)
        self._change(None)

    def look(self) -> None:
        """Let go of a file that the database does not name any more; the caller publishes."""
        if self.file is not None and self._writer.get(POSTINGS_FILE) != self.file.name:
            self._remove(self.file.name)
            self.file = None

    def close(self) -> None:
        """Give up what is being made; the file that is there stays."""
        if self._building is not None:
            self._building.abandon()

    @property
    def _state(self) -> tuple[int, int]:
        """What is another one when a file that was begun before is not true any more."""
        return self._purges, self._writer.refilled

    def _change(self, file: Inverted | None) -> None:
        old, self.file = self.file, file
        self._publish(file)
        if old is not None:
            self._remove(old.name)

    def _open(self) -> None:
        name = self._writer.get(POSTINGS_FILE)
        if name is not None:
            # Without numpy nobody could make it anew after a purge, so it is not kept either.
            self.file = self._opened(str(name)) if HAS_NUMPY else None
            if self.file is None:
                with suppress(NoSpaceError), self._writer.transaction():
                    self._writer.set(POSTINGS_FILE, None)
        for path in self._folder.iterdir():
            if FILE_NAME.fullmatch(path.name) and not self.owns(path):
                log.warning("stray_postings_removed")
                with suppress(OSError):  # a folder of that name is none of ours
                    fsio.remove(path)

    def _opened(self, name: str) -> Inverted | None:
        if not FILE_NAME.fullmatch(file_name(name)):  # a bit that flipped
            return None
        try:
            return Inverted(self._folder / file_name(name), name)
        except FileNotFoundError:
            log.warning("postings_missing")
        except (DamagedFileError, OSError) as error:
            log.warning("postings_not_usable", kind=type(error).__name__)
        return None

    def _remove(self, name: str) -> None:
        with suppress(OSError):  # a name that stays is removed at the next start
            fsio.remove(self._folder / file_name(name))
