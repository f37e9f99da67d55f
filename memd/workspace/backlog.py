"""The paths of one workspace that wait to be indexed, and an estimate of the time that they take.

Large files wait apart, because one may take longer than all others together. For the event loop's thread.
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from operator import itemgetter

# More paths than this at once are no person's save but a checkout, a copy or a sync: they wait in the order
# they came, so that a note that is saved meanwhile does not wait behind them.
BULK_PATHS = 64
HINTS_AT_ONCE = 16  # in one commit: the newest save does not wait for many older ones in its own slice

KEPT = 0.9  # of what was seen before, at each look: the last ten or so count; arbitrary


class Backlog:
    """Paths on their way into the index. A path that is taken may come back as a new hint meanwhile.

    *changed* is called after each change of how many wait, or since when.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._hints: dict[str, float] = {}  # saved a moment ago → monotonic time: first in line
        self._found: OrderedDict[str, float] = OrderedDict()  # in bulk, or by a scan
        self._in_hand: dict[str, float] = {}  # being indexed now, a slice
        self._urgent = False  # whether those in hand were hints
        self._large: dict[str, float] = {}  # put off: they take long
        self._large_in_hand: dict[str, float] = {}  # one or none
        self._entries_in_hand: list[str] = []  # being indexed at once, without having waited
        # When the oldest of all was first known to be dirty; None while there is none. Kept, because every
        # answer tells it, and thousands may wait.
        self.since: float | None = None

    def __len__(self) -> int:
        twice = sum(path in self._found for path in self._hints)
        twice += sum(path in self._hints or path in self._found for path in self._in_hand)
        large = sum(
            path not in self._hints and path not in self._found and path not in self._in_hand
            for path in self._large.keys() | self._large_in_hand.keys()
        )
        return len(self._hints) + len(self._found) + len(self._in_hand) - twice + large

    def __contains__(self, path: str) -> bool:
        return any(path in waiting for waiting in self._all())

    @property
    def in_hand(self) -> list[str]:
        """Paths that may have been read, and are in no index yet: a look at the index does not see them."""
        return [*self._in_hand, *self._large_in_hand, *self._entries_in_hand]

    @property
    def is_bulk(self) -> bool:
        """Whether more wait than a person saves."""
        return len(self) > BULK_PATHS

    @property
    def urgent(self) -> bool:
        """Whether what is in hand was saved a moment ago, one by one."""
        return self._urgent

    def hint(self, paths: Iterable[str], now: float) -> None:
        """Add paths that an event names."""
        named = list(paths)
        if len(named) > BULK_PATHS:
            self.found(named, now)
            return
        for path in named:
            self._hints[path] = min(now, self._hints.get(path, now))
        self._note(named, now)

    def found(self, paths: Iterable[str], since: float) -> None:
        """Add paths that differ from the index, and when that may have begun at the latest."""
        named = list(paths)
        for path in named:
            self._found[path] = min(since, self._found.get(path, since))
        self._note(named, since)

    def take(self, limit: int) -> list[str]:
        """Take the next paths in hand; `done` follows. Of the hints the newest, of the others the oldest."""
        self._urgent = bool(self._hints)
        if self._hints:
            count = min(limit, HINTS_AT_ONCE, len(self._hints))
            self._in_hand = dict(self._hints.popitem() for _ in range(count))
        else:
            self._in_hand = {path: self._found.pop(path) for path in list(islice(self._found, limit))}
        self._changed()
        return list(self._in_hand)

    def done(self, handled: int) -> None:
        """Say how many of those in hand are through, from the front; the others wait again, where they were.

        Where none is, something is wrong with them: the others go first.
        """
        queue = self._hints if self._urgent else self._found
        left = list(self._in_hand.items())[handled:]
        for path, at in left:
            queue[path] = min(at, queue.get(path, at))
        if handled and not self._urgent:
            for path, _ in reversed(left):
                self._found.move_to_end(path, last=False)
        if self._urgent:  # what was saved meanwhile is newer than what waits again
            self._hints = dict(sorted(self._hints.items(), key=itemgetter(1)))
        self._in_hand = {}
        self._look_since()

    @contextmanager
    def at_once(self, path: str) -> Iterator[None]:
        """Have a path in hand that did not wait."""
        self._entries_in_hand.append(path)
        try:
            yield
        finally:
            self._entries_in_hand.remove(path)

    def put_off(self, paths: Iterable[str], now: float) -> None:
        """Have some of those in hand, or others, wait apart; `done` is said of them all the same."""
        for path in paths:
            at = min(self._in_hand.get(path, now), self._large.pop(path, now))
            self._large[path] = at
        self._changed()

    def take_large(self, last: Container[str] = ()) -> str | None:
        """Take one of those that wait apart in hand, those in *last* at the end; `done_large` follows."""
        path = next((one for one in self._large if one not in last), next(iter(self._large), None))
        if path is not None:
            self._large_in_hand = {path: self._large.pop(path)}
            self._changed()
        return path

    def done_large(self, *, through: bool) -> None:
        """Say that it is through, or must wait again."""
        for path, at in self._large_in_hand.items():
            if not through:
                self._large[path] = min(at, self._large.get(path, at))
        self._large_in_hand = {}
        self._look_since()

    def _all(self) -> tuple[dict[str, float], ...]:
        return self._hints, self._found, self._in_hand, self._large, self._large_in_hand

    def _look_since(self) -> None:
        self.since = min(chain.from_iterable(one.values() for one in self._all()), default=None)
        self._changed()

    def _note(self, paths: list[str], at: float) -> None:
        if paths:
            self.since = at if self.since is None else min(self.since, at)
            self._changed()


class Throughput:
    """The speed of one kind of work."""

    def __init__(self) -> None:
        self._done = 0.0
        self._took_s = 0.0

    def note(self, done: int, took_s: float) -> None:
        """Take in that *done* pieces took so long."""
        self._done = self._done * KEPT + done
        self._took_s = self._took_s * KEPT + took_s

    def left_s(self, count: int) -> float | None:
        """Return how long *count* pieces will take about; None while nothing is known."""
        if count <= 0:
            return 0.0
        return round(count * self._took_s / self._done, 1) if self._done > 0 else None
