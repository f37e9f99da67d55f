"""One root of the watch: which changed paths are its own, and which of its folders have no watch.

For the watch's thread alone, but for `Waiting`.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from memd.sources import filesystem
from memd.sources.dirty import Dirty, Waiting, merged
from memd.sources.fdinfo import WatchTable

# watchfiles names a new folder before it watches it. What is told waits for the watch so long at most: then
# there is none to be had.
PROOF_S = 1.0

Identity = tuple[int, int]  # device, inode


@dataclass(frozen=True, slots=True)
class Order:
    """What to watch, and where to say what was seen."""

    root: Path
    cookies: Path | None
    enters: Callable[[str], bool]
    folders: Callable[[], Iterable[str]]
    waiting: Waiting


class WatchedRoot:
    """A root, and what is known of its watch."""

    def __init__(self, order: Order) -> None:
        self.root = order.root
        self.identity: Identity | None = None  # of the folder that is watched; None while there is none
        self.cookies = os.path.realpath(order.cookies) if order.cookies is not None else None
        self.explicit: set[str] = set()  # folders that the way down from the root does not reach
        self.left = False  # whether the folder is gone, also if a new one has the same number
        self.suspect = True  # whether its watches must be compared with its folders
        self._order = order
        self._real = str(order.root)
        self._mounts: list[filesystem.Mount] = []
        self._remote = ""
        self._blind: set[str] = set()  # folders that are searched and send no events
        self._doubted: set[str] = set()  # may be blind
        self._doubted_since = 0.0
        self._twice = ""
        self._held: Dirty | None = None  # found, and not told yet
        self._held_since = 0.0
        self._unproved: frozenset[str] = frozenset()  # new folders, told before their watches were proved

    # The watch

    def arm(self) -> bool:
        """Look what there is to watch; tell whether there is anything."""
        self.identity = self.identity_now()
        self._real = os.path.realpath(self.root)
        self._mounts = filesystem.at_or_below(self.root)
        self._remote = filesystem.polled(self.root)
        self.explicit = {path for path in self.explicit | self._blind if is_folder(path)}
        self._blind, self._doubted, self._twice = set(), set(), ""
        self._held, self._unproved = None, frozenset()
        self.left, self.suspect = False, True
        return self.identity is not None

    def identity_now(self) -> Identity | None:
        """Return what tells the folder from one that takes its place; None if there is none to be watched."""
        return identity(self.root) if is_text(str(self.root)) else None

    @property
    def is_blind(self) -> bool:
        """Whether folders have no watch that may get one by another try."""
        return bool(self._blind)

    @property
    def trouble(self) -> str:
        """Why events are missing; "" while there is no reason."""
        if self.identity is None:
            return f"{self.root} is missing" if is_text(str(self.root)) else _unnameable_trouble(self.root)
        if self._blind:
            return limit_trouble(self.root, self._blind)
        return self._twice or remote_trouble(self.root, self._remote)

    def was_remounted(self) -> bool:
        """Tell whether a mount hides or shows other folders than when it was armed."""
        return filesystem.at_or_below(self.root) != self._mounts

    def prove(self, table: WatchTable | None, *, new: Iterable[str] = (), at_once: bool = False) -> None:
        """Compare the known folders, and *new* ones, with the watches; say what is found by that.

        What was just made gets its watch in a moment: it is blind if it has none after `PROOF_S`, or
        *at_once*.
        """
        self.suspect = False
        if table is None or self.identity is None:
            return
        known = {"", *new, *self._order.folders(), *map(self._relative, self._blind)}
        trouble, now = self.trouble, time.monotonic()
        blind = self._without_watch(known, table)
        overdue = bool(self._doubted) and now >= self._doubted_since + PROOF_S
        sure = blind if at_once or overdue else blind & self._blind
        newly = not sure <= self._blind
        if not self._doubted:
            self._doubted_since = now
        self._blind, self._doubted = sure, blind - sure
        self.suspect = bool(self._doubted)
        self._twice = self._told_once(known)
        if newly or self._unproved or self.trouble != trouble:
            self.say(Dirty(rescan=newly, folders=self._unproved))
        self._unproved = frozenset()

    # What changed

    def owns(self, path: str) -> bool:
        """Tell whether a path, whose folder is a real one, is the root or below it."""
        return path == self._real or path.startswith(f"{self._real.rstrip('/')}/")

    def lost(self, path: str) -> None:
        """Take it that a path was deleted or renamed."""
        self.suspect = True  # it may have been a link to a folder, whose watch goes with it
        if path == self._real:
            self.left = True

    def found(self, paths: set[str], cookies: set[str], *, burst: bool) -> None:
        """Keep what a batch says, to be told by `tell`."""
        if self.identity is None or self.left:
            return  # a rescan follows
        dirty = replace(self._sorted(paths), cookies=frozenset(cookies))
        if burst:
            dirty = replace(dirty, rescan=True, overflow=True)
            self.suspect = True  # new folders may have been lost with their events
        if dirty == Dirty():
            return
        if self._held is None:
            self._held_since = time.monotonic()
        self._held = merged(self._held or Dirty(), dirty)

    def tell(self, table: Callable[[], WatchTable | None]) -> bool:
        """Say what was found; False where it must wait for watches.

        What is made in a new folder before it is watched sends no event, so that its scan must follow the
        watch; and a cookie says that all before it was seen, so that nothing may be blind.
        """
        if self._held is None or self.left:
            return True
        is_open = bool(self._held.folders) or (bool(self._held.cookies) and self.suspect)
        if is_open and not self.trouble:
            if (listed := table()) is not None:
                late = time.monotonic() >= self._held_since + PROOF_S
                self.prove(listed, new=self._below(self._held.folders), at_once=late)
            else:
                self._unproved |= self._held.folders
                self.suspect = True
            if listed is not None and self._doubted:
                return False
        dirty, self._held = self._held, None
        self.say(dirty)
        return True

    def say(self, dirty: Dirty) -> None:
        """Say what to look at, with what is wrong with this root."""
        trouble = self.trouble
        polling = bool(trouble) and (self.identity is not None or not is_text(str(self.root)))
        self._order.waiting.add(replace(dirty, trouble=trouble, polling=polling))

    def say_armed(self) -> None:
        """Say that what changes from now on is named, and that all before must be looked for."""
        self.say(Dirty(rescan=True, cookies=self._cookies_there()))

    def say_failed(self, trouble: str) -> None:
        """Say that there are no events for a while."""
        self._order.waiting.add(Dirty(rescan=True, trouble=trouble, polling=True))

    def _cookies_there(self) -> frozenset[str]:
        """Return the cookies made before the watch: the rescan sees all that was saved before them."""
        try:
            return frozenset(os.listdir(self.cookies)) if self.cookies is not None else frozenset()  # noqa: PTH208
        except OSError:
            return frozenset()

    def _sorted(self, paths: set[str]) -> Dirty:
        is_searched = self._searched()
        kept = {path for path in paths if path != self._real and is_searched(path.rpartition("/")[0])}
        folders = {path for path in kept if is_folder(path) and is_searched(path)}
        return Dirty(
            paths=frozenset(map(self._named, kept - folders)),
            folders=frozenset(map(self._named, folders)),
            rescan=self._real in paths,
        )

    def _named(self, path: str) -> str:
        """Return a path as the root is named, which may be by a link."""
        return f"{self.root}{path[len(self._real) :]}"

    def _relative(self, path: str) -> str:
        return f"{path[len(self._real.rstrip('/')) + 1 :]}/"

    def _searched(self) -> Callable[[str], bool]:
        """Return what tells whether a real folder is searched: each one above it is."""

        @cache
        def is_searched(folder: str) -> bool:
            if folder == self._real:
                return True
            if not self.owns(folder):
                return False
            return is_searched(folder.rpartition("/")[0]) and self._order.enters(self._relative(folder))

        return is_searched

    # The watches

    def _without_watch(self, folders: Iterable[str], table: WatchTable) -> set[str]:
        return {
            path
            for path, status in self._statuses(folders)
            if not table.holds(status) and os.access(path, os.R_OK | os.X_OK)
        }

    def _told_once(self, folders: Iterable[str]) -> str:
        """Return what two names of one folder mean, which mounts make: the kernel uses one of them."""
        seen: dict[Identity, str] = {}
        for path, status in self._statuses(folders):
            other = seen.setdefault((status.st_dev, status.st_ino), path)
            if other != path:
                return f"{path} is also {other}, and events come under one name only"
        return ""

    def _statuses(self, folders: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
        for folder in folders:
            path = f"{self._real.rstrip('/')}/{folder}".rstrip("/")
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                yield path, status

    def _below(self, folders: Iterable[str]) -> set[str]:
        """Return folders, named as the root is, and all searched ones below them, relative to the root."""
        below: set[str] = set()
        waiting = [f"{folder[len(str(self.root).rstrip('/')) + 1 :]}/" for folder in folders]
        while waiting:
            folder = waiting.pop()
            if folder in below:
                continue
            below.add(folder)
            waiting += (inner for inner in self._inner(folder) if self._order.enters(inner))
        return below

    def _inner(self, folder: str) -> Iterator[str]:
        try:
            with os.scandir(f"{self._real}/{folder}") as listing:
                for entry in listing:
                    if entry.is_dir(follow_symlinks=False):
                        yield f"{folder}{entry.name}/"
        except OSError:
            return  # gone again, or not ours to read


def identity(root: Path) -> Identity | None:
    """Return what tells a folder from one that took its place; None if there is none."""
    try:
        status = root.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def is_folder(path: str) -> bool:
    """Tell whether a folder itself is there, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def is_text(path: str) -> bool:
    """Tell whether watchfiles can be given a path: its bytes are UTF-8."""
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def _unnameable_trouble(root: Path) -> str:
    return f"{str(root)!r} cannot be watched, its name is not UTF-8: saved files are found by scans only"


def limit_trouble(root: Path, blind: Iterable[str]) -> str:
    """Say what to do about folders without a watch."""
    paths = sorted(blind)
    return (
        f"{len(paths)} folders of {root} cannot be watched, the first is {paths[0]}: they are looked at on a "
        "timer. If the system's limit is reached, raise it: sysctl fs.inotify.max_user_watches=524288"
    )


def remote_trouble(root: Path, kind: str) -> str:
    """Say what a file system means that another machine may change; nothing if *kind* is ""."""
    if not kind:
        return ""
    return f"{root} is on {kind} or has it inside: what another machine changes there is found by scans only"
