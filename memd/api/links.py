"""``links``, ``names``, ``resolve`` and ``outline``: what an editor needs to follow and complete links."""

import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.api.get import below, found_source, last_line, lines_of, named_source, place_written, why_not
from memd.api.params import LinksParams, NamesParams, OutlineParams, ResolveParams
from memd.api.results import (
    HeadingPlace,
    LinkPlace,
    LinksResult,
    NamesResult,
    NoteNames,
    OutlineHeading,
    OutlineLink,
    OutlineResult,
    ResolveResult,
)
from memd.errors import InvalidError, NotFoundError
from memd.index.links import ALL, LinkOut, links_in, links_out
from memd.index.outlines import Outline, heading_of, outlines, removed
from memd.index.outlines import outline as stored_outline
from memd.index.snapshot import View
from memd.records import Heading, LinkKind, Source, SourceText, Why
from memd.rpc.context import Call
from memd.search.keyword import phrase_expression
from memd.sources.scan import read_source, with_line_feeds
from memd.text import SCHEME, as_a_word, pieces_of
from memd.workspace.open import OpenWorkspace

if TYPE_CHECKING:
    from memd.sources.front_matter import FrontMatter
    from memd.sources.links import Occurrence
    from memd.sources.markdown import Lines

MAX_MENTIONS = 1_000  # chunks with the words of a title that are read; arbitrary
MIN_MENTION_CHARS = 3  # of a title that is looked for: shorter ones are words
# [[links]], [text](path), code and headings: what is there is a link already, or cannot be one.
_NO_MENTION = re.compile(
    r"\[\[[^\]\n]*\]\]|\[[^\]\n]*\]\([^)\n]*\)|\[[^\]\n]*\]\[[^\]\n]*\]|`[^`\n]*`|<[^>\n]*>"
)
_TO_A_URL = re.compile(rf"!?\[.*\]\(\s*<?(?:{SCHEME.pattern})", re.DOTALL)

Found = tuple[Source, LinkOut]  # the note that contains it; `to` of what points to a note


def links(opened: OpenWorkspace, params: LinksParams, call: Call) -> LinksResult:
    """``links``: a page of the links from or to a note, of its mentions, or of what is broken or alone."""
    if (params.path is None) != (params.which in {"broken", "orphans"}):
        raise InvalidError(f"$.path: {params.which} is about {'all notes' if params.path else 'one note'}")
    root = opened.workspace.root
    with opened.view(call.is_over, agent=params.agent) as view:
        source = named_source(view, root, params.path, agent=params.agent) if params.path else None
        sources = view.snapshot.sources
        if params.which == "broken":
            found = list(_broken(view, root))
        elif source is None:
            linked = {link.to for here, link in _all(view) if link.to != here.id}
            alone = sorted(
                (one for one in sources.values() if one.id not in linked), key=lambda one: one.path
            )
            found = [(one, LinkOut("text", "", "", None, 0, None, "")) for one in alone]
        elif params.which in {"out", "files"}:
            written = links_out(view.reader.each, source.id, source.path, view.resolver())
            named = ((link, why_not(root, source.path, link)) for link in written)
            is_file = params.which == "files"
            found = [(source, link._replace(why=why)) for link, why in named if is_file == (why == "file")]
        elif params.which == "in":
            found = [
                (
                    sources[one.source],
                    LinkOut(one.kind, one.target, one.part, one.line, one.column, source.id, ""),
                )
                for one in links_in(view.reader.each, source.id, sources.__contains__, view.resolver())
            ]
        else:
            found = list(_mentions(view, source))
        # Behind a secret, the column in the file would tell its length.
        unplaced = view.reader.with_secrets() if params.which != "mentions" else ()
        page = [
            LinkPlace(
                path=here.path,
                title=view.source(here.id).title,
                kind=None if params.which in {"mentions", "orphans"} else link.kind,
                target=link.target,
                part=link.part,
                line=link.line,
                column=0 if here.id in unplaced else link.column,
                to=None if link.to is None else sources[link.to].path,
                why=link.why,
            )
            for here, link in found[params.offset : params.offset + params.limit]
        ]
    last = params.offset + len(page)
    return LinksResult(
        path=source.path if source else None,
        links=page,
        total=len(found),
        next=last if last < len(found) else None,
    )


def _all(view: View) -> Iterator[Found]:
    """Yield every link of every note."""
    sources = view.snapshot.sources
    resolver = view.resolver()
    for source, kind, target, part, line, column in view.reader.each(ALL, ()):
        if source in sources:
            here = sources[source]
            to, why = resolver.resolve(kind, target, here.path)
            yield here, LinkOut(kind, target, part, line, column, to.id if to else None, why)


