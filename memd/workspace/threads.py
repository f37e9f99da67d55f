"""The daemon's threads besides the event loop and those of disks: one writes, two read, two parse.

Notes and config.toml have other writers than the index: an entry waits for no scan and no commit, and is on
the disk before it is indexed. One write at a time per root. For the event loop's thread.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from memd.errors import StoppingError
from memd.index.database import translated
from memd.index.indexer import Prepare
from memd.workspace.disk import Disks

READ_THREADS = 2  # concurrent queries: memory bandwidth limits a search; more do not help two cores

TURN_S = 0.05  # about ten searches

T = TypeVar("T")
Run = Callable[..., Coroutine[Any, Any, Any]]  # runs work in another thread

CLOSING_S = 5.0  # for an entry to be written while the daemon stops; a disk that takes longer hangs


@dataclass(frozen=True, slots=True)
class Lane:
    """A path through reading and parsing that handles one slice at a time."""

    name: str
    run: Run  # runs work in its thread
    parse: Prepare | None = None  # parses elsewhere; None: in its thread, and large files are postponed


class Threads:
    """All of these threads; SQLite's exceptions in them become MemdErrors."""

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._readers = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="reader")
        self._turn = threading.Lock()
        self.write: Run = partial(_run, self._writer)  # runs work in the writer thread
        # One thread each: small notes do not wait for large ones, and two parses do not delay a search.
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="parser")
        self._large_parser = ThreadPoolExecutor(1, thread_name_prefix="large-parser")
        self.parse: Run = partial(_run, self._parser)  # runs work in the thread of small notes
        self.parse_large: Run = partial(_run, self._large_parser)  # while a process parses a large one

    async def read(self, work: Callable[..., T], *args: Any) -> T:
        """Run *work* in a reading thread."""
        return await _run(self._readers, work, *args)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one reading thread at a time compute; others wait at most TURN_S for a slow one.

        Two computing threads wait for each other at each step of numpy, and use half as much processor time
        again: one after the other, both finish sooner, and so does a ping. Models run without the turn.
        """
        has_turn = self._turn.acquire(timeout=TURN_S)
        try:
            yield
        finally:
            if has_turn:
                self._turn.release()

    async def apart(self, work: Callable[..., T], *args: Any) -> T:
        """Run long *work* in a thread that neither queries nor saves wait for."""
        return await asyncio.to_thread(_translating, work, *args)

    def close(self) -> None:
        """Finish the work that has begun."""
        self._parser.shutdown(wait=True)
        self._large_parser.shutdown(wait=True)
        self._writer.shutdown(wait=True)
        self._readers.shutdown(wait=True)


async def _run(executor: ThreadPoolExecutor, work: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(executor, _translating, work, *args)


def _translating(work: Callable[..., T], *args: Any) -> T:
    with translated("the index"):
        return work(*args)


class FolderWriter:
    """Runs work that writes into users' folders, in a thread for each root."""

    def __init__(self) -> None:
        self._disks = Disks("folder")
        self._running: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def run(self, root: Path, work: Callable[..., T], *args: object) -> T:
        """Run *work*, which writes below *root*, after the earlier work for the same root.

        Raises:
            StoppingError: the daemon is stopping, and *work* was not started.
        """
        if self._closed:
            raise StoppingError("memd is stopping: ask again after its restart")
        running = asyncio.ensure_future(self._disks.of(root).run(work, *args, deadline_s=None))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    async def close(self) -> None:
        """Finish the work that has begun, unless its disk hangs."""
        self._closed = True
        if self._running:
            await asyncio.wait(self._running, timeout=CLOSING_S)
