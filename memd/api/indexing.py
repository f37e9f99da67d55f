"""``index``, ``sync``, ``check``, ``pause`` and ``resume``: update and check an index, or pause embedding.

A pause stops embedding in every workspace; words are still indexed at once.
"""

import asyncio
import time

from msgspec.structs import replace

from memd.api.params import CheckParams, IndexParams, NoParams, PauseParams
from memd.api.results import CheckFinding, CheckResult, IndexResult, PauseResult, ResumeResult, SyncResult
from memd.rpc.context import Call
from memd.workspace.open import OpenWorkspace
from memd.workspace.sync import REPORT_EVERY_S, Report
from memd.workspace.workspaces import Workspaces

SYNC_DEFAULT_MS = 60_000  # of `sync`, as in facebook/watchman
REPLY_S = 0.05  # part of a client's timeout reserved for sending the reply
SEE = "and `memctl status` shows its progress"  # for clients that stopped waiting


async def sync(workspaces: Workspaces, params: NoParams, call: Call) -> SyncResult:
    """``sync``: wait until changes saved before the call are searchable by words."""
    give_up = time.monotonic() + (params.timeout_ms or SYNC_DEFAULT_MS) / 1000 - REPLY_S

    async def synced(opened: OpenWorkspace) -> SyncResult:
        report = call.progress if params.progress else None
        reached = await opened.sync.synced(give_up - time.monotonic(), report)  # less after a reopening
        snapshot = opened.index.snapshot
        generation = snapshot.seen if params.agent else snapshot.generation
        return SyncResult(
            workspace=str(opened.workspace.root),
            synced=reached,
            generation=generation,
            index=replace(opened.sync.known.index, generation=generation),
        )

    return await workspaces.using(params.workspace, synced)


async def index(workspaces: Workspaces, params: IndexParams, call: Call) -> IndexResult:
    """``index``: compare the folder with the index, and wait until everything is searchable.

    With ``vectors`` false, wait only for words.
    """
    root = await workspaces.root_of(params.workspace)
    call.goes_on = f"indexing continues, {SEE}" + ("; nothing is purged yet" if params.purge else "")
    report: Report | None = call.progress if params.progress else None
    if params.rebuild:
        rebuilding = workspaces.rebuild(root)
        if params.wait or params.purge:
            call.goes_on = f"the rebuild continues until memd stops, {SEE}"
            while not rebuilding.done():  # it continues if this wait is cancelled
                if report is not None and (known := workspaces.rebuilding(root)) is not None:
                    report(known)
                await asyncio.wait({rebuilding}, timeout=REPORT_EVERY_S)
            await rebuilding
    purged = 0

    async def bring_up_to_date(opened: OpenWorkspace) -> OpenWorkspace:
        nonlocal purged
        opened.sync.rescan()
        if params.wait or params.purge:
            await opened.sync.caught_up(report, vectors=params.vectors)
        if params.purge:
            purging = opened.sync.maintenance.purge_now()
            purged += (await call.to_the_end(purging, "the purge goes on until memd stops")).sources
        return opened

    before = (await workspaces.find(str(root))).index.snapshot.generation
    opened = await workspaces.using(str(root), bring_up_to_date)
    snapshot = opened.index.snapshot
    return IndexResult(
        workspace=str(opened.workspace.root),
        state=opened.sync.state,
        sources=len(snapshot.sources),
        chunks=snapshot.columns.count,
        vectors=opened.sync.vector_count,
        skipped=len(opened.sync.scanner.skipped),
        gone=opened.sync.maintenance.gone,
        purged=purged,
        changed=snapshot.generation != before,
        paused_until=workspaces.pause.until if opened.sync.vectors.held else None,
    )


async def check(
    workspaces: Workspaces, opened: OpenWorkspace, params: CheckParams, call: Call
) -> CheckResult:
    """``check``: compare database, matrix, full text and folder; repair differences on request."""
    checking = workspaces.checker(opened, call.progress if params.progress else None)
    found = await checking.compare(repair=params.repair)
    return CheckResult(
        ok=all(found.values()),
        findings=[
            CheckFinding(kind=one.kind, text=one.text, repaired=repaired) for one, repaired in found.items()
        ],
        checked=dict(checking.counts),
    )


async def pause(workspaces: Workspaces, params: PauseParams, _call: Call) -> PauseResult:
    """``pause``: embed nothing for a time, or until `resume`."""
    workspaces.pause.hold(params.duration_s)
    until = workspaces.pause.until
    assert until is not None
    return PauseResult(paused_until=until)


async def resume(workspaces: Workspaces, _params: NoParams, _call: Call) -> ResumeResult:
    """``resume``: end a pause and embed pending chunks."""
    return ResumeResult(resumed=workspaces.pause.end())
