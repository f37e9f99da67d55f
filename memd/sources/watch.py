"""The watch of the file system: which paths may have changed just now, for all roots of a daemon.

One RustNotify of watchfiles, in a thread of its own; this is its only importer. Events are hints. watchfiles
drops the kernel's word that its queue was full, says nothing of a folder that it cannot watch, and ends at a
name that is not UTF-8. So a batch as large as a queue, and time in which the thread did not run, ask for a
rescan of every root; the kernel's list of watches is compared with the folders that are searched; and a watch
that ended is armed again, with a rescan. `Watcher.watch` never ends by an error.
"""

import asyncio
import math
import os
import re
import select
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memd.sources.dirty import Dirty, Waiting
from memd.sources.fdinfo import WatchTable, inotify_descriptors, watch_table
from memd.sources.watched_root import Order, WatchedRoot, is_text

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

__all__ = ["Dirty", "Watcher"]

# How long watchfiles waits for one more event, and how long it collects at most: events arrive within
# 42 ms (p95), for 40 wake-ups a second and 0.15 % of a core.
STEP_MS, DEBOUNCE_MS = 25, 50
# From so many paths in one batch on, the kernel's queue may have been full: it holds 16,384 events, of which
# a file that is made takes three, and a busy tree sends others that watchfiles passes over.
BURST_PATHS = 1_000
# After the thread did not run for so long (a stopped process, a machine that slept) the queue may have been
# full, too; a starved machine takes a tenth of it.
LOST_S = 0.5
# How often to look whether each root is still the one that is watched; there may be no event about that.
LOOK_S = 2.0
# Waiting times before a watch that ended is armed again; the last one repeats. One that lasted a minute
# starts over.
RETRY_S = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
STABLE_S = 60.0
# How often it is tried again to watch what has no watch, in seconds and in shares of what a try costs.
BLIND_RETRY_S = 60.0
BLIND_SHARE = 0.001
# How often a root's watches are compared with its folders while it changes, in shares of what that costs.
PROOF_SHARE = 0.01
PROOF_PAUSE_S = 1.0
QUICK_S = 0.02  # for the list of about 5,000 watches
JOIN_S = 0.05  # after a root came or went, others may: one new watch for all of them
CLOSE_S = 5.0  # the old watch's thread ends within milliseconds; with 60,000 folders it takes 170
DELETED = 3  # watchfiles' Change.deleted; the name is in a module that the daemon can do without
# The descriptor of a new instance is told by comparing: of two watchers in a process one arms at a time.
_ONE_ARMS = threading.Lock()
_UNDECODABLE = re.compile(r'^Unable to decode path "(.*)" to string$', re.DOTALL)


