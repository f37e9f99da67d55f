"""The daemon's threads besides the event loop: one writes, two read, two parse, and one for each root.

A disk that is slow or hangs stops the work on its own workspace only: all stats, scans and reads of a user's
folder run in the thread of its root, with a deadline; the event loop and the writer touch the state folder
only. A thread for each root rather than for each mount: a folder of notes may have another mount or a link
inside, and if that hangs, the other folders on the root's own mount must not.

Notes and config.toml have other writers than the index: an entry waits for no scan and no commit, and is on
the disk before it is indexed. One write at a time per root. For the event loop's thread.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from memd.errors import DiskError, StoppingError
from memd.index.database import translated
from memd.index.indexer import Prepare
from memd.registry import Presence, gone_of, is_workspace

T = TypeVar("T")

READ_THREADS = 2  # concurrent queries: memory bandwidth limits a search; more do not help two cores

TURN_S = 0.05  # about ten searches

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


DEADLINE_S = 30.0  # of one call: a disk that wakes up from standby takes ten seconds
PATIENCE_S = (
    0.25  # of a look at the root; a disk that takes longer is called slow, and hits are not looked at
)
FRESH_S = 0.02  # a look so recent need not be repeated for the next request
THREAD_IDLE_S = 30.0  # a thread without work ends

_Job = tuple[Callable[..., Any], tuple[Any, ...], Future[Any]]


class Disk:
    """The thread of one root."""

    def __init__(self, root: Path, name: str) -> None:
        self.seen = Presence()
        self._root = root
        self._name = name
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()  # protects `_is_alive`
        self._is_alive = False
        self._began: float | None = None  # time.monotonic() at which the current job began
        self._looked = 0.0
        self._looking: asyncio.Task[bool] | None = None

    @property
    def busy_s(self) -> float:
        """For how long the current job has run."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    async def run(self, work: Callable[..., T], *args: Any, deadline_s: float | None = DEADLINE_S) -> T:
        """Run *work* in the thread, after the work that was given before.

        Raises:
            DiskError: it is not through in time, or what runs before it is not. It may still be done later.
        """
        if deadline_s is not None and self.busy_s > deadline_s:  # one more job would wait as long
            raise self._late(deadline_s)
        future: asyncio.Future[T] = asyncio.wrap_future(self._put(work, *args))
        try:
            async with asyncio.timeout(deadline_s):
                return await future
        except TimeoutError:
            if not future.cancelled():  # raised by the work itself
                raise
            self.seen.is_slow = True
            assert deadline_s is not None
            raise self._late(deadline_s) from None

    def gone(self, paths: list[str]) -> set[str]:
        """Return which of *paths* below the root are gone; none if that takes longer than PATIENCE_S.

        For threads without an event loop, which answer queries: a folder inside may hang, too.
        """
        if self.busy_s > PATIENCE_S:
            return set()
        future = self._put(gone_of, self._root, paths)
        try:
            return future.result(PATIENCE_S)
        except (TimeoutError, OSError):
            future.cancel()
            return set()

    def _put(self, work: Callable[..., T], *args: Any) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            self._jobs.put((work, args, future))
            if not self._is_alive:
                threading.Thread(target=self._live, name=self._name, daemon=True).start()
                self._is_alive = True  # unless there is no room for a thread, which the caller is told
        return future

    async def look(self, *, patience_s: float = PATIENCE_S, fresh_s: float = 0.0) -> bool:
        """Look whether the workspace is there; without an answer in time it stays as it was, and is slow.

        *patience_s*: how long the answer is waited for. A look as recent as *fresh_s* need not be repeated.
        """
        if time.monotonic() - self._looked < fresh_s:
            return self.seen.is_there
        is_on_its_way = self._looking is not None and not self._looking.done()
        # One that was asked for before may answer of a moment before; of a disk that hangs no more are asked.
        if self._looking is None or not is_on_its_way or (not fresh_s and self.busy_s < PATIENCE_S):
            self._looking = asyncio.get_running_loop().create_task(self._look())
        done, _ = await asyncio.wait({self._looking}, timeout=patience_s)
        if not done:
            self.seen.is_slow = True
        return self.seen.is_there

    async def _look(self) -> bool:
        began = time.monotonic()
        with suppress(DiskError):  # it stays as it was
            self.seen.is_there = await self.run(is_workspace, self._root, self.seen.sign, deadline_s=None)
            self._looked = time.monotonic()
            self.seen.is_slow = self._looked - began > PATIENCE_S
        return self.seen.is_there

    def _late(self, deadline_s: float) -> DiskError:
        return DiskError(f"{self._root} does not answer for {deadline_s:g} s: its disk is slow, or hangs")

    def _live(self) -> None:
        while True:
            try:
                work, args, future = self._jobs.get(timeout=THREAD_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._jobs.empty():
                        self._is_alive = False
                        return
                continue
            if not future.set_running_or_notify_cancel():  # nobody waits for it any more
                continue
            self._began = time.monotonic()
            try:
                with translated("the index"):
                    result = work(*args)
            except BaseException as error:  # noqa: BLE001 - handed to the caller
                self._began = None
                is_for_loop = not isinstance(error, StopIteration)  # no future of a loop can have that one
                future.set_exception(error if is_for_loop else RuntimeError("StopIteration"))
            else:
                self._began = None
                future.set_result(result)
                del result
            del work, args, future  # not kept while it waits


class Disks:
    """The threads of all roots."""

    def __init__(self, name: str = "disk") -> None:
        self._name = name
        self._disks: dict[Path, Disk] = {}

    def of(self, root: Path) -> Disk:
        """Return the thread of a root, which is started when it has work."""
        if root not in self._disks:
            self._disks[root] = Disk(root, self._name)
        return self._disks[root]


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
