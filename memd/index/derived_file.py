"""Derived files: caches made from the index that may lag behind it and can be deleted at any time.

There is one file per kind, an `ArrayFile`. The database stores its name, which changes in one commit, and
only the file of that name is used: leftovers, files of another index and files of an older state are
ignored. A file is never changed, only replaced. A damaged file is dropped, and made again when there is
time.

A file is made in the background, in slices; it does not cover what is indexed meanwhile.
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

KINDS = ("codes",)
FILE_NAME = re.compile(rf"({'|'.join(KINDS)})\.{NAME.pattern}\.bin")
BUSY_TAIL_SHARE = 1 / 4  # `tail_share` while there is other work: a first import makes ten files
UNUSABLE = (DamagedFileError, ImportError, NumpyMissingError, OSError)  # raised by opening and loading


class UnderivableError(Exception):
    """No file can be made from the present data. The build is tried again when there is twice as much."""


class Derived(Protocol):
    """The part of one file that queries use. For any thread."""

    file: ArrayFile

    @property
    def covered(self) -> int:
        """The last id or row of the index that the file covers."""

    @property
    def is_loaded(self) -> bool:
        """Whether queries can use it."""

    def load(self) -> None:
        """Read what must be in memory; called in a background thread. Raises `UNUSABLE`."""

    def wrong(self, view: View, count: int, ends: Callable[[], None]) -> int:
        """Return how many of *count* samples differ from their origin; *ends* is called for each sample."""


D = TypeVar("D", bound=Derived)


class Build(Generic[D]):
    """The making of one file. `step` is for one thread at a time, `abandon` for any."""

    def __init__(self, folder: Path, kind: str) -> None:
        """Create nothing yet."""
        self.name = secrets.token_hex(8)
        self.path = folder / file_name(kind, self.name)
        self._kind = kind
        self._writer: ArrayFileWriter | None = None
        self._pieces = self._all_pieces()
        self._made: D | None = None  # set when the file is complete
        self._given_up = False
        self._working = threading.Lock()  # its holder may use the writer

    def step(self, budget_s: float) -> bool:
        """Work for about *budget_s*; return True when the file is complete and synced, or abandoned.

        Raises:
            MemdError: the disk is full or fails.
            UnderivableError: no file can be made from the present data.
            Exception: from the subclass. The file is removed then.
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
        """The finished file; None while it is incomplete, and after `abandon`."""
        return None if self._given_up else self._made

    def abandon(self) -> None:
        """Abandon the file and remove it; a running step removes it when it ends."""
        self._given_up = True
        self._clear_up()

    def pieces(self, out: ArrayFileWriter) -> Iterator[D | None]:
        """Write the file piece by piece; yield None after each piece, and finally the result."""
        raise NotImplementedError

    def _go_on(self, stop: float) -> None:
        """Write pieces until the file is complete, abandoned, or time.monotonic() is past *stop*."""
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
                with suppress(OSError):  # a file that remains is removed at the next start
                    fsio.remove(self.path)
            finally:
                self._working.release()


# Number of random samples that a check compares with their origin. Checksums prove that a file is what was
# written; this shows that what was written was correct.
COMPARED = 200


