"""The objects that the parts of one open workspace share: folder, index, threads, events.

Created once when the workspace is opened; only its members have changing state. `load_rules` and `is_current`
access the disk and are thread-safe; everything else is for the event loop.

There is one pause of embedding for the whole daemon. It is not stored, so that a forgotten pause ends with
the daemon at the latest; notes are still indexed by words meanwhile.
"""

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from memd.config import WorkspaceConfig
from memd.embedding.provider import Providers
from memd.embedding.queue import EmbeddingQueue
from memd.events import EventBus
from memd.index.index import Index
from memd.index.indexer import Indexer
from memd.index.sidecars import SidecarFolder
from memd.registry import Workspace
from memd.sources.scan import Rules
from memd.sources.watch import Watchers
from memd.workspace.parse_process import ParseProcess
from memd.workspace.threads import Disk, Disks, Lane, Threads

ConfigStamp = tuple[int, int, int]


class ReopenReason(Enum):
    """Why a workspace must be opened again."""

    CONFIG = 0  # its configuration was saved, or is there again
    DAMAGED = 1  # its index cannot be read: it is set aside first
    FAILED = 2  # its device failed: what it says is on the disk must be looked at again


class EmbeddingPause:
    """Whether embedding is paused, and until when."""

    def __init__(self) -> None:
        self.stop_s = 0.0  # time.monotonic() when it ends, or ended
        self._changed = asyncio.Event()

    @property
    def left_s(self) -> float:
        """The remaining seconds of the pause; 0 without a pause."""
        return max(0.0, self.stop_s - time.monotonic())

    @property
    def until(self) -> float | None:
        """The unix time at which embedding continues; None without a pause."""
        left_s = self.left_s
        return time.time() + left_s if left_s else None

    def hold(self, duration_s: float) -> None:
        """Pause embedding from now on for *duration_s*; replaces a current pause."""
        self._set_stop(time.monotonic() + duration_s)

    def end(self) -> bool:
        """End the pause; return False if there was none."""
        was_held = self.left_s > 0
        self._set_stop(0.0)
        return was_held

    async def over(self) -> None:
        """Wait until embedding may continue."""
        while left_s := self.left_s:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()

    def _set_stop(self, stop_s: float) -> None:
        self.stop_s = stop_s
        self._changed.set()


@dataclass(frozen=True, slots=True)
class DaemonContext:
    """The state that all workspaces of a daemon share."""

    user_config_path: Path
    providers: Providers = field(default_factory=Providers)
    watcher: Watchers = field(default_factory=Watchers)
    threads: Threads = field(default_factory=Threads)
    process: ParseProcess = field(default_factory=ParseProcess)
    feed: EventBus = field(default_factory=EventBus)
    disks: Disks = field(default_factory=Disks)
    hits: Disks = field(default_factory=lambda: Disks("hits"))  # for those that search
    pause: EmbeddingPause = field(default_factory=EmbeddingPause)


class Owner(Protocol):
    """The object that opened a workspace, for actions beyond the workspace itself."""

    async def check(self, root: Path) -> None:
        """Compare its index with the disk and repair it; called once a day."""

    def reopen_soon(self, root: Path, reason: ReopenReason) -> None:
        """Schedule a reopening of the workspace."""


class LoopListener(Protocol):
    """Receives the progress of one workspace's loops; implemented by `WorkspaceSync`."""

    def note_hinted(self) -> None:
        """Files wait to be checked."""

    def note_scanned(self) -> None:
        """The folder, or a part of it, was compared."""

    async def note_committed(self, saved: list[str]) -> None:
        """Queries see a new commit; *saved*: its paths that were saved a moment ago."""

    async def note_emptied(self) -> None:
        """No file waits any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceContext:
    """One open workspace from the view of its loops."""

    daemon: DaemonContext
    owner: Owner
    place: Workspace
    disk: Disk  # the thread that may touch the folder
    config: WorkspaceConfig
    config_seen: ConfigStamp | None  # stamp of the file that *config* was read from
    index: Index
    indexer: Indexer
    small: Lane  # the threads that read and parse files
    large: Lane
    embedding: EmbeddingQueue | None  # None: provider = "none"
    sidecars: SidecarFolder | None

    async def write(self, work: Any, *args: Any) -> Any:
        """Run *work* in the writer thread."""
        return await self.daemon.threads.write(work, *args)

    def publish(self, fields: dict[str, Any]) -> None:
        """Publish an event of this workspace."""
        generation = self.index.snapshot.generation
        self.daemon.feed.publish(str(self.place.root), fields | {"generation": generation})

    def reopen(self, reason: ReopenReason) -> None:
        """Schedule a reopening of the workspace."""
        self.owner.reopen_soon(self.place.root, reason)

    def load_rules(self) -> Rules:
        """Return the rules for sources from the current rule files."""
        return Rules.load(self.place.root, self.config.sources, self.config.ignore)

    def is_current(self) -> bool:
        """Return whether the configuration on the disk is the one in use."""
        return config_stamp(self.place.config_path) == self.config_seen


def config_stamp(path: Path) -> ConfigStamp | None:
    """Return a stamp that changes when the configuration is saved; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 - Path.stat would do the same
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
