"""The record of the day on which each entry of a workspace was last given to an agent.

A file of lines "DAY ID" next to the journal, with random ids and neither text, title nor path. A line is
added once a day for each entry at most, without waiting for the disk: a lost line makes an entry look less
used. Thread-safe.
"""

import os
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

import structlog

from memd import fsio
from memd.errors import MemdError

MAX_BYTES = 16 * 1024 * 1024  # read at most; entries of a lifetime have a hundredth
SPARE_LINES = 1_000  # outdated lines at which the file is written anew; arbitrary

_KNOWN: dict[Path, dict[str, str]] = {}  # file → entry id → ISO day
_LOCK = threading.Lock()  # protects `_KNOWN` and the order of lines

log = structlog.get_logger()


def note(path: Path, ids: Collection[str], day: date) -> None:
    """Record that the entries *ids* were recalled on a day. Never fails: the answer is more important."""
    with _LOCK:
        known = _loaded(path)
        new = [one for one in ids if known.get(one, "") < day.isoformat()]
        if not new:
            return
        known.update(dict.fromkeys(new, day.isoformat()))
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with fsio.regular(path, fsio.APPEND) as file:
                os.write(file, "".join(f"{day.isoformat()} {one}\n" for one in new).encode())
        except OSError as error:
            log.warning("recalls_not_written", reason=error.strerror)


def last(path: Path) -> Mapping[str, str]:
    """Return entry id → ISO day of its last recall."""
    with _LOCK:
        return dict(_loaded(path))


def _loaded(path: Path) -> dict[str, str]:
    if path not in _KNOWN:
        known = _KNOWN[path] = {}
        lines = []
        with suppress(OSError):  # nothing was recalled yet
            raw = fsio.read_regular(path, MAX_BYTES, flags=os.O_NOFOLLOW)
            lines = raw.decode(errors="replace").splitlines()
        for line in lines:
            day, _, entry = line.partition(" ")
            if entry and len(day) == len("2026-05-01"):  # not a line that a full disk cut off
                known[entry] = max(day, known.get(entry, ""))
        if len(lines) > len(known) + SPARE_LINES:
            try:
                fsio.replace_own(path, "".join(f"{day} {one}\n" for one, day in known.items()).encode())
            except MemdError as error:
                log.warning("recalls_not_written", code=error.code)
    return _KNOWN[path]