class Watcher:
    """Watches any number of roots. Methods are for any thread, `watch` for event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects the next four fields
        self._roots: list[WatchedRoot] = []
        self._outdated = False  # whether other roots are to be watched than are, or one is doubted
        self._closing = False
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()  # set after one of them changed

    @property
    def count(self) -> int:
        """How many roots are watched."""
        with self._lock:
            return len(self._roots)

    async def watch(
        self,
        root: Path,
        *,
        stop: asyncio.Event,
        cookies: Path | None = None,
        enters: Callable[[str], bool] = lambda _: True,
        folders: Callable[[], Iterable[str]] = tuple,
    ) -> AsyncGenerator[Dirty, None]:
        """Yield what may have changed below *root* until *stop* is set.

        The first Dirty says rescan and comes when the watch is armed: what changes after it is reported.
        Whenever the watch is armed again, or may have lost something, there is another rescan.

        Args:
            root: of the workspace.
            stop: ends the watch.
            cookies: a folder whose new files are named, in order with everything else.
            enters: tells whether a folder is searched, by its path relative to the root with "/" behind.
                Asked in another thread; must not raise. By default all are.
            folders: returns the searched folders that are known, named as for *enters*, whose watches are to
                be proved. Asked in another thread.
        """
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(news.set)

        waiting = Waiting(tell)
        watched = WatchedRoot(Order(root, cookies, enters, folders, waiting))
        stopped = asyncio.create_task(stop.wait())
        heard = asyncio.create_task(news.wait())
        self._join(watched)
        try:
            while not stop.is_set():
                await asyncio.wait({heard, stopped}, return_when=asyncio.FIRST_COMPLETED)
                heard.cancel()
                news.clear()
                heard = asyncio.create_task(news.wait())
                dirty = waiting.take()
                if dirty is not None:
                    yield dirty
        finally:
            heard.cancel()
            stopped.cancel()
            self._leave(watched)

    def prove(self, root: Path) -> None:
        """Have a root's watches compared with its folders, of which more may be known now."""
        with self._lock:
            for watched in self._roots:
                watched.suspect |= watched.root == root
        self._wake.set()

    def rearm(self) -> None:
        """Arm the watch anew: it did not name what it must have seen."""
        with self._lock:
            self._outdated = True
        self._wake.set()

    def close(self) -> None:
        """End the thread and wait for it, which takes a moment."""
        with self._lock:
            self._closing = True
            thread = self._thread
        self._wake.set()
        if thread is not None:
            thread.join()

    def _join(self, watched: WatchedRoot) -> None:
        with self._lock:
            self._roots.append(watched)
            self._outdated = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="memd-watch", daemon=True)
                self._thread.start()
        self._wake.set()

    def _leave(self, watched: WatchedRoot) -> None:
        with self._lock:
            self._roots.remove(watched)
            self._outdated = True
        self._wake.set()

    # The thread

    def _live(self) -> None:
        failures = 0
        heal_at = 0.0  # when what has no watch may be tried again
        healing = False
        while not self._closing:
            roots = self._roots_to_watch()
            if self._closing:
                return
            if not roots:
                self._wake.wait()
                continue
            began = time.monotonic()
            try:
                with _Session(roots) as session:
                    took_s = time.monotonic() - began
                    if healing:
                        heal_at = time.monotonic() + max(BLIND_RETRY_S, took_s / BLIND_SHARE)
                    healing = session.run(self._wake, self._is_outdated, heal_at)
                failures = 0
            except BaseException as error:  # noqa: BLE001 - a panic in Rust, too, ends this watch and not the daemon
                failures = 1 if time.monotonic() - began > STABLE_S else failures + 1
                self._pause(roots, error, RETRY_S[min(failures, len(RETRY_S)) - 1])

    def _roots_to_watch(self) -> list[WatchedRoot]:
        """Return the roots, when no other one came or went for a moment."""
        while True:
            self._wake.clear()
            with self._lock:
                self._outdated = False
                roots = list(self._roots)
            if not roots or self._closing or not self._wake.wait(JOIN_S):
                return roots

    def _is_outdated(self) -> bool:
        with self._lock:
            return self._outdated or self._closing

    def _pause(self, roots: Sequence[WatchedRoot], error: BaseException, pause_s: float) -> None:
        for root in roots:
            root.say_failed(_explained(root.root, error))
        until = time.monotonic() + pause_s
        while not self._closing and (left_s := until - time.monotonic()) > 0:
            self._wake.clear()
            if not self._closing:
                self._wake.wait(left_s)


class _InterruptError(Exception):
    """Raised within watchfiles to get out of it: a stop or a timeout would clear what has been found."""


class _Steps:
    """What watchfiles asks at each step whether to stop."""

    def __init__(self, wake: threading.Event) -> None:
        self.due = math.inf  # when to interrupt
        self._wake = wake
        self._last = time.monotonic()

    def begin(self, due: float) -> None:
        """Begin to count."""
        self.due = due
        self._last = time.monotonic()

    @property
    def paused_s(self) -> float:
        """How long ago the last step was."""
        return time.monotonic() - self._last

    def is_set(self) -> bool:
        """Return False, or interrupt."""
        if self._wake.is_set() or self.paused_s > LOST_S or time.monotonic() >= self.due:
            raise _InterruptError
        self._last = time.monotonic()
        return False


class _TwoSteps:
    """Interrupts watchfiles at the third step: in two it returns what it has."""

    def __init__(self) -> None:
        self._left = 2

    def is_set(self) -> bool:
        """Return False, or interrupt."""
        self._left -= 1
        if self._left < 0:
            raise _InterruptError
        return False


