"""Which paths may have changed just now?

The only importer of watchfiles. Its events are hints, never truth: it loses some in silence, reports a
new folder without its content, and dies of a file name that is not UTF-8. So this stream says two things
only: these paths may be dirty, or look through everything again. It never ends by an error.
"""

import asyncio
import os
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from watchfiles._rust_notify import RustNotify

# Given up as single paths: from so many on a scan is cheaper, and the queue behind us may have overflowed.
MAX_PATHS = 2_000
# How long watchfiles waits for one more event, and how long it collects at most: events arrive within
# 42 ms (p95), for 40 wake-ups a second and 0.15 % of a core.
STEP_MS, DEBOUNCE_MS = 25, 50
# Waiting times before the watch is armed again; the last one repeats. One that lasted a minute starts over.
RETRY_S = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
# How often to look for a root that is gone.
MISSING_POLL_S = 2.0
STABLE_S = 60.0


@dataclass(frozen=True, slots=True)
class Dirty:
    """What to look at. The change's kind and the order of changes are not known."""

    paths: frozenset[str]  # absolute; a folder means everything in it
    rescan: bool = False  # events may be missing: compare the whole root
    trouble: str = ""  # why the watch stands still until the next Dirty; "" while it works


async def watch(root: Path, *, stop: asyncio.Event) -> AsyncIterator[Dirty]:
    """Yield what may have changed below *root* until *stop* is set.

    The first Dirty says rescan and comes when the watch is armed: what changes after it is reported.
    After each trouble (root gone, too many folders to watch, a name that cannot be decoded) the watch is
    armed again, later each time, and begins with another rescan.
    """
    failures = 0
    loop = asyncio.get_running_loop()
    while not stop.is_set():
        began = loop.time()
        pump = _Pump(root, loop)
        try:
            async for dirty in pump.stream(stop):
                yield dirty
        finally:
            await asyncio.shield(asyncio.to_thread(pump.close))
        if stop.is_set():
            return
        yield Dirty(frozenset(), rescan=True, trouble=pump.trouble)
        failures = 0 if loop.time() - began > STABLE_S else failures + 1
        wait_s = RETRY_S[min(failures, len(RETRY_S)) - 1] if failures else 0.0
        await _pause(stop, wait_s if await asyncio.to_thread(os.path.isdir, root) else MISSING_POLL_S)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the event.
        async with asyncio.timeout(seconds):
            await stop.wait()


class _Pump:
    """Runs one watch in a thread of its own and hands batches over; what piles up is merged."""

    def __init__(self, root: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.trouble = ""
        self._root = root
        self._loop = loop
        self._lock = threading.Lock()  # protects the two fields below
        self._paths: set[str] = set()
        self._rescan = False
        self._news = asyncio.Event()
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memd-watch", daemon=True)
        self._thread.start()

    async def stream(self, stop: asyncio.Event) -> AsyncIterator[Dirty]:
        """Yield batches until the watch fails or *stop* is set."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set() and (self._thread.is_alive() or self._news.is_set()):
                news = asyncio.create_task(self._news.wait())
                await asyncio.wait({news, stopped}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                self._news.clear()
                batch = self._take()
                if batch.paths or batch.rescan:
                    yield batch
                if self.trouble:
                    return
        finally:
            stopped.cancel()

    def close(self) -> None:
        """Stop the thread: it looks every few milliseconds."""
        self._halt.set()
        self._thread.join()

    def _take(self) -> Dirty:
        with self._lock:
            batch = Dirty(frozenset(self._paths), self._rescan)
            self._paths, self._rescan = set(), False
        return batch

    def _run(self) -> None:
        try:
            self._pump()
        except BaseException as error:  # noqa: BLE001 - a panic in Rust, too, ends this watch and not the daemon
            self.trouble = _explained(self._root, error)
        self._tell()

    def _pump(self) -> None:
        root = _identity(self._root)
        if root is None:  # watchfiles would watch nothing, in silence
            raise FileNotFoundError(f"{self._root} is missing")
        watcher = RustNotify(
            [str(self._root)],
            debug=False,
            force_polling=False,
            poll_delay_ms=0,
            recursive=True,
            ignore_permission_denied=True,
        )
        with watcher:
            self._add(set(), rescan=True)
            while not self._halt.is_set():
                found = watcher.watch(DEBOUNCE_MS, STEP_MS, 0, self._halt)
                if isinstance(found, str):  # "stop", or "signal", which only the main thread gets
                    continue
                self._add({path for _, path in found}, rescan=False)
                if _identity(self._root) != root:  # its watches went with it, also if there is a new one
                    raise FileNotFoundError(f"{self._root} is gone")

    def _add(self, paths: set[str], *, rescan: bool) -> None:
        with self._lock:
            self._paths |= paths
            self._rescan |= rescan
            if len(self._paths) >= MAX_PATHS:
                self._paths, self._rescan = set(), True
        self._tell()

    def _tell(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:  # the loop is closed: nobody listens any more
            self._halt.set()


def _identity(root: Path) -> tuple[int, int] | None:
    """Return what tells a folder from one that took its place; None if there is none."""
    try:
        status = root.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _explained(root: Path, error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{root} is missing"
    if "limit" in str(error).lower() or "space" in str(error).lower():
        return (
            f"{root} has more folders than the system lets memd watch ({error}). Raise the limit: "
            "sysctl fs.inotify.max_user_watches=524288"
        )
    return f"watching {root} failed ({type(error).__name__}): saved files are found by scans only"
