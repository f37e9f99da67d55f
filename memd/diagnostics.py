"""Recent requests and watcher reports, in two rings in memory, for the method `debug`.

The one module with state of the whole process. Nothing of it is written anywhere: paths and timings of the
last minutes belong into no log.
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


PACKAGES = ("apsw", "msgpack", "msgspec", "numpy", "onnxruntime", "tokenizers", "watchfiles")
UNKNOWN = "unknown"


def all_of_them() -> dict[str, str]:
    """Return name → version of all that a bug may be in."""
    packages = {name: installed(name) for name in PACKAGES}
    own = {"memd": __version__, "python": platform.python_version(), "sqlite": sqlite_version()}
    return own | packages


def telemetry_disabled() -> bool:
    """Tell whether onnxruntime was told to report nothing home."""
    return os.environ.get("ORT_DISABLE_TELEMETRY") == "1"


def installed(package: str) -> str:
    """Return the version of an installed package, without loading it.

    The name of its folder of metadata has it. importlib.metadata says the same and loads a mail parser, which
    each start would pay for.
    """
    for folder in sys.path:
        for metadata in Path(folder).glob(f"{package}-*.dist-info"):
            return metadata.name.removesuffix(".dist-info").partition("-")[2]
    return UNKNOWN
