"""``get``, ``sources`` and ``fields``: a source or lines of it, the list of all sources, their front matter.

An agent must not learn whether a note is hidden from it or does not exist. So both cases give the same error,
which contains only the requested path.
"""

import heapq
import os
import re
import time
from contextlib import suppress
from datetime import date, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from msgspec import UNSET

from memd.api.hits import derived_from, iso_day
from memd.api.params import FieldsParams, GetParams, SourcesParams
from memd.api.results import (
    FieldCount,
    FieldsResult,
    GetResult,
    LinkIn,
    LinkOut,
    NoteLinks,
    SkippedSource,
    SourceEntry,
    SourcesResult,
)
from memd.api.search import filter_values
from memd.entries import recalls
from memd.entries.secrets import mask
from memd.errors import InvalidError, NotFoundError
from memd.index import links
from memd.index.links import URLS, links_in, links_out
from memd.index.reader import WITH_ID, SourceSize, StoredChunk
from memd.index.snapshot import View
from memd.records import Source, SourceText, Why
from memd.rpc.context import Call
from memd.search.filters import matching
from memd.search.query import Query, restricted
from memd.search.spelling import near_paths
from memd.sources.scan import WHY_NOT, Rules, hash_of_file, look, read_source
from memd.text import caseless, name_key
from memd.workspace.open import OpenWorkspace

ENTRY_ID = re.compile(r"[0-9a-f]{6,16}")  # of an entry, or the first digits of it
# Of resources, files, editors ("vscode://file/") and Obsidian.
_URI = re.compile(r"^(?:memory:///?|(?:file://|[a-z-]+://file)(?=/)|obsidian://open\?vault=[^&]*&file=)")
_AT_LINES = re.compile(
    r"(.+?)(?::L?|#L|,?\s\(?[Ll](?:ines?\s)?)([1-9]\d{0,8})(?:[-\u2013]L?([1-9]\d{0,8})|:\d+)?\)?", re.DOTALL
)
_AROUND = " \t\r\n`\"'<>"  # what models put around a path
MAX_LINKS = 50  # per direction in an answer; arbitrary: an agent reads all of them


def get(opened: OpenWorkspace, params: GetParams, call: Call) -> GetResult:
    """``get``: a source, some of its lines, or the chunk of a hit, read from the current file."""
    if (params.path is None) == (params.id is None):
        raise InvalidError("$: expected either path or id")
    root = opened.workspace.root
    with opened.view(call.is_over, agent=params.agent) as view:
        if params.id is not None:
            chunk = chunk_of(view, params.id)
            source = view.source(chunk.source)
            place: tuple[int, int | None] = chunk.start_line, chunk.end_line
        else:
            assert params.path is not None
            name, place = params.path, (params.start_line, params.end_line)
            if (written := place_written(view, root, name)) is not None:
                name, first, last = written
                place = (first, last) if place == (1, None) and first else place
            source = named_source(view, root, name, agent=params.agent)
        superseded_by = view.snapshot.superseded_by(source.id)
        entries = view.entries_from(source)
        linked = note_links(view, root, source) if params.links else UNSET
    path, (start, end) = source.path, place
    found = read_source(root, path, now_ns=time.time_ns())
    if not isinstance(found, SourceText):
        raise NotFoundError(f"{path} cannot be read any more; the index will follow")
    text = found.text
    if params.agent:
        if opened.visible_to_agents.keeps(path, text):  # it became private after it was indexed
            raise unknown_chunk(params.id) if params.id else unknown(params.path or "", root)
        text = mask(text)
    lines = lines_of(text)
    end = last_line(path, len(lines), start, end)
    return GetResult(
        path=path,
        title=source.title,
        tags=list(source.tags),
        start_line=start,
        end_line=end,
        lines=len(lines),
        # Of what an agent reads: by that of the file it could test guesses of a secret.
        hash=(hash_of_file(text.encode()) if params.agent and text != found.text else found.hash).hex(),
        text="\n".join(lines[start - 1 : end]),
        superseded_by=list(superseded_by),
        expired=iso_day(source.expired(datetime.now().astimezone().date())),
        entries=list(entries) or UNSET,
        derived_from=derived_from(source),
        links=linked,
    )


