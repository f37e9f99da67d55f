"""``team.status``, ``publish``, ``unpublish`` and ``check``: what is published to a team.

For people only: no agent makes a workspace leave the machine.
"""

import asyncio
import math
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memd import registry
from memd.api.params import NoParams, TeamCheckParams, TeamShareParams
from memd.api.results import (
    HealthCheck,
    TeamCheckResult,
    TeamDifference,
    TeamElsewhere,
    TeamShareResult,
    TeamStatus,
    TeamWorkspace,
)
from memd.errors import ConfigError, MemdError, NotFoundError, StoreError
from memd.rpc.context import Call
from memd.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from memd.team.publisher import Publisher, SharedWorkspace

STATUS_S = 1.8  # that `status` waits for a store
STORED_S = 10.0  # how long `publish` and `unpublish` wait for the store; most workspaces take less
STORED_POLL_S = 0.05  # between two looks at it; arbitrary
FAILING_S = 1.5  # from then on a failure is none of before the request
NAMED_REASONS = 5  # of refused sources; arbitrary
PUBLISH_ALL = "To publish all of that: memctl team publish"
GOES_ON = "publishing goes on, and `memctl team status` shows its progress"


def is_configured(workspaces: Workspaces) -> bool:
    """Return whether the user's configuration has [team], right or wrong."""
    return workspaces.team is not None or workspaces.team_fault is not None


def configured(workspaces: Workspaces) -> "Publisher":
    """Return the team. Raises ConfigError: there is none, or it is wrong."""
    if workspaces.team is None:
        raise workspaces.team_fault or ConfigError(
            'no team is configured: write [team] and uri = "https://HOST:PORT" into '
            f"{workspaces.user_config_path}"
        )
    return workspaces.team


async def status(workspaces: Workspaces, _params: NoParams, _call: Call) -> TeamStatus:
    """``team.status``: the store, and what is published to it."""
    try:
        team = await _team(workspaces)
    except ConfigError:
        if workspaces.team_fault is None:
            raise
        return await described(workspaces)
    if team.milvus.error or team.milvus.is_reachable is None:  # it may be over, or nobody has asked
        with suppress(StoreError, TimeoutError):  # the answer tells it
            async with asyncio.timeout(STATUS_S):
                await asyncio.to_thread(team.milvus.list_workspaces)
    return await described(workspaces)


async def publish(workspaces: Workspaces, params: TeamShareParams, call: Call) -> TeamShareResult:
    """``team.publish``: publish a workspace to the team, by `share` in the user's own configuration.

    The text of its notes leaves the machine, except of notes that agents may not see, and secrets are masked.
    """
    return await _share(workspaces, params, call, is_shared=True)


async def unpublish(workspaces: Workspaces, params: TeamShareParams, call: Call) -> TeamShareResult:
    """``team.unpublish``: remove a workspace from the store, and publish it no more."""
    return await _share(workspaces, params, call, is_shared=False)


async def check(workspaces: Workspaces, params: TeamCheckParams, call: Call) -> TeamCheckResult:
    """``team.check``: compare path, revision, hash and number of chunks of every source with the store's."""
    team = await _team(workspaces)
    call.goes_on = "the check goes on until the store has answered"
    found: list[TeamDifference] = []
    checked = 0
    chosen = [*team.shared.values()] if params.path is None else [team.workspace(Path(params.path))]
    if not chosen:  # that nothing differs is said by a store that answers
        await asyncio.to_thread(team.milvus.list_workspaces)
    for shared in chosen:
        differences = await asyncio.to_thread(team.compare, shared, repair=params.repair)
        found += [TeamDifference(root=str(shared.root), path=path, kind=kind) for path, kind in differences]
        checked += (await asyncio.to_thread(shared.counts))[0]
    return TeamCheckResult(
        took_ms=call.age_ms(),
        ok=not found or params.repair,
        checked=checked,
        differences=found,
        repaired=params.repair and bool(found),
    )


