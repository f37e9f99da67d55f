"""What does watchfiles say? The watch where there is no inotify of our own: hints, as good as they come.

The only importer of watchfiles. It loses some events in silence, reports a new folder without its content, a
file while it is written, folders behind links, and dies of a file name that is not UTF-8: so folders are told
as folders, what is not searched is left out, and the caller's own timer finds the rest.
"""

import os
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path

from watchfiles import Change
from watchfiles._rust_notify import RustNotify

from memd.sources import mounts
from memd.sources.dirty import Dirty
from memd.sources.listening import Order, RootGoneError, identity, remote_trouble

# How long watchfiles waits for one more event, and how long it collects at most: events arrive within
# 42 ms (p95), for 40 wake-ups a second and 0.15 % of a core.
STEP_MS, DEBOUNCE_MS = 25, 50
# From so many at once on, events may have been lost in silence: a scan finds them.
LOSSY_PATHS = 2_000
# How often to look whether the root is still the one that is watched; there may be no event about that.
LOOK_MS = 2_000


def listen(order: Order, first: Dirty) -> None:
    """Watch until the order's halt is set.

    Raises:
        RootGoneError: it is missing, or another folder took its place.
        OSError: the root cannot be watched.
        BaseException: watchfiles panicked.
    """
    root = identity(order.root)
    if root is None:  # watchfiles would watch nothing, in silence
        raise RootGoneError
    trouble = remote_trouble(order.root, mounts.polled(order.root))
    watched = [order.root, order.cookies] if order.cookies is not None else [order.root]
    watcher = RustNotify(
        [str(path) for path in watched if path.is_dir()],
        debug=False,
        force_polling=False,
        poll_delay_ms=0,
        recursive=True,
        ignore_permission_denied=True,
    )
    with watcher:
        order.waiting.add(Dirty(rescan=True, overflow=first.overflow, trouble=trouble, polling=bool(trouble)))
        while not order.halt.is_set():
            found = watcher.watch(DEBOUNCE_MS, STEP_MS, LOOK_MS, order.halt)
            if isinstance(found, str):  # "stop", "timeout", or "signal", which only the main thread gets
                found = set()
            # Its watches went with it, also if there is a new one, which may have the same number.
            if identity(order.root) != root or (Change.deleted, str(order.root)) in found:
                raise RootGoneError
            _tell(order, {path for _, path in found}, trouble)


def _tell(order: Order, changed: set[str], trouble: str) -> None:
    top = str(order.root)
    cookies = {path for path in changed if order.cookies and _above(path) == str(order.cookies)}
    is_searched = _searched(order)
    found = {path for path in changed - cookies if path != top and is_searched(_above(path))}
    inside = {path for path in found if _is_folder(path)}
    dirty = Dirty(
        paths=frozenset(found - inside),
        folders=frozenset(path for path in inside if is_searched(path)),
        cookies=frozenset(path.rpartition("/")[2] for path in cookies),
        rescan=top in changed or len(changed) >= LOSSY_PATHS,
        overflow=len(changed) >= LOSSY_PATHS,
        trouble=trouble,
        polling=bool(trouble),
    )
    if dirty.paths or dirty.folders or dirty.cookies or dirty.rescan:
        order.waiting.add(dirty)


def _searched(order: Order) -> Callable[[str], bool]:
    """Return what tells whether an absolute folder is searched: each one above it is, and none is a link."""

    @cache
    def is_searched(folder: str) -> bool:
        if folder == str(order.root):
            return True
        if not folder.startswith(order.prefix) or Path(folder).is_symlink():
            return False
        return is_searched(_above(folder)) and order.enters(f"{folder.removeprefix(order.prefix)}/")

    return is_searched


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _is_folder(path: str) -> bool:
    """Tell whether a folder itself is there, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
