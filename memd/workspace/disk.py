"""One thread for each root: a disk that is slow or hangs stops the work on its own workspace only.

All stats, scans and reads of a user's folder run here, with a deadline; the event loop and the writer touch
the state folder only. A thread for each root rather than for each mount: a folder of notes may have another
mount or a link inside, and if that hangs, the other folders on the root's own mount must not. For the event
loop's thread.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from memd.errors import DiskError
from memd.index.database import translated
from memd.registry import Presence, gone_of, is_workspace

T = TypeVar("T")

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
