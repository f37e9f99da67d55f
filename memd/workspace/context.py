"""What the parts of one open workspace share, made once when it is opened: folder, index, threads, events.

Holds no state that changes but what its members hold. `load_rules` and `is_current` look at the disk and may
run in any thread; all else is for the event loop's.

The pause of embedding is one for the whole daemon. It is held in memory alone, so that a pause that somebody
forgot ends with the daemon at the latest; words are indexed meanwhile.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
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
from memd.sources.watch import Watcher
from memd.workspace.parse_process import ParseProcess
from memd.workspace.set_aside import SetAside
from memd.workspace.supervisor import ReopenReason
from memd.workspace.threads import Lanes, Threads

ConfigStamp = tuple[int, int, int]


class EmbeddingPause:
    """Whether embedding is held, and until when."""

    def __init__(self) -> None:
        self.stop_s = 0.0  # time.monotonic() when it ends, or ended
        self._changed = asyncio.Event()
        self.followers: set[Callable[[], None]] = set()  # each is called when it begins or is ended

    @property
    def left_s(self) -> float:
        """How long embedding is still held; 0 where it is not."""
        return max(0.0, self.stop_s - time.monotonic())

    @property
    def until(self) -> float | None:
        """The unix time at which it goes on; None where it is not held."""
        left_s = self.left_s
        return time.time() + left_s if left_s else None

    def hold(self, duration_s: float) -> None:
        """Hold embedding from now on for so long; it takes the place of a pause that is under way."""
        self._set_stop(time.monotonic() + duration_s)

    def end(self) -> bool:
        """Let embedding go on; False where it was not held."""
        was_held = self.left_s > 0
        self._set_stop(0.0)
        return was_held

    async def over(self) -> None:
        """Wait until embedding may go on."""
        while left_s := self.left_s:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()

    def _set_stop(self, stop_s: float) -> None:
        self.stop_s = stop_s
        self._changed.set()
        for tell in self.followers:
            tell()


@dataclass(frozen=True, slots=True)
class DaemonContext:
    """What every workspace of a daemon shares."""

    providers: Providers
    watcher: Watcher
    user_config_path: Path
    threads: Threads
    process: ParseProcess
    feed: EventBus
    pause: EmbeddingPause = field(default_factory=EmbeddingPause)


class Owner(Protocol):
    """Who opened a workspace, and does for it what goes beyond it."""

    async def check(self, root: Path) -> None:
        """Compare its index with the disk and mend it; asked for once a day."""

    def reopen_soon(self, root: Path, reason: ReopenReason) -> None:
        """Have it opened again."""


class LoopListener(Protocol):
    """Hears what the loops of one workspace have done: its `WorkspaceSync`."""

    def publish(self) -> None:
        """Have answers tell what is known now: some of that has changed."""

    def note_outdated(self) -> None:
        """Hear that the configuration is another one than the loops run with."""

    def note_hinted(self) -> None:
        """Hear that files wait to be looked at."""

    def note_scanned(self) -> None:
        """Hear that the folder, or some of it, was compared."""

    async def note_committed(self, saved: list[str]) -> None:
        """Hear that a query sees more; *saved*: the paths that were saved a moment ago."""

    async def note_emptied(self) -> None:
        """Hear that no file waits any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceContext:
    """One open workspace, as its loops see it."""

    daemon: DaemonContext
    owner: Owner
    place: Workspace
    config: WorkspaceConfig
    config_seen: ConfigStamp | None  # as *config* was read
    index: Index
    aside: SetAside
    indexer: Indexer
    lanes: Lanes  # where files are read and parsed
    embedding: EmbeddingQueue | None  # None: provider = "none"
    sidecars: SidecarFolder | None

    async def write(self, work: Any, *args: Any) -> Any:
        """Run *work* in the writing thread."""
        return await self.daemon.threads.write(work, *args)

    def publish(self, fields: dict[str, Any]) -> None:
        """Tell who follows."""
        generation = self.index.snapshot.generation
        self.daemon.feed.publish(str(self.place.root), fields | {"generation": generation})

    def reopen(self, reason: ReopenReason) -> None:
        """Have the workspace opened again."""
        self.owner.reopen_soon(self.place.root, reason)

    def load_rules(self) -> Rules:
        """Return what is a source by what the rule files say now."""
        return Rules.load(self.place.root, self.config.sources, self.config.ignore)

    def is_current(self) -> bool:
        """Tell whether the configuration on the disk is the one that the loops run with."""
        return config_stamp(self.place.config_path) == self.config_seen


def config_stamp(path: Path) -> ConfigStamp | None:
    """Return what changes when the configuration is saved; None while it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - Path.stat would do the same
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
