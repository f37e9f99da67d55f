"""``get``: a source, some of its lines, or the chunk of a hit."""

import time
from dataclasses import dataclass
from pathlib import Path

from memd.api.links import note_links
from memd.api.params import GetParams
from memd.api.resolve import chunk_of, source_of, titled, unknown, unknown_chunk
from memd.api.results import GetResult, NoteLinks
from memd.errors import InvalidError, NotFoundError
from memd.index.snapshot import View
from memd.records import Source, SourceText
from memd.rpc.context import Call
from memd.rpc.encode import Packed, packed
from memd.search.spelling import near_paths
from memd.sources.scan import read_source
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces


async def get(
    workspaces: Workspaces, opened: OpenWorkspace, asked: GetParams, call: Call
) -> Packed[GetResult]:
    """``get``: a source, some of its lines, or the chunk of a hit, from the file as it is now."""
    if (asked.path is None) == (asked.id is None):
        raise InvalidError("$: expected either path or id")
    return await workspaces.read(_get, opened, asked, call)


def _get(opened: OpenWorkspace, asked: GetParams, call: Call) -> Packed[GetResult]:
    place = _place(opened, asked, call)
    path, start, end = place.source.path, place.start, place.end
    found = read_source(opened.workspace.root, path, now_ns=time.time_ns())
    if not isinstance(found, SourceText):
        raise NotFoundError(f"{path} cannot be read any more; the index will follow")
    text = _for_agent(opened, found, asked) if asked.agent else found.text
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if end is not None and end < start:
        raise InvalidError(f"$.end_line: {end} is before start_line {start}")
    if start > max(len(lines), 1):
        raise InvalidError(f"$.start_line: {path} has {len(lines)} lines, not {start}")
    end = min(end or len(lines), len(lines))
    return packed(
        GetResult(
            workspace=str(opened.workspace.root),
            path=path,
            title=place.source.title,
            tags=list(place.source.tags),
            start_line=start,
            end_line=end,
            lines=len(lines),
            hash=found.hash.hex(),
            text="\n".join(lines[start - 1 : end]),
            superseded_by=list(place.superseded_by),
            links=place.links,
        )
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """What is asked for, as far as the index knows."""

    source: Source
    start: int  # line
    end: int | None  # None: the last one
    superseded_by: tuple[str, ...]
    links: NoteLinks


def _for_agent(opened: OpenWorkspace, found: SourceText, asked: GetParams) -> str:
    """Return the text without secrets; it may be private by now, and the index not know that yet."""
    if opened.visible_to_agents.keeps(found.path, found.text):
        raise unknown_chunk(asked.id) if asked.id else unknown(asked.path or "", opened.workspace.root)
    return opened.visible_to_agents.masked(found.text)


def _named(view: View, root: Path, name: str, *, agent: bool) -> Source:
    """Return the source that is at a path, else the one that has it as its title."""
    try:
        return source_of(view, root, name)
    except NotFoundError as error:
        if source := titled(view, name):
            return source
        # An agent gets one error for what there is not and what is kept from it.
        if agent or not (paths := near_paths(view, name)):
            raise
        raise NotFoundError(f"{error}; near it are {', '.join(paths)}") from None


def _place(opened: OpenWorkspace, asked: GetParams, call: Call) -> _Place:
    """Return source and lines of what is asked for; only what is indexed can be had."""
    with opened.view(call.is_over, agent=asked.agent) as view:
        if asked.id is not None:
            chunk = chunk_of(view, asked.id)
            source = view.source(chunk.source)
            lines: tuple[int, int | None] = chunk.start_line, chunk.end_line
        else:
            assert asked.path is not None
            source = _named(view, opened.workspace.root, asked.path, agent=asked.agent)
            lines = asked.start_line, asked.end_line
        return _Place(source, *lines, view.snapshot.superseded_by(source.id), note_links(view, source))
