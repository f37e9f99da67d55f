"""Derived files: what is made from the index, may lag behind it, and can be deleted at any time.

There is one file of each kind, an `ArrayFile`. Its name is in the database and changes in one commit, and
only the file of that name counts: so a leftover, the file of another index or an older state of this one is
never used. A file is never changed, only replaced. One that is not as it was written is dropped, and made
again when there is time.

A file is made beside all else, a slice at a time; what comes to the index meanwhile is beyond it.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from memd import fsio
from memd.errors import NoSpaceError, NumpyMissingError, StorageError, storage_error
from memd.index.array_file import NAME, ArrayFile, ArrayFileWriter, DamagedFileError, file_name
from memd.index.writer import Writer

if TYPE_CHECKING:
    from memd.index.snapshot import View

log = structlog.get_logger()

KINDS = ("postings", "codes")
FILE_NAME = re.compile(rf"({'|'.join(KINDS)})\.{NAME.pattern}\.bin")
BUSY_TAIL_SHARE = 1 / 4  # for `tail_share` while there is other work: a first import makes ten files
UNUSABLE = (DamagedFileError, ImportError, NumpyMissingError, OSError)  # what opening and loading may raise


class UnderivableError(Exception):
    """No file can be made from what is there now: worth another try when there is twice as much."""


class Derived(Protocol):
    """What queries use of one file. For any thread."""

    file: ArrayFile

    @property
    def covered(self) -> int:
        """Up to which id or row the file knows the index."""

    @property
    def is_loaded(self) -> bool:
        """Whether queries can use it."""

    def load(self) -> None:
        """Read what has to be in memory; for a thread that nobody waits for. Raises `UNUSABLE`."""

    def wrong(self, view: View, count: int, ends: Callable[[], None]) -> int:
        """Return how many of *count* samples are not what they were made from; *ends* is called for each."""


D = TypeVar("D", bound=Derived)


class Build(Generic[D]):
    """A file that is being made. `step` is for one thread at a time, `abandon` for any."""

    def __init__(self, folder: Path, kind: str) -> None:
        """Nothing is created yet."""
        self.name = secrets.token_hex(8)
        self.path = folder / file_name(kind, self.name)
        self._kind = kind
        self._writer: ArrayFileWriter | None = None
        self._pieces = self._all_pieces()
        self._made: D | None = None  # once the file is whole
        self._given_up = False
        self._working = threading.Lock()  # whoever holds it may use the writer

    def step(self, budget_s: float) -> bool:
        """Go on for about so long; True when the file is whole and on the disk, or given up.

        Raises:
            MemdError: the disk is full or fails.
            UnderivableError: there is no file for what is there.
            Exception: what the making of this kind of file raises. Nothing is left then.
        """
        try:
            with self._working:
                self._go_on(time.monotonic() + budget_s)
        except DamagedFileError as error:
            self._given_up = True
            raise StorageError(f"{self.path}: what was written is not what is read: {error}") from error
        except OSError as error:
            self._given_up = True
            raise storage_error(str(self.path), error) from error
        except BaseException:
            self._given_up = True
            raise
        finally:
            if self._given_up:
                self._clear_up()
        return self._given_up or self._made is not None

    @property
    def made(self) -> D | None:
        """What queries use; None while it is not whole, and once it is given up."""
        return None if self._given_up else self._made

    def abandon(self) -> None:
        """Give up; what was written is removed, by a step that runs when it ends."""
        self._given_up = True
        self._clear_up()

    def pieces(self, out: ArrayFileWriter) -> Iterator[D | None]:
        """Write the file, piece by piece; yield None after each, and at the end what queries use."""
        raise NotImplementedError

    def _go_on(self, stop: float) -> None:
        """Do pieces until none is left, it is given up, or it is later than *stop*, in time.monotonic()."""
        while self._made is None and not self._given_up:
            self._made = next(self._pieces)
            if time.monotonic() > stop:
                break

    def _all_pieces(self) -> Iterator[D | None]:
        self._writer = ArrayFileWriter(self.path, self._kind, self.name)
        yield from self.pieces(self._writer)

    def _clear_up(self) -> None:
        if self._working.acquire(blocking=False):
            try:
                if self._writer is not None:
                    self._writer.close()
                with suppress(OSError):  # a name that stays is removed at the next start
                    fsio.remove(self.path)
            finally:
                self._working.release()


# Samples that a check compares with their base, others each time. All checksums say that a file is what was
# written; this says that what was written was true.
COMPARED = 200


def flaw(found: Derived, view: View, ends: Callable[[], None]) -> str:
    """Return what is wrong with a file on the disk or with what queries use of it, "" where nothing is found.

    Args:
        found: in use.
        view: of the moment that is looked at.
        ends: called again and again; raises when there is no time left.
    """
    try:
        damaged = found.file.reopened().damaged(ends)
    except (DamagedFileError, OSError) as error:
        return str(error)
    if damaged:
        return f"{damaged} blocks are not what was written"
    wrong = found.wrong(view, COMPARED, ends)
    return f"{wrong} of {COMPARED} samples are not what the index says" if wrong else ""


class DerivedFileKeeper(Generic[D]):
    """The file of one kind, which a subclass describes. For the writing thread; `current` and `owns` for any.

    What *publish* does with another file, or with None, is seen by the next query.
    """

    kind: str  # of KINDS
    tail_share: float  # of what is covered: as much more beyond it is worth a new file

    def __init__(self, folder: Path, writer: Writer, publish: Callable[[D | None], None]) -> None:
        self.current: D | None = None  # of the file that counts
        self._folder = folder
        self._writer = writer
        self._publish = publish
        self._named = f"{self.kind}_file"  # in meta: the name of the file that counts
        self._outdated = f"{self.kind}_outdated"  # in meta: it knows what was purged since
        self._building: Build[D] | None = None
        self._marks = 0  # how often what is being made became false, since it was opened
        self._begun_at: Hashable = None  # what `_state` was when the one that is being made was begun
        self._refused: tuple[Hashable, int] = (None, 0)  # `base` of which no file could be made, `end` then
        self._open()

    def opened(self, file: ArrayFile) -> D:
        """Return what queries use of a file, with nothing read of it yet. Raises `UNUSABLE`."""
        raise NotImplementedError

    def is_true(self, found: D) -> bool:
        """Tell whether what a file was made from is still there."""
        raise NotImplementedError

    def base(self) -> Hashable:
        """Return what is another one when a file that was begun before is not true any more."""
        raise NotImplementedError

    def end(self) -> int | None:
        """Return up to which id or row a file would know the index; None where none is wanted."""
        raise NotImplementedError

    def build(self, folder: Path) -> Build[D]:
        """Return a file to be made."""
        raise NotImplementedError

    @property
    def usable(self) -> D | None:
        """What queries use just now."""
        return self.current if self.current is not None and self.current.is_loaded else None

    @property
    def is_outdated(self) -> bool:
        """Whether the file knows what was purged since it was made."""
        return self.current is not None and self._writer.number(self._outdated) is not None

    def owns(self, path: Path) -> bool:
        """Tell whether a file of the folder is the one that counts, or the one that is being made."""
        building, current = self._building, self.current
        return path.name in {
            building.path.name if building is not None else "",
            current.file.path.name if current is not None else "",
        }

    def is_due(self, *, is_busy: bool) -> bool:
        """Tell whether a file should be made; *is_busy*: there is other work."""
        if self.is_outdated:
            return True
        end = self.end()
        base, refused = self._refused
        if end is None or (base == self.base() and end < 2 * refused):
            return False
        current = self.current
        covered = current.covered if current is not None and not current.file.is_damaged else 0
        return end - covered > (BUSY_TAIL_SHARE if is_busy else self.tail_share) * covered

    def begin(self) -> Build[D]:
        """Begin to make a file; `adopt` follows when it is whole, `refuse` or `Build.abandon` else.

        Another one that was begun is given up.
        """
        self.close()
        self._building = self.build(self._folder)
        self._begun_at = self._state
        return self._building

    def adopt(self, building: Build[D]) -> bool:
        """Let a file that is whole take the place of the one before; False where it is not true any more."""
        made = building.made
        is_wanted = building is self._building and self._begun_at == self._state
        if made is None or not is_wanted or not self.is_true(made):
            building.abandon()
            return False
        try:
            self._name(made.file.name)
        except BaseException:
            building.abandon()
            raise
        self._building = None
        self._change(made)
        return True

    def refuse(self) -> None:
        """Remember that no file can be made from what is there."""
        self._refused = self.base(), self.end() or 0

    def loaded(self, found: D) -> None:
        """Let queries use what was loaded, if it still counts."""
        if found is self.current and found.is_loaded:
            self._publish(found)

    def note_purged(self) -> None:
        """Note, inside a transaction, that something was purged: the file is outdated."""
        self._marks += 1
        if self.current is not None:
            self._writer.set(self._outdated, 1)

    def note_late(self, first: int) -> None:
        """Note, inside a transaction, that what comes from *first* on is live only now.

        A file that was made meanwhile, or is being made, lacks it; after the commit the caller has it
        looked at.
        """
        self._marks += 1
        if self.current is not None and self.current.covered >= first:
            self._writer.set(self._named, None)
            self._writer.set(self._outdated, None)

    def drop(self) -> None:
        """Do without a file."""
        self._name(None)
        self._change(None)

    def look(self) -> None:
        """Let go of a file that does not count or is not true any more; the caller publishes."""
        current = self.current
        if current is None:
            return
        if self._writer.get(self._named) != current.file.name or not self.is_true(current):
            self._remove(current)
            self.current = None

    def close(self) -> None:
        """Give up what is being made; the file that is there stays."""
        if self._building is not None:
            self._building.abandon()

    @property
    def _state(self) -> Hashable:
        return self._marks, self.base()

    def _name(self, name: str | None) -> None:
        with self._writer.transaction():
            self._writer.set(self._named, name)
            self._writer.set(self._outdated, None)

    def _change(self, found: D | None) -> None:
        old, self.current = self.current, found
        self._publish(found)
        if old is not None:
            self._remove(old)

    def _open(self) -> None:
        name = self._writer.get(self._named)
        if name is not None:
            self.current = self._opened(str(name))
            if self.current is None:
                with suppress(NoSpaceError):
                    self._name(None)
        for path in self._folder.glob(f"{self.kind}.*.bin"):
            if FILE_NAME.fullmatch(path.name) and not self.owns(path):
                log.warning("stray_derived_file_removed", kind=self.kind)
                with suppress(OSError):  # a folder of that name is none of ours
                    fsio.remove(path)

    def _opened(self, name: str) -> D | None:
        if not NAME.fullmatch(name):  # a bit that flipped
            return None
        kind = self.kind
        try:
            return self.opened(ArrayFile(self._folder / file_name(kind, name), kind, name))
        except FileNotFoundError:
            log.info("derived_file_missing", kind=kind)  # deleted, or its base is gone
        except UNUSABLE as error:
            log.warning("derived_file_not_usable", kind=kind, error=type(error).__name__)
        return None

    def _remove(self, found: D) -> None:
        with suppress(OSError):  # a name that stays is removed at the next start
            fsio.remove(found.file.path)
