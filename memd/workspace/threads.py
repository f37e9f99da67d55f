"""The threads of a daemon beside the event loop's: one writes, two read, two parse, one writes notes.

Notes and config.toml have a writer apart from the index: an entry waits for no scan and no commit, and is on
the disk before it is indexed. One write at a time for each root. For the event loop's thread.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from memd.errors import StoppingError
from memd.index.database import translated
from memd.index.indexer import Prepare

READ_THREADS = 2  # queries that run at once: a search is memory bandwidth, more do not help two cores

TURN_S = 0.05  # some ten searches

T = TypeVar("T")
Run = Callable[..., Awaitable[Any]]  # runs work in another thread

THREADS = 4  # arbitrary: so many folders on disks that hang keep the others from nothing


@dataclass(frozen=True, slots=True)
class Lane:
    """A way through reading and parsing, for one slice at a time."""

    name: str
    run: Run  # runs work in its thread
    parse: Prepare | None = None  # does it elsewhere; None: in its thread, and large files are put off


@dataclass(frozen=True, slots=True)
class Lanes:
    """Both ways."""

    small: Lane
    large: Lane


class Threads:
    """All of them; what SQLite raises in one becomes an error of ours."""

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._readers = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="reader")
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._turn = threading.Lock()
        self._reading = 0  # what waits for a reading thread, or has one; counted by the event loop's
        # One thread each: small notes do not wait for large ones, and no search waits for two that parse.
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="parser")
        self._large_parser = ThreadPoolExecutor(1, thread_name_prefix="large-parser")

    async def write(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run *work* in the writing thread."""
        return await _run(self._writer, work, args)

    async def parse(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run *work* in the thread that reads and parses small notes."""
        return await _run(self._parser, work, args)

    async def parse_large(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run *work* in the thread that waits for the process that parses large notes."""
        return await _run(self._large_parser, work, args)

    async def read(self, work: Callable[..., T], *args: Any) -> T:
        """Run *work* in a reading thread."""
        self._reading += 1
        try:
            return await _run(self._readers, work, args)
        finally:
            self._reading -= 1

    def beside(self, work: Callable[..., T], *args: Any) -> Callable[[], T]:
        """For a reading thread: begin *work* beside what it goes on with; return what waits for it.

        Where others read, the cores have enough to do: then *work* is done first, in the same thread.
        """
        if self._reading == 1:
            return self._beside.submit(work, *args).result
        done = work(*args)
        return lambda: done

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one reading thread at a time compute; for a slow one nobody waits longer than TURN_S.

        Two that compute wait for each other at each step of numpy, and use half as much processor time again
        on that: one after the other, both are done sooner, and so is a ping. A model is run without the turn.
        """
        has_turn = self._turn.acquire(timeout=TURN_S)
        try:
            yield
        finally:
            if has_turn:
                self._turn.release()

    async def apart(self, work: Callable[..., T], *args: Any) -> T:
        """Run *work* that takes long in a thread that neither queries nor saves wait for."""
        return await asyncio.to_thread(_translating, work, *args)

    def close_parsers(self) -> None:
        """Finish what is being parsed."""
        self._parser.shutdown(wait=True)
        self._large_parser.shutdown(wait=True)

    def close(self) -> None:
        """Finish what was begun."""
        self._writer.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._beside.shutdown(wait=True)


async def _run(executor: ThreadPoolExecutor, work: Callable[..., T], args: tuple[Any, ...]) -> T:
    return await asyncio.get_running_loop().run_in_executor(executor, _translating, work, *args)


def _translating(work: Callable[..., T], *args: Any) -> T:
    with translated("the index"):
        return work(*args)


class FolderWriter:
    """Runs work that writes into folders."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="folder")
        self._locks: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closed = False

    async def run(self, root: Path, work: Callable[..., T], *args: object) -> T:
        """Run *work*, which writes below *root*, after what was asked for there before.

        Raises:
            StoppingError: the daemon is on its way down, and nothing was begun.
        """
        async with self._locks[root]:
            if self._closed:
                raise StoppingError("memd is stopping: ask again when it is back")
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def close(self) -> None:
        """Finish what was begun."""
        self._closed = True
        self._threads.shutdown(wait=True)
