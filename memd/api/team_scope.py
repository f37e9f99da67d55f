"""``search``, ``recall`` and ``why`` with the scope "team": answers out of what a team's machines publish.

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
from memd.api.get import below
from memd.api.hits import iso_day, rounded_record, search_hit
from memd.api.params import AnyQuery, NoteHome, RecallParams, SearchParams, WhyParams
from memd.api.recall import core_pieces, fitted, keys_sent, limited, lines_by_path, result_of
from memd.api.recall import recall as recall_here
from memd.api.results import RecallResult, SearchHit, SearchResult, TeamPlace, WhyResult
from memd.api.search import MAX_EXPLAINED, Freshness, embedded, frame, parsed, query_frame, wait_for
from memd.api.search import search as search_here
from memd.api.why import Diagnosis, why_texts
from memd.api.why import why as why_here
from memd.errors import ConfigError, InvalidError, NotFoundError, StoreError
from memd.index.columns import require_numpy
from memd.records import OwnModel
from memd.rpc.context import Call, Packed, packed
from memd.search.explanation import AnswerExplanation, Explained
from memd.search.recall import Piece
from memd.search.score import PreparedQuery
from memd.search.search import Answer, why_off
from memd.stores.store import PublishedWorkspace, SourceKey
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from memd.stores.team_reader import OpenTeam, TeamAnswer, TeamReader

log = structlog.get_logger()

OFF = "vector-arm-did-not-run"  # of `Explained.unseen`

STORE_AWAY = "store-away"  # the code of an answer of the caller's own workspace instead

# Stages of `why` at home that say why its index has no note, or an older state of it.
OF_DISK = frozenset({"outside", "missing", "not-a-source", "root-missing", "not-indexed", "gone"})

P = TypeVar("P", SearchParams, RecallParams, WhyParams)


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


async def why(workspaces: Workspaces, opened: OpenWorkspace, params: WhyParams, call: Call) -> WhyResult:
    """Return the stage that dropped a note from a search of the team's memory."""
    root = str(opened.workspace.root)
    is_own = params.team is None or params.team.root == root
    path = below(opened.workspace.root, params.path) if is_own else params.path
    at_home = partial(why_here, workspaces, opened, structs.replace(_at_home(params), team=None), call)
    reader = await _reader(workspaces, "an explanation")
    if path is None:
        return await at_home()
    fresh = await wait_for(opened, params, call)
    found = None
    try:
        found = await workspaces.apart(_why, reader, opened, structs.replace(params, path=path), call, fresh)
    except NotFoundError:
        pass
    except StoreError as error:
        if not is_own:
            raise
        log.warning("store_away", kind=type(error).__name__)
        here = await at_home()
        return structs.replace(here, degraded=[STORE_AWAY, *here.degraded])
    if found is not None and (found.stage == "returned" or not is_own):
        return found
    here = await at_home()
    if is_own and here.stage in OF_DISK:
        return here
    if found is not None:
        return found
    shared = workspaces.team.shared_roots if workspaces.team else frozenset()
    reason = "unknown" if not is_own else "kept" if opened.workspace.root in shared else "workspace"
    finding = Diagnosis(
        stage="unpublished",
        root=root,
        path=path if params.team is None else _named(params.team, path),
        line=params.line,
        request=parsed(opened, params, call.is_over),
        off="",
        reason=reason,
    )
    return structs.replace(
        here, path=path, **why_texts(finding), superseded_by=[], expired=UNSET, confidence=None
    )


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
    reader = await _reader(workspaces, "a search of the team's memory")
    fresh = await wait_for(opened, params, call)
    try:
        return await workspaces.apart(work, reader, opened, params, call, fresh)
    except StoreError as error:
        log.warning("store_away", kind=type(error).__name__)
    answer = await instead()
    fields: dict[str, Any] = protocol.unpack_value(answer.result)
    fields["degraded"] = [STORE_AWAY, *fields["degraded"]]
    return Packed(protocol.pack_value(fields))


async def _reader(workspaces: Workspaces, what: str) -> "TeamReader":
    """Return what searches the team's memory. Raises MemdError: *what* cannot be done."""
    if workspaces.team is None or workspaces.team.store.outcome.error:
        await workspaces.follow_team()  # [team] or the token may have been mended a moment ago
    if workspaces.team_fault is not None:
        raise workspaces.team_fault
    if workspaces.team is None:
        raise ConfigError(
            f"no team is configured: {workspaces.user_config_path} has no [team], see docs/team.md. Without "
            'scope = "team" (--team), this workspace is searched'
        )
    require_numpy(what)
    return workspaces.team.reader


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
        return {"id": 0, "path": view.key(source).path, "team": _home(made.opened, view.key(source))}

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
        key = made.found.view.key(hit.candidate.source)
        path = _named(made.opened.home_of(key), key.path)
        hits.append(replace(hit, source=replace(hit.source, path=path)))
    return replace(answer, hits=hits)


