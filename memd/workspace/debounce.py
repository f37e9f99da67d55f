"""Per-path debounce: which changed files may be read now, and which are still being written. Pure.

A file that is named is read at once; one that is named again soon after is moving, and read when it was still
for a moment. The system does not tell when a file is closed.
"""

from collections.abc import Iterable

AGAIN_S = 0.5  # a change so soon after the file was read: more may follow
STILL_S = 0.25  # without a change, then it is read; the end of a slow save is found within a second
MOVING_S = 10.0  # a file that never stands still is read so often; reading a large one takes a while


class Debounce:
    """The files that moved lately; the clock is the caller's, in monotonic seconds."""

    def __init__(self) -> None:
        self._read: dict[str, float] = {}  # path → when it was last let through; the oldest first
        self._moving: dict[str, tuple[float, float]] = {}  # path → its first and its last change

    def __len__(self) -> int:
        return len(self._moving)

    def named(self, paths: Iterable[str], now: float) -> list[str]:
        """Take paths that changed; return those to read now."""
        self._forget(now)
        at_once = []
        for path in paths:
            if path in self._moving:
                self._moving[path] = (self._moving[path][0], now)
            elif path in self._read:
                self._moving[path] = (now, now)
            else:
                at_once.append(path)
        return self._through(at_once, now)

    def due(self, now: float) -> list[str]:
        """Return the moving files to read now."""
        return self._through([path for path, at in self._moving.items() if _due(*at) <= now], now)

    def all(self, now: float) -> list[str]:
        """Return every moving file: somebody waits for what was saved."""
        return self._through(list(self._moving), now)

    def next_due(self) -> float | None:
        """Return when the next one is to be read; None while nothing moves."""
        return min((_due(*at) for at in self._moving.values()), default=None)

    def _through(self, paths: list[str], now: float) -> list[str]:
        for path in paths:
            self._moving.pop(path, None)
            self._read.pop(path, None)  # it goes to the end
            self._read[path] = now
        return paths

    def _forget(self, now: float) -> None:
        for path, at in list(self._read.items()):
            if now - at < AGAIN_S:
                return
            del self._read[path]


def _due(first: float, last: float) -> float:
    return min(last + STILL_S, first + MOVING_S)
