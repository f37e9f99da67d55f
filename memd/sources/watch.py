"""The file system watch: reports paths that may have changed, for all roots of a daemon.

One `watchfiles.watch` in a thread for each root; this module is its only importer. An event is a hint that
a path may be dirty, and some events are lost: watchfiles drops the kernel's report that its queue was full,
does not report a folder that it cannot watch, and does not notice that a disk was mounted. So no caller may
rely on events: scans (memd/workspace/scanner.py) find the changes without one. The watch requests a scan
when it detects that something was lost, and frequent scans while folders are unwatched. `Watchers.watch`
never ends by an error.
"""

import asyncio
import ctypes
import errno
import math
import os
import re
import stat
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memd.sources import filesystem
from memd.sources.scan import is_utf8

# How long watchfiles waits for one more event, and how long it collects events at most: an event arrives
# within 42 ms (p95), at the cost of 40 wake-ups a second and 0.15 % of a core.
STEP_MS, DEBOUNCE_MS = 25, 50
# With more roots than these, later ones are looked at less often: sixty would take 6 % of a core all day.
FREQUENT_ROOTS = 4
MOST_STEP_MS = 200
# With so many paths in one batch, the kernel's queue may have been full: it holds 16,384 events, a new file
# causes three, and a busy tree sends others that watchfiles ignores.
BURST_PATHS = 1_000
# If the thread did not run for so long (a stopped process, a suspended machine), the queue may have been
# full, too; on an overloaded machine the delay is a tenth of it.
LOST_S = 0.5
# With more waiting paths, the root is rescanned instead: twice the size of the kernel's queue, so that a
# burst that fits into the queue keeps its paths, and with them a note that is saved during it.
MAX_WAITING = 32_768
# How often to check that each root is still the watched folder; there may be no event about that.
LOOK_S = 2.0
# How often to check for changed mounts, and for free or exhausted watches, if no event suggests it.
PROBE_S = 60.0
# A watch that may lack a folder is armed again, but a link may be replaced all day: arming takes this share
# of a core at most, and if no watch was left, this is the pause before the next attempt.
REARM_SHARE = 0.01
BLIND_RETRY_S = 60.0
# Delays before a watch that ended is armed again; the last one repeats. After a watch that lasted a minute,
# the first delay is used again.
RETRY_S = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
STABLE_S = 60.0
CLOSE_S = 2.0  # for a thread to end; where it takes longer, a disk hangs
# Of the instances of inotify that the kernel grants a user, 128 by default, one for each root: editors need
# some, too. The roots beyond are scanned.
OWN_SHARE = 0.5
BETWEEN_S = 0.05  # between two watches: a folder may be replaced in a loop
DELETED = 3  # watchfiles' Change.deleted, which is imported late
_UNDECODABLE = re.compile(r'^Unable to decode path "(.*)" to string$', re.DOTALL)
_IN_ATTRIB = 0x4  # a change of a folder's attributes: the event that the probe requests
LIMIT_TROUBLE = (
    "{} may have folders that cannot be watched, because this user has too many watches already: it is "
    "scanned on a timer. Raise the limit: sysctl fs.inotify.max_user_watches=524288"
)


Identity = tuple[int, int, bool]  # device, inode, whether it may be read


@dataclass(frozen=True, slots=True)
class Dirty:
    """Paths to check again. The kind and the order of the changes are unknown."""

    paths: frozenset[str] = frozenset()  # absolute: files, folders, or deleted paths
    rescan: bool = False  # events were or may be lost: compare the whole root
    overflow: bool = False  # the rescan is due to too many changes at once, known or suspected: back off
    trouble: str = ""  # why the watch is stopped or incomplete; "" if no reason is known
    polling: bool = False  # events are unreliable from now on: scan the root on a short timer


