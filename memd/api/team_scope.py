"""``search`` and ``recall`` with the scope "team": answers out of what the machines of a team publish.

If the team's store does not answer, the caller's own workspace does, and the answer says so. Imported by the
first request with this scope.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from msgspec import UNSET, UnsetType, structs

from memctl import protocol
from memd.api.hits import rounded_record, search_hit
from memd.api.params import RecallParams, SearchParams
from memd.api.recall import core_pieces, fitted, keys_sent, limited, lines_by_path, result_of
from memd.api.recall import recall as recall_here
from memd.api.results import RecallResult, SearchHit, SearchResult, TeamPlace
from memd.api.search import MAX_EXPLAINED, Freshness, embedded, parsed, query_frame, wait_for
from memd.api.search import search as search_here
from memd.errors import InvalidError, StoreError
from memd.index.columns import require_numpy
from memd.rpc.context import Call, Packed, packed
from memd.search.explanation import AnswerExplanation, Explained
from memd.search.recall import Piece
from memd.search.search import Answer
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from memd.stores.team_reader import TeamAnswer, TeamReader

log = structlog.get_logger()

STORE_AWAY = "store-away"  # the code of an answer of the caller's own workspace instead

P = TypeVar("P", SearchParams, RecallParams)


async def search(
    workspaces: Workspaces, opened: OpenWorkspace, params: SearchParams, call: Call
) -> Packed[SearchResult]:
    """Return the ranked hits of the team's memory."""
    if params.explain and (params.limit or opened.config.max_results) > MAX_EXPLAINED:
        raise InvalidError(f"$.limit: at most {MAX_EXPLAINED} hits can be explained")
    own = partial(search_here, workspaces, opened, _at_home(params), call)
    return await _or_own(_search, own, workspaces, opened, params, call=call)


async def recall(
    workspaces: Workspaces, opened: OpenWorkspace, params: RecallParams, call: Call
) -> Packed[RecallResult]:
    """Return the workspace's core notes and the hits of the team's memory as text for a prompt."""
    params = limited(params)
    own = partial(recall_here, workspaces, opened, _at_home(params), call)
    return await _or_own(_recall, own, workspaces, opened, params, call=call)


def _at_home(params: P) -> P:
    return structs.replace(params, scope="workspace")


async def _or_own(
    work: Callable[..., Packed[Any]],
    instead: Callable[[], Awaitable[Packed[Any]]],
    workspaces: Workspaces,
    opened: OpenWorkspace,
    params: SearchParams | RecallParams,
    *,
    call: Call,
) -> Packed[Any]:
    """Run *work* with the team; *instead* if its store is away."""
    if workspaces.team_fault is not None:
        raise workspaces.team_fault
    if workspaces.team is None:
        raise InvalidError('$.scope: no team is configured: docs/team.md says how; leave out scope = "team"')
    require_numpy("a search of the team's memory")
    fresh = await wait_for(opened, params, call)
    try:
        return await workspaces.apart(work, workspaces.team.reader, opened, params, call, fresh)
    except StoreError as error:
        log.warning("store_away", kind=type(error).__name__)
    answer = await instead()
    fields: dict[str, Any] = protocol.unpack_value(answer.result)
    fields["degraded"] = [STORE_AWAY, *fields["degraded"]]
    return Packed(protocol.pack_value(fields))


# In a thread of its own: a store may take long


def _search(
    reader: "TeamReader", opened: OpenWorkspace, params: SearchParams, call: Call, fresh: Freshness
) -> Packed[SearchResult]:
    made = _asked(reader, opened, params, call)
    answer = made.found.answer
    explanation: AnswerExplanation | UnsetType = UNSET
    reasons: list[Explained | UnsetType] = [UNSET] * len(answer.hits)
    if params.explain:
        explained, each = made.found.explained()
        explanation, reasons = rounded_record(explained), list(map(rounded_record, each))
    hits = [
        _placed(search_hit(hit, why), made, hit.candidate.source)
        for hit, why in zip(answer.hits, reasons, strict=True)
    ]
    return packed(
        SearchResult(
            hits=hits,
            not_utf8=[],
            explanation=explanation,
            without_minus=None,
            **query_frame(opened, answer, fresh),
            took_ms=call.age_ms(),
        )
    )


def _recall(
    reader: "TeamReader", opened: OpenWorkspace, params: RecallParams, call: Call, fresh: Freshness
) -> Packed[RecallResult]:
    made = _asked(reader, opened, params, call)
    view, answer = made.found.view, made.found.answer
    made.read_whole({hit.candidate.source for hit in answer.hits})
    sources = {hit.candidate.id: hit.candidate.source for hit in answer.hits}
    with opened.view(call.is_over, agent=True) as own:  # the core is that of the caller's own workspace
        core = core_pieces(own, opened, params, answer.prepared)
        ours = own.keyed(params.known or [])
        known = lines_by_path(own, ours)
    shown = replace_paths(answer, made)
    text = fitted(view, core, params, shown, known)
    is_core = {id(piece) for piece in core}

    def place(piece: Piece) -> dict[str, Any]:
        if id(piece) in is_core:
            return {}
        source = sources[piece.id]
        return {"id": 0, "path": view.key(source).path, "team": _home(made, source)}

    hits = replace(text, sent=tuple(sent for sent in text.sent if id(sent.piece) not in is_core))
    frame = query_frame(opened, answer, fresh) | {
        "without_minus": None,
        "keys": UNSET if params.known is None else keys_sent(view, hits),
        "took_ms": call.age_ms(),
    }
    return packed(result_of(text, params, frame, place))


def replace_paths(answer: Answer, made: "TeamAnswer") -> Answer:
    """Return an answer whose paths name the owner, the machine and the workspace, for readers of a prompt."""
    hits = []
    for hit in answer.hits:
        home = made.home_of(hit.candidate.source)
        path = f"{home.owner}@{home.machine}:{home.name}/{hit.source.path}"
        hits.append(replace(hit, source=replace(hit.source, path=path)))
    return replace(answer, hits=hits)


def _asked(
    reader: "TeamReader", opened: OpenWorkspace, params: SearchParams | RecallParams, call: Call
) -> "TeamAnswer":
    plain = parsed(opened, params, call.is_over)
    # Files on other machines cannot be looked at, and those of this one are by the reader.
    plain = replace(plain, alive=lambda _: True, timings_ms={"wait": call.age_ms()})
    snapshot = opened.index.snapshot
    known = (isinstance(params, RecallParams) and params.known) or []
    return reader.search(
        plain,
        partial(embedded, opened),
        tokenizer=opened.tokenizer,
        cosines=snapshot.cosines,
        model_id=snapshot.model_id,
        known=known,
    )


def _placed(hit: SearchHit, made: "TeamAnswer", source: int) -> SearchHit:
    return structs.replace(hit, id=0, team=_home(made, source))


def _home(made: "TeamAnswer", source: int) -> TeamPlace:
    home = made.home_of(source)
    root = made.roots.get(home.id, UNSET)
    return TeamPlace(workspace=home.name, machine=home.machine, owner=home.owner, root=root)
