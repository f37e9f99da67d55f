"""``status``, ``health``, ``debug`` and other methods about the state of the daemon."""

import asyncio
import os
import platform
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from memctl import protocol
from memd import __version__, diagnostics
from memd.api import team
from memd.api.params import DebugParams, HelloParams, NoParams, SearchParams
from memd.api.results import (
    DebugResult,
    HealthCheck,
    HealthResult,
    HelloResult,
    LoopLag,
    ModelChange,
    ModelStatus,
    PingResult,
    RecentRequest,
    ServerLimits,
    ServerStatus,
    SidecarCounts,
    SkippedFile,
    SourceWarning,
    StatusResult,
    SubscribeResult,
    WatchedBatch,
    WorkProgress,
    WorkspaceStatus,
    WorkspaceSummary,
)
from memd.api.search import EMBEDDING_PAUSED, Fields, answered, frame, wait_for
from memd.embedding.queue import EmbeddingQueue
from memd.errors import MemdError, WorkspaceError
from memd.index.check import rank_all
from memd.index.database import sqlite_version
from memd.records import Freshness, ProbeOutcome
from memd.rpc.context import Call, Limits
from memd.search.search import LACKING
from memd.workspace.open import OpenWorkspace
from memd.workspace.set_aside import set_aside
from memd.workspace.workspaces import Workspaces

API_COMPATIBLE = 1  # the oldest level whose clients still understand the answers
FEATURES = (
    "search", "recall", "extract_memory", "get", "index", "progress", "workspaces", "health",
    "sync", "subscribe", "check", "purge", "explain", "why", "similar", "forget", "debug", "pause",
    "history", "update", "team",
)  # fmt: skip
LAG_PROBE_S = 0.01  # of one probe of the loop's lag; `debug` repeats it, `status` must answer at once
SHOWN = 100  # files named one by one; `skipped_total` and `warnings_total` count all
STARTED = time.monotonic()

LIMITS = ServerLimits(
    request_bytes=protocol.MAX_REQUEST_BYTES,
    answer_bytes=protocol.MAX_ANSWER_BYTES,
    in_flight_per_connection=Limits().in_flight_per_connection,
    connections=Limits().connections,
)


async def hello(workspaces: Workspaces, params: HelloParams, call: Call) -> HelloResult:
    """``memd.hello``: versions, features and limits."""
    call.client.update(name=params.client[:64], version=params.version[:64])
    models = [queue.embedder_or_none() for queue in workspaces.embeddings]
    return HelloResult(
        protocol=protocol.VERSION,
        api_level=protocol.API_LEVEL,
        api_compatible=API_COMPATIBLE,
        features=list(FEATURES),
        server_version=__version__,
        instance_id=workspaces.instance_id,
        pid=os.getpid(),
        state_dir=str(workspaces.state_dir),
        limits=LIMITS,
        model_id=next((model.model_id for model in models if model), None),
        index_generation=await _generation(workspaces, params),
        degraded=sorted({code for queue in workspaces.embeddings if (code := _trouble(queue))}),
    )


async def _generation(workspaces: Workspaces, params: HelloParams) -> int | None:
    """Return the generation of the requested workspace; None if it is ambiguous, unknown or not open."""
    try:
        root = await workspaces.root_of(params.workspace)
    except WorkspaceError:
        return None
    found = (opened.index.snapshot for opened in workspaces.opened if opened.workspace.root == root)
    return next((one.seen if params.agent else one.generation for one in found), None)


async def ping(workspaces: Workspaces, _params: NoParams, _call: Call) -> PingResult:
    """``ping``: the identity of the daemon."""
    return PingResult(pong=True, instance_id=workspaces.instance_id, pid=os.getpid())


async def status(workspaces: Workspaces, params: NoParams, _: Call) -> StatusResult:
    """``status``: the server, and the named workspace or all of them."""
    chosen = [await workspaces.find(params.workspace)] if params.workspace else workspaces.opened
    others = [] if params.workspace else not_open(workspaces, WorkspaceStatus)
    # For an agent without counts and names, which include hidden notes.
    shown = [
        WorkspaceStatus(
            root=str(opened.workspace.root),
            state=opened.sync.state,
            model_id=opened.index.snapshot.model_id,
            provider=opened.config.provider,
            degraded=_degraded(opened),
        )
        if params.agent
        else _workspace(workspaces, opened, *await workspaces.apart(_on_disk, opened))
        for opened in list(chosen)
    ]
    server = ServerStatus(
        version=__version__,
        pid=os.getpid(),
        instance_id=workspaces.instance_id,
        uptime_s=round(time.monotonic() - STARTED, 1),
        memory_mb=memory_mb(),
        models=[
            ModelStatus(
                provider=queue.provider,
                state=queue.state,
                id=model.model_id if (model := queue.embedder_or_none()) else None,
                error=queue.error,
            )
            for queue in workspaces.embeddings
        ],
        errors=[workspaces.trouble] if workspaces.trouble else [],
        sqlite=sqlite_version(),
        onnxruntime=diagnostics.installed("onnxruntime"),
        loop_lag_ms=await _loop_lag_ms(),
        paused_until=workspaces.pause.until,
        parser_sandbox=workspaces.parser_sandbox,
    )
    if not params.agent and team.is_configured(workspaces):
        server = msgspec.structs.replace(server, team=await team.described(workspaces))
    return StatusResult(server=server, workspaces=[*shown, *others])


