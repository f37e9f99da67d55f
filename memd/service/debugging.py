"""What does a bug report need? Versions, threads, the loop's lag now, and what has just happened."""

import asyncio
import os
import platform
import sys
import threading
import time
from pathlib import Path
from typing import Any

from memd import __version__, diagnostics
from memd.index.database import sqlite_version
from memd.rpc.context import Call
from memd.service import requests
from memd.workspace.workspaces import Workspaces

PROBE_S = 0.01  # between two looks at the loop's clock

Fields = dict[str, Any]


async def debug_method(workspaces: Workspaces, params: Fields, _: Call) -> Fields:
    """``debug``: what somebody who looks for a mistake wants to know. Quotes no note.

    Paths are named where one workspace is asked about, and only its own.
    """
    asked = requests.convert(params, requests.Debug)
    root = str(workspaces.root_of(asked.workspace)) if asked.workspace else None
    lags_ms = await _lags_ms(asked.lag_s)
    return {
        "version": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "sqlite": sqlite_version(),
        "packages": {name: diagnostics.installed(name) for name in diagnostics.PACKAGES},
        "telemetry_disabled": diagnostics.telemetry_disabled(),
        "pid": os.getpid(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "descriptors": _descriptors(),
        "loop_lag_ms": {"p50": _share(lags_ms, 0.5), "p99": _share(lags_ms, 0.99), "max": lags_ms[-1]},
        "requests": list(diagnostics.REQUESTS),
        "watched": _watched(root),
    }


def _watched(root: str | None) -> list[Fields]:
    """Return what the watcher said of one workspace, or how much it said of each."""
    if root is not None:
        return [batch for batch in diagnostics.WATCHED if batch["workspace"] == root]
    return [{key: fact for key, fact in batch.items() if key != "paths"} for batch in diagnostics.WATCHED]


async def _lags_ms(seconds: float) -> list[float]:
    """Return, in order, by how many milliseconds the loop came late, measured for so long."""
    lags = [0.0]
    stop = time.perf_counter() + seconds
    while (began := time.perf_counter()) < stop:
        await asyncio.sleep(PROBE_S)
        lags.append(round(max(0.0, time.perf_counter() - began - PROBE_S) * 1000, 2))
    return sorted(lags)


def _share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _descriptors() -> int | None:
    """Return how many file descriptors are open; None where the system does not say."""
    folder = Path("/dev/fd" if sys.platform == "darwin" else "/proc/self/fd")
    try:
        return len(list(folder.iterdir()))
    except OSError:
        return None
