"""Visibility: the part of an index that agents may see.

A note kept from agents (`private: true`, or a pattern of `agents_ignore`) is missing from the snapshot made
here, as if it were gone: it affects no search, filter, count or spelling correction. So it is excluded before
any limit applies, and no request can reveal it. The chunks of a source with a secret are missing, too: those
of its masked text are there instead.

For any thread.
"""

import threading
from dataclasses import replace

from memd.index.links import supersession
from memd.index.reader import TWOFOLD, Reader
from memd.index.snapshot import Snapshot
from memd.lru import LruCache
from memd.sources.ignore import Patterns, UnusableError
from memd.sources.privacy import is_private

PRIVATE = "SELECT id FROM sources WHERE private"
TOLD = "SELECT id, told FROM sources WHERE told != ''"
NO_PATTERNS = Patterns(())
PATHS_KEPT = 1_000_000  # for which the match with a pattern is cached: 100 bytes each


class Visibility:
    """What the agents of one workspace may see."""

    def __init__(self, patterns: Patterns = NO_PATTERNS) -> None:
        """Take the patterns of `agents_ignore`."""
        self._patterns = patterns
        self._named: LruCache[str, bool] = LruCache(PATHS_KEPT)
        self._lock = threading.Lock()  # protects _last, so that two readers do not make the same snapshot
        self._last: tuple[Snapshot, Snapshot] | None = (
            None  # the snapshot that was asked for last, its visible part
        )

    def keeps(self, path: str, text: str) -> bool:
        """Return whether a note with this *text* (possibly newer than the index) is kept from agents."""
        return self._is_named(path) or is_private(text)

    def hides(self, path: str, *, is_private: bool) -> bool:
        """Return whether an indexed note is kept from agents."""
        return is_private or self._is_named(path)

    def of(self, snapshot: Snapshot, reader: Reader) -> Snapshot:
        """Return the visible part of *snapshot*; *reader* is in a transaction of its generation."""
        with self._lock:
            if self._last is None or self._last[0] is not snapshot:
                self._last = snapshot, self._visible(snapshot, reader)
            return self._last[1]

    def _visible(self, snapshot: Snapshot, reader: Reader) -> Snapshot:
        kept = {number for [number] in reader.each(PRIVATE)}
        if len(self._patterns):
            kept |= {number for number, one in snapshot.sources.items() if self._is_named(one.path)}
        kept &= snapshot.sources.keys()
        chunks, told = reader.all(TWOFOLD), dict(reader.all(TOLD))
        if not (kept or chunks or told):
            is_newest = snapshot.seen == snapshot.generation
            return snapshot if is_newest else replace(snapshot, generation=snapshot.seen)
        found = snapshot.supersession
        if kept and found.names:  # names of hidden notes may also belong to others
            found = supersession(reader.each, lambda source: source not in kept)
        return snapshot.for_agents(kept, found, chunks, told)

    def _is_named(self, path: str) -> bool:
        named = self._named.get(path)
        if named is None:
            try:
                named = self._patterns.selects(path)
            except UnusableError:  # undecidable: hide it
                named = True
            self._named.put(path, named)
        return named