Summary = TypeVar("Summary", bound=WorkspaceSummary)


def not_open(workspaces: Workspaces, kind: type[Summary]) -> list[Summary]:
    """Return the status of workspaces that are not open: their error, or that they are starting."""
    open_roots = {opened.workspace.root for opened in workspaces.opened}
    faults = workspaces.faults
    return [
        kind(root=str(root), state="error", errors=[str(faults[root])])
        if root in faults
        else kind(root=str(root), state="starting", errors=[])
        for root in workspaces.roots
        if root not in open_roots
    ]


def _on_disk(opened: OpenWorkspace) -> tuple[int, list[Path]]:
    """Return the size of an index, and the indexes that were set aside."""
    return opened.index.size_bytes(), set_aside(opened.workspace.index_dir)


def _workspace(
    workspaces: Workspaces, opened: OpenWorkspace, size_bytes: int, aside: list[Path]
) -> WorkspaceStatus:
    """Return the full status of one workspace."""
    sync = opened.sync
    vec = sync.vectors.sidecars
    skipped = sorted(sync.scanner.skipped.values(), key=lambda file: file.path)
    warnings = sorted(sync.index_loop.warnings.items())
    trouble_of_watch, seen = sync.watcher.trouble, opened.workspace.seen
    slow = f"the disk of {opened.workspace.root} is slow, or hangs" if seen and seen.is_slow else ""
    rebuilding = workspaces.rebuilding(opened.workspace.root)
    sources = opened.index.snapshot.sources
    copies = sorted(sources[one].path for one in sources.copies)
    return WorkspaceStatus(
        root=str(opened.workspace.root),
        **counts(opened),
        **kept_config(opened),
        **msgspec.structs.asdict(sync.known.index),
        vectors=sync.vector_count,
        unreadable=sync.vectors.unreadable,
        beyond=sync.vectors.beyond,
        skipped=[
            SkippedFile(path=file.path, reason=file.reason, detail=file.detail) for file in skipped[:SHOWN]
        ],
        skipped_total=len(skipped),
        warnings=[SourceWarning(path=path, warning=text) for path, text in warnings[:SHOWN]],
        warnings_total=len(warnings),
        copies=copies[:SHOWN],
        copies_total=len(copies),
        templates=sync.scanner.rules.templates() if sync.scanner.rules else [],
        last_scan=sync.scanner.last,
        last_index=sync.last_index,
        last_health=opened.last_health,
        model_id=opened.index.snapshot.model_id,
        provider=opened.config.provider,
        last_check=opened.last_check,
        watching=sync.watcher.kind,
        gone=sync.maintenance.gone,
        held=sync.maintenance.held,
        building=ModelChange(**sync.vectors.building) if sync.vectors.building else None,
        rebuilding=WorkProgress(**rebuilding) if rebuilding else None,
        sidecars=SidecarCounts(read=vec.read, written=vec.written, ignored=dict(vec.ignored))
        if vec
        else None,
        errors=[*sync.troubles, *filter(None, (trouble_of_watch, sync.stalled, slow, _other(opened)))],
        damaged_rows=opened.index.matrices.damaged_rows,
        size_bytes=size_bytes,
        set_aside=list(map(str, aside)),
        degraded=_degraded(opened),
    )


def _other(opened: OpenWorkspace) -> str:
    """Return that a folder without a configuration of its own is not the one that was seen; "" if it is."""
    root = opened.workspace.root
    if opened.sync.state != "missing" or not kept_config(opened):
        return ""
    return (
        f"{root} is away, or another folder than memctl init found: its disk is not mounted, or another one "
        f"is. If it is the right one: memctl init {shlex.quote(str(root))}"
    )


def kept_config(opened: OpenWorkspace) -> Fields:
    """Return where the settings of a folder lie that cannot be written."""
    path = opened.workspace.config_path
    return {"config": str(path)} if path == opened.workspace.kept_config else {}


def _degraded(opened: OpenWorkspace) -> list[str]:
    """Return the codes of all current problems."""
    vectors = opened.sync.vectors
    trouble = _trouble(opened.embedding) if opened.embedding is not None else None
    is_failing = vectors.failing and vectors.pending and not trouble  # the model works; embedding is retried
    codes = [
        *LACKING,
        trouble,
        "root-missing" if opened.sync.state == "missing" else None,
        "watch-limited" if opened.sync.watcher.trouble else None,
        "vectors-incomplete" if vectors.fault is not None or is_failing else None,
        "vectors-building" if vectors.building else None,
        EMBEDDING_PAUSED if vectors.held else None,
    ]
    return list(dict.fromkeys(code for code in codes if code))


