"""The methods that bring the index up to date, wait for it or check it: `index`, `sync`, `check`."""

import asyncio
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memd.api import params as requests
from memd.api.prepare import ms_since
from memd.errors import NestedError
from memd.registry import root_for
from memd.rpc.context import Call
from memd.workspace.check import WorkspaceCheck
from memd.workspace.open import OpenWorkspace
from memd.workspace.sync import REPORT_EVERY_S, Report
from memd.workspace.workspaces import Workspaces

Fields = dict[str, Any]


SYNC_DEFAULT_MS = 60_000  # of `sync`, as facebook/watchman waits


REPLY_S = 0.05  # of a client's own timeout, kept for the way back


async def sync_method(workspaces: Workspaces, params: Fields, _: Call) -> Fields:
    """``sync``: wait until what was saved before the call is searchable by its words."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Sync)
    timeout_s = (asked.timeout_ms or SYNC_DEFAULT_MS) / 1000

    async def synced(opened: OpenWorkspace) -> Fields:
        left_s = timeout_s - (time.perf_counter() - started) - REPLY_S
        reached = await opened.sync.synced(left_s)
        return {
            "workspace": str(opened.workspace.root),
            "synced": reached,
            "generation": opened.index.snapshot.generation,
            "index": opened.sync.facts,
        }

    return {**await workspaces.using(asked.workspace, synced), "took_ms": ms_since(started)}


SEE = "and `memctl status` shows how far it is"  # whoever gave up waiting


async def index_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``index``: compare the folder with the index, and wait until all of it is searchable.

    With ``vectors`` false until its words are.
    """
    started = time.perf_counter()
    asked = requests.convert(params, requests.Index)
    root = workspaces.root_of(asked.workspace)
    call.outlives(f"indexing goes on, {SEE}" + ("; nothing is purged yet" if asked.purge else ""))
    report: Report | None = call.progress if asked.progress else None
    if asked.rebuild:
        rebuilding = workspaces.rebuild(root)
        if asked.wait or asked.purge:
            call.outlives(f"the rebuild goes on until memd stops, {SEE}")
            await _followed(rebuilding, lambda: workspaces.rebuilding(root), report)
    purged = 0

    async def bring_up_to_date(opened: OpenWorkspace) -> OpenWorkspace:
        nonlocal purged
        opened.sync.rescan()
        if asked.wait or asked.purge:
            await opened.sync.caught_up(report, vectors=asked.vectors)
        if asked.purge:
            purged += await call.to_the_end(
                opened.sync.maintenance.purge_now(), "the purge goes on until memd stops"
            )
        return opened

    before = (await workspaces.find(str(root))).index.snapshot.generation
    opened = await workspaces.using(str(root), bring_up_to_date)
    snapshot = opened.index.snapshot
    return {
        "workspace": str(opened.workspace.root),
        "state": opened.sync.state,
        "sources": len(snapshot.sources),
        "chunks": snapshot.columns.count,
        "vectors": opened.sync.vector_count,
        "skipped": len(opened.sync.scanner.skipped),
        "gone": opened.sync.maintenance.gone,
        "purged": purged,
        "changed": snapshot.generation != before,
        "took_ms": round((time.perf_counter() - started) * 1000),
    }


async def _followed(
    work: asyncio.Task[None], progress: Callable[[], Fields | None], report: Report | None
) -> None:
    """Wait for *work*, which goes on without us; *report* hears how far it is."""
    while not work.done():
        if report is not None and (known := progress()) is not None:
            report(known)
        await asyncio.wait({work}, timeout=REPORT_EVERY_S)
    await work


async def check_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``check``: compare database, matrix, full text, sidecars and folder; mend what differs if asked to."""
    asked = requests.convert(params, requests.Check)

    async def checked(opened: OpenWorkspace) -> Fields:
        report = call.progress if asked.progress else None
        checking = WorkspaceCheck(
            opened,
            apart=workspaces.apart,
            write=workspaces.write,
            folders=workspaces.folders,
            report=report,
        )
        found = await checking.compare(repair=asked.repair)
        return {"workspace": str(opened.workspace.root), **found}

    return await workspaces.using(asked.workspace, checked)


def _refuse_to_take(workspaces: Workspaces, path: str) -> None:
    """Refuse a folder whose notes another workspace has indexed.

    Raises:
        NestedError: which workspace, and how many of its notes.
    """
    root = root_for(path)
    if root in workspaces.roots:
        return
    for opened in _around(workspaces, root):
        prefix = f"{root.relative_to(opened.workspace.root).as_posix()}/"
        taken = sum(one.path.startswith(prefix) for one in opened.index.snapshot.sources.values())
        if taken:
            raise NestedError(
                f"{root} is inside the workspace {opened.workspace.root}, whose index has {taken:,} of its "
                f"notes: they would leave it for an index of their own, and be found from {root} alone. "
                f"memctl init --nested {shlex.quote(str(root))} does it"
            )


def _around(workspaces: Workspaces, root: Path) -> list[OpenWorkspace]:
    """Return the open workspaces that a folder is in."""
    return [opened for opened in workspaces.opened if opened.workspace.root in root.parents]


async def _configure(workspaces: Workspaces, root: Path, changed: Fields, call: Call) -> None:
    await workspaces.configure(root, changed)
    call.outlives("the settings are written, and hold once the index is opened with them")
    await workspaces.reopen(root)
