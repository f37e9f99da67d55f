"""``journal``: who wrote, revised, superseded and forgot what, and when."""

from collections.abc import Collection
from dataclasses import asdict
from datetime import date, datetime

from memd.api.params import JournalParams
from memd.api.prepare import day
from memd.api.results import JournalRecord, JournalResult
from memd.entries.journal import Record, newest
from memd.index.snapshot import View
from memd.rpc.context import Call
from memd.rpc.encode import Packed, packed
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces


async def journal(
    workspaces: Workspaces, opened: OpenWorkspace, asked: JournalParams, call: Call
) -> Packed[JournalResult]:
    """``journal``: what was done with entries, the newest first; what each is called is looked up now."""
    return await workspaces.read(_journal, opened, asked, call)


def _journal(opened: OpenWorkspace, asked: JournalParams, call: Call) -> Packed[JournalResult]:
    since = day("since", asked.since, datetime.now().astimezone().date())
    found: list[Record] = []
    total = 0
    for one in newest(opened.workspace.journal_path):
        if call.is_over():
            break
        if _is_wanted(one, asked, since):
            total += 1
            found += [one] if total <= asked.limit else []
    with opened.view(call.is_over, agent=asked.agent) as view:
        named = _named(view, {one.id for one in found if one.id})
    records = [
        JournalRecord(
            **asdict(one),
            path=named[one.id][0] if one.id in named else None,
            title=named[one.id][1] if one.id in named else None,
        )
        for one in found
    ]
    root = str(opened.workspace.root)
    return packed(JournalResult(workspace=root, records=records, records_total=total, took_ms=call.age_ms()))


def _named(view: View, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the path and the title of entries that are there: files, or blocks of daily logs."""
    daily = view.daily_entries(ids)
    named = {name: (view.source(one.source).path, one.heading) for name, one in daily.items()}
    files = {name: (one.path, view.source(one.id).title) for name, one in view.entries(ids).items()}
    return named | files


def _is_wanted(one: Record, asked: JournalParams, since: date | None) -> bool:
    # Where no client is named, memctl shows the origin in its place.
    if asked.client is not None and (one.client or one.origin) != asked.client:
        return False
    if asked.conversation is not None and one.conversation != asked.conversation:
        return False
    return since is None or _day(one.time) >= since


def _day(time: str) -> date:
    """Return the day of a record on this machine's calendar; of one that has none the first there is."""
    try:
        return datetime.fromisoformat(time).astimezone().date()
    except (ValueError, OverflowError):
        return date.min
