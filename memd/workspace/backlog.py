"""The queue of one workspace's paths to index, and an estimate of the time that they take.

Large files are queued separately, because one may take longer than all others. For the event loop's thread.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from operator import itemgetter

# More paths at once come from a checkout, a copy or a sync, not from an editor: they keep their order, and a
# note that is saved meanwhile does not wait behind them.
BULK_PATHS = 64
HINTS_AT_ONCE = 16  # in one commit: the newest save does not wait for many older ones in its slice

KEPT = 0.9  # weight of the older measurements at each new one: the last ten or so count; arbitrary


class Backlog:
    """Paths to index. A path that was taken may be added again meanwhile by a new hint."""

    def __init__(self) -> None:
        self._hints: dict[str, float] = {}  # saved a moment ago → monotonic time; taken first
        self._found: OrderedDict[str, float] = OrderedDict()  # in bulk, or by a scan
        self._in_hand: dict[str, float] = {}  # the slice that is being indexed now
        self.urgent = False  # whether the paths in hand are single files saved a moment ago
        self._large: dict[str, float] = {}  # postponed, because they take long
        self._large_in_hand: dict[str, float] = {}  # at most one
        self._entries_in_hand: list[str] = []  # being indexed at once, without having waited
        # When the oldest path became dirty; None if there is none. Stored, because every answer reports it,
        # and thousands of paths may wait.
        self.since: float | None = None

    def __len__(self) -> int:
        others = {*self._hints, *self._in_hand, *self._large, *self._large_in_hand}
        return len(self._found) + sum(path not in self._found for path in others)

    def __contains__(self, path: str) -> bool:
        return any(path in waiting for waiting in self._all())

    @property
    def in_hand(self) -> list[str]:
        """Paths that may have been read but are not in the index yet, so the index does not show them."""
        return [*self._in_hand, *self._large_in_hand, *self._entries_in_hand]

    @property
    def is_bulk(self) -> bool:
        """Whether more paths wait than a person saves."""
        return len(self) > BULK_PATHS

    def hint(self, paths: Iterable[str], now: float) -> None:
        """Add paths named by events."""
        named = list(paths)
        if len(named) > BULK_PATHS:
            self.found(named, now)
            return
        for path in named:
            self._hints[path] = min(now, self._hints.get(path, now))
        self._note(named, now)

    def found(self, paths: Iterable[str], since: float) -> None:
        """Add paths that differ from the index, and the latest time at which they may have changed."""
        named = list(paths)
        for path in named:
            self._found[path] = min(since, self._found.get(path, since))
        self._note(named, since)

    def take(self, limit: int) -> list[str]:
        """Take the next paths: the newest hints, or else the oldest others. Followed by a call of `done`."""
        self.urgent = bool(self._hints)
        if self._hints:
            count = min(limit, HINTS_AT_ONCE, len(self._hints))
            self._in_hand = dict(self._hints.popitem() for _ in range(count))
        else:
            self._in_hand = {path: self._found.pop(path) for path in list(islice(self._found, limit))}
        return list(self._in_hand)

    def done(self, handled: int) -> None:
        """Mark the first *handled* paths in hand as indexed; the others wait again, in their old places.

        If *handled* is 0, something is wrong with these paths: all others go first.
        """
        queue = self._hints if self.urgent else self._found
        left = list(self._in_hand.items())[handled:]
        for path, at in left:
            queue[path] = min(at, queue.get(path, at))
        if handled and not self.urgent:
            for path, _ in reversed(left):
                self._found.move_to_end(path, last=False)
        if self.urgent:  # paths saved meanwhile are newer
            self._hints = dict(sorted(self._hints.items(), key=itemgetter(1)))
        self._in_hand = {}
        self._look_since()

    @contextmanager
    def at_once(self, path: str) -> Iterator[None]:
        """Mark a path as in hand that did not wait."""
        self._entries_in_hand.append(path)
        try:
            yield
        finally:
            self._entries_in_hand.remove(path)

    def put_off(self, paths: Iterable[str], now: float) -> None:
        """Move paths to the queue of large files; `done` must still be called for those in hand."""
        for path in paths:
            at = min(self._in_hand.get(path, now), self._large.pop(path, now))
            self._large[path] = at

    def take_large(self, last: Container[str] = ()) -> str | None:
        """Take a large file, one in *last* only if there is no other. Followed by `done_large`."""
        path = next(
            (waiting for waiting in self._large if waiting not in last), next(iter(self._large), None)
        )
        if path is not None:
            self._large_in_hand = {path: self._large.pop(path)}
        return path

    def done_large(self, *, through: bool) -> None:
        """Mark the large file in hand as indexed, or as waiting again."""
        for path, at in self._large_in_hand.items():
            if not through:
                self._large[path] = min(at, self._large.get(path, at))
        self._large_in_hand = {}
        self._look_since()

    def _all(self) -> tuple[dict[str, float], ...]:
        return self._hints, self._found, self._in_hand, self._large, self._large_in_hand

    def _look_since(self) -> None:
        self.since = min(chain.from_iterable(times.values() for times in self._all()), default=None)

    def _note(self, paths: list[str], at: float) -> None:
        if paths:
            self.since = at if self.since is None else min(self.since, at)


class Count:
    """How much of one kind of work is done: it only grows, and so does the total, with work that arrives."""

    def __init__(self) -> None:
        self.done = 0
        self._left = 0

    def note(self, left: int) -> int:
        """Note how much is *left*; return the total."""
        self.done += max(self._left - left, 0)
        self._left = left
        return self.done + left


class Throughput:
    """The speed of one kind of work."""

    def __init__(self) -> None:
        self._done = 0.0
        self._took_s = 0.0

    def note(self, done: int, took_s: float) -> None:
        """Add a measurement: *done* pieces took *took_s*."""
        self._done = self._done * KEPT + done
        self._took_s = self._took_s * KEPT + took_s

    def left_s(self, count: int) -> float | None:
        """Return the estimated time for *count* pieces; None before the first measurement."""
        if count <= 0:
            return 0.0
        return round(count * self._took_s / self._done, 1) if self._done > 0 else None