def _why(
    reader: "TeamReader", opened: OpenWorkspace, params: WhyParams, call: Call, fresh: Freshness
) -> WhyResult:
    root, home, path = str(opened.workspace.root), params.team, params.path

    def is_home(one: PublishedWorkspace, its_root: str) -> bool:
        if home is None or home.root is not None:
            return its_root == (root if home is None else home.root)
        return (one.name, one.machine, one.owner) == (home.workspace, home.machine, home.owner)

    plain, model = _plain(opened, params, call)
    made = reader.why(plain, partial(embedded, opened), model, is_home=is_home, path=path, line=params.line)
    found, team = made.found, made.opened
    view, prepared, source = found.view, found.prepared, found.source

    def shown(key: SourceKey) -> str:
        is_here = team.roots.get(key.workspace) == root
        return key.path if is_here else _named(team.home_of(key), key.path)

    verdict = found.verdict
    if verdict.chunk is not None:
        verdict = replace(verdict, chunk=replace(verdict.chunk, id=0))
    if verdict.last is not None:
        last = verdict.last._replace(path=shown(view.key(verdict.last.source)))
        verdict = replace(verdict, last=last)
    if verdict.into is not None:
        its_source = view.chunks([verdict.into.id])[verdict.into.id].source
        verdict = replace(verdict, into=replace(verdict.into, path=shown(view.key(its_source))))
    explained = verdict.explained
    has_vectors = prepared.query_vec is not None and (explained is None or OFF not in explained.unseen)
    answer = Answer(
        prepared, [], prepared.mode if has_vectors else "keyword", 0, verdict.confidence or "none",
        timings_ms=dict(prepared.timings_ms),
    )  # fmt: skip
    finding = Diagnosis(
        stage=verdict.stage,
        root=team.roots.get(found.key.workspace, ""),
        path=shown(found.key),
        line=params.line,
        request=prepared,
        off=why_off(prepared, answer.mode),
        source=source,
        superseded_by=view.snapshot.superseded_by(source.id),
        expired=source.expired(prepared.today),
        verdict=verdict,
        is_for_agent=params.agent,
        pool=found.pool,
        search="memctl search --team",
        is_file=found.key.workspace in team.roots,
    )
    return WhyResult(
        path=path,
        line=params.line,
        team=_home(team, found.key),
        **why_texts(finding),
        superseded_by=list(finding.superseded_by),
        expired=iso_day(finding.expired),
        confidence=verdict.confidence,
        corrected=dict(prepared.query.corrected),
        **frame(opened, answer, fresh),
    )


def _asked(
    reader: "TeamReader", opened: OpenWorkspace, params: SearchParams | RecallParams, call: Call
) -> "TeamAnswer":
    plain, model = _plain(opened, params, call)
    known = (isinstance(params, RecallParams) and params.known) or []
    return reader.search(plain, partial(embedded, opened), model, known)


def _plain(opened: OpenWorkspace, params: AnyQuery, call: Call) -> tuple[PreparedQuery, OwnModel]:
    """Return a query without its vector, and the workspace's model."""
    plain = parsed(opened, params, call.is_over)
    # Files on other machines cannot be looked at, and those of this one are by the reader.
    plain = replace(plain, alive=lambda _: True, timings_ms={"wait": call.age_ms()})
    snapshot = opened.index.snapshot
    return plain, OwnModel(snapshot.model_id, opened.tokenizer, snapshot.cosines)


def _placed(hit: SearchHit, made: "TeamAnswer", source: int) -> SearchHit:
    return structs.replace(hit, id=0, team=_home(made.opened, made.found.view.key(source)))


def _home(opened: "OpenTeam", key: SourceKey) -> TeamPlace:
    home = opened.home_of(key)
    root = opened.roots.get(home.id, UNSET)
    return TeamPlace(workspace=home.name, machine=home.machine, owner=home.owner, root=root)


def _named(home: PublishedWorkspace | NoteHome, path: str) -> str:
    """Return the path of a note with its owner, machine and workspace."""
    name = home.workspace if isinstance(home, NoteHome) else home.name
    return f"{home.owner}@{home.machine}:{name}/{path}"