def lines_of(text: str) -> list[str]:
    """Return the lines of a note as answers count them."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def last_line(path: str, count: int, start: int, end: int | None) -> int:
    """Return the last line that is asked for of a note with *count* lines.

    Raises:
        InvalidError: it is before *start*.
        NotFoundError: the note ends before *start*.
    """
    if end is not None and end < start:
        raise InvalidError(f"$.end_line: {end} is before start_line {start}")
    if start > count:
        raise NotFoundError(f"{path} has {count} lines, not {start}")
    return min(end or count, count)


def found_source(view: View, root: Path, name: str) -> Source | None:
    """Return the source with the path *name*, otherwise the source with that title, or that a link names."""
    if (source := view.snapshot.source_at(below(root, name))) is not None:
        return view.source(source.id)
    called = view.resolver().resolve("text", name, "")
    return titled(view, name) or (view.source(called.to.id) if called.to and not called.why else None)


def named_source(view: View, root: Path, name: str, *, agent: bool) -> Source:
    """Return the same, or the source of a place in another form. Raises NotFoundError: there is none."""
    source = found_source(view, root, name)
    if source is None and (written := place_written(view, root, name)) is not None:
        name = written[0]
        source = found_source(view, root, name)
    if source := source or _with_id(view, name) or _called(view, name):
        return source
    if several := view.resolver().resolve("text", name, "").to:
        raise NotFoundError(f"several notes are called {name}, one is {several.path}: name one by its path")
    # An agent gets the same error for missing and for hidden notes.
    near = [] if agent else [one if one.isprintable() else repr(one) for one in near_paths(view, name)]
    raise unknown(name, root, f"; near it are {', '.join(near)}" if near else "")


def place_written(view: View, root: Path, written: str) -> tuple[str, int, int | None] | None:
    """Return name, first line (0: none was given) and last line of a place in another form than a path.

    The forms are those that answers, links, editors and models write: `PATH:LINE`, `PATH:LINE-LINE` and
    `PATH:LINE:COLUMN`, `PATH#part`, `PATH#L1-L2`, `PATH (lines 1-2)`, URIs, percent-encoding, quotes,
    `[[NAME#part|text]]`, `[text](PATH)` and the id of a daily entry. None: it is a path, or a plain name.
    """
    if found_source(view, root, written) is not None:
        return None
    if first := view.daily_entries([written]).get(written):
        own = [one for one in view.reader.chunks_of(first.source) if one.entry == written]
        return view.source(first.source).path, first.start_line, own[-1].end_line
    plain = written.strip(_AROUND)
    if "[" in plain:
        from memd.sources.links import the_link  # noqa: PLC0415 - for Markdown: most calls have none

        if (link := the_link(plain)) is not None:
            return link.target, 0, None
    plain = unquote(_URI.sub("", plain))
    if plain == written or found_source(view, root, plain) is None:
        if at := _AT_LINES.fullmatch(plain):
            names = (at[1], at[1].partition("?")[0])  # log.md?plain=1#L3, as on GitHub
            name = next((one for one in names if found_source(view, root, one) is not None), at[1])
            return name, int(at[2]), int(at[3] or at[2])
        name = re.split("[?#]", plain, maxsplit=1)[0]
        if name != plain and found_source(view, root, name) is not None:
            return name, 0, None
    return None if plain == written else (plain, 0, None)


def chunk_of(view: View, chunk_id: int) -> StoredChunk:
    """Return a chunk of a live source by its id. Raises NotFoundError: there is none (any more)."""
    chunk = view.reader.chunks([chunk_id]).get(chunk_id)
    if chunk is None or chunk.source not in view.snapshot.sources:
        raise unknown_chunk(chunk_id)
    return chunk


def unknown_chunk(chunk_id: int) -> NotFoundError:
    """Return the error for the id of a missing or hidden chunk."""
    return NotFoundError(f"there is no chunk {chunk_id} (any more): search again")


def titled(view: View, title: str) -> Source | None:
    """Return the live source with a shown title, regardless of case, if only one has it."""
    wanted = caseless(title)
    found = [source.id for source in view.snapshot.sources.values() if caseless(source.title) == wanted]
    return view.source(found[0]) if len(found) == 1 else None


def _with_id(view: View, name: str) -> Source | None:
    """Return the entry whose id begins with *name*: its first digits end the name of its file."""
    found = view.reader.each(WITH_ID, (name, f"{name}g")) if ENTRY_ID.fullmatch(name) else ()
    live = [source for (source,) in found if source in view.snapshot.sources]
    return view.source(live[0]) if len(live) == 1 else None


def _called(view: View, name: str) -> Source | None:
    """Return the source with the words of *name* in its title or path, whatever signs are between them."""
    leads_out = not {"/", ".."}.isdisjoint(PurePosixPath(name).parts)
    words = name_key(name).removesuffix(" md") if name.isprintable() and not leads_out else ""

    def is_called(one: Source) -> bool:
        path = PurePosixPath(one.path).with_suffix("")
        return words in map(name_key, (one.title, path.name, str(path)))

    found = [one.id for one in view.snapshot.sources.values() if is_called(one)] if words else []
    return view.source(found[0]) if len(found) == 1 else None


def unknown(path: str, root: Path, near: str = "") -> NotFoundError:
    """Return the error for the path of a missing or hidden source; it is the same for both."""
    named = below(root, path) or path
    return NotFoundError(f"{named} is not an indexed source of {root}; memctl why explains the reason{near}")


def on_disk(opened: OpenWorkspace, path: str, *, agent: bool) -> SourceText | None:
    """Return the source at *path*, relative to the root, from the current file; None if missing or hidden.

    The index may lag behind recent changes.
    """
    rules = Rules.load(opened.workspace.root, opened.config.sources, opened.config.ignore)
    found = look(opened.workspace.root, path, rules, now_ns=time.time_ns())
    if not isinstance(found, SourceText) or (agent and opened.visible_to_agents.keeps(path, found.text)):
        return None
    return found


def is_known(opened: OpenWorkspace, path: str) -> bool:
    """Return whether an agent may know of a path: on the disk or, if it is missing there, in the index."""
    if os.path.lexists(opened.workspace.root / path):
        return on_disk(opened, path, agent=True) is not None
    with opened.view(lambda: False, agent=True) as view:
        return view.snapshot.source_at(path) is not None


def below(root: Path, path: str) -> str | None:
    """Return an absolute or relative path relative to *root*; None if it is outside."""
    if "\0" in path:
        return path  # no file has such a name
    full = Path(os.path.normpath(root / path))
    for place in (full, Path(os.path.realpath(full.parent)) / full.name):
        if place != root and place.is_relative_to(root):
            return str(place.relative_to(root))
    return None


def why_not(root: Path, path: str, link: links.LinkOut) -> Why:
    """Return why a link of the note at *path* leads to no note: a file may be there that is none."""
    if link.to is not None or link.kind not in URLS or link.why == "outside":
        return link.why
    start = root if link.target.startswith("/") else root / PurePosixPath(path).parent
    there = (start / link.target.lstrip("/"), root / link.target.lstrip("/"))
    return "file" if link.kind == "image" or any(map(os.path.lexists, there)) else link.why


def note_links(view: View, root: Path, source: Source) -> NoteLinks:
    """Return the links of a live source, front matter first, and the links of other sources to it."""
    sources, unplaced = view.snapshot.sources, view.reader.with_secrets()
    resolver = view.resolver()
    found = links_out(view.reader.each, source.id, source.path, resolver)
    named = ((link, why_not(root, source.path, link)) for link in found)
    outgoing = [(link, why) for link, why in named if why != "file"]
    incoming = list(links_in(view.reader.each, source.id, sources.__contains__, resolver))
    return NoteLinks(
        outgoing=[
            LinkOut(
                kind=link.kind,
                target=link.target,
                part=link.part,
                path=None if link.to is None else sources[link.to].path,
                line=link.line,
                column=0 if source.id in unplaced else link.column,
                why=why,
            )
            for link, why in islice(outgoing, MAX_LINKS)
        ],
        outgoing_total=len(outgoing),
        incoming=[
            LinkIn(
                kind=link.kind,
                path=sources[link.source].path,
                title=view.source(link.source).title,
                part=link.part,
                line=link.line,
                column=0 if link.source in unplaced else link.column,
            )
            for link in islice(incoming, MAX_LINKS)
        ],
        incoming_total=len(incoming),
    )


def sources(opened: OpenWorkspace, params: SourcesParams, call: Call) -> SourcesResult:
    """``sources``: a page of the indexed or skipped files, sorted by path, and the start of the next page."""
    filters = restricted(Query(""), filter_values(params, datetime.now().astimezone().date())).filters
    root = opened.workspace.root
    if params.skipped:
        # Of the filters only that of the path can be applied; its matcher reads nothing else of a source.
        skipped = {} if params.agent else dict(opened.sync.scanner.skipped)
        tests = [condition.matcher() for condition in filters if condition.name == "path"]
        found = (Source(0, path, "", (), date.min, day_of="changed", origin="") for path in skipped)
        paths = sorted(
            one.path for one in found if one.path > params.after and all(test(one) for test in tests)
        )
        named = []
        for file in map(skipped.__getitem__, paths[: params.limit]):
            why = WHY_NOT.get(file.reason, "") + (f" ({file.detail})" if file.detail else "")
            named.append(SkippedSource(path=file.path, reason=file.reason, text=why))
        following = named[-1].path if len(paths) > params.limit else None
        return SourcesResult(sources=[], skipped=named, next=following)
    last = recalls.last(opened.workspace.recalls_path)
    # The keys are of what agents get.
    with opened.view(call.is_over, agent=params.agent or params.keys is not None) as view:
        behind = (source for source in matching(view, filters) if source.path > params.after)
        if params.keys is not None:
            keyed = {source for source, *_ in view.reader.stretches(view.keyed(params.keys))}
            behind = (source for source in behind if source.id in keyed)
        # One more than requested shows whether there is another page.
        page = heapq.nsmallest(params.limit + 1, behind, key=lambda one: one.path)
        shown = [view.source(source.id) for source in page[: params.limit]]
        sizes = view.reader.sizes([source.id for source in shown])
        ids = view.reader.entry_ids([source.id for source in shown])
    entries = [
        _entry(root, source, sizes.get(source.id, (0, 0)), last.get(ids.get(source.id, "")))
        for source in shown
    ]
    following = shown[-1].path if len(page) > params.limit else None
    return SourcesResult(sources=entries, skipped=[], next=following)


def _entry(root: Path, source: Source, size: SourceSize, recalled: str | None) -> SourceEntry:
    modified = None
    with suppress(OSError):  # it was deleted a moment ago
        modified = (root / source.path).stat().st_mtime
    return SourceEntry(
        path=source.path,
        title=source.title,
        tags=list(source.tags),
        date=source.day.isoformat(),
        origin=source.origin,
        chunks=size[0],
        vectors=size[1],
        modified=modified,
        recalled=recalled,
    )


def fields(opened: OpenWorkspace, asked: FieldsParams, call: Call) -> FieldsResult:
    """``fields``: the keys in front matter with the number of notes, or the values of one key."""
    from memd.search.fields import counts  # noqa: PLC0415 - `get` and `sources` do not need it

    filters = restricted(Query(""), filter_values(asked, datetime.now().astimezone().date())).filters
    with opened.view(call.is_over, agent=asked.agent) as view:
        found = counts(view, asked.key, (source.id for source in matching(view, filters)))
    return FieldsResult(
        key=asked.key,
        fields=[
            FieldCount(name=one.name, notes=one.notes, values=one.values if asked.key is None else UNSET)
            for one in found[: asked.limit]
        ],
        fields_total=len(found),
    )
