"""The threads of a daemon beside the event loop's, which calls this: one writes, two read, two parse."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from memd.index.database import translated
from memd.index.indexer import Prepare

READ_THREADS = 2  # queries that run at once: a search is memory bandwidth, more do not help two cores

T = TypeVar("T")
Run = Callable[..., Awaitable[Any]]  # runs work in another thread


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

        Where others read, the cores have enough to do: then *work* is done by who waits for it.
        """
        return partial(work, *args) if self._reading > 1 else self._beside.submit(work, *args).result

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