def counts(opened: OpenWorkspace) -> Fields:
    """Return the numbers of sources and chunks in a workspace's index."""
    snapshot = opened.index.snapshot
    return {"sources": len(snapshot.sources), "chunks": snapshot.columns.count}


async def _loop_lag_ms() -> float:
    """Measure the event loop's current lag, which delays every request."""
    began = time.perf_counter()
    await asyncio.sleep(LAG_PROBE_S)
    return round(max(0.0, time.perf_counter() - began - LAG_PROBE_S) * 1000, 2)


def memory_mb() -> float | None:
    """Return the resident memory of this process; None if the system does not report it (macOS)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def _trouble(queue: EmbeddingQueue) -> str | None:
    """Return the code of the reason why a model gives no vectors now, None if it does."""
    return {"ready": None, "loading": "model-loading"}.get(queue.state, queue.reason)


async def debug(workspaces: Workspaces, params: DebugParams, _: Call) -> DebugResult:
    """``debug``: facts for debugging, without text of notes.

    Paths are included only if the request names a workspace, and only that workspace's.
    """
    root = str(await workspaces.root_of(params.workspace)) if params.workspace else None
    lags_ms = [0.0]  # of the event loop, ascending
    stop = time.perf_counter() + params.lag_s
    while time.perf_counter() < stop:
        lags_ms.append(await _loop_lag_ms())
    lags_ms.sort()
    return DebugResult(
        version=__version__,
        python=platform.python_version(),
        system=platform.platform(),
        sqlite=sqlite_version(),
        packages={name: diagnostics.installed(name) for name in diagnostics.PACKAGES},
        telemetry_disabled=diagnostics.telemetry_disabled(),
        pid=os.getpid(),
        threads=sorted(thread.name for thread in threading.enumerate()),
        descriptors=_descriptors(),
        loop_lag_ms=LoopLag(p50=_share(lags_ms, 0.5), p99=_share(lags_ms, 0.99), max=lags_ms[-1]),
        requests=[RecentRequest(**request) for request in diagnostics.REQUESTS],
        # Those of one workspace, or of all without paths.
        watched=[
            WatchedBatch(**{key: fact for key, fact in batch.items() if key != "paths" or root})
            for batch in diagnostics.WATCHED
            if root in {None, batch["workspace"]}
        ],
    )


def _share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _descriptors() -> int | None:
    """Return how many file descriptors are open; None if the system does not report it."""
    folder = Path("/dev/fd" if sys.platform == "darwin" else "/proc/self/fd")
    try:
        return len(list(folder.iterdir()))
    except OSError:
        return None


async def subscribe(workspaces: Workspaces, params: NoParams, call: Call) -> SubscribeResult:
    """``subscribe``: send the events of one workspace, or of all, on this connection from now on."""
    root = str(await workspaces.root_of(params.workspace)) if params.workspace else None
    call.follow(lambda listener: workspaces.feed.listen(listener, root))
    roots = [root] if root else [str(one) for one in workspaces.roots]
    return SubscribeResult(subscribed=True, workspaces=roots)


async def health(workspaces: Workspaces, params: NoParams, call: Call) -> HealthResult:
    """``health``: run a real ranked search in each workspace; some damage shows only then."""
    roots = [await workspaces.root_of(params.workspace)] if params.workspace else workspaces.roots
    checks = [await _health_of(workspaces, str(root), call) for root in roots]
    if params.workspace is None and not params.agent:
        await workspaces.follow_team()
        if team.is_configured(workspaces):
            checks.append(await team.health(workspaces))
    return HealthResult(ok=all(check.ok for check in checks), checks=checks)


async def _health_of(workspaces: Workspaces, root: str, call: Call) -> HealthCheck:
    async def probed(opened: OpenWorkspace) -> HealthCheck:
        probe = SearchParams(query="memory health", mode="hybrid", limit=1)
        fresh = await wait_for(opened, probe, call)
        made = await workspaces.read(_probed, opened, probe, call, fresh)
        took_ms = sum(made["timings_ms"].values()) - made["timings_ms"]["wait"]
        stalled = opened.sync.stalled
        detail = ", ".join([f"answered in {took_ms:.1f} ms", *made["degraded"], *filter(None, [stalled])])
        # A pause is intended, not a fault.
        ok = not set(made["degraded"]) - {EMBEDDING_PAUSED} and not stalled
        opened.last_health = ProbeOutcome(ok=ok, detail=detail, at=time.time())
        return HealthCheck(name=root, ok=ok, detail=detail)

    try:
        return await workspaces.using(root, probed)
    except MemdError as error:
        return HealthCheck(name=root, ok=False, detail=str(error))


def _probed(opened: OpenWorkspace, probe: SearchParams, call: Call, fresh: Freshness) -> Fields:
    with opened.view(call.is_over, agent=False) as view:
        rank_all(view)
        answer = answered(view, opened, probe, call)
    return frame(answer, fresh)
