"""The watch of the file system: which paths may have changed just now, for all roots of a daemon.

One `watchfiles.watch` in a thread of its own; this is its only importer. An event is a hint that a path may
be dirty, and some never come: watchfiles drops the kernel's word that its queue was full, says nothing of a
folder that it cannot watch, and does not notice a disk that is mounted. So nobody may rely on them: scans
(memd/workspace/scanner.py) find what no event told. The watch asks for one where it can tell that something
was lost, and for frequent ones while it knows that it is blind. `Watcher.watch` never ends by an error.
"""

import asyncio
import ctypes
import errno
import itertools
import os
import re
import stat
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from memd.sources import filesystem

# How long watchfiles waits for one more event, and how long it collects at most: events arrive within
# 42 ms (p95), for 40 wake-ups a second and 0.15 % of a core.
STEP_MS, DEBOUNCE_MS = 25, 50
# From so many paths in one batch on, the kernel's queue may have been full: it holds 16,384 events, of which
# a file that is made takes three, and a busy tree sends others that watchfiles passes over.
BURST_PATHS = 1_000
# After the thread did not run for so long (a stopped process, a machine that slept) the queue may have been
# full, too; a starved machine takes a tenth of it.
LOST_S = 0.5
# Given up as single paths: twice what the kernel's queue holds, so that no burst that fits into it is lost
# and a note that is saved in its middle keeps its name.
MAX_WAITING = 32_768
# How often to look whether each root is still the folder that is watched; there may be no event about that.
LOOK_S = 2.0
# How often to look for other mounts, and for watches that are free or used up, where no event gives a reason.
PROBE_S = 60.0
# A watch that may lack a folder is armed anew, but a link may be replaced all day: for this share of a core
# at most, and where no watch was left, after so long.
REARM_SHARE = 0.01
BLIND_RETRY_S = 60.0
# Waiting times before a watch that ended is armed again; the last one repeats. One that lasted a minute
# starts over.
RETRY_S = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
STABLE_S = 60.0
JOIN_S = 0.05  # after a root came or went, others may: one new watch for all of them
DELETED = 3  # watchfiles' Change.deleted, which is imported late
_UNDECODABLE = re.compile(r'^Unable to decode path "(.*)" to string$', re.DOTALL)
_IN_ATTRIB = 0x4  # a folder's mode: what the probe asks for
LIMIT_TROUBLE = (
    "{} may have folders that cannot be watched, because this user watches too much already: it is looked "
    "through on a timer. Raise the limit: sysctl fs.inotify.max_user_watches=524288"
)


Identity = tuple[int, int, bool]  # device, inode, whether it may be read


@dataclass(frozen=True, slots=True)
class Dirty:
    """What to look at. The change's kind and the order of changes are not known."""

    paths: frozenset[str] = frozenset()  # absolute: files, folders, or anything that is gone
    rescan: bool = False  # events were lost or may be: compare the whole root
    overflow: bool = False  # the rescan is because too much happened at once, or may have: back off
    trouble: str = ""  # why the watch stands still or sees only a part; "" while no reason is known
    polling: bool = False  # events can't be relied on from now on: look through the root on a short timer


