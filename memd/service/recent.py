"""What has just happened? Two rings for `debug`; the one module with state of the whole process.

Kept in memory alone: paths and timings of the last minutes belong into no log.
"""

import time
from collections import deque
from typing import Any

Fact = dict[str, Any]

REQUESTS: deque[Fact] = deque(maxlen=200)  # arbitrary: what an editor asks in some minutes
WATCHED: deque[Fact] = deque(maxlen=1_000)  # batches of the watcher, as facebook/watchman keeps them
PATHS_NAMED = 3  # of each batch; its count counts all


def note_request(method: str, *, ms: float, answer_bytes: int, failed: bool) -> None:
    """Keep how one request went."""
    REQUESTS.append(
        {"at": _now(), "method": method, "ms": round(ms, 1), "answer_bytes": answer_bytes, "failed": failed}
    )


def note_watched(root: str, paths: list[str], **counts: int | bool | str) -> None:
    """Keep what the watcher said of one workspace."""
    WATCHED.append({"at": _now(), "workspace": root, "paths": paths[:PATHS_NAMED], **counts})


def _now() -> float:
    return round(time.time(), 3)
