"""``workspace.add``, ``list``, ``remove`` and ``configure``: the registered workspaces."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import UnsetType

from memd.api.indexing import SEE
from memd.api.params import NoParams, WorkspaceAddParams, WorkspaceConfigureParams, WorkspaceRemoveParams
from memd.api.prepare import index_state
from memd.api.results import (
    WorkspaceAddResult,
    WorkspaceConfigureResult,
    WorkspaceListResult,
    WorkspaceRemoveResult,
    WorkspaceSummary,
)
from memd.api.status import counts, not_open
from memd.errors import ConfigError, InvalidError, MemdError, NestedError
from memd.registry import root_for
from memd.rpc.context import Call
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces


async def add(workspaces: Workspaces, asked: WorkspaceAddParams, call: Call) -> WorkspaceAddResult:
    """``workspace.add``: make a folder a workspace."""
    if not asked.nested:
        await _refuse_to_take(workspaces, asked.path)
    adding = workspaces.add(asked.path, force=asked.force)
    root, created = await call.to_the_end(adding, f"the folder may be added all the same, {SEE}")
    if created:
        for outer in await _around(workspaces, root):
            outer.sync.rescan()  # these notes are not its own any more

    async def looked_through(opened: OpenWorkspace) -> OpenWorkspace:
        await opened.sync.scanned()
        return opened

    opened = await workspaces.using(str(root), looked_through)
    return WorkspaceAddResult(
        root=str(opened.workspace.root),
        config=str(opened.workspace.config_path),
        created=created,
        sources=opened.sync.scanner.found_sources,
        skipped=len(opened.sync.scanner.skipped),
        within=[str(other) for other in workspaces.roots if opened.workspace.root in other.parents],
    )


async def remove(workspaces: Workspaces, asked: WorkspaceRemoveParams, call: Call) -> WorkspaceRemoveResult:
    """``workspace.remove``: forget a workspace and delete its index, never a note."""
    root = await call.to_the_end(
        workspaces.remove(asked.path), f"the workspace may be removed all the same, {SEE}"
    )
    return WorkspaceRemoveResult(root=str(root), removed=True)


async def configure(
    workspaces: Workspaces, asked: WorkspaceConfigureParams, call: Call
) -> WorkspaceConfigureResult:
    """``workspace.configure``: replace settings in config.toml, or show what they are."""
    root = await workspaces.root_of(asked.workspace)
    if not isinstance(asked.settings, UnsetType) and asked.settings:
        try:
            await call.to_the_end(
                _configure(workspaces, root, asked.settings, call),
                "the settings may be written all the same: look at config.toml",
            )
        except ConfigError as error:
            raise InvalidError(f"$.settings: {error}; nothing was changed") from error
    opened = await workspaces.find(str(root))
    return WorkspaceConfigureResult(root=str(root), config=opened.config)


async def list_all(workspaces: Workspaces, asked: NoParams, _call: Call) -> WorkspaceListResult:
    """``workspace.list``: the registered roots; an agent is told of no counts, as in `status`."""
    opened = [
        WorkspaceSummary(
            root=str(one.workspace.root),
            state=index_state(one.sync.facts).state,
            **({} if asked.agent else counts(one)),
        )
        for one in workspaces.opened
    ]
    return WorkspaceListResult(workspaces=[*opened, *not_open(workspaces, WorkspaceSummary)])


async def _refuse_to_take(workspaces: Workspaces, path: str) -> None:
    """Refuse a folder whose notes another workspace has indexed.

    Raises:
        NestedError: which workspace, and how many of its notes.
    """
    root = root_for(path)
    if root in workspaces.roots:
        return
    for opened in await _around(workspaces, root):
        prefix = f"{root.relative_to(opened.workspace.root).as_posix()}/"
        taken = sum(one.path.startswith(prefix) for one in opened.index.snapshot.sources.values())
        if taken:
            raise NestedError(
                f"{root} is inside the workspace {opened.workspace.root}, whose index has {taken:,} of its "
                f"notes: they would leave it for an index of their own, and be found from {root} alone. "
                f"memctl init --nested {shlex.quote(str(root))} does it"
            )


async def _around(workspaces: Workspaces, root: Path) -> list[OpenWorkspace]:
    """Return the workspaces that a folder is in, but those that cannot be opened."""
    found = []
    for outer in workspaces.roots:
        if outer in root.parents:
            with suppress(MemdError):
                found.append(await workspaces.find(str(outer)))
    return found


async def _configure(workspaces: Workspaces, root: Path, changed: dict[str, Any], call: Call) -> None:
    await workspaces.configure(root, changed)
    call.outlives("the settings are written, and hold once the index is opened with them")
    await workspaces.reopen(root)