async def described(workspaces: Workspaces) -> TeamStatus:
    """Return the status of a team that is configured."""
    team = workspaces.team
    if team is None:
        fault = str(workspaces.team_fault)
        return TeamStatus(error=fault, last_error=fault)
    known = {root: await _published(shared) for root, shared in list(team.shared.items())}
    for root in team.shared_roots - known.keys():
        known[root] = TeamWorkspace(root=str(root), stage="closed" if root in workspaces.roots else "unknown")
    known |= {
        root: TeamWorkspace(root=str(root), stage="refused", refused=[why])
        for root, why in team.refused.items()
    }
    leaving = [TeamWorkspace(root=one.root, stage="withdrawing") for one in team.leaving()]
    leaving += [TeamWorkspace(root=one.name, stage="left") for one in team.left()]
    return TeamStatus(
        address=team.config.uri,
        collection=team.config.collection,
        reachable=team.milvus.is_reachable,
        error=team.error or next(iter(team.refused.values()), "") or team.milvus.error,
        last_error=team.milvus.last_error,
        last_acknowledged=team.acknowledged_at,
        waiting=sum(one.waiting for one in known.values()),
        workspaces=[known[root] for root in sorted(known)] + leaving,
        elsewhere=[
            TeamElsewhere(root=root, address=" ".join(address.split()))
            for root, address in team.identity.elsewhere(team.address)
        ],
    )


async def health(workspaces: Workspaces) -> HealthCheck:
    """Search the team's store once, as a search of the scope does."""
    began = time.perf_counter()
    try:
        team = await _team(workspaces)
        await asyncio.to_thread(team.milvus.list_workspaces)
    except MemdError as error:
        return HealthCheck(name="team", ok=False, detail=str(error))
    return HealthCheck(
        name="team", ok=True, detail=f"answered in {(time.perf_counter() - began) * 1000:.1f} ms"
    )


async def _share(
    workspaces: Workspaces, params: TeamShareParams, call: Call, *, is_shared: bool
) -> TeamShareResult:
    team = await _team(workspaces)
    if is_shared:
        named = partial(registry.exactly, cure=PUBLISH_ALL)
        root = await workspaces.apart(named, params.path, list(workspaces.roots))
    else:  # it may be no workspace any more
        root = Path(params.path)
        if not await workspaces.apart(team.claim, root):
            raise NotFoundError(f"{root} is not published: memctl team status lists what is")
    call.goes_on = f"the configuration is written, and {GOES_ON}"
    await workspaces.share(root, is_shared=is_shared)
    team = await _team(workspaces)
    team.wake.set()
    if is_shared:
        team.workspace(root)  # or why it is not

    # Until the store has all of it, or nothing.
    began, timeout_s = time.monotonic(), STORED_S if params.wait else 0.0
    if call.deadline is not None:
        timeout_s = min(timeout_s, (call.deadline - began) / 2)
    while True:
        state = await described(workspaces)
        stage = next((one.stage for one in state.workspaces if one.root == str(root)), "")
        done = stage == ("published" if is_shared else "")
        took_s = time.monotonic() - began
        if done or took_s > timeout_s or (team.error and took_s > FAILING_S):
            return TeamShareResult(root=str(root), shared=is_shared, done=done, status=state)
        await asyncio.sleep(STORED_POLL_S)


async def _published(shared: "SharedWorkspace") -> TeamWorkspace:
    kept, waiting = await asyncio.to_thread(shared.counts)
    terms, words_only = shared.terms, ""
    is_stored = shared.compared_at is not None and shared.uncounted < math.inf
    if shared.other_model:
        words_only = f"the store has vectors of another model ({shared.other_model})"
    elif terms is not None and not terms.model_id:
        words_only = "the workspace has no vectors"
    return TeamWorkspace(
        root=str(shared.root),
        stage="published" if is_stored and not waiting else "publishing",
        sources=kept,
        waiting=waiting,
        refused=sorted(set(shared.refused.values()))[:NAMED_REASONS],
        model_id=terms.model_id if terms is not None else "",
        words_only=words_only,
    )


async def _team(workspaces: Workspaces) -> "Publisher":
    """Return the team of the configuration as it is now; it may have been edited a moment ago."""
    await workspaces.follow_team()
    return configured(workspaces)
