"""Who watches: when did the daemon go, and when did it come back?

Knows answers of `status` and times; asks nobody and reads no clock.
"""

from datetime import UTC, datetime
from typing import Any


class Sightings:
    """Remembers whether the last look met a daemon, and which one."""

    def __init__(self) -> None:
        self._instance = ""
        self._away_since: float | None = None
        self._news: list[str] = []

    def after(self, answer: dict[str, Any], at: float) -> list[str]:
        """Return what there is to say of the daemon's coming and going, after one more look."""
        instance = str(answer["server"].get("instance_id") or "")
        if not instance:
            self._away_since = self._away_since or at
            return [f"no answer since {_time(self._away_since)}; waiting for memd"]
        if self._away_since is not None:
            who = "the same process" if instance == self._instance else "another process"
            # One that was never there did not come back.
            came = f"memd is back: {who}," if self._instance else "memd came:"
            self._news = [f"{came} no answer from {_time(self._away_since)} to {_time(at)}"]
        elif self._instance not in {"", instance}:
            self._news = [f"memd was restarted, seen at {_time(at)}"]
        self._away_since, self._instance = None, instance
        return self._news


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")
