"""The throughput of one kind of work, from its last steps, for estimates of the time that is left. Pure."""

KEPT = 0.9  # of what was seen before, at each look: the last ten or so count; arbitrary


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
