"""Which files wait to be looked at, and since when? Saves first, then what a scan found. Pure."""

from collections.abc import Iterable
from itertools import islice


class Backlog:
    """Paths on their way into the index. A path that is taken may come back as a new hint meanwhile."""

    def __init__(self) -> None:
        self._hints: dict[str, float] = {}  # saved a moment ago → monotonic time: first in line
        self._found: dict[str, float] = {}  # by a scan
        self._in_hand: dict[str, float] = {}  # being indexed now

    def __len__(self) -> int:
        return len(self._hints.keys() | self._found.keys() | self._in_hand.keys())

    def __contains__(self, path: str) -> bool:
        return path in self._hints or path in self._found or path in self._in_hand

    @property
    def since(self) -> float | None:
        """When the oldest of them was first known to be dirty; None while there is none."""
        waiting = (self._hints, self._found, self._in_hand)
        return min((at for paths in waiting for at in paths.values()), default=None)

    def hint(self, paths: Iterable[str], now: float) -> None:
        """Add paths that an event names."""
        for path in paths:
            self._hints.setdefault(path, now)

    def found(self, paths: Iterable[str], now: float) -> None:
        """Add paths that a scan found to differ."""
        for path in paths:
            self._found.setdefault(path, now)

    def take(self, limit: int) -> list[str]:
        """Take the next paths in hand; `done` follows."""
        queue = self._hints or self._found
        self._in_hand = {path: queue.pop(path) for path in list(islice(queue, limit))}
        return list(self._in_hand)

    def done(self, handled: int) -> None:
        """Say how many of those in hand are through, from the front; the others wait again."""
        for path, at in list(self._in_hand.items())[handled:]:
            self._found.setdefault(path, at)
        self._in_hand = {}