class Watchers:
    """Watches any number of roots, each in its thread: one for all would wait for a disk that hangs.

    For the event loop's thread.
    """

    def __init__(self) -> None:
        self._roots: list[_Root] = []
        self._ending: list[threading.Thread] = []

    @property
    def count(self) -> int:
        """The number of watched roots."""
        return len(self._roots)

    async def watch(
        self, root: Path, *, enters: Callable[[str], bool] = lambda _: True
    ) -> AsyncGenerator[Dirty, None]:
        """Yield the paths that may have changed below *root*, until the generator is closed or cancelled.

        The first Dirty requests a rescan and comes when the watch is armed. Another rescan follows whenever
        the watch is armed again or may have lost events.

        Args:
            root: of the workspace.
            enters: returns whether a folder is searched, given its path relative to the root with a
                trailing "/". Called in another thread; must not raise. By default all folders are.
        """
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: there is no listener any more
                loop.call_soon_threadsafe(news.set)

        step_ms = min(STEP_MS * max(1, len(self._roots) // FREQUENT_ROOTS), MOST_STEP_MS)
        watched = _Root(root, enters, tell, len(self._roots), step_ms)
        thread = threading.Thread(target=watched.live, name="memd-watch", daemon=True)
        thread.start()
        self._roots.append(watched)
        try:
            while True:
                await news.wait()
                news.clear()
                if (dirty := watched.take()) is not None:
                    yield dirty
        finally:
            watched.ended.set()
            self._roots.remove(watched)
            for number, other in enumerate(self._roots):  # one that is scanned may now be watched
                other.number = number
            self._ending = [one for one in (*self._ending, thread) if one.is_alive()]

    def close(self) -> None:
        """Wait for the threads of watches that have ended, unless their disks hang."""
        stop = time.monotonic() + CLOSE_S
        for thread in self._ending:
            thread.join(max(0.0, stop - time.monotonic()))


class _Root:
    """One root: the watched folder, and the changes in it that are not delivered yet."""

    def __init__(
        self, root: Path, enters: Callable[[str], bool], tell: Callable[[], None], number: int, step_ms: int
    ) -> None:
        self.number = number  # how many others are watched before it
        self.ended = threading.Event()  # whether its thread is to end
        self._root = root
        self._step_ms = step_ms
        self._enters = enters
        self._tell = tell  # called after each add, from the adding thread
        self._lock = threading.Lock()  # protects the next field
        self._dirty: Dirty | None = None
        # The watched folder, since it was armed
        self._real = str(root)
        self._identity: Identity | None = None  # None if it does not exist
        self._left = False  # whether the folder is gone, even if a new one has the same inode
        # Links to folders, and unreadable folders: when one of them changes, a folder may lose its watch.
        self._fragile: set[str] = set()
        self._mounts: list[filesystem.Mount] = []
        self._remote = ""
        self._forget()

    def _forget(self) -> None:
        """Begin anew, as before the watch was armed."""
        self._began = self._stepped = self._looked = time.monotonic()
        self._armed_in_s: float | None = None  # how long arming took
        self._probe_at = self._began + PROBE_S
        self._lost = False  # whether the thread was blocked since the last batch
        self._changed = False  # whether anything changed since the last probe
        self._doubted = False  # whether a folder may have lost its watch
        self._blind = False  # whether folders may be unwatched because no watch is left

    def take(self) -> Dirty | None:
        """Return and clear the waiting changes, None if there are none. Thread-safe."""
        with self._lock:
            dirty, self._dirty = self._dirty, None
        return dirty

    # For the thread of the watch

    def live(self) -> None:
        """Watch until `ended` is set; an error ends no more than one watch."""
        failures = 0
        while not self.ended.is_set():
            self._forget()
            try:
                self._watch()
                failures, retry_s = 0, 0.0
            except BaseException as error:  # noqa: BLE001 - even a panic in Rust ends only this watch
                failures = 1 if time.monotonic() - self._began > STABLE_S else failures + 1
                retry_s = RETRY_S[min(failures, len(RETRY_S)) - 1]
                self._add(Dirty(rescan=True, trouble=_explained(self._root, error), polling=True))
            # The kernel removes the old watches in less time than it took to add them.
            self.ended.wait(max(BETWEEN_S, self._armed_in_s or 0.0, retry_s))

    def _watch(self) -> None:
        """Report changes until the watch must be armed again. May raise anything."""
        from watchfiles import watch  # noqa: PLC0415 - the daemon's start does not wait for its import

        if self.number >= most_instances() * OWN_SHARE:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._began = self._stepped = time.monotonic()
        # watchfiles then skips paths that it cannot watch, without reporting them.
        found = watch(
            *self._arm(), watch_filter=None, stop_event=self, step=self._step_ms,
            debounce=DEBOUNCE_MS, rust_timeout=round(LOOK_S * 1000), yield_on_timeout=True,
            raise_interrupt=False, debug=False, force_polling=False, ignore_permission_denied=True,
        )  # fmt: skip
        with closing(found):
            for batch in found:  # empty after a while without changes
                self._pass_on(batch)
                if self._is_outdated():
                    break
                self._stepped = time.monotonic()  # the work on the batch is not lost time

    def is_set(self) -> bool:
        """Return whether to stop; watchfiles calls this at each step, first when all paths are watched."""
        now = time.monotonic()
        if self._armed_in_s is None:
            self._armed_in_s = now - self._began - self._step_ms / 1000
            self._blind = self._is_used_up()
            self._report(rescan=True)
        elif now - self._stepped > LOST_S:
            self._lost = True
        self._stepped = now  # not the time here: the process may stand still in this function, too
        return self.ended.is_set()

    def _arm(self) -> list[str]:
        """Return the paths to watch: none, the root, or all folders that are searched.

        watchfiles skips the rest of a tree after a folder that it cannot read, so all are listed then.
        """
        self._identity = _identity(self._root)
        self._real = os.path.realpath(self._root)
        self._left = False
        self._mounts = filesystem.at_or_below(self._root)
        self._remote = filesystem.polled(self._mounts)
        if self._identity is None:
            return []
        folders, links, closed = [self._real], set(), set()
        for folder in folders:  # grows while it is iterated
            with suppress(OSError), os.scandir(folder) as listing:
                for entry in listing:
                    if not entry.is_dir():
                        continue
                    if entry.is_symlink():
                        links.add(entry.path)
                    elif not os.access(entry.path, os.R_OK | os.X_OK):
                        closed.add(entry.path)
                    elif is_utf8(entry.path) and self._enters(self._relative(entry.path)):
                        folders.append(entry.path)
        self._fragile = links | closed
        return [str(self._root), *(folders[1:] if closed else ())]

    def _pass_on(self, batch: Collection[tuple[int, str]]) -> None:
        """Report those paths of a batch that are in folders that are searched."""
        real = cache(os.path.realpath)  # watchfiles follows links, and reports paths through them
        found = set()
        for change, path in batch:
            folder, _, name = path.rpartition("/")
            place = f"{real(folder or '/').rstrip('/')}/{name}"
            if self._owns(place):
                found.add(place)
                self._left |= change == DELETED and place == self._real
                self._doubted |= place in self._fragile
        burst = self._lost or len(batch) >= BURST_PATHS
        self._doubted |= burst  # new folders may exist whose events were lost
        self._lost = False
        self._changed |= bool(batch)
        if self._identity is None or self._left:
            return  # a rescan follows

        @cache
        def is_searched(folder: str) -> bool:  # and all folders above it
            if folder == self._real:
                return True
            above = folder.rpartition("/")[0]
            return self._owns(folder) and is_searched(above) and self._enters(self._relative(folder))

        kept = {path for path in found if path != self._real and is_searched(path.rpartition("/")[0])}
        # With the root as the caller named it, possibly by a link.
        named = frozenset(f"{self._root}{path[len(self._real) :]}" for path in kept)
        is_root = self._real in found
        if named or burst or is_root:
            self._report(named, rescan=burst or is_root, overflow=burst)

    def _is_outdated(self) -> bool:
        """Return whether the watch must be armed again. Checks at most every `LOOK_S`."""
        now = time.monotonic()
        if now < self._looked + LOOK_S and not self._left:
            return False
        self._looked = now
        identity = _identity(self._root)
        if identity is None and self._identity is not None:
            self._identity = None
            self._report(rescan=True)
        if identity is not None and (self._left or identity != self._identity):
            return True
        if now >= self._probe_at:
            self._probe_at = now + PROBE_S
            self._changed = True
            if filesystem.at_or_below(self._root) != self._mounts:
                return True
        if self._changed and not self._blind and self._is_used_up():
            self._blind = True
            self._report(rescan=True)
        self._changed = False
        age_s = now - self._began
        if age_s < (self._armed_in_s or 0.0) / REARM_SHARE:
            return False
        return self._doubted or (self._blind and age_s >= BLIND_RETRY_S and not self._is_used_up())

    def _is_used_up(self) -> bool:
        return self._identity is not None and is_used_up(self._root)

    def _owns(self, path: str) -> bool:
        """Return whether a path in a resolved folder is the root or below it."""
        return path == self._real or path.startswith(f"{self._real.rstrip('/')}/")

    def _relative(self, folder: str) -> str:
        return f"{folder[len(self._real.rstrip('/')) + 1 :]}/"

    def _report(self, paths: frozenset[str] = frozenset(), *, rescan: bool, overflow: bool = False) -> None:
        """Report changes together with the current trouble of this root."""
        trouble, polling = "", True
        if not is_utf8(str(self._root)):
            trouble = (
                f"{str(self._root)!r} cannot be watched, its name is not UTF-8: saved files are found "
                "only by scans"
            )
        elif self._identity is None:
            trouble, polling = f"{self._root} is missing", False
        elif self._blind:
            trouble = LIMIT_TROUBLE.format(self._root)
        elif self._remote:
            trouble = (
                f"{self._root} is on {self._remote} or contains it: changes by other machines are "
                "found only by scans"
            )
        self._add(Dirty(paths, rescan, overflow, trouble, polling=bool(trouble) and polling))

    def _add(self, dirty: Dirty) -> None:
        """Add changes; their trouble and polling replace the previous values."""
        with self._lock:
            old = self._dirty or Dirty()
            paths = old.paths | dirty.paths
            too_many = len(paths) >= MAX_WAITING  # then they become a rescan
            self._dirty = Dirty(
                paths=frozenset() if too_many else paths,
                rescan=old.rescan or dirty.rescan or too_many,
                overflow=old.overflow or dirty.overflow or too_many,
                trouble=dirty.trouble,
                polling=dirty.polling,
            )
        self._tell()


def _identity(root: Path) -> Identity | None:
    """Return what distinguishes a folder and its access rights from a successor; None if there is none."""
    try:
        status = root.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode) or not is_utf8(str(root)):  # as watchfiles needs it
        return None
    return status.st_dev, status.st_ino, os.access(root, os.R_OK | os.X_OK)


def most_instances() -> float:
    """Return how many instances of inotify the kernel grants a user."""
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    except (OSError, ValueError):  # another system
        return math.inf


def is_used_up(folder: Path) -> bool:
    """Return whether this user cannot watch one more folder, by a trial with inotify(7)."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_CLOEXEC)
    except (AttributeError, OSError):  # another system, without such a limit
        return False
    if descriptor < 0:
        return False  # an instance is missing, not a watch: the existing watches work
    try:
        failed = libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_ATTRIB) < 0
        return failed and ctypes.get_errno() == errno.ENOSPC
    finally:
        os.close(descriptor)


def _explained(root: Path, error: BaseException) -> str:
    text = str(error)
    if undecodable := _UNDECODABLE.match(text):
        return f"{undecodable[1]} changed, and its name is not UTF-8: the watch is interrupted for a moment"
    if "os error 24" in text or "Too many open files" in text:
        return (
            f"{root} cannot be watched: this user has too many watches already. Raise the limit: "
            "sysctl fs.inotify.max_user_instances=512"
        )
    return f"watching {root} failed ({type(error).__name__}): saved files are found only by scans"
