"""What do inotify's events mean? Every finished save is named, and nothing is lost in silence.

A file is named when it is closed, so that nobody reads half of it; one that stays open is named when nobody
has written to it for a while. What cannot be known any more (a full queue, a lost root) ends this watch and
begins another one. Two things send no event, and are left to the caller's timer: a save under another name of
the same file (a hard link), and writing through a mapping of a file that is closed.
"""

import math
import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from memd.sources import mounts
from memd.sources.dirty import Dirty
from memd.sources.folders import Folders
from memd.sources.inotify import Event, Inotify, Kind
from memd.sources.listening import (
    Order,
    RearmError,
    RootGoneError,
    identity,
    limit_trouble,
    remote_trouble,
)

# After the first event the others of the same save follow; nobody notices so short a time.
COLLECT_S = 0.01
# A file that stays open is named when it was not written to for so long.
QUIET_S = 2.0
# How often it is tried again to watch what could not be watched.
BLIND_RETRY_S = 60.0
# Reads in one round: about what the queue holds, so that a storm is told while it lasts.
MAX_READS = 32

# Plain numbers: see Event.
_FOLDER = Kind.ISDIR.value
_SAVED = (Kind.CLOSE_WRITE | Kind.MOVED_FROM | Kind.MOVED_TO | Kind.DELETE).value
_LEFT = (Kind.MOVED_FROM | Kind.DELETE).value
_LEFT_ITSELF = (Kind.MOVE_SELF | Kind.DELETE_SELF | Kind.UNMOUNT | Kind.IGNORED).value


def listen(order: Order, first: Dirty) -> None:
    """Watch until the order's halt is set.

    Raises:
        RearmError: begin again: events were lost, or other folders are there to watch.
        RootGoneError: it is missing, or another folder took its place.
        OSError: the root cannot be watched.
    """
    with Inotify() as inotify, _mount_changes() as changes:
        events = _Events(order, inotify)
        events.hand_over(first)
        poller = select.poll()
        poller.register(order.halt, select.POLLIN)
        poller.register(inotify, select.POLLIN)
        if changes is not None:
            poller.register(changes, select.POLLPRI)
        while not order.halt.is_set():
            ready = {descriptor for descriptor, _ in poller.poll(events.wait_ms())}
            if changes in ready:
                events.compare_mounts()
            if inotify.fileno() in ready and not order.halt.wait(COLLECT_S):
                events.drain()
            events.hand_over(Dirty())


