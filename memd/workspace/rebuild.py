"""The rebuild of an index: a new index is built next to the old one, which it then replaces.

The old index answers meanwhile. The state directory contains INDEX, INDEX.building, and for a moment
INDEX.replaced. After a kill at any time one of them is complete, and `recover` finds it.
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
from memd.index.writer import COMPLETE
from memd.registry import Workspace
from memd.workspace.context import DaemonContext, ReopenReason
from memd.workspace.open import OpenWorkspace, give_back, open_workspace
from memd.workspace.set_aside import delete_index
from memd.workspace.threads import DEADLINE_S

STAYS = "The old index stays"


class Rebuild:
    """An index that is being built next to the one of *place*. For the event loop's thread."""

    def __init__(self, place: Workspace, daemon: DaemonContext) -> None:
        self._place = replace(place, index_dir=_building(place.index_dir))
        self._daemon = replace(daemon, feed=EventBus())  # its events have no listeners
        self.opened: OpenWorkspace | None = None  # set from its beginning on
        self._stopped: asyncio.Future[ReopenReason] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None]  # runs the build and the switch; set by who begins it

    @property
    def progress(self) -> dict[str, Any]:
        """The progress: {"stage", "done", "total"}."""
        if self.opened is None:
            return {"stage": "scan", "done": 0, "total": 0}
        return self.opened.sync.progress

    async def build(self, vectors_before: Callable[[], int]) -> None:
        """Build the whole index; it is closed when this returns. The caller must then call `release`.

        *vectors_before* returns how many vectors the old index has, which must not be lost while the model is
        unavailable. Raises MemdError with the reason why the old index stays.
        """
        await self._refuse_missing()
        await self._daemon.threads.write(delete_index, self._place.index_dir)
        self.opened = opened = await open_workspace(self._place, self._daemon, self)
        opened.sync.is_rebuild = True
        try:
            # Wait until everything is searchable. Raises an error that prevents that.
            caught_up = asyncio.ensure_future(opened.sync.caught_up())
            try:
                first: set[asyncio.Future[Any]] = {caught_up, self._stopped}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                if not caught_up.done():
                    raise _error_of(self._stopped.result(), opened)
                await caught_up
            finally:
                caught_up.cancel()
            await self._refuse_missing()
            if opened.sync.vectors.held and vectors_before():
                raise EmbedderError(
                    "embedding is paused, and a new index would have no vectors "
                    f"(memctl pause --off). {STAYS}"
                )
            if opened.sync.vectors.pending and vectors_before():
                raise EmbedderError(f"the model gives no vectors, and a new index would have none. {STAYS}")
            opened.sync.end_first()  # its tasks may be stopped before they notice
            await self._daemon.threads.write(opened.index.writer.store, COMPLETE, 1)
        finally:
            await opened.sync.stop()
            await self._daemon.threads.write(opened.index.close)

    async def check(self, _root: Path) -> None:
        """Do nothing: the index was just built."""

    def reopen_soon(self, _root: Path, reason: ReopenReason) -> None:
        """Cancel the build: the index being built is never reopened."""
        if not self._stopped.done():
            self._stopped.set_result(reason)

    async def release(self) -> None:
        """Release the model, after the new index was opened, so that the model is not loaded again."""
        if self.opened is not None:
            await give_back(self._daemon.providers, self.opened.embedding)

    async def _refuse_missing(self) -> None:
        if not await self._daemon.disks.of(self._place.root).look(patience_s=DEADLINE_S):
            raise WorkspaceError(f"{self._place.root} does not exist; is its disk mounted? {STAYS}")


def switch(index_dir: Path) -> None:
    """Replace the old index by the new one; both must be closed."""
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
    """Remove the leftovers of a killed rebuild; restore the old index if the new one was not yet in place."""
    old = _replaced(index_dir)
    with suppress(OSError):
        if old.exists() and not index_dir.exists():
            old.rename(index_dir)
    for left in (old, _building(index_dir)):
        with suppress(MemdError):  # it only costs space
            delete_index(left)


def _error_of(reason: ReopenReason, opened: OpenWorkspace) -> MemdError:
    if reason is ReopenReason.CONFIG:
        return BusyError(f"the configuration changed while the index was rebuilt. {STAYS}: ask again")
    newest = opened.sync.troubles[-1:]
    return StorageError(f"rebuilding the index failed ({' '.join(newest) or reason.name}). {STAYS}")


def _building(index_dir: Path) -> Path:
    return index_dir.with_name(f"{index_dir.name}.building")


def _replaced(index_dir: Path) -> Path:
    return index_dir.with_name(f"{index_dir.name}.replaced")
