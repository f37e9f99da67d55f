"""``recall``: the core notes and the hits of a search, as text for a prompt.

When a conversation begins, the notes of its project that are due, changed or new come instead of hits. A note
is the project's if it is in the conversation's folder, if its path, topic or tags have the name of the
project's folder, or if one of the project's conversations wrote it.
"""

import functools
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec import UNSET, structs

from memd.api.folders import described
from memd.api.hits import iso_day, rounded
from memd.api.params import Begins, RecallParams
from memd.api.results import NamedNote, RecallOmission, RecallResult, RecallSource
from memd.api.search import answered, query_frame, record_recalls, without_minus
from memd.index.snapshot import View
from memd.index.source_rows import EXTERNAL, OWN, SESSION, written_time
from memd.records import Confidence, Freshness, Source
from memd.rpc.context import Call
from memd.search.confidence import is_by_language, pointer, sure_ones
from memd.search.filters import OF_PATHS
from memd.search.recall import BYTES_PER_TOKEN, ESTIMATOR, NoteTitle, Piece, Recalled, Titles, piece_of
from memd.search.recall import recall as fit
from memd.search.score import PreparedQuery
from memd.search.search import Answer, Hit
from memd.search.snippet import Line, Passage, around, beginning, lines_of, section
from memd.workspace.open import OpenWorkspace

# Remarks before the hits, by the confidence of the answer.
PREFACES: dict[Confidence, str] = {
    "strong": "",
    "weak": "Weak match: these notes may be beside the point.",
    "none": "No good match: these are only the nearest notes.",
}


POINTED = "Perhaps about it; get reads it:"
RECALL_HITS = 50  # candidates for a prompt, at most
PIECE_TOKENS = 50  # length of a short piece: a small budget needs no more candidates than fit into it
LEAST_HITS = 10  # some of them repeat text that is sent already
MOST_TITLES = 6  # notes of each kind; arbitrary: a person reads as many at a glance
RECENT = 5_000  # of the notes, by the time of their last change
DUE_KEYS = ("due", "deadline")
SOON = timedelta(days=7)
LONG_AGO = timedelta(days=90)  # arbitrary: what was due before was given up
STATUS = ("status", "state", "done", "completed")
DONE = ("done", "completed", "closed", "cancelled", "canceled", "dropped", "archived", "true", "yes")


