"""``journal`` and ``history``: the actions on entries, and the chain of notes that supersede each other."""

import heapq
import json
from collections.abc import Collection
from datetime import date, datetime
from graphlib import TopologicalSorter

from msgspec.structs import asdict

from memd.api.get import named_source
from memd.api.params import HistoryParams, JournalParams
from memd.api.results import HistoryNote, HistoryResult, JournalRecord, JournalResult
from memd.api.search import day
from memd.entries.journal import newest
from memd.index.links import links_out
from memd.index.snapshot import Snapshot, View
from memd.records import JournalLine
from memd.rpc.context import Call
from memd.workspace.open import OpenWorkspace

MAX_NOTES = 1000  # newest notes listed in a history; arbitrary


def journal(opened: OpenWorkspace, params: JournalParams, call: Call) -> JournalResult:
    """``journal``: the actions on entries, newest first, with the entries' current paths and titles."""
    since = day("since", params.since, datetime.now().astimezone().date())
    found: list[JournalLine] = []
    total = 0
    for record in newest(opened.workspace.journal_path):
        if call.is_over():
            break
        # For a record without a client, memctl shows the origin.
        is_by = params.client in {None, record.client or record.origin}
        is_of = params.conversation in {None, record.conversation}
        if is_by and is_of and (since is None or _day(record.time) >= since):
            total += 1
            found += [record] if total <= params.limit else []
    with opened.view(call.is_over, agent=params.agent) as view:
        named = _named(view, found)
    nothing = (None, None)
    places = [named.get(record.id or record.hash, nothing) for record in found]
    records = [
        JournalRecord(**asdict(record), path=path, title=title)
        for record, (path, title) in zip(found, places, strict=True)
    ]
    return JournalResult(records=records, records_total=total)


def _named(view: View, records: Collection[JournalLine]) -> dict[str, tuple[str, str]]:
    """Return id → path and title of existing entries: files, or blocks of daily logs.

    A person's note, which an entry may supersede, has no id: its hash → the same, if nobody changed it since.
    """
    ids = {one.id for one in records if one.id}
    notes = view.reader.of_hashes({one.hash for one in records if not one.id})
    own = [(digest, view.source(source)) for digest, source in notes if source in view.snapshot.sources]
    daily = view.daily_entries(ids)
    named = {name: (view.source(chunk.source).path, chunk.heading) for name, chunk in daily.items()}
    files = {name: (source.path, view.source(source.id).title) for name, source in view.entries(ids).items()}
    return named | files | {digest: (source.path, source.title) for digest, source in own}


def _day(time: str) -> date:
    """Return a record's day in local time; date.min if the record has no valid time."""
    try:
        return datetime.fromisoformat(time).astimezone().date()
    except (ValueError, OverflowError):
        return date.min


def history(opened: OpenWorkspace, params: HistoryParams, call: Call) -> HistoryResult:
    """``history``: a note with all notes that it supersedes and all that supersede it, oldest first.

    Notes that supersede each other in a circle are sorted by day.
    """
    with opened.view(call.is_over, agent=params.agent) as view:
        snapshot = view.snapshot
        source = named_source(view, opened.workspace.root, params.path, agent=params.agent)
        chain = _by_day(snapshot, snapshot.supersession.chain(source.id))
        listed = chain[-MAX_NOTES:]
        links = links_out(view.reader.each, source.id, source.path, view.resolver())
        missed = [link for link in links if link.kind == "supersedes" and link.to is None]
        return HistoryResult(
            path=source.path,
            notes=_notes(view, listed),
            notes_total=len(chain),
            unresolved=[link.target for link in missed],
        )


def _by_day(snapshot: Snapshot, chain: list[int]) -> list[int]:
    """Sort a chain by day, each note after those it supersedes; notes of a circle by day only."""
    sources, supersession = snapshot.sources, snapshot.supersession
    step_of = {note: supersession.step(note) for note in chain}
    circles: dict[int, list[int]] = {}
    for note, step in step_of.items():
        circles.setdefault(step, []).append(note)
    sorter = TopologicalSorter[int](dict.fromkeys(chain, ()))
    for above, older in supersession.edges:
        if above in step_of and older in step_of and step_of[above] != step_of[older]:
            for newer in circles[step_of[above]]:
                sorter.add(newer, older)
    sorter.prepare()
    ready: list[tuple[date, str, int]] = []
    found = []
    while sorter.is_active():
        for note in sorter.get_ready():
            heapq.heappush(ready, (sources[note].day, sources[note].path, note))
        *_, note = heapq.heappop(ready)
        found.append(note)
        sorter.done(note)
    return found


def _notes(view: View, listed: list[int]) -> list[HistoryNote]:
    """Return the answer's record for each note of a chain."""
    sources = view.snapshot.sources
    older: dict[int, list[str]] = {note: [] for note in listed}
    newer: dict[int, list[str]] = {note: [] for note in listed}
    for above, below in view.snapshot.supersession.edges:
        if above in older and below in newer:
            older[above].append(sources[below].path)
            newer[below].append(sources[above].path)
    times = {}
    for number, raw in view.reader.front_matters(listed):
        front = json.loads(raw)
        created, updated = (front.get(key) for key in ("created", "updated"))
        times[number] = (
            created if isinstance(created, str) else None,
            updated if isinstance(updated, str) else None,
        )
    return [
        HistoryNote(
            path=sources[note].path,
            title=view.source(note).title,
            date=sources[note].day.isoformat(),
            date_of=sources[note].day_of,
            created=times[note][0],
            updated=times[note][1],
            origin=sources[note].origin,
            supersedes=sorted(older[note]),
            superseded_by=sorted(newer[note]),
        )
        for note in listed
    ]
