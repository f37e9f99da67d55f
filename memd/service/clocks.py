"""Was time lost? After a suspend, or when the clock was set, all files are looked at again."""

import time
from collections.abc import Callable

# Less than that is the drift between two readings, or NTP at work.
SUSPENDED_S = 2.0
SET_S = 60.0

Reading = tuple[float, float, float]  # wall clock, time awake, time since boot; seconds


def read_clocks() -> Reading:
    """Read the three clocks; where the system does not count sleep (macOS does in both) two are one."""
    since_boot = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return time.time(), time.monotonic(), since_boot


class Clocks:
    """Compares the clocks with what they said before."""

    def __init__(self, read: Callable[[], Reading] = read_clocks) -> None:
        self._read = read
        self._asleep_s, self._offset_s = self._differences()

    def jumped(self) -> bool:
        """Tell whether the machine slept, or its clock was set, since the last call."""
        asleep_s, offset_s = self._differences()
        slept = abs(asleep_s - self._asleep_s) > SUSPENDED_S
        was_set = abs(offset_s - self._offset_s) > SET_S
        self._asleep_s, self._offset_s = asleep_s, offset_s
        return slept or was_set

    def _differences(self) -> tuple[float, float]:
        wall, awake, since_boot = self._read()
        return since_boot - awake, wall - since_boot
