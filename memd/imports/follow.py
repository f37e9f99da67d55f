"""Following of files that grow: what has changed is imported again, until the process is ended.

Files are looked at by their stamps. An event of the system would come sooner and not always: folders on
network mounts have none, and a session needs no haste.
"""

import time
from collections.abc import Callable
from typing import NoReturn

from memd.errors import NotFoundError
from memd.imports.run import Found, NothingToImportError, Order, Outcomes, run, sources

LOOK_EVERY_S = 2.0  # a turn of a conversation takes longer
# A session is read from its beginning each time; it rests for so many times as long as that took.
REST = 20

Stamp = tuple[int, int]  # size, time of the last change


def follow(order: Order, seen: dict[Found, Stamp], done: Callable[[Outcomes], None]) -> NoReturn:
    """Import what is not as it was *seen*; *done* hears of each time."""
    rests_until_s: dict[Found, float] = {}
    while True:
        time.sleep(LOOK_EVERY_S)
        found = stamps(order)
        now_s = time.monotonic()
        changed = [
            file
            for file, stamp in found.items()
            if seen.get(file) != stamp and rests_until_s.get(file, 0) <= now_s
        ]
        for file in changed:
            seen[file] = found[file]
            started_s = time.monotonic()
            done(run(order, [file], lambda *_: None))
            rests_until_s[file] = time.monotonic() + REST * (time.monotonic() - started_s)


def stamps(order: Order) -> dict[Found, Stamp]:
    """Return the files of a client as they are now."""
    found = {}
    try:
        for file in sources(order):
            status = file.status()
            found[file] = (status.st_size, status.st_mtime_ns)
    except (OSError, NotFoundError, NothingToImportError):
        pass  # the next look finds it
    return found
