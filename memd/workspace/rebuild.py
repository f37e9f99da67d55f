"""The rebuild of an index: a new one is built beside the old one, which answers meanwhile, then replaces it.

In the state directory stand, by name: the index, INDEX.building, and for a moment INDEX.replaced. A kill at
any time leaves a whole one, which `recover` finds.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from memd import fsio
from memd.errors import BusyError, EmbedderError, MemdError, StorageError, WorkspaceError, storage_error
from memd.events import EventBus
from memd.registry import Workspace
from memd.workspace.context import DaemonContext
from memd.workspace.open import OpenWorkspace, give_back, open_workspace
from memd.workspace.set_aside import delete_index
from memd.workspace.supervisor import ReopenReason

STAYS = "The old index stays"


class Rebuild:
    """One index that is being built beside the one of *place*. For the event loop's thread."""

    def __init__(self, place: Workspace, daemon: DaemonContext) -> None:
        self._place = replace(place, index_dir=_building(place.index_dir))
        self._daemon = replace(daemon, feed=EventBus())  # what it does is nobody's news
        self.opened: OpenWorkspace | None = None  # from its beginning on
        self._stopped: asyncio.Future[ReopenReason] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None  # runs it and the switch

    @property
    def progress(self) -> dict[str, Any]:
        """How far it is: {"stage", "done", "total"}."""
        if self.opened is None:
            return {"stage": "scan", "done": 0, "total": 0}
        return self.opened.sync.progress

    async def build(self, vectors_before: Callable[[], int]) -> None:
        """Build all of it; it is closed when this returns. `release` follows.

        Args:
            vectors_before: how many vectors the old index has, so that none are given up for a model that
                is away.

        Raises:
            MemdError: why the old index stays.
        """
        self._refuse_missing()
        await self._daemon.threads.write(delete_index, self._place.index_dir)
        self.opened = opened = await open_workspace(self._place, self._daemon, self)
        opened.sync.is_rebuild = True
        try:
            await _caught_up(opened, self._stopped)
            self._refuse_missing()
            if opened.sync.vectors.held and vectors_before():
                raise EmbedderError(
                    f"embedding is paused, and a new index would have no vectors (memctl resume). {STAYS}"
                )
            if opened.sync.vectors.pending and vectors_before():
                raise EmbedderError(f"the model gives no vectors, and a new index would have none. {STAYS}")
            await self._daemon.threads.write(opened.index.note_complete)
        finally:
            await opened.sync.stop()
            await self._daemon.threads.write(opened.index.close)

    async def check(self, _root: Path) -> None:
        """Leave it unchecked: it was just made."""

    def reopen_soon(self, _root: Path, reason: ReopenReason) -> None:
        """Give up: what is built is not opened a second time."""
        if not self._stopped.done():
            self._stopped.set_result(reason)

    async def release(self) -> None:
        """Let go of the model: after the new index is opened, so that it is not loaded once more."""
        if self.opened is not None:
            await give_back(self._daemon.providers, self.opened.embedding)

    def _refuse_missing(self) -> None:
        if not self._place.is_there():
            raise WorkspaceError(f"{self._place.root} is not there, is its disk mounted? {STAYS}")


def switch(index_dir: Path) -> None:
    """Put the index that was built in the place of the old one, which nobody has open."""
    old = _replaced(index_dir)
    try:
        if index_dir.exists():
            index_dir.rename(old)
        _building(index_dir).rename(index_dir)
        fsio.sync_folder(index_dir.parent)
    except OSError as error:
        with suppress(OSError):
            old.rename(index_dir)
        raise storage_error(f"{STAYS}: {index_dir} cannot be replaced", error) from error
    delete_index(old)


def recover(index_dir: Path) -> None:
    """Remove what a killed rebuild left; bring the old index back where the new one has no name yet."""
    old = _replaced(index_dir)
    with suppress(OSError):
        if old.exists() and not index_dir.exists():
            old.rename(index_dir)
    for left in (old, _building(index_dir)):
        with suppress(MemdError):  # it costs space and no more
            delete_index(left)


async def _caught_up(opened: OpenWorkspace, stopped: asyncio.Future[ReopenReason]) -> None:
    """Wait until all is searchable. Raises what keeps it from being so."""
    caught_up = asyncio.ensure_future(opened.sync.caught_up())
    try:
        first: set[asyncio.Future[Any]] = {caught_up, stopped}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not caught_up.done():
            raise _error_of(stopped.result(), opened)
        await caught_up
    finally:
        caught_up.cancel()


def _error_of(reason: ReopenReason, opened: OpenWorkspace) -> MemdError:
    if reason is ReopenReason.CONFIG:
        return BusyError(f"the configuration changed while the index was built anew. {STAYS}: ask again")
    newest = opened.sync.troubles.newest[-1:]
    return StorageError(f"building the index anew failed ({' '.join(newest) or reason.name}). {STAYS}")


def _building(index_dir: Path) -> Path:
    return index_dir.with_name(f"{index_dir.name}.building")


def _replaced(index_dir: Path) -> Path:
    return index_dir.with_name(f"{index_dir.name}.replaced")