class _Session:
    """One RustNotify from its arming to its end."""

    def __init__(self, roots: Sequence[WatchedRoot]) -> None:
        self._roots = roots
        self._by_cookies = {root.cookies: root for root in roots if root.cookies is not None}
        with _ONE_ARMS:
            before = inotify_descriptors()
            self._native = _armed(roots)
            self._descriptor = next(iter(inotify_descriptors() - before), None)
        self._prove_after = 0.0
        self._table_took_s = 0.0  # the last time
        self._told = True  # whether all that was found is told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._native.close()
        if self._descriptor is None:
            return
        stop = time.monotonic() + CLOSE_S
        while self._descriptor in inotify_descriptors() and time.monotonic() < stop:
            time.sleep(0.001)

    def run(self, wake: threading.Event, is_outdated: Callable[[], bool], heal_at: float) -> bool:
        """Hand over what changes until the watch must be armed anew; tell whether to mend what is blind.

        Raises:
            BaseException: watchfiles failed or panicked.
        """
        self._prove(at_once=True)
        for root in self._roots:
            root.say_armed()
        steps = _Steps(wake)
        with _mount_changes() as mounts_changed:
            while True:
                wake.clear()  # before the look: what comes during it is seen by the next one
                if is_outdated() or self._is_other_tree(mounts_changed):
                    return False
                if any(root.is_blind for root in self._roots) and time.monotonic() >= heal_at:
                    return True
                self._take(*self._next(steps))
                if self._told:  # else watches are on their way
                    self._prove()

    def _next(self, steps: _Steps) -> tuple[set[tuple[int, str]], bool]:
        """Return the next changes, or none when something else is due, and whether some may be lost."""
        now = time.monotonic()
        steps.begin(now + (LOOK_S if self._told else STEP_MS / 1000))
        if any(root.suspect for root in self._roots):
            steps.due = min(steps.due, max(now, self._prove_after))
        lost = False
        try:
            found = self._changes(STEP_MS, steps)
        except _InterruptError:
            lost = steps.paused_s > LOST_S
            found = set()
            with suppress(_InterruptError):  # what is there already does not wait for another turn
                found = self._changes(1, _TwoSteps())
        return found, lost

    def _changes(self, step_ms: int, steps: "_Steps | _TwoSteps") -> set[tuple[int, str]]:
        found: Any = self._native.watch(DEBOUNCE_MS, step_ms, 0, steps)
        return found if isinstance(found, set) else set()  # "signal" is for the main thread

    def _take(self, found: set[tuple[int, str]], lost: bool) -> None:  # noqa: FBT001 - what `_next` returns
        burst = lost or len(found) >= BURST_PATHS
        below: dict[WatchedRoot, set[str]] = {root: set() for root in self._roots}
        cookies: dict[WatchedRoot, set[str]] = {root: set() for root in self._roots}
        real = cache(os.path.realpath)  # watchfiles looks behind links, and names what it finds by them
        for change, path in found:
            folder, _, name = path.rpartition("/")
            folder = real(folder or "/")
            if folder in self._by_cookies:
                cookies[self._by_cookies[folder]].add(name)
                continue
            place = f"{folder.rstrip('/')}/{name}"
            for root in self._roots:
                if root.owns(place):
                    below[root].add(place)
                    if change == DELETED:
                        root.lost(place)
        for root in self._roots:
            root.found(below[root], cookies[root], burst=burst)
        table = cache(self._quick_table)
        waiting = [root for root in self._roots if not root.tell(table)]
        self._told = not waiting

    def _is_other_tree(self, mounts_changed: Callable[[], bool]) -> bool:
        """Tell whether a root is back, or other folders are in it; say so where one is gone."""
        remounted = mounts_changed()
        for root in self._roots:
            now = root.identity_now()
            if now is not None and (root.left or now != root.identity):
                return True
            if now is None and root.identity is not None:
                root.identity = None
                root.say(Dirty(rescan=True))
            if remounted and root.was_remounted():
                return True
        return False

    def _prove(self, *, at_once: bool = False) -> None:
        began = time.monotonic()
        if began < self._prove_after or not any(root.suspect for root in self._roots):
            return
        table = self._table()
        for root in self._roots:
            if root.suspect:
                root.prove(table, at_once=at_once)
        now = time.monotonic()
        self._prove_after = now + max(PROOF_PAUSE_S, (now - began) / PROOF_SHARE)

    def _quick_table(self) -> WatchTable | None:
        """Return the watches, None where they are so many that a batch had better not wait for them."""
        return self._table() if self._table_took_s < QUICK_S else None

    def _table(self) -> WatchTable | None:
        if self._descriptor is None:
            return None
        began = time.monotonic()
        table = watch_table(self._descriptor)
        self._table_took_s = time.monotonic() - began
        return table


def _armed(roots: Sequence[WatchedRoot]) -> "RustNotify":
    """Watch the cookies of all roots, what was not reached before, then the roots themselves."""
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - a start does not wait for its import

    there = [root for root in roots if root.arm()]
    paths = [root.cookies for root in roots if root.cookies is not None]
    paths += (path for root in there for path in sorted(root.explicit) if is_text(path))
    paths += (str(root.root) for root in there)
    # Of what cannot be watched it says nothing then, and goes on with the next one.
    return RustNotify(
        [path for path in paths if is_text(path)],
        debug=False, force_polling=False, poll_delay_ms=0, recursive=True, ignore_permission_denied=True,
    )  # fmt: skip


@contextmanager
def _mount_changes() -> Iterator[Callable[[], bool]]:
    """Give what tells whether something was mounted or unmounted since it was last asked."""
    poller = select.poll()
    try:
        descriptor = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # no Linux
        yield lambda: False
        return
    poller.register(descriptor, select.POLLPRI)
    try:
        yield lambda: bool(poller.poll(0))
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