def _broken(view: View, root: Path) -> Iterator[Found]:
    headings: dict[int, Sequence[Heading]] = {}
    for here, link in _all(view):
        why = why_not(root, here.path, link)
        if link.to is not None and link.part and not link.part.startswith("^"):
            if link.to not in headings:
                headings[link.to] = stored_outline(view.reader.each, link.to).headings
            why = why if heading_of(headings[link.to], link.part) else "part"
        if why not in {"", "file"} and (why != "ambiguous" or link.to is None):
            yield here, link._replace(why=why)


def _mentions(view: View, source: Source) -> Iterator[Found]:
    """Yield the lines of other notes with the title, an alias or the file's name of a note, unlinked."""
    stem = PurePosixPath(source.path).stem
    aliases = stored_outline(view.reader.each, source.id).aliases
    names = [one for one in dict.fromkeys([source.title, *aliases, stem]) if len(one) >= MIN_MENTION_CHARS]
    found: dict[tuple[str, int, int], Found] = {}
    for name in names:
        if not pieces_of(name):
            continue
        words = as_a_word(name)
        ids = view.matching("words", phrase_expression(name))[:MAX_MENTIONS]
        for chunk in view.chunks(ids).values():
            here = view.snapshot.sources[chunk.source]
            if here.id == source.id or not words.search(chunk.text):
                continue
            for number, line in enumerate(chunk.text.split("\n"), chunk.start_line):
                free = _NO_MENTION.sub(lambda match: "\0" * len(match[0]), line)
                for match in words.finditer(free) if not free.lstrip().startswith("#") else ():
                    lead = len(chunk.text) if chunk.start_byte and number == chunk.start_line else 0
                    column = 0 if lead else match.start() + 1
                    link = LinkOut("text", match[0], "", number, column, source.id, "")
                    found.setdefault((here.path, number, column), (here, link))
    yield from (found[key] for key in sorted(found))


def names(opened: OpenWorkspace, params: NamesParams, call: Call) -> NamesResult:
    """``names``: titles, aliases, headings and tags of all notes, or of those that changed."""
    with opened.view(call.is_over, agent=params.agent) as view:
        # What an agent may see changes without a change of the note: it gets all of it.
        is_known = not params.agent and 0 < params.since <= view.snapshot.generation  # else of another index
        if is_known and params.since == view.snapshot.generation:  # an editor asks before each answer
            gone: list[str] | None = []
            seen: Iterator[Outline] = iter(())
        else:
            gone = removed(view.reader.each, params.since) if is_known else None
            seen = outlines(view.reader.each, params.after, 0 if gone is None else params.since)
        shown = (one for one in seen if one.source in view.snapshot.sources)
        notes = [_note_names(view, one) for one in islice(shown, params.limit + 1)]
    return NamesResult(
        generation=view.snapshot.generation,
        all=gone is None,
        notes=notes[: params.limit],
        removed=(gone or []) if not params.after else [],
        next=notes[params.limit - 1].path if len(notes) > params.limit else None,
    )


def _note_names(view: View, found: Outline) -> NoteNames:
    source = view.source(found.source)
    return NoteNames(
        path=source.path,
        title=source.title,
        aliases=list(found.aliases),
        headings=[HeadingPlace(line=one.line, level=one.level, title=one.title) for one in found.headings],
        tags=list(source.tags),
        date=source.day.isoformat(),
    )


def resolve(opened: OpenWorkspace, params: ResolveParams, call: Call) -> ResolveResult:
    """``resolve``: the note and heading that a link as written means, or why none."""
    root = opened.workspace.root
    with opened.view(call.is_over, agent=params.agent) as view:
        named = _Named(opened, view, params.path or "")
        written = None
        if "[" in params.link:
            from memd.sources.links import the_link  # noqa: PLC0415 - for Markdown, as below

            written = the_link(params.link.strip())
        if written is not None and (written.target or params.path):
            where = named.place(written.kind, written.target, written.part)
        elif written is not None or _TO_A_URL.match(params.link):
            where = ResolveResult(
                path=None, title="", why="missing" if written else "outside"
            )  # a part of no note
        else:
            target, _, part = params.link.partition("#")
            where = named.place("text", target.strip(), part)
            name, first, last = place_written(view, root, params.link) or (params.link, 0, None)
            if where.path is None and (source := found_source(view, root, name)) is not None:
                where = ResolveResult(path=source.path, title=source.title)
                if first:
                    try:
                        last = last_line(source.path, len(named.lines(source.path)), first, last)
                        where = replace(where, line=first, end_line=last)
                    except (InvalidError, NotFoundError):
                        where = replace(where, why="part")
            elif where.path is None and "/" in name:  # below the note's folder or below the root
                starts = (root, root / PurePosixPath(params.path or "").parent)
                if not any(below(root, str(start / name)) for start in starts):
                    where = replace(where, why="outside")
        return where


