"""``pause`` and ``resume``: hold embedding in every workspace; words are indexed at once all the same."""

from memd.api.params import NoParams, PauseParams
from memd.api.results import PauseResult, ResumeResult
from memd.rpc.context import Call
from memd.workspace.workspaces import Workspaces


async def pause(workspaces: Workspaces, asked: PauseParams, _call: Call) -> PauseResult:
    """``pause``: embed nothing for so long, unless somebody resumes it."""
    workspaces.pause.hold(asked.duration_s)
    until = workspaces.pause.until
    assert until is not None
    return PauseResult(paused_until=until)


async def resume(workspaces: Workspaces, _asked: NoParams, _call: Call) -> ResumeResult:
    """``resume``: embed what waits."""
    return ResumeResult(resumed=workspaces.pause.end())
