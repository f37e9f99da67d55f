"""Recent requests and watcher reports, in two ring buffers in memory, for the method `debug`.

The only module with process-wide state. Nothing of it is written to disk: paths and times of the last minutes
do not belong into a log.
"""

import os
import platform
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from memd import __version__
from memd.index.database import sqlite_version

Fact = dict[str, Any]

REQUESTS: deque[Fact] = deque(maxlen=200)  # arbitrary: an editor's requests of a few minutes
WATCHED: deque[Fact] = deque(maxlen=1_000)  # batches of the watcher, as many as facebook/watchman keeps
PATHS_NAMED = 3  # of each batch; its count includes all


def note_request(method: str, outcome: dict[str, float]) -> None:
    """Record the outcome of one request: its `ms`, `answer_bytes`, and whether it `failed`."""
    REQUESTS.append({"at": _now(), "method": method, **outcome})


def note_watched(root: str, paths: list[str], **counts: int | bool | str) -> None:
    """Record a report of the watcher about one workspace."""
    WATCHED.append({"at": _now(), "workspace": root, "paths": paths[:PATHS_NAMED], **counts})


def _now() -> float:
    return round(time.time(), 3)


PACKAGES = ("apsw", "msgpack", "msgspec", "numpy", "onnxruntime", "tokenizers", "watchfiles")
UNKNOWN = "unknown"


def all_of_them() -> dict[str, str]:
    """Return name → version of all software that may cause a bug."""
    packages = {name: installed(name) for name in PACKAGES}
    own = {"memd": __version__, "python": platform.python_version(), "sqlite": sqlite_version()}
    return own | packages


def telemetry_disabled() -> bool:
    """Return whether onnxruntime's usage reports are disabled."""
    return os.environ.get("ORT_DISABLE_TELEMETRY") == "1"


def installed(package: str) -> str:
    """Return the version of an installed package, without loading it.

    The name of its metadata folder contains the version. importlib.metadata returns the same, but imports a
    mail parser, which would slow down each start.
    """
    for folder in sys.path:
        for metadata in Path(folder).glob(f"{package}-*.dist-info"):
            return metadata.name.removesuffix(".dist-info").partition("-")[2]
    return UNKNOWN
