"""The methods for registered workspaces: `workspace.add`, `list`, `remove`, `configure`."""

from typing import Any

import msgspec

from memd.api import params as requests
from memd.api.indexing import SEE, _around, _configure, _refuse_to_take
from memd.api.status import _counts, _not_open
from memd.errors import ConfigError, InvalidError
from memd.rpc.context import Call
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

Fields = dict[str, Any]


async def add_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``workspace.add``: make a folder a workspace."""
    asked = requests.convert(params, requests.WorkspaceAdd)
    if not asked.nested:
        _refuse_to_take(workspaces, asked.path)
    adding = workspaces.add(asked.path, force=asked.force)
    root, created = await call.to_the_end(adding, f"the folder may be added all the same, {SEE}")
    if created:
        for outer in _around(workspaces, root):
            outer.sync.rescan()  # these notes are not its own any more

    async def looked_through(opened: OpenWorkspace) -> OpenWorkspace:
        await opened.sync.scanned()
        return opened

    opened = await workspaces.using(str(root), looked_through)
    return {
        "root": str(opened.workspace.root),
        "config": str(opened.workspace.config_path),
        "created": created,
        "sources": opened.sync.scanner.found_sources,
        "skipped": len(opened.sync.scanner.skipped),
        "within": [str(other) for other in workspaces.roots if opened.workspace.root in other.parents],
    }


async def remove_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``workspace.remove``: forget a workspace and delete its index, never a note."""
    asked = requests.convert(params, requests.WorkspaceRemove)
    root = await call.to_the_end(
        workspaces.remove(asked.path), f"the workspace may be removed all the same, {SEE}"
    )
    return {"root": str(root), "removed": True}


async def configure_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``workspace.configure``: replace settings in config.toml, or show what they are."""
    asked = requests.convert(params, requests.WorkspaceConfigure)
    root = workspaces.root_of(asked.workspace)
    if not isinstance(asked.settings, msgspec.UnsetType) and asked.settings:
        try:
            await call.to_the_end(
                _configure(workspaces, root, asked.settings, call),
                "the settings may be written all the same: look at config.toml",
            )
        except ConfigError as error:
            raise InvalidError(f"$.settings: {error}; nothing was changed") from error
    opened = await workspaces.find(str(root))
    return {"root": str(root), "config": msgspec.to_builtins(opened.config)}


async def list_method(workspaces: Workspaces, params: Fields, _: Call) -> Fields:
    """``workspace.list``: the registered roots."""
    requests.convert(params, requests.Nothing)
    known = {opened.workspace.root: opened for opened in workspaces.opened}
    return {
        "workspaces": [
            *({"root": str(root)} | _counts(opened) for root, opened in known.items()),
            *_not_open(workspaces),
        ]
    }
