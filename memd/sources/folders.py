"""Which folders are watched, and by which watch?

A tree of names beside the kernel's numbers. The kernel watches inodes: a folder that moves keeps its watch,
and the events that are still queued for it were meant for its old name. So every event about a folder only
asks to look at what has that name now: what it was is forgotten, what is there is entered.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

from memd.sources.inotify import Inotify, Kind

# CREATE and MODIFY are there for links and for files that stay open; the rest tells of finished saves.
# EXCL_UNLINK: nobody finds a file that has no name any more.
MASK = (
    Kind.CLOSE_WRITE | Kind.MOVED_FROM | Kind.MOVED_TO | Kind.CREATE | Kind.DELETE | Kind.ATTRIB | Kind.MODIFY
    | Kind.DELETE_SELF | Kind.MOVE_SELF | Kind.ONLYDIR | Kind.DONT_FOLLOW | Kind.EXCL_UNLINK
).value  # fmt: skip
# Gone again, or a link or a file by now: an event about it is in the queue.
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
# Not ours to read, by a scan neither; a chmod sends ATTRIB.
_CLOSED = frozenset({errno.EACCES, errno.EPERM, errno.ENAMETOOLONG})


class Folders:
    """The watched folders of one root, each named relative to it with "/" behind; "" is the root."""

    def __init__(self, inotify: Inotify, prefix: str, enters: Callable[[str], bool]) -> None:
        self.full = False  # whether there are more folders than may be watched
        self.hidden = ""  # one that cannot be watched for another reason, which this tells
        self._inotify = inotify
        self._prefix = prefix  # the root with "/" behind
        self._enters = enters
        self._others: set[int] = set()  # watches that are not of the tree
        self._watches: dict[str, int] = {}
        self._names: dict[int, str] = {}  # the same, the other way round
        self._inner: dict[str, set[str]] = {}  # folder → watched ones directly in it
        self._ended: set[int] = set()  # not ours any more; events come until the kernel says IGNORED

    def __contains__(self, folder: str) -> bool:
        return folder in self._watches

    def watch_other(self, path: str, mask: int) -> int:
        """Watch a folder that is not of the tree, through the same queue. Raises OSError."""
        watch = self._inotify.add(path, mask)
        self._others.add(watch)
        return watch

    def name_of(self, watch: int) -> str | None:
        """Return whose watch it is; None of one that is no more.

        Raises:
            KeyError: it was never one of the tree: events were lost.
        """
        return None if watch in self._ended else self._names[watch]

    def enter(self, folder: str) -> None:
        """Watch a folder and all below it that is searched.

        Raises:
            OSError: the root cannot be watched.
        """
        waiting = [folder]
        while waiting:
            at = waiting.pop()
            if self._watch(at):
                # Listed after it is watched: what is made in it meanwhile sends an event.
                waiting += (inner for inner in self._list(at) if self._enters(inner))

    def forget(self, folder: str) -> None:
        """End the watches of a folder and of all below it."""
        self._inner.get(_above(folder), set()).discard(folder)
        waiting = [folder]
        while waiting:
            at = waiting.pop()
            waiting += self._inner.pop(at, ())
            if at in self._watches:
                self._end(self._watches[at])

    def ignored(self, watch: int) -> None:
        """Note that the kernel ended a watch; it has no more events."""
        self._ended.discard(watch)
        name = self._names.pop(watch, None)
        if name is not None:
            del self._watches[name]

    def _watch(self, folder: str) -> bool:
        """Watch one folder; tell whether to look into it."""
        try:
            watch = self._inotify.add(self._path(folder), MASK)
        except OSError as error:
            self._pass_over(folder, error)
            return False
        if watch in self._others:
            return False
        name = self._names.get(watch)
        if name == folder:
            return True  # what is in it may not have been ours to read
        if name is not None:
            if self._is_same(name, folder):
                self.hidden = f"{self._path(folder)} is also {self._path(name)}, and seen there only"
                return False
            del self._watches[name]  # it moved here, and the event about that comes later
        if folder in self._watches:  # another folder took the place, and the event about that comes later
            self._end(self._watches[folder])
        self._watches[folder] = watch
        self._names[watch] = folder
        if folder:
            self._inner.setdefault(_above(folder), set()).add(folder)
        return True

    def _end(self, watch: int) -> None:
        del self._watches[self._names.pop(watch)]
        self._ended.add(watch)
        self._inotify.remove(watch)

    def _list(self, folder: str) -> Iterator[str]:
        try:
            with os.scandir(self._path(folder)) as listing:
                for entry in listing:
                    with suppress(OSError):  # gone again, on a file system that does not tell kinds in lists
                        if entry.is_dir(follow_symlinks=False):
                            yield f"{folder}{entry.name}/"
        except OSError as error:
            self._pass_over(folder, error)

    def _pass_over(self, folder: str, error: OSError) -> None:
        if error.errno == errno.ENOSPC:
            self.full = True
        elif not folder:
            raise error
        elif error.errno not in _GONE | _CLOSED:
            self.hidden = f"{self._path(folder)} cannot be watched ({error.strerror})"

    def _is_same(self, one: str, other: str) -> bool:
        """Tell whether two names lead to one folder now: one of them is a mount."""
        try:
            return os.path.samestat(os.lstat(self._path(one)), os.lstat(self._path(other)))
        except OSError:
            return False

    def _path(self, folder: str) -> str:
        return self._prefix + folder[:-1]  # with "/" behind, a link would be followed


def _above(folder: str) -> str:
    return folder[: folder.rfind("/", 0, -1) + 1]
