"""A disk that refuses: the n-th call of one kind fails, for every n, until a run is clean.

The run is the same each time: a script with every kind of step. What fails must say so by its documented
error, leave what was there answering, and be done afterwards as if nothing had been; after an error of the
device nothing more is acknowledged until the index is opened anew.
"""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import apsw

from faults import bugs, verdict
from faults.seam import Call, Witness, watched
from faults.site import SHORT_LOG_PAGES, Site
from faults.steps import NOTHING, Step, Truth
from memd.errors import NoSpaceError, StorageError

WRITES = frozenset({"create", "write", "reserve", "truncate", "sync", "sync_folder", "unlink"})
GROWS = frozenset({"create", "write", "reserve"})  # the calls that want space
UNDONE = frozenset({"write", "sync"})  # after one of these that failed, nobody knows what the disk holds
TRIES = 3  # of a step: the second one may meet what the first left; a third would be one too many


@dataclass(frozen=True, slots=True)
class Trouble:
    """Which calls fail, and with what."""

    name: str
    number: int  # of the system's error
    kinds: frozenset[str]
    lasts: bool  # until it is mended; else one call fails


FULL = Trouble("the disk is full", errno.ENOSPC, GROWS, lasts=True)
FULL_ONCE = Trouble("one call finds the disk full", errno.ENOSPC, WRITES, lasts=False)
BROKEN_ONCE = Trouble("one write fails", errno.EIO, WRITES, lasts=False)
BROKEN = Trouble("all writes fail", errno.EIO, WRITES, lasts=True)
UNREADABLE_ONCE = Trouble("one read fails", errno.EIO, frozenset({"read", "open"}), lasts=False)
UNSYNCED_ONCE = Trouble("one sync fails", errno.EIO, frozenset({"sync"}), lasts=False)
TROUBLES = (FULL, FULL_ONCE, BROKEN_ONCE, BROKEN, UNREADABLE_ONCE)


@dataclass(slots=True)
class Failing(Witness):
    """Has the n-th call fail that the trouble is about."""

    trouble: Trouble
    at: int  # the first is 1; 0: none
    seen: int = 0
    failed: Call | None = None  # the first one
    is_mended: bool = False

    def before(self, call: Call) -> None:
        if call.kind not in self.trouble.kinds or self.is_mended:
            return
        self.seen += 1
        if self.seen == self.at or (self.trouble.lasts and self.failed is not None):
            self.failed = self.failed or call
            raise OSError(self.trouble.number, "as the test wants it", call.path)


@dataclass(slots=True)
class Sweep:
    """What a sweep found."""

    calls: int = 0  # that could fail in one run
    runs: int = 0
    flaws: list[str] = field(default_factory=list)


def script() -> list[Step]:
    """Return steps of every kind, that need each other."""
    some = {f"a{number}.md": f"1.{number}" for number in range(4)}
    done: list[tuple[str, dict[str, str | None]]] = [
        ("put", dict(some)), ("embed", {}), ("edit", {"a0.md": "2.0"}),
        ("delete", {"a1.md": None, "a2.md": None}), ("compact", {}), ("restore", {"a1.md": "1.1"}),
        ("embed", {}), ("reopen", {}), ("switch", {}), ("put", {"b.md": "3.0"}), ("embed", {}),
        ("finish", {}), ("purge", {}), ("checkpoint", {}), ("compact", {}), ("reopen", {}),
        ("put", {"c.md": "4.0"}), ("embed", {}),
    ]  # fmt: skip
    # Multiples of 3 embed all at once, odd ones compact to the end.
    return [Step(3 * number, kind, notes) for number, (kind, notes) in enumerate(done, start=1)]


def sweep(folder: Path, trouble: Trouble, *, stride: int = 1, first: int = 1, bug: str = "") -> Sweep:
    """Run the script again and again, each time with a later call that fails.

    Args:
        folder: empty; of this sweep alone.
        trouble: what happens.
        stride: 1 tries every call; more only every so many-th.
        first: of the calls that are tried.
        bug: a mistake that is made meanwhile; the sweep then ends with the first flaw.
    """
    found = Sweep()
    number = first
    while not (bug and found.flaws):
        failing = Failing(trouble, number)
        place = folder / str(number)
        with ExitStack() as within:
            within.enter_context(watched(failing))
            if bug:
                within.enter_context(bugs.planted(bug))
            flaws = list(_Run(place, failing).flaws())
        shutil.rmtree(place)
        found.runs += 1
        found.calls = max(found.calls, failing.seen)
        found.flaws += [f"{trouble.name}, call {number}, {failing.failed}: {flaw}" for flaw in flaws]
        if failing.failed is None:
            break  # the run was clean: there is no such call any more
        number += stride
    return found