class Watcher:
    """Watches any number of roots. Methods are for any thread, `watch` for event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects the next three fields
        self._roots: list[_Root] = []
        self._closing = False
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()  # set after one of them changed

    @property
    def count(self) -> int:
        """How many roots are watched."""
        with self._lock:
            return len(self._roots)

    async def watch(
        self, root: Path, *, stop: asyncio.Event, enters: Callable[[str], bool] = lambda _: True
    ) -> AsyncGenerator[Dirty, None]:
        """Yield what may have changed below *root* until *stop* is set.

        The first Dirty says rescan and comes when the watch is armed. Whenever the watch is armed again, or
        may have lost something, there is another rescan.

        Args:
            root: of the workspace.
            stop: ends the watch.
            enters: tells whether a folder is searched, by its path relative to the root with "/" behind.
                Asked in another thread; must not raise. By default all are.
        """
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(news.set)

        watched = _Root(root, enters, tell)
        stopped = asyncio.create_task(stop.wait())
        heard = asyncio.create_task(news.wait())
        self._join(watched)
        try:
            while not stop.is_set():
                await asyncio.wait({heard, stopped}, return_when=asyncio.FIRST_COMPLETED)
                heard.cancel()
                news.clear()
                heard = asyncio.create_task(news.wait())
                dirty = watched.take()
                if dirty is not None:
                    yield dirty
        finally:
            heard.cancel()
            stopped.cancel()
            self._leave(watched)

    def close(self) -> None:
        """End the thread and wait for it, which takes a moment."""
        with self._lock:
            self._closing = True
            thread = self._thread
        self._wake.set()
        if thread is not None:
            thread.join()

    def _join(self, watched: "_Root") -> None:
        with self._lock:
            self._roots.append(watched)
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="memd-watch", daemon=True)
                self._thread.start()
        self._wake.set()

    def _leave(self, watched: "_Root") -> None:
        with self._lock:
            self._roots.remove(watched)
        self._wake.set()

    # The thread

    def _live(self) -> None:
        failures = 0
        pause_s = JOIN_S
        while roots := self._roots_to_watch(pause_s):
            session = _Session(roots, self._wake)
            try:
                self._run(session)
                failures, retry_s = 0, 0.0
            except BaseException as error:  # noqa: BLE001 - a panic in Rust, too, ends this watch and not the daemon
                failures = 1 if session.lasted_s > STABLE_S else failures + 1
                retry_s = RETRY_S[min(failures, len(RETRY_S)) - 1]
                for root in roots:
                    root.add(Dirty(rescan=True, trouble=_explained(root.root, error), polling=True))
            # The kernel takes the old watches back in less time than it took to make them.
            pause_s = max(JOIN_S, session.armed_in_s or 0.0, retry_s)

    def _roots_to_watch(self, pause_s: float) -> "list[_Root]":
        """Return the roots when no other one came or went for so long; none at the end."""
        while not self._closing:
            self._wake.clear()
            with self._lock:
                roots = list(self._roots)
            if not self._closing and not self._wake.wait(pause_s if roots else None):
                return roots
        return []

    def _run(self, session: "_Session") -> None:
        """Hand over what changes until the watch must be armed anew."""
        with closing(session.batches()) as batches:
            for batch in batches:
                session.take(batch)
                if session.is_outdated():
                    return


class _Session:
    """One watch of watchfiles, from its arming to its end."""

    def __init__(self, roots: "list[_Root]", wake: threading.Event) -> None:
        self.armed_in_s: float | None = None  # how long that took
        self._roots = roots
        self._wake = wake
        self._began = self._stepped = self._looked = time.monotonic()
        self._probe_at = self._began + PROBE_S
        self._lost = False  # whether the thread stood still since the last batch
        self._changed = False  # whether anything did since the last probe
        self._doubted = False  # whether a folder may have lost its watch
        self._blind = False  # whether folders may have no watch because none is left

    @property
    def lasted_s(self) -> float:
        """How long ago it began."""
        return time.monotonic() - self._began

    def batches(self) -> Generator[set[tuple[int, str]], None, None]:
        """Yield changes, and an empty batch where there are none for a while. May raise anything."""
        from watchfiles import watch  # noqa: PLC0415 - a start does not wait for its import

        self._began = self._stepped = time.monotonic()
        paths = [path for root in self._roots for path in root.arm()]
        # Of what cannot be watched it says nothing then, and goes on with the next one.
        found = watch(
            *paths, watch_filter=None, stop_event=self, step=STEP_MS, debounce=DEBOUNCE_MS,
            rust_timeout=round(LOOK_S * 1000), yield_on_timeout=True, raise_interrupt=False, debug=False,
            force_polling=False, ignore_permission_denied=True,
        )  # fmt: skip
        with closing(found):
            for batch in found:
                yield batch  # type: ignore[misc]
                self._stepped = time.monotonic()  # what was done with it is no time that was lost

    def is_set(self) -> bool:
        """Tell watchfiles, which asks at each step, the first time when all is watched, whether to stop."""
        now = time.monotonic()
        if self.armed_in_s is None:
            self.armed_in_s = now - self._began - STEP_MS / 1000
            self._blind = self._is_used_up()
            self._say(Dirty(rescan=True))
        elif now - self._stepped > LOST_S:
            self._lost = True
        self._stepped = time.monotonic()
        return self._wake.is_set()

    def take(self, batch: set[tuple[int, str]]) -> None:
        """Tell each root what changed in it."""
        burst = self._lost or len(batch) >= BURST_PATHS
        self._doubted |= burst  # folders may be new whose events were lost
        self._lost = False
        self._changed |= bool(batch)
        found: dict[_Root, set[str]] = {root: set() for root in self._roots}
        real = cache(os.path.realpath)  # watchfiles looks behind links, and names what it finds by them
        for change, path in batch:
            folder, _, name = path.rpartition("/")
            place = f"{real(folder or '/').rstrip('/')}/{name}"
            for root in self._roots:
                if root.owns(place):
                    found[root].add(place)
                    root.left |= change == DELETED and place == root.real
                    self._doubted |= place in root.fragile
        for root, paths in found.items():
            root.found(paths, burst=burst)

    def is_outdated(self) -> bool:
        """Tell whether the watch must be armed anew. Looks at most every `LOOK_S`."""
        now = time.monotonic()
        if now < self._looked + LOOK_S and not any(root.left for root in self._roots):
            return False
        self._looked = now
        if any(root.is_another() for root in self._roots):
            return True
        if now >= self._probe_at:
            self._probe_at = now + PROBE_S
            self._changed = True
            if any(root.was_remounted() for root in self._roots):
                return True
        if self._changed and not self._blind and self._is_used_up():
            self._blind = True
            self._say(Dirty(rescan=True))
        self._changed = False
        age_s = now - self._began
        if age_s < (self.armed_in_s or 0.0) / REARM_SHARE:
            return False
        return self._doubted or (self._blind and age_s >= BLIND_RETRY_S and not self._is_used_up())

    def _is_used_up(self) -> bool:
        # One root stands for all: each probe may wait for the kernel, 20 ms and more.
        there = (root.root for root in self._roots if root.identity is not None)
        return any(is_used_up(root) for root in itertools.islice(there, 1))

    def _say(self, dirty: Dirty) -> None:
        for root in self._roots:
            root.blind = self._blind
            root.say(dirty)


class _Root:
    """One root: the folder that is watched, and what was found in it and is not told yet."""

    def __init__(self, root: Path, enters: Callable[[str], bool], tell: Callable[[], None]) -> None:
        self.root = root
        self.real = str(root)
        self.identity: Identity | None = None  # of the folder that is watched; None while there is none
        self.left = False  # whether the folder is gone, also if a new one has the same number
        self.blind = False  # whether folders may have no watch because none is left
        # Links to folders, and folders that may not be read: where one changes, a folder may lose its watch.
        self.fragile: set[str] = set()
        self._enters = enters
        self._tell = tell  # called after each add, from the adding thread
        self._mounts: list[filesystem.Mount] = []
        self._remote = ""
        self._lock = threading.Lock()  # protects the next field
        self._dirty: Dirty | None = None

    def take(self) -> Dirty | None:
        """Return what waits, None if nothing does. It waits no more. For any thread, as `add` is."""
        with self._lock:
            dirty, self._dirty = self._dirty, None
        return dirty

    def add(self, dirty: Dirty) -> None:
        """Add what was found; its trouble and polling replace what was said before."""
        with self._lock:
            self._dirty = _merged(self._dirty or Dirty(), dirty)
        self._tell()

    # For the watch's thread

    def arm(self) -> list[str]:
        """Look what there is to watch, and return it: nothing, the root, or all folders that are searched.

        watchfiles gives up the rest of a tree at a folder that it may not read.
        """
        self.identity = _identity(self.root)
        self.real = os.path.realpath(self.root)
        self.left = False
        self._mounts = filesystem.at_or_below(self.root)
        self._remote = filesystem.polled(self.root)
        if self.identity is None:
            return []
        folders, links, closed = self._looked_through()
        self.fragile = links | closed
        return [str(self.root), *(folders if closed else ())]

    def is_another(self) -> bool:
        """Tell whether another folder is to be watched; say so where there is none any more."""
        now = _identity(self.root)
        if now is None and self.identity is not None:
            self.identity = None
            self.say(Dirty(rescan=True))
        return now is not None and (self.left or now != self.identity)

    def was_remounted(self) -> bool:
        """Tell whether a mount hides or shows other folders than when it was armed."""
        return filesystem.at_or_below(self.root) != self._mounts

    def owns(self, path: str) -> bool:
        """Tell whether a path, whose folder is a real one, is the root or below it."""
        return path == self.real or path.startswith(f"{self.real.rstrip('/')}/")

    def found(self, paths: set[str], *, burst: bool) -> None:
        """Say which of the paths in a batch are in folders that are searched."""
        if self.identity is None or self.left:
            return  # a rescan follows
        is_searched = self._searched()
        kept = {path for path in paths if path != self.real and is_searched(path.rpartition("/")[0])}
        # As the root is named, which may be by a link.
        named = frozenset(f"{self.root}{path[len(self.real) :]}" for path in kept)
        if named or burst or self.real in paths:
            self.say(Dirty(paths=named, rescan=burst or self.real in paths, overflow=burst))

    def say(self, dirty: Dirty) -> None:
        """Say what to look at, with what is wrong with this root."""
        trouble, polling = "", True
        if not _is_text(str(self.root)):
            trouble = (
                f"{str(self.root)!r} cannot be watched, its name is not UTF-8: saved files are found by "
                "scans only"
            )
        elif self.identity is None:
            trouble, polling = f"{self.root} is missing", False
        elif self.blind:
            trouble = LIMIT_TROUBLE.format(self.root)
        elif self._remote:
            trouble = (
                f"{self.root} is on {self._remote} or has it inside: what another machine changes there is "
                "found by scans only"
            )
        self.add(replace(dirty, trouble=trouble, polling=bool(trouble) and polling))

    def _searched(self) -> Callable[[str], bool]:
        """Return what tells whether a real folder is searched: each one above it is."""

        @cache
        def is_searched(folder: str) -> bool:
            if folder == self.real:
                return True
            above = folder.rpartition("/")[0]
            return self.owns(folder) and is_searched(above) and self._enters(self._relative(folder))

        return is_searched

    def _relative(self, folder: str) -> str:
        return f"{folder[len(self.real.rstrip('/')) + 1 :]}/"

    def _looked_through(self) -> tuple[list[str], set[str], set[str]]:
        """Return the folders that are searched, the links to folders in them, and what may not be read."""
        folders, links, closed = [self.real], set(), set()
        for folder in folders:  # which grows
            with suppress(OSError), os.scandir(folder) as listing:
                for entry in listing:
                    if not entry.is_dir():
                        continue
                    if entry.is_symlink():
                        links.add(entry.path)
                    elif not os.access(entry.path, os.R_OK | os.X_OK):
                        closed.add(entry.path)
                    elif _is_text(entry.path) and self._enters(self._relative(entry.path)):
                        folders.append(entry.path)
        return folders[1:], links, closed


def _merged(old: Dirty, new: Dirty) -> Dirty:
    """Return one Dirty that says what both say; too many paths become a rescan. Pure."""
    paths = old.paths | new.paths
    too_many = len(paths) >= MAX_WAITING
    return Dirty(
        paths=frozenset() if too_many else paths,
        rescan=old.rescan or new.rescan or too_many,
        overflow=old.overflow or new.overflow or too_many,
        trouble=new.trouble,
        polling=new.polling,
    )


def _identity(root: Path) -> Identity | None:
    """Return what tells a folder, as it may be read, from one that took its place; None if there is none."""
    try:
        status = root.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode) or not _is_text(str(root)):
        return None
    return status.st_dev, status.st_ino, os.access(root, os.R_OK | os.X_OK)


def _is_text(path: str) -> bool:
    """Tell whether watchfiles can be given a path: its bytes are UTF-8."""
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def is_used_up(folder: Path) -> bool:
    """Tell whether this user can watch no folder more, by trying to with a watch of our own (inotify(7))."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_CLOEXEC)
    except (AttributeError, OSError):  # another system, which has no such limit
        return False
    if descriptor < 0:
        return False  # what could be watched is watched already
    try:
        failed = libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_ATTRIB) < 0
        return failed and ctypes.get_errno() == errno.ENOSPC
    finally:
        os.close(descriptor)


def _explained(root: Path, error: BaseException) -> str:
    text = str(error)
    if undecodable := _UNDECODABLE.match(text):
        return f"{undecodable[1]} changed, and its name is not UTF-8: it interrupts the watch for a moment"
    if "os error 24" in text or "Too many open files" in text:
        return (
            f"{root} cannot be watched: this user watches too much already. Raise the limit: "
            "sysctl fs.inotify.max_user_instances=512"
        )
    return f"watching {root} failed ({type(error).__name__}): saved files are found by scans only"