class _Named:
    """Finds what the links of one note mean."""

    def __init__(
        self, opened: OpenWorkspace, view: View, path: str, own: Sequence[Heading] | None = None
    ) -> None:
        self._opened, self._view, self._path = opened, view, path
        self.resolver = view.resolver()
        self._headings: dict[int, Sequence[Heading]] = {}
        self._own = own

    def place(self, kind: LinkKind, target: str, part: str) -> ResolveResult:
        """Return what a link means; "" is the note itself."""
        part = part.strip()
        if not target and self._own is not None:
            return self._part(self._path, "", self._own, part, "")
        to, why = self.resolver.resolve(kind, target or f"/{self._path}", self._path)
        if to is None:
            link = LinkOut(kind, target, part, None, 0, None, why)
            why = why_not(self._opened.workspace.root, self._path, link)
            return ResolveResult(path=None, title="", why=why)
        if part and to.id not in self._headings:  # most links name none, and a hub has thousands
            self._headings[to.id] = stored_outline(self._view.reader.each, to.id).headings
        return self._part(to.path, self._view.source(to.id).title, self._headings.get(to.id, ()), part, why)

    def _part(self, path: str, title: str, headings: Sequence[Heading], part: str, why: Why) -> ResolveResult:
        if not part:
            return ResolveResult(path=path, title=title, why=why)
        if part.startswith("^"):  # the line of the current file that the block's name ends
            name, lines = f" {part}".casefold(), enumerate(self.lines(path), 1)
            ends = (number for number, line in lines if f" {line}".rstrip().casefold().endswith(name))
            number = next(ends, None)
            why = why if number else "part"
            return ResolveResult(path=path, title=title, line=number or 1, end_line=number, why=why)
        found = heading_of(headings, part)
        if found is None:
            return ResolveResult(path=path, title=title, why="part")
        below = [one.line for one in headings if one.line > found.line and one.level <= found.level]
        end_line = min(below) - 1 if below else None
        return ResolveResult(path=path, title=title, line=found.line, end_line=end_line, why=why)

    def lines(self, path: str) -> list[str]:
        """Return the lines of a note as its file has them now."""
        found = read_source(self._opened.workspace.root, path, now_ns=time.time_ns())
        return lines_of(found.text) if isinstance(found, SourceText) else []


def outline(opened: OpenWorkspace, params: OutlineParams, call: Call) -> OutlineResult:
    """``outline``: links and headings of a text that is edited, and what the links mean."""
    lines, front, own, written = _parsed(params.text)
    with opened.view(call.is_over, agent=params.agent) as view:
        named = _Named(opened, view, params.path, own)
        named.resolver.learn(((one.kind, one.target) for one in written), params.path)
        found = []
        for one in written:
            to = named.place(one.kind, one.target, one.part)
            start, stop = one.written or (-1, -1)
            found.append(
                OutlineLink(
                    kind=one.kind, target=one.target, part=one.part, start=one.start, stop=one.stop,
                    written_start=start, written_stop=stop,
                    path=to.path, title=to.title, line=to.line, why=to.why,
                )
            )  # fmt: skip
        here = view.snapshot.source_at(params.path)
        superseded_by = view.snapshot.superseded_by(here.id) if here else ()
    return OutlineResult(
        body=lines.starts[front.lines] if front.lines < len(lines) else len(params.text),
        aliases=list(front.aliases),
        title=front.title,
        headings=[
            OutlineHeading(
                level=one.level,
                title=one.title,
                start=lines.starts[one.line - 1],
                stop=lines.ends[one.line - 1],
            )
            for one in own
        ],
        links=found,
        superseded_by=list(superseded_by),
    )


@lru_cache(maxsize=2)  # an editor asks for the same text after each change of another note
def _parsed(text: str) -> tuple["Lines", "FrontMatter", tuple[Heading, ...], tuple["Occurrence", ...]]:
    """Return lines, front matter, headings and links of a text."""
    # Imported here for Markdown: the daemon parses nothing else in this process.
    from memd.sources.front_matter import read_front_matter  # noqa: PLC0415
    from memd.sources.links import occurrences  # noqa: PLC0415
    from memd.sources.markdown import headings, read_blocks, split_lines  # noqa: PLC0415

    lines = split_lines(with_line_feeds(text))
    front = read_front_matter(lines)
    blocks, _ = read_blocks(lines, front.lines)
    return lines, front, tuple(headings(blocks)), tuple(occurrences(lines, blocks, front))
