"""``team.status``, ``publish``, ``unpublish`` and ``check``: what is published to a team.

For people only: no agent makes a workspace leave the machine.
"""

import asyncio
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
    from memd.team.publisher import SharedWorkspace
    from memd.team.team import Team

STATUS_S = 1.8  # that `status` waits for a store
STORED_S = 10.0  # how long `publish` and `unpublish` wait for the store; most workspaces take less
NAMED_REASONS = 5  # of refused sources; arbitrary
PUBLISH_ALL = "To publish all of that: memctl team publish"
GOES_ON = "publishing goes on, and `memctl team status` shows its progress"


def is_configured(workspaces: Workspaces) -> bool:
    """Return whether the user's configuration has [team], right or wrong."""
    return workspaces.team is not None or workspaces.team_fault is not None


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
                await asyncio.to_thread(team.probe)
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
    call.outlives("the check goes on until the store has answered")
    found: list[TeamDifference] = []
    checked = 0
    chosen = [*team.publisher.shared.values()] if params.path is None else [team.shared(Path(params.path))]
    if not chosen:  # that nothing differs is said by a store that answers
        await asyncio.to_thread(team.probe)
    for shared in chosen:
        differences = await asyncio.to_thread(team.publisher.compare, shared, repair=params.repair)
        found += [TeamDifference(root=str(shared.root), path=path, kind=kind) for path, kind in differences]
        checked += (await team.counts(shared))[0]
    return TeamCheckResult(
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
        return TeamStatus(
            address="", collection="", reachable=None, error=fault, last_error=fault,
            last_acknowledged=None, waiting=0, workspaces=[],
        )  # fmt: skip
    publisher = team.publisher
    known = {root: await _published(team, shared) for root, shared in list(publisher.shared.items())}
    for root in team.shared_roots - known.keys():
        known[root] = TeamWorkspace(root=str(root), stage="closed" if root in workspaces.roots else "unknown")
    known |= {
        root: TeamWorkspace(root=str(root), stage="refused", refused=[why])
        for root, why in team.refused.items()
    }
    leaving = [TeamWorkspace(root=one.root, stage="withdrawing") for one in publisher.leaving()]
    leaving += [TeamWorkspace(root=one.name, stage="left") for one in team.left()]
    return TeamStatus(
        address=team.config.uri,
        collection=team.config.collection,
        reachable=team.milvus.is_reachable,
        error=publisher.error or next(iter(team.refused.values()), "") or team.milvus.error,
        last_error=team.milvus.last_error,
        last_acknowledged=publisher.acknowledged_at,
        waiting=sum(one.waiting for one in known.values()),
        workspaces=[known[root] for root in sorted(known)] + leaving,
        elsewhere=[
            TeamElsewhere(root=root, address=" ".join(address.split()))
            for root, address in team.identity.elsewhere(team.address)
        ],
    )


async def health(workspaces: Workspaces) -> HealthCheck:
    """Search the team's store once, as a search of the scope does."""
    team = workspaces.team
    if team is None:
        return HealthCheck(name="team", ok=False, detail=str(workspaces.team_fault))
    try:
        took_ms = await asyncio.to_thread(team.probe)
    except MemdError as error:
        return HealthCheck(name="team", ok=False, detail=str(error))
    return HealthCheck(name="team", ok=True, detail=f"answered in {took_ms:.1f} ms")


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
    call.outlives(f"the configuration is written, and {GOES_ON}")
    await workspaces.share(root, is_shared=is_shared)
    team = await _team(workspaces)
    team.publisher.wake.set()
    done = False
    if params.wait:
        timeout_s = STORED_S
        if call.deadline is not None:
            timeout_s = min(timeout_s, (call.deadline - time.monotonic()) / 2)
        done = await team.settled(root, timeout_s, is_shared=is_shared)
    return TeamShareResult(root=str(root), shared=is_shared, done=done, status=await described(workspaces))


async def _published(team: "Team", shared: "SharedWorkspace") -> TeamWorkspace:
    kept, waiting = await team.counts(shared)
    terms = shared.terms
    words_only = ""
    if shared.other_model:
        words_only = f"the store has vectors of another model ({shared.other_model})"
    elif terms is not None and not terms.model_id:
        words_only = "the workspace has no vectors"
    return TeamWorkspace(
        root=str(shared.root),
        stage="published" if shared.compared_at is not None and not waiting else "publishing",
        sources=kept,
        waiting=waiting,
        refused=sorted(set(shared.refused.values()))[:NAMED_REASONS],
        model_id=terms.model_id if terms is not None else "",
        words_only=words_only,
    )


async def _team(workspaces: Workspaces) -> "Team":
    """Return the team of the configuration as it is now; it may have been edited a moment ago."""
    await workspaces.follow_team()
    if workspaces.team is None:
        raise workspaces.team_fault or ConfigError(
            'no team is configured: write [team] and uri = "https://HOST:PORT" into '
            f"{workspaces.user_config_path}"
        )
    return workspaces.team
