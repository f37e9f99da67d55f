"""When is the next look at a whole folder due? Pure: the clock is the caller's, in monotonic seconds."""

# The watcher is a hint: the folder itself is asked as often as a thousandth of a core allows, for all
# workspaces together. With 10,000 files, which take a tenth of a second, that is every 100 s.
TIMER_SHARE = 0.001
TIMER_S = (60.0, 3600.0)
MISSING_S = 2.0  # how soon a folder that comes back is noticed
# Without events the folder is asked all the time, for at most a hundredth of a core, and nothing is missed
# for longer than half a minute.
POLLED_S = (2.0, 30.0)
POLLED_SHARE = 0.01
# Asked for again and again (a rule file that is rewritten in a loop), scans take a twentieth of a core.
ASKED_SHARE = 0.05
# When too much happens at once for the watcher: at most one scan in so many seconds, doubled while it lasts
# (facebook/watchman#1354: 14,459 scans in 19 minutes).
STORM_S = (10.0, 300.0)


class Schedule:
    """The scans of one folder; the first one is due at once."""

    def __init__(self, now: float) -> None:
        self.since: float | None = now  # when the oldest scan that is still owed was asked for
        self._storm = False  # whether a storm asked for it
        self._pause_s = 0.0  # between two scans of a storm
        self._calm_after = now  # when a storm counts as over
        self._not_before = now
        self._last = now
        self._took_s = 0.0
        self._cost_s = 0.0

    def ask(self, now: float, *, storm: bool = False, urgent: bool = False) -> None:
        """Ask for a scan, owed since *now*; an *urgent* one (somebody waits for it) is due at once."""
        self.since = now if self.since is None else min(now, self.since)
        self._storm |= storm
        if urgent:
            self._not_before = now
            self._storm = False

    def due(self, *, pace_s: float) -> float:
        """Return when the next scan is due; *pace_s* after the last one if nobody asks."""
        timer = self._last + pace_s
        if self.since is None:
            return timer
        return min(max(self.since, self._not_before), timer)

    def pace_s(self, *, polling: bool, roots: int = 1) -> float:
        """Return how long to wait between two scans that nobody asked for, with so many roots to scan."""
        if polling:
            least, most = POLLED_S
            return min(max(self._took_s / POLLED_SHARE, least), most)
        least, most = TIMER_S
        return min(max(self._cost_s * roots / TIMER_SHARE, least), most)

    def begin(self, now: float) -> float | None:
        """Say that a scan begins; return since when it was owed, None for one of the timer's."""
        owed, self.since = self.since, None
        if self._storm:
            least, most = STORM_S
            goes_on = self._pause_s and now < self._calm_after
            self._pause_s = min(self._pause_s * 2, most) if goes_on else least
            self._calm_after = now + 3 * self._pause_s
            self._not_before = now + self._pause_s
        self._storm = False
        return owed

    def end(self, began: float, now: float, *, cost_s: float) -> None:
        """Say that a scan is through, which took *cost_s* of a core."""
        self._last = now
        self._cost_s = cost_s
        self._took_s = now - began
        self._not_before = max(self._not_before, now + self._took_s / ASKED_SHARE)