class _Events:
    """What the events of one watch come to."""

    def __init__(self, order: Order, inotify: Inotify) -> None:
        self._order = order
        self._inotify = inotify
        self._prefix = order.prefix
        self._paths: set[str] = set()  # what is found, like the next three: until it is handed over
        self._linked: set[str] = set()  # made with their content, if nobody writes to them
        self._inside: set[str] = set()
        self._cookies: set[str] = set()
        self._rescan = False
        self._writing: dict[str, float] = {}  # open, or made and empty → when they are quiet; the next first
        self._told = Dirty()  # a Dirty that would say nothing new
        self._blind_until = math.inf  # when to try again to watch everything
        self._folders = Folders(inotify, order.prefix, self._enters)
        self._cookie_watch = self._watch_cookies()
        self._above = set(self._watch_above())
        self._folders.enter("")
        self._identity = identity(order.root)
        self._mounts = mounts.at_or_below(order.root)
        self._remote = mounts.polled(order.root)

    def wait_ms(self) -> int | None:
        """Return how long to wait for events; None for as long as it takes."""
        due = min(self._blind_until, next(iter(self._writing.values()), math.inf))
        return None if due == math.inf else max(0, math.ceil((due - time.monotonic()) * 1000))

    def drain(self) -> None:
        """Take what is in the queue."""
        for _ in range(MAX_READS):
            events = self._inotify.read()
            if not events or self._order.halt.is_set():
                return
            for event in events:
                self._take(event)

    def hand_over(self, first: Dirty) -> None:
        """Say what was found, and *first*; nothing if there is nothing new."""
        now = time.monotonic()
        if now >= self._blind_until:
            raise RearmError
        quiet = [path for path, _ in takewhile(lambda item: item[1] <= now, self._writing.items())]
        for path in quiet:
            del self._writing[path]
        trouble = self._trouble()
        if trouble and self._blind_until == math.inf and not self._remote:
            self._blind_until = now + BLIND_RETRY_S
        dirty = Dirty(
            paths=frozenset(self._paths.union(self._linked, quiet)),
            folders=frozenset(self._inside),
            cookies=frozenset(self._cookies),
            rescan=self._rescan or first.rescan,
            overflow=first.overflow,
            trouble=trouble,
            polling=bool(trouble),
        )
        if dirty != self._told:
            self._order.waiting.add(dirty)
        self._told = Dirty(trouble=trouble, polling=bool(trouble))
        self._rescan = False
        for found in (self._paths, self._linked, self._inside, self._cookies):
            found.clear()

    def compare_mounts(self) -> None:
        """Begin again where a mount hides or shows other folders than before."""
        self._compare_root()
        if mounts.at_or_below(self._order.root) != self._mounts:
            raise RearmError

    def _compare_root(self) -> None:
        if identity(self._order.root) != self._identity:
            raise RootGoneError

    def _trouble(self) -> str:
        if self._folders.full:
            return limit_trouble(self._order.root)
        return self._folders.hidden or remote_trouble(self._order.root, self._remote)

    def _enters(self, folder: str) -> bool:
        return not self._order.halt.is_set() and self._order.enters(folder)

    def _watch_cookies(self) -> int | None:
        if self._order.cookies is not None:
            with suppress(OSError):  # without them a sync takes a scan's time
                return self._folders.watch_other(str(self._order.cookies), (Kind.CREATE | Kind.ONLYDIR).value)
        return None

    def _watch_above(self) -> Iterator[int]:
        """Watch the folders above the root for their leaving, which takes the root away without an event."""
        for folder in Path(os.path.realpath(self._order.root)).parents:
            with suppress(OSError):  # not ours to read, as /home may be
                mask = Kind.MOVE_SELF | Kind.DELETE_SELF | Kind.ONLYDIR
                yield self._folders.watch_other(str(folder), mask.value)

    # What one event means

    def _take(self, event: Event) -> None:
        if event.mask & Kind.Q_OVERFLOW.value:
            raise RearmError(overflow=True)
        if event.watch == self._cookie_watch:
            if event.mask & Kind.CREATE.value:
                self._cookies.add(event.name)
        elif event.watch in self._above:
            self._compare_root()
        else:
            self._take_from_tree(event)

    def _take_from_tree(self, event: Event) -> None:
        try:
            folder = self._folders.name_of(event.watch)
        except KeyError:
            raise RearmError(overflow=True) from None
        if event.mask & Kind.IGNORED.value:
            self._folders.ignored(event.watch)
        if folder is None:
            return
        if not event.name:
            self._folder_itself(folder, event.mask)
        elif event.mask & _FOLDER:
            self._folder_inside(f"{folder}{event.name}/", event.mask)
        else:
            self._file(f"{self._prefix}{folder}{event.name}", event.mask)

    def _folder_itself(self, folder: str, mask: int) -> None:
        if not folder and mask & _LEFT_ITSELF:
            raise RootGoneError
        if mask & Kind.UNMOUNT.value:
            raise RearmError
        if not folder:  # chmod; of every other folder the one above tells
            self._folders.enter("")
            self._rescan = True

    def _folder_inside(self, folder: str, mask: int) -> None:
        was_searched = folder in self._folders
        if mask & _LEFT:
            self._folders.forget(folder)
            gone = f"{self._prefix}{folder}"
            for path in [path for path in self._writing if path.startswith(gone)]:
                del self._writing[path]
        is_searched = self._enters(folder)
        if is_searched:
            self._folders.enter(folder)  # also where it left: two folders may have changed their places
        if is_searched or was_searched:
            self._inside.add(f"{self._prefix}{folder[:-1]}")

    def _file(self, path: str, mask: int) -> None:
        if mask & _SAVED:
            self._writing.pop(path, None)
            self._paths.add(path)
        elif mask & Kind.MODIFY.value:
            self._linked.discard(path)
            self._wait_for(path)
        elif mask & Kind.CREATE.value:
            self._created(path)
        elif path not in self._writing:
            self._paths.add(path)

    def _created(self, path: str) -> None:
        """Tell a link from a file that is about to be written: its content is there before any MODIFY."""
        try:
            status = os.lstat(path)
        except OSError:
            self._paths.add(path)
            return
        if stat.S_ISREG(status.st_mode) and not status.st_size:
            self._wait_for(path)
        else:
            self._linked.add(path)

    def _wait_for(self, path: str) -> None:
        self._writing.pop(path, None)
        self._writing[path] = time.monotonic() + QUIET_S


@contextmanager
def _mount_changes() -> Iterator[int | None]:
    """Open what polls as urgent when something is mounted or unmounted; None where there is no such thing."""
    try:
        descriptor = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
