"""``sources``: the indexed files of a workspace, a page at a time."""

import heapq

from memd.api.params import SourcesParams
from memd.api.results import SourceEntry, SourcesResult
from memd.records import Source
from memd.rpc.context import Call
from memd.rpc.encode import Packed, packed
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces


async def sources(
    workspaces: Workspaces, opened: OpenWorkspace, asked: SourcesParams, call: Call
) -> Packed[SourcesResult]:
    """``sources``: which files are indexed, by path; a page, and where the next one begins."""
    return await workspaces.read(_sources, opened, asked, call)


def _sources(opened: OpenWorkspace, asked: SourcesParams, call: Call) -> Packed[SourcesResult]:
    with opened.view(call.is_over, agent=asked.agent) as view:
        behind = (source for source in view.snapshot.sources.values() if source.path > asked.after)
        # One more than is asked for says whether there is another page.
        page = heapq.nsmallest(asked.limit + 1, behind, key=lambda source: source.path)
        shown = [view.source(source.id) for source in page[: asked.limit]]
    return packed(
        SourcesResult(
            workspace=str(opened.workspace.root),
            sources=[_entry(source) for source in shown],
            next=shown[-1].path if len(page) > asked.limit else None,
        )
    )


def _entry(source: Source) -> SourceEntry:
    return SourceEntry(
        path=source.path,
        title=source.title,
        tags=list(source.tags),
        date=source.day.isoformat(),
        origin=source.origin,
    )