def flaw(found: Derived, view: View, ends: Callable[[], None]) -> str:
    """Return a description of what is wrong with a file or its use by queries, "" if nothing is.

    Args:
        found: the file in use.
        view: of the state to compare with.
        ends: called repeatedly; raises when there is no time left.
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
    """Maintains the file of one kind. For the writing thread; `current` and `owns` are for any.

    After *publish* was called with a file or None, the next query uses that.
    """

    kind: str  # of KINDS
    tail_share: float  # a new file is made when the uncovered part exceeds this share of the covered part

    def __init__(self, folder: Path, writer: Writer, publish: Callable[[D | None], None]) -> None:
        self.current: D | None = None  # the file that is named in the database
        self._folder = folder
        self._writer = writer
        self._publish = publish
        self._named = f"{self.kind}_file"  # key in meta: the name of that file
        self._outdated = f"{self.kind}_outdated"  # key in meta: the file contains data purged since
        self._building: Build[D] | None = None
        self._marks = 0  # number of changes since opening that invalidate a file in the making
        self._begun_at: Hashable = None  # `_state` when the present build began
        self._refused: tuple[Hashable, int] = (None, 0)  # `base` and `end` of the build that failed last
        self._open()

    def opened(self, file: ArrayFile) -> D:
        """Return the usable part of a file, with nothing read yet. Raises `UNUSABLE`."""
        raise NotImplementedError

    def is_true(self, found: D) -> bool:
        """Return whether the data that a file was made from still exists."""
        raise NotImplementedError

    def base(self) -> Hashable:
        """Return a value that changes whenever files made so far become wrong."""
        raise NotImplementedError

    def end(self) -> int | None:
        """Return the last id or row that a new file would cover; None if no file is wanted."""
        raise NotImplementedError

    def build(self, folder: Path) -> Build[D]:
        """Return the build of a new file."""
        raise NotImplementedError

    @property
    def usable(self) -> D | None:
        """The file that queries use now."""
        return self.current if self.current is not None and self.current.is_loaded else None

    @property
    def is_outdated(self) -> bool:
        """Whether the file contains data that was purged since it was made."""
        return self.current is not None and self._writer.number(self._outdated) is not None

    def owns(self, path: Path) -> bool:
        """Return whether *path* is the file in use or the one being made."""
        building, current = self._building, self.current
        return path.name in {
            building.path.name if building is not None else "",
            current.file.path.name if current is not None else "",
        }

    def is_due(self, *, is_busy: bool) -> bool:
        """Return whether a file should be made; *is_busy*: there is other work."""
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
        """Begin a file; when it is complete `adopt` follows, otherwise `refuse` or `Build.abandon`.

        A build in progress is abandoned.
        """
        self.close()
        self._building = self.build(self._folder)
        self._begun_at = self._state
        return self._building

    def adopt(self, building: Build[D]) -> bool:
        """Replace the file by the finished one; return False if that has become wrong meanwhile."""
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
        """Record that no file can be made from the present data."""
        self._refused = self.base(), self.end() or 0

    def loaded(self, found: D) -> None:
        """Let queries use a loaded file, if it is still the current one."""
        if found is self.current and found.is_loaded:
            self._publish(found)

    def note_purged(self) -> None:
        """Record, inside a transaction, that data was purged: the file is outdated."""
        self._marks += 1
        if self.current is not None:
            self._writer.set(self._outdated, 1)

    def note_late(self, first: int) -> None:
        """Record, inside a transaction, that chunks with ids from *first* on became live only now.

        A file that covers these ids, or is being made, lacks them; after the commit the caller calls
        `look`.
        """
        self._marks += 1
        if self.current is not None and self.current.covered >= first:
            self._writer.set(self._named, None)
            self._writer.set(self._outdated, None)

    def drop(self) -> None:
        """Stop using the file and remove it."""
        self._name(None)
        self._change(None)

    def look(self) -> None:
        """Drop the file if it is not current or has become wrong; the caller publishes."""
        current = self.current
        if current is None:
            return
        if self._writer.get(self._named) != current.file.name or not self.is_true(current):
            self._remove(current)
            self.current = None

    def close(self) -> None:
        """Abandon the build in progress; the file in use stays."""
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
                with suppress(OSError):  # a folder of that name is not memd's
                    fsio.remove(path)

    def _opened(self, name: str) -> D | None:
        if not NAME.fullmatch(name):  # corrupt
            return None
        kind = self.kind
        try:
            return self.opened(ArrayFile(self._folder / file_name(kind, name), kind, name))
        except FileNotFoundError:
            log.info("derived_file_missing", kind=kind)  # deleted, or its origin is
        except UNUSABLE as error:
            log.warning("derived_file_not_usable", kind=kind, error=type(error).__name__)
        return None

    def _remove(self, found: D) -> None:
        with suppress(OSError):  # a file that remains is removed at the next start
            fsio.remove(found.file.path)
