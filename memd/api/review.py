"""``review``: the entries of agents by age, with what speaks for forgetting or correcting each."""

from datetime import datetime

from msgspec import UNSET

from memd.api.hits import derived_from, iso_day
from memd.api.params import ReviewParams, SimilarParams
from memd.api.results import ReviewEntry, ReviewResult, SimilarNote
from memd.api.search import filter_values, parsed
from memd.api.similar import ENTRY_CHUNKS, newer_note
from memd.entries import recalls
from memd.index.snapshot import View
from memd.index.source_rows import ARCHIVES
from memd.records import Source
from memd.rpc.context import Call
from memd.search.filters import matching
from memd.search.query import Query, restricted
from memd.search.score import PreparedQuery
from memd.workspace.open import OpenWorkspace


def review(opened: OpenWorkspace, asked: ReviewParams, call: Call) -> ReviewResult:
    """``review``: the entries that agents wrote, the oldest first; nothing is deleted."""
    filters = restricted(Query(""), filter_values(asked, datetime.now().astimezone().date())).filters
    last = recalls.last(opened.workspace.recalls_path)
    request = parsed(opened, SimilarParams(limit=ENTRY_CHUNKS), call.is_over)
    with opened.view(call.is_over, agent=asked.agent) as view:
        ids = view.reader.entry_ids([one.id for one in matching(view, filters) if _is_by_agent(one)])
        if asked.unused:
            ids = {source: entry for source, entry in ids.items() if entry not in last}
        written = view.reader.written(list(view.snapshot.sources))
        known = view.snapshot.sources
        oldest = sorted(ids, key=lambda one: (_time(known[one], written), known[one].path))
        entries = [
            ReviewEntry(
                path=source.path,
                title=source.title,
                id=ids[source.id],
                written=_time(source, written),
                recalled=last.get(ids[source.id]),
                superseded_by=list(view.snapshot.superseded_by(source.id)),
                expired=iso_day(source.expired(request.today)),
                derived_from=derived_from(source),
                similar=_newer(view, request, source, written) or UNSET,
            )
            for source in map(view.source, oldest[: asked.limit])
        ]
    return ReviewResult(entries=entries, entries_total=len(oldest))


def _is_by_agent(source: Source) -> bool:
    """Return whether an agent wrote a source as an entry; conversations in the archive are no entries."""
    return (
        source.origin == "agent"
        and source.path.startswith("memory/")
        and not source.path.startswith(ARCHIVES)
    )


def _time(source: Source, written: dict[int, str]) -> str:
    """Return the time of the last revision, or the day of a note without one; ISO, so that texts compare."""
    return written.get(source.id, source.day.isoformat())


def _newer(view: View, request: PreparedQuery, source: Source, written: dict[int, str]) -> SimilarNote | None:
    """Return a newer note that says nearly the same; None for an entry whose successor is known."""
    if view.snapshot.superseded_by(source.id):
        return None
    at = _time(source, written)
    for chunk in view.reader.chunks_of(source.id, 1):
        return newer_note(view, chunk, request, lambda other: _time(other, written) > at)
    return None
