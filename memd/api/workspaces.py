"""``workspace.add``, ``list``, ``remove`` and ``configure``."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import UnsetType

from memd.api.indexing import SEE
from memd.api.params import NoParams, WorkspaceAddParams, WorkspaceConfigureParams, WorkspaceRemoveParams
from memd.api.results import (
    WorkspaceAddResult,
    WorkspaceConfigureResult,
    WorkspaceListResult,
    WorkspaceRemoveResult,
    WorkspaceSummary,
)
from memd.api.status import counts, kept_config, not_open
from memd.errors import ConfigError, DeadlineError, IndexDamagedError, InvalidError, MemdError, NestedError
from memd.languages import Language
from memd.rpc.context import Call
from memd.search.word_forms import languages_of
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces


async def add(workspaces: Workspaces, params: WorkspaceAddParams, call: Call) -> WorkspaceAddResult:
    """``workspace.add``: make a folder a workspace."""
    if not params.nested:
        await _refuse_to_take(workspaces, params.path)
    adding = workspaces.add(params.path, force=params.force)
    root, created = await call.to_the_end(adding, f"the folder may still be added, {SEE}")
    if created:
        for outer in await _around(workspaces, root):
            outer.sync.rescan()  # these notes no longer belong to it

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


async def remove(workspaces: Workspaces, params: WorkspaceRemoveParams, call: Call) -> WorkspaceRemoveResult:
    """``workspace.remove``: forget a workspace and delete its index, never a note."""
    root = await call.to_the_end(workspaces.remove(params.path), f"the workspace may still be removed, {SEE}")
    return WorkspaceRemoveResult(root=str(root), removed=True)


async def configure(
    workspaces: Workspaces, params: WorkspaceConfigureParams, call: Call
) -> WorkspaceConfigureResult:
    """``workspace.configure``: replace settings in config.toml, or show them."""
    root = await workspaces.root_of(params.workspace)
    if not isinstance(params.settings, UnsetType) and params.settings:
        try:
            await call.to_the_end(
                _configure(workspaces, root, params.settings, call),
                "the settings may still be written: look at config.toml",
            )
        except ConfigError as error:
            raise InvalidError(f"$.settings: {error}; nothing was changed") from error

    async def shown(opened: OpenWorkspace) -> WorkspaceConfigureResult:
        found = await workspaces.read(_languages_of, opened, call)
        return WorkspaceConfigureResult(root=str(root), config=opened.config, languages_found=found)

    return await workspaces.using(str(root), shown)


def _languages_of(opened: OpenWorkspace, call: Call) -> list[Language]:
    """Return the languages of the notes; [] if the index cannot be read, which affects no setting."""
    with suppress(DeadlineError, IndexDamagedError), opened.view(call.is_over, agent=False) as view:
        return list(languages_of(view))
    return []


async def list_all(workspaces: Workspaces, params: NoParams, _call: Call) -> WorkspaceListResult:
    """``workspace.list``: the registered roots; without counts for an agent, as in `status`."""
    opened = [
        WorkspaceSummary(
            root=str(opened.workspace.root),
            state=opened.sync.state,
            **({} if params.agent else {**counts(opened), **kept_config(opened)}),
        )
        for opened in workspaces.opened
    ]
    return WorkspaceListResult(workspaces=[*opened, *not_open(workspaces, WorkspaceSummary)])


async def _refuse_to_take(workspaces: Workspaces, path: str) -> None:
    """Refuse a folder whose notes another workspace has indexed.

    Raises:
        NestedError: which workspace, and how many of its notes.
    """
    root = await workspaces.root_for(path)
    if root in workspaces.roots:
        return
    for opened in await _around(workspaces, root):
        prefix = f"{root.relative_to(opened.workspace.root).as_posix()}/"
        taken = sum(source.path.startswith(prefix) for source in opened.index.snapshot.sources.values())
        if taken:
            raise NestedError(
                f"{root} is inside the workspace {opened.workspace.root}, whose index has {taken:,} of its "
                f"notes: they would move to an index of their own, and be found only in {root}. "
                f"If you want that: memctl init --nested {shlex.quote(str(root))}"
            )


async def _around(workspaces: Workspaces, root: Path) -> list[OpenWorkspace]:
    """Return the workspaces that contain a folder, except those that cannot be opened."""
    found = []
    for outer in workspaces.roots:
        if outer in root.parents:
            with suppress(MemdError):
                found.append(await workspaces.find(str(outer)))
    return found


async def _configure(workspaces: Workspaces, root: Path, changed: dict[str, Any], call: Call) -> None:
    await workspaces.configure(root, changed)
    call.goes_on = "the settings are written, and take effect when the index is opened with them"
    await workspaces.reopen(root)
