"""The set of paths that may have changed and have not been reported yet.

Filled by the watch's thread, emptied by the event loop. Knows nothing of events, only what to look at.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

# Given up as single paths: twice what the kernel's queue holds, so that no burst that fits into it is lost
# and a note that is saved in its middle keeps its name.
MAX_WAITING = 32_768


@dataclass(frozen=True, slots=True)
class Dirty:
    """What to look at. The change's kind and the order of changes are not known."""

    paths: frozenset[str] = frozenset()  # absolute: files, or anything that is gone
    folders: frozenset[str] = frozenset()  # absolute: everything in it may be new, or gone
    cookies: frozenset[str] = frozenset()  # seen: what was saved before them is in this or an earlier Dirty
    rescan: bool = False  # events were lost or may be: compare the whole root
    overflow: bool = False  # the rescan is because too much happened at once, or may have: back off
    trouble: str = ""  # why the watch stands still or sees only a part; "" while it is exact
    polling: bool = False  # events can't be relied on from now on: look through the root on a short timer


class Waiting:
    """What was not told yet, merged into one. For two threads."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell  # called after each add, from the adding thread
        self._lock = threading.Lock()  # protects the next field
        self._dirty: Dirty | None = None

    def add(self, dirty: Dirty) -> None:
        """Add what was found; its trouble and polling replace what was said before."""
        with self._lock:
            self._dirty = merged(self._dirty or Dirty(), dirty)
        self._tell()

    def take(self) -> Dirty | None:
        """Return what waits, None if nothing does. It waits no more."""
        with self._lock:
            dirty, self._dirty = self._dirty, None
        return dirty


def merged(old: Dirty, new: Dirty) -> Dirty:
    """Return one Dirty that says what both say; too many paths become a rescan. Pure."""
    paths, folders = old.paths | new.paths, old.folders | new.folders
    too_many = len(paths) + len(folders) >= MAX_WAITING
    return Dirty(
        paths=frozenset() if too_many else paths,
        folders=frozenset() if too_many else folders,
        cookies=old.cookies | new.cookies,
        rescan=old.rescan or new.rescan or too_many,
        overflow=old.overflow or new.overflow or too_many,
        trouble=new.trouble,
        polling=new.polling,
    )