def limited(params: RecallParams) -> RecallParams:
    """Return parameters with a limit: as many hits as may fit."""
    if params.limit is not None:
        return params
    enough = min(max(params.budget_tokens // PIECE_TOKENS, LEAST_HITS), RECALL_HITS)
    return structs.replace(params, limit=enough)


def recall(opened: OpenWorkspace, params: RecallParams, call: Call, fresh: Freshness) -> RecallResult:
    """``recall``: the core notes and the hits of a search, within a budget of tokens."""
    params = limited(params)
    with opened.view(call.is_over, agent=True) as view:  # the text is for a prompt
        known = view.keyed([key for key in params.known or [] if key[0] != "~"])
        pointed = frozenset(view.keyed([key[1:] for key in params.known or [] if key[0] == "~"]))
        answer = answered(view, opened, params, call, known)
        instead = without_minus(view, opened, params, call, answer)
        with opened.threads.turn():
            core = core_pieces(view, opened, params, answer.prepared)
            titles: list[Titles] = []
            entries: list[Piece] = []
            if params.begins:
                titles, newest = begun(view, params.begins, answer.prepared.today)
                there = {one.path for one in core}
                fresh_ones = [
                    one for one in newest if one.path not in there and answer.prepared.alive(one.path)
                ]
                entries = beginnings(view, fresh_ones, params, answer.prepared)

            def piece(hit: Hit) -> Piece:
                sectioned = dict if params.sure else functools.partial(section, view, hit.chunk)
                return piece_of(hit, answer.said_of(hit), sectioned)

            # Path → lines of known chunks, so that a section or a neighbour does not show them again.
            shown: dict[str, set[Line]] = {}
            for source, first, first_byte, last in view.reader.stretches(known) if known else ():
                lines = [(first, first_byte), *((line, 0) for line in range(first + 1, last + 1))]
                shown.setdefault(view.snapshot.sources[source].path, set()).update(lines)
            made = fitted(
                core,
                params,
                answer,
                shown,
                piece,
                titles=titles,
                entries=entries,
                pointed=pointed,
                folders=functools.partial(described, view),
            )
            named = view.reader.keys([one.id for one in made.named if one.id]).values()
            keys = UNSET if params.known is None else [*_keys_sent(view, made), *(f"~{key}" for key in named)]
        record_recalls(view, opened, answer, {sent.piece.path for sent in made.sent})
    frame = query_frame(answer, fresh, without_minus=instead)
    return result_of(made, params, frame | {"keys": keys})


def fitted(
    core: Sequence[Piece],
    params: RecallParams,
    answer: Answer,
    known: Mapping[str, set[Line]],
    piece: Callable[[Hit], Piece],
    *,
    titles: Sequence[Titles] = (),
    entries: Sequence[Piece] = (),
    pointed: Container[int] = (),
    folders: Callable[[Sequence[str]], Mapping[str, str]] = lambda _: {},
) -> Recalled:
    """Fill the budget with the *core*, and with the hits of an answer, or what a conversation starts with.

    *titles*, *entries*: that start, instead of hits. *known*: path → lines that are left out. *pointed*:
    chunks whose notes were named before.
    """
    hits = answer.hits if params.nearest or answer.confidence != "none" else []
    hits = [] if params.begins else hits
    old = [
        (hit, f"superseded by {', '.join(hit.superseded_by)}")
        if hit.superseded_by
        else (hit, f"expired (was valid until {hit.expired})")
        for hit in hits
        if (hit.superseded_by or hit.expired) and not params.superseded
    ]
    wanted = [hit for hit in hits if params.superseded or not (hit.superseded_by or hit.expired)]
    if params.sure:
        near = pointer([hit.candidate for hit in wanted])
        rest = [hit for hit in wanted if hit.candidate is near and hit.candidate.id not in pointed]
        # What replaces a sure note comes in its place, whatever its own words are.
        newer = {path for hit in hits for path in hit.superseded_by}
        found = [hit.candidate for hit in hits]
        shared = answer.judged.words_in(found[0].id) if answer.judged and found else []
        passes = sure_ones(found, answer.sure.lead, shared, answer.read, newer)
        sure = {one.id for one, passed in zip(found, passes, strict=True) if passed}
        newer = {path for hit in hits if hit.candidate.id in sure for path in hit.superseded_by}
        wanted = [hit for hit in wanted if hit.candidate.id in sure or hit.source.path in newer]
        if rest and not wanted and not is_by_language(shared):
            named = (NoteTitle(hit.source.title, hit.source.path, id=hit.candidate.id) for hit in rest)
            titles = [Titles(POINTED, tuple(named))]
    return fit(
        core,
        [*entries, *map(piece, wanted)],
        params.budget_tokens,
        style=params.format,
        preface="" if params.begins else PREFACES[answer.confidence],
        left_out=[(piece(hit), why) for hit, why in old],
        known=known,
        titles=titles,
        folders=folders,
    )


def _keys_sent(view: View, made: Recalled) -> list[str]:
    """Return the keys of the chunks that were sent: the chunk of each piece, and those shown around it."""
    ids: dict[int, None] = {}
    for sent in made.sent:
        beside = around(view, sent.piece.id)
        ids |= {
            chunk.id: None
            for chunk in beside
            if chunk.id == sent.piece.id or sent.lines.keys() >= lines_of(chunk).keys()
        }
    return list(dict.fromkeys(view.reader.keys(list(ids)).values()))


def core_pieces(
    view: View, opened: OpenWorkspace, params: RecallParams, request: PreparedQuery
) -> list[Piece]:
    """Return the beginnings of the workspace's core notes, independently of dates, tags and words.

    Path filters apply to them, too: a client that may see only one folder must not get notes outside it.
    """
    if not params.core:
        return []
    paths = opened.config.core
    places = [condition.matcher() for condition in request.query.filters if condition.name in OF_PATHS]
    ids = view.reader.source_ids(paths)
    found = [view.snapshot.sources.get(ids.get(path, 0)) for path in paths]
    core = [one for one in found if one and all(allows(one) for allows in places) and request.alive(one.path)]
    return beginnings(view, core, params, request)


def beginnings(
    view: View, sources: Sequence[Source], params: RecallParams, request: PreparedQuery
) -> list[Piece]:
    """Return the first lines of each source."""
    pieces = []
    for source in sources:
        chunk, own = beginning(view, source, params.budget_tokens * BYTES_PER_TOKEN)
        if chunk is not None:
            origin = chunk.origin or source.origin
            pieces.append(
                Piece(
                    chunk.id, source.path, view.source(source.id).title, source.day, origin, None, None, own,
                    expired=source.expired(request.today), external=source.external,
                )
            )  # fmt: skip
    return pieces


def result_of(
    made: Recalled,
    params: RecallParams,
    frame: dict[str, Any],
    place: Callable[[Piece], dict[str, Any]] = lambda _: {},
) -> RecallResult:
    """Return the answer of `recall`, with the keys of *frame*, which it shares with `search`.

    *place* returns the keys of a piece whose values are others than in an answer of one workspace.
    """
    return RecallResult(
        text=made.text,
        format=params.format,
        tokens=made.tokens,
        budget_tokens=params.budget_tokens,
        estimator=ESTIMATOR,
        sources=[
            RecallSource(**_recalled(sent.piece, sent.passage) | place(sent.piece)) for sent in made.sent
        ],
        omitted=[
            RecallOmission(**_recalled(one, one.passage) | place(one), reason=reason)
            for one, reason in made.omitted
        ],
        folders=dict(made.folders) or UNSET,
        named=[NamedNote(path=one.path, title=one.title) for one in made.named],
        **frame,
    )


def _recalled(piece: Piece, shown: Passage) -> dict[str, Any]:
    return {
        "id": piece.id,
        "path": piece.path,
        "start_line": shown.start_line,
        "end_line": shown.end_line,
        "score": rounded(piece.score),
        "confidence": piece.confidence,
        "date": piece.day.isoformat(),
        "origin": piece.origin,
        "superseded_by": list(piece.superseded_by),
        "expired": iso_day(piece.expired),
        "later": piece.later or UNSET,
        "entries": list(piece.entries) or UNSET,
        "derived_from": EXTERNAL if piece.external else UNSET,
    }


def begun(view: View, begins: Begins, today: date) -> tuple[list[Titles], list[Source]]:
    """Return the titles for the beginning of a conversation, and the newest entries of its project."""
    changed = view.reader.newest(RECENT)
    here = {source.id: source for source in _of_project(view, begins, list(changed))}
    expired = view.snapshot.expired(today)
    held = [one for one in here.values() if one.id not in expired and not view.snapshot.superseded_by(one.id)]
    days = _due(view, today)
    due = sorted((one for one in held if one.id in days), key=lambda one: days[one.id])
    # Of the others: without an earlier conversation nothing has changed since.
    since_ns = math.inf if begins.since is None else begins.since * 1_000_000_000
    later = [one for one in held if changed[one.id] >= since_ns and one.id not in days]
    entries = (one for one in held if one.path.startswith(OWN))
    newest = sorted(entries, key=lambda one: (one.day, changed[one.id]), reverse=True)
    new = [one for one in newest if changed[one.id] < since_ns and one.id not in days]
    since = datetime.fromtimestamp(begins.since or 0, UTC).astimezone()
    kinds = (
        ("Due in this project:", due),
        (f"Changed since {since:%Y-%m-%d %H:%M}, when the last conversation about it began:", later),
        ("Newest entries about it:", new),
    )
    titles = [
        Titles(head, tuple(NoteTitle(one.title, one.path, days.get(one.id)) for one in notes[:MOST_TITLES]))
        for head, notes in kinds
        if notes
    ]
    return titles, newest[:MOST_TITLES]


def _of_project(view: View, begins: Begins, newest: list[int]) -> Iterator[Source]:
    written = view.reader.sources_with_field(SESSION, begins.sessions) if begins.sessions else set()
    name = begins.project.casefold()
    inside = None if begins.folder is None else f"{begins.folder}/".lstrip("/")
    for source in (view.snapshot.sources[one] for one in newest if one in view.snapshot.sources):
        if source.id in written or (inside is not None and source.path.startswith(inside)):
            yield source
        elif name:
            parts = source.path.casefold().split("/")
            if name in {*parts, parts[-1].rpartition(".")[0], *map(str.casefold, source.tags)}:
                yield source


def _due(view: View, today: date) -> dict[int, date]:
    """Return source → the day on which it is due or expires, where that is near."""
    over = {one for key in STATUS for one in view.reader.sources_with_field(key, DONE)}
    days = {
        source: last
        for source, last in view.snapshot.sources.expiring.items()
        if today <= last <= today + SOON
    }
    for key in DUE_KEYS:
        for value in view.reader.field_values(key):
            time = written_time(value)
            if time and today - LONG_AGO <= time.last <= today + SOON:
                days |= dict.fromkeys(view.reader.sources_with_field(key, [value]), time.last)
    return {source: day for source, day in days.items() if source not in over}