class _Run:
    """One run of the script."""

    def __init__(self, folder: Path, failing: Failing) -> None:
        self._folder = folder
        self._failing = failing
        self._truth = NOTHING
        self._site: Site | None = None
        self._was_told = False

    def flaws(self) -> Iterator[str]:
        """Do all of it, and yield what is wrong."""
        yield from self._until_done("open", self._open, NOTHING)
        for step in script():
            yield from self._until_done(step.kind, lambda step=step: self._do(step), self._truth.after(step))
        yield from self._until_done("close", self._close, self._truth)
        if self._loses_what_was_written and not self._was_told:
            yield "nobody was told"
        self._failing.is_mended = True
        yield from verdict.of_folder(self._folder, [self._truth]).flaws

    def _until_done(self, name: str, work: Callable[[], None], after: Truth) -> Iterator[str]:
        for _ in range(TRIES):
            error = self._error_of(work)
            if error is None:
                self._truth = after
                return
            self._was_told = True
            yield from (f"{name}: {flaw}" for flaw in chain(self._misnamed(error), self._while_it_fails()))
            self._failing.is_mended = True
            yield from (f"after {name}: {flaw}" for flaw in self._when_mended(after))
        yield f"{name} does not succeed after all was mended"

    def _error_of(self, work: Callable[[], None]) -> Exception | None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - which one is what we look at
            return error
        return None

    def _open(self) -> None:
        if self._site is None:
            self._site = Site(self._folder, log_pages=SHORT_LOG_PAGES)

    def _close(self) -> None:
        if self._site is not None:
            site, self._site = self._site, None
            try:
                site.close()
            except (
                apsw.FullError,
                apsw.IOError,
            ):  # only apsw tells what its VFS raised, SQLite passes over it
                self._was_told = True

    def _do(self, step: Step) -> None:
        if step.kind == "reopen":
            self._close()
        self._open()
        assert self._site is not None
        if step.kind != "reopen":
            self._site.do(step)

    def _misnamed(self, error: Exception) -> Iterator[str]:
        """Compare an error with the one that is documented."""
        failed, wanted = self._failing.failed, {StorageError}
        if failed is not None and self._failing.trouble.number == errno.ENOSPC:
            # SQLite does not say why a file can't be made; a sync that finds no space has lost something.
            is_plain = failed.kind in GROWS and not (failed.sqlite and failed.kind == "create")
            wanted = {NoSpaceError} if is_plain else {NoSpaceError, StorageError}
        if type(error) not in wanted:
            yield f"{type(error).__name__}: {error}"

    @property
    def _loses_what_was_written(self) -> bool:
        failed = self._failing.failed
        return failed is not None and failed.kind in UNDONE and self._failing.trouble.number == errno.EIO

    def _while_it_fails(self) -> Iterator[str]:
        """Look whether what was there still answers, and whether an error of the device is remembered."""
        if self._site is not None:
            yield from verdict.wrong_answers(self._site.index, self._truth)
            if self._loses_what_was_written:
                yield from self._acknowledging()

    def _acknowledging(self) -> Iterator[str]:
        assert self._site is not None
        index = self._site.index
        if index.failed is None:
            yield "the error is not remembered"
        for work in (lambda: index.writer.store("complete", 1), index.writer.checkpoint):
            if not isinstance(self._error_of(work), StorageError):
                yield f"{work.__name__} is acknowledged after it"

    def _when_mended(self, after: Truth) -> Iterator[str]:
        """Open again what has to be opened again; look at what is there."""
        is_undecided = self._site is None or self._site.index.failed is not None
        if is_undecided:
            with suppress(StorageError, NoSpaceError):
                self._close()
            error = self._error_of(self._open)
            if error is not None:
                yield f"it cannot be opened: {type(error).__name__}: {error}"
                return
        assert self._site is not None
        candidates = [self._truth, after] if is_undecided else [self._truth]
        self._truth, flaws = verdict.of_index(self._site.index, candidates)
        # What could not be removed is, by the next start.
        may_leave = self._failing.trouble.lasts and "unlink" in self._failing.trouble.kinds
        yield from (flaw for flaw in flaws if not (may_leave and flaw.startswith("check: stray")))
