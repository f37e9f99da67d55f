"""``search`` and ``recall`` with the scope "team": answers out of what a team's machines publish.

If the team's store does not answer, or lies, the caller's own workspace does, and the answer says so.
Imported by the first request with this scope.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import UNSET, structs

from memd.api.hits import search_hit
from memd.api.params import RecallParams, SearchParams
from memd.api.recall import core_pieces, fitted, limited, result_of
from memd.api.results import RecallResult, SearchResult, TeamPlace
from memd.api.search import embedded, parsed, query_frame, wait_for
from memd.api.team import configured
from memd.errors import InvalidError, StoreError
from memd.index.columns import require_numpy
from memd.records import Freshness
from memd.rpc.context import Call, Packed
from memd.search.recall import Piece, piece_of
from memd.search.search import Answer, Hit
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from memd.team.publisher import Publisher
    from memd.team.search import TeamAnswer

log = structlog.get_logger()

STORE_AWAY = "store-away"  # the code of an answer of the caller's own workspace instead


async def answered(
    workspaces: Workspaces,
    opened: OpenWorkspace,
    params: SearchParams | RecallParams,
    call: Call,
    *,
    own: Callable[..., SearchResult | RecallResult],
    finish: Callable[[Any], Packed],
) -> Packed:
    """Return the answer of the team's memory; that of *own*, its workspace's, if the store is away.

    *finish* is called in the thread of the answer.
    """
    if workspaces.team is None or workspaces.team.milvus.error:
        await workspaces.follow_team()  # [team] or the token may have been mended a moment ago
    team = configured(workspaces)
    require_numpy("a search of the team's memory")
    fresh = await wait_for(opened, params, call)

    def of_team() -> Packed:
        if isinstance(params, RecallParams):
            return finish(_recall(team, opened, limited(params), call, fresh))
        return finish(_search(team, opened, params, call, fresh))

    def of_workspace() -> Packed:
        answer = own(opened, structs.replace(params, scope="workspace"), call, fresh)
        return finish(structs.replace(answer, degraded=[STORE_AWAY, *answer.degraded]))

    try:
        return await workspaces.apart(of_team)  # a store may take long
    except StoreError as error:
        log.warning("store_away", kind=type(error).__name__)
    return await workspaces.read(of_workspace)


def _search(
    team: "Publisher", opened: OpenWorkspace, params: SearchParams, call: Call, fresh: Freshness
) -> SearchResult:
    if params.explain:
        raise InvalidError(
            '$.explain: scores of the team\'s memory cannot be explained: leave out scope = "team"'
        )
    made = _asked(team, opened, params, call)
    hits = [
        structs.replace(search_hit(hit), id=0, team=_home(team, made, hit.candidate.source))
        for hit in made.answer.hits
    ]
    return SearchResult(
        hits=hits,
        not_utf8=[],
        explanation=UNSET,
        **query_frame(made.answer, fresh, without_minus=None),
    )


def _recall(
    team: "Publisher", opened: OpenWorkspace, params: RecallParams, call: Call, fresh: Freshness
) -> RecallResult:
    made = _asked(team, opened, params, call)
    answer = made.answer
    sources = {hit.candidate.id: (hit.candidate.source, hit.source.path) for hit in answer.hits}
    with opened.view(call.is_over, agent=True) as own:  # the core is that of the caller's own workspace
        core = core_pieces(own, opened, params, answer.prepared)

    def piece(hit: Hit) -> Piece:
        return piece_of(hit, answer.said_of(hit), lambda: hit.parts[0].lines)

    text = fitted(core, params, _with_full_paths(answer, made), {}, piece)
    is_core = {id(one) for one in core}

    def place(one: Piece) -> dict[str, Any]:
        if id(one) in is_core:
            return {}
        source, path = sources[one.id]
        return {"id": 0, "path": path, "team": _home(team, made, source)}

    keys = [f"{sent.piece.id:016x}" for sent in text.sent if id(sent.piece) not in is_core]
    frame = query_frame(answer, fresh, without_minus=None)
    return result_of(text, params, frame | {"keys": UNSET if params.known is None else keys}, place)


def _with_full_paths(answer: Answer, made: "TeamAnswer") -> Answer:
    """Return an answer whose paths name the owner, the machine and the workspace, for readers of a prompt."""
    hits = []
    for hit in answer.hits:
        home = made.homes[hit.candidate.source]
        path = f"{home.owner}@{home.machine}:{home.name}/{hit.source.path}"
        hits.append(replace(hit, source=hit.source._replace(path=path)))
    return replace(answer, hits=hits)


def _asked(
    team: "Publisher", opened: OpenWorkspace, params: SearchParams | RecallParams, call: Call
) -> "TeamAnswer":
    from memd.team.search import search as team_search  # noqa: PLC0415 - needs numpy

    plain = parsed(opened, params, call.is_over)
    # Files on other machines cannot be looked at.
    plain = replace(plain, alive=lambda _: True, timings_ms={"wait": call.age_ms()})
    known = (isinstance(params, RecallParams) and params.known) or []
    with opened.view(call.is_over, agent=params.agent) as view:
        embed = partial(embedded, opened, typed=plain.query.text)
        return team_search(team.milvus, view, plain, embed, opened.tokenizer, known)


def _home(team: "Publisher", made: "TeamAnswer", source: int) -> TeamPlace:
    home = made.homes[source]
    root = next((str(one.root) for one in team.shared.values() if one.id == home.ws), UNSET)
    return TeamPlace(workspace=home.name, machine=home.machine, owner=home.owner, root=root)
