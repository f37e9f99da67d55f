"""The pages of a conversation: Markdown with a heading for each turn, and their places in the archive.

A conversation is one page, or several if it has more than PAGE_BYTES: memd reads no note above 4 MiB, and
pages written earlier do not change while the conversation grows. Pure.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import yaml

from memd.entries.entry import LINE_WIDTH, slug, with_checksum
from memd.errors import InvalidError
from memd.imports.conversation import (
    ASSISTANT,
    RANK,
    USER,
    Conversation,
    ForeignNote,
    Turn,
    fenced,
    inside_turn,
    readable,
)
from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines
from memd.sources.privacy import is_private

PAGE_BYTES = 1024 * 1024  # a quarter of memd's limit: one more turn does not take a page over it
MAX_TURN_CHARS = 256 * 1024  # below one heading, so that a turn of any length fits on pages
# Consecutive texts of a speaker are one turn, unless the pause is longer than this. Arbitrary.
SAME_TURN = timedelta(minutes=10)
MAX_TITLE_CHARS = 80  # the length of a heading that people write
MAX_TOOL_CHARS = 16 * 1024  # of one output: a longer one is a log
MAX_PARTICIPANTS = 50  # arbitrary; keeps the front matter of a busy channel short
_LONGEST_SECRET = 8 * 1024  # how far a secret may extend over a cut: so much is masked before cutting
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?\n)---[ \t]*\r?\n", re.DOTALL)
_UNTITLED = "conversation"
# Keys of front matter that memd writes itself.
_OWN_KEYS = frozenset({
    "updated", "source", "participants", "assistants", "project", "part", "branch", "turns", "tools", "id",
    "sha256",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArchivePage:
    """One file of the archive."""

    id: str  # 16 hex digits
    folder: str  # the year, below the client's folder; "" without a date
    name: str
    raw: bytes
    updated: datetime  # to the second, as on the page


@dataclass(slots=True)
class _Part:
    """The turns collected for the current page."""

    blocks: list[str] = field(default_factory=list)
    size_bytes: int = 0
    speakers: dict[str, None] = field(default_factory=dict)
    first: datetime | None = None
    last: datetime | None = None  # of the last turn
    latest: datetime | None = None  # a queued message is written later than it was said

    def add(self, turn: Turn, block: str) -> None:
        self.blocks.append(block)
        self.size_bytes += len(block.encode())
        if turn.kind != "tool" and len(self.speakers) < MAX_PARTICIPANTS:
            self.speakers.setdefault(turn.speaker)
        self.first = self.first or turn.at
        self.last = turn.at or self.last
        if turn.at:
            self.latest = max(turn.at, self.latest or turn.at)


@dataclass(frozen=True, slots=True)
class Settings:
    """How the conversations of a client become pages."""

    client: str  # the name of its folder
    with_tools: bool  # also keep tool calls, their output, and the model's reasoning
    undated: datetime  # the time of a conversation without one


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation that was read to its end."""

    of: Conversation
    turns: list[Turn]  # to be archived, each with its Markdown
    opening: str  # the person's first words


class Slot(NamedTuple):
    """The set of pages for one branch of a conversation; a split conversation has several branches."""

    conversation: str  # the id
    branch: int = 1


def transcript(of: Conversation, *, with_tools: bool) -> Transcript:
    """Read a conversation to its end, and clean up its turns for a note."""
    opening: list[str] = []
    turns = list(_joined(_kept(of, opening, with_tools=with_tools)))
    return Transcript(of, turns, next(iter(opening), ""))


def pages(
    of: Transcript, settings: Settings, slot: Slot, turns: Sequence[int | None] = ()
) -> list[ArchivePage]:
    """Return the pages of a conversation in their order.

    Args:
        of: the conversation.
        settings: of its client.
        slot: of the pages.
        turns: the number of turns on each page when it was first written, None if unknown: the pages end at
            the same turns again, even if more is masked now.
    """
    found: list[ArchivePage] = []
    part = _Part()
    for turn in of.turns:
        if part.blocks and _is_full(part, len(turn.text), turns[len(found) :]):
            found.append(_page(of, part, len(found) + 1, settings, slot))
            part = _Part()
        part.add(turn, f"{_heading(turn, part.last, of.of.abandoned)}\n\n{turn.text}\n")
    if part.blocks:
        found.append(_page(of, part, len(found) + 1, settings, slot))
    return found


def page_id(client: str, slot: Slot, number: int) -> str:
    """Return the id of a page, which depends only on client, conversation, branch and part."""
    branch = f"\0{slot.branch}" if slot.branch > 1 else ""
    key = f"{client}\0{slot.conversation}\0{number}{branch}"
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:16]


def document_page(of: ForeignNote, settings: Settings) -> ArchivePage:
    """Return the page of a note that another program keeps: its text, with secrets masked."""
    front: dict[str, object] = {
        "title": _title(of.title),
        "updated": _stamp(of.changed),
        "source": {"origin": "agent", "client": settings.client, "session": readable(of.id)},
    }
    if of.projects is not None:
        named = [readable(one) for one in of.projects]
        front["project"] = named[0] if len(named) == 1 else named
    front |= {"private": True} if is_private(of.text) else {}
    own = _FRONT_MATTER.match(of.text)
    key = page_id(settings.client, Slot(of.id), 1)
    # A second front matter does not count as one, and remains as text.
    text = f"{fenced(own[1].rstrip())}\n\n{of.text[own.end() :]}" if own else of.text
    page = _rendered(key, front, f"{readable(text)}\n", day=of.day, settings=settings)
    if own is None or of.projects is None:
        return page
    lines = split_lines(f"---\n{readable(own[1])}\n---\n")
    given = read_front_matter(lines)
    # A note that says it replaces others would hide them.
    kept = {
        f"original_{name}" if name in _OWN_KEYS or name.lower() == "supersedes" else name: value
        for name, value in given.values.items()
    }
    body = f"{readable(of.text[own.end() :])}\n"
    merged = _rendered(key, front, body, day=of.day, settings=settings, own=kept)
    # Unless something of odd or long YAML would be lost: a line behind its end, one of two keys.
    note = merged.raw.decode()
    said = read_front_matter(split_lines(note)).values
    is_whole = given.lines == len(lines) and len(kept) == len(given.values) > 0 and said | kept == said
    return merged if is_whole and is_private(note) == is_private(of.text) else page


def _is_full(part: _Part, more_chars: int, turns: Sequence[int | None]) -> bool:
    """Return whether a page ends before a turn; *turns*: the earlier numbers for this page and later ones."""
    written = turns[0] if turns else None
    if written is not None and (len(turns) > 1 or len(part.blocks) < written):
        return len(part.blocks) >= written
    return part.size_bytes + more_chars > PAGE_BYTES


def _kept(of: Conversation, opening: list[str], *, with_tools: bool) -> Iterator[Turn]:
    """Yield the turns to keep, their text cleaned up; the person's first words are added to *opening*."""
    for raw in of.turns:
        if raw.kind != "said" and not with_tools:
            continue
        turn = replace(raw, speaker=_name(raw.speaker))
        if turn.kind == "tool":
            said = readable(turn.text[: MAX_TOOL_CHARS + _LONGEST_SECRET])[:MAX_TOOL_CHARS]
            cut = len(turn.text) - MAX_TOOL_CHARS
            said += f"\n[{cut:,} more characters are left out]" if cut > 0 else ""
            yield from [replace(turn, text=fenced(said))] if said else []
            continue
        said = readable(turn.text)
        if said and turn.speaker == USER and not opening:
            opening.append(said[: MAX_TITLE_CHARS * 2])
        yield from (replace(turn, text=inside_turn(piece)) for piece in _pieces(said) if piece)


def _pieces(said: str) -> Iterator[str]:
    """Split a text that is too long for one heading, at line ends."""
    begin = 0
    while len(said) - begin > MAX_TURN_CHARS:
        stop = said.rfind("\n", begin, begin + MAX_TURN_CHARS) + 1 or begin + MAX_TURN_CHARS
        yield said[begin:stop].strip("\n")
        begin = stop
    yield said[begin:]


def _joined(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Join consecutive turns of one speaker."""
    open_turn: Turn | None = None
    until: datetime | None = None
    for turn in turns:
        if open_turn and _goes_on(open_turn, until, turn):
            open_turn = replace(open_turn, text=f"{open_turn.text}\n\n{turn.text}")
        else:
            yield from [open_turn] if open_turn else []
            open_turn = turn
        until = turn.at
    yield from [open_turn] if open_turn else []


def _goes_on(open_turn: Turn, until: datetime | None, turn: Turn) -> bool:
    return (
        turn.speaker == open_turn.speaker
        and turn.kind == open_turn.kind != "tool"
        and not turn.forks
        and len(open_turn.text) + len(turn.text) <= MAX_TURN_CHARS
        and (until is None or turn.at is None or turn.at - until <= SAME_TURN)
    )


def _heading(turn: Turn, before: datetime | None, abandoned: Collection[str]) -> str:
    """Return a turn's heading: speaker and time, with the date if it differs from the turn before."""
    name = turn.speaker + (" (thinking)" if turn.kind == "thinking" else "")
    name += " (abandoned)" if turn.record in abandoned else ""
    if turn.at is None:
        return f"{'#' * RANK} {name}"
    is_same_day = before is not None and before.date() == turn.at.date()
    return f"{'#' * RANK} {name} · {turn.at:{'%H:%M' if is_same_day else '%Y-%m-%d %H:%M'}}"


def _page(of: Transcript, part: _Part, number: int, settings: Settings, slot: Slot) -> ArchivePage:
    about = of.of
    first = part.first or about.started or settings.undated
    front: dict[str, object] = {
        "title": _title(about.title or of.opening),
        "created": _stamp(first),
        "updated": _stamp(part.latest or first),
        "source": {"origin": about.written_by, "client": settings.client, "session": readable(about.id)},
        "participants": list(part.speakers),
    }
    front |= {"assistants": [ASSISTANT]} if ASSISTANT in part.speakers else {}
    front |= {"project": readable(about.project)} if about.project else {}
    front |= {"part": number} if number > 1 else {}
    front |= {"branch": slot.branch} if slot.branch > 1 else {}
    key = page_id(settings.client, slot, number)
    part_name = str(number) if number > 1 else ""
    body = "\n".join(part.blocks)
    return _rendered(
        key, front, body, day=first.date(), part=part_name, turns=len(part.blocks), settings=settings
    )


def _rendered(
    key: str,
    front: dict[str, object],
    body: str,
    *,
    day: date | None,
    part: str = "",
    turns: int = 1,
    settings: Settings,
    own: dict[str, object] | None = None,
) -> ArchivePage:
    """Return a page; *own*: further front matter, whose keys have priority."""
    written = front | {"turns": turns, "tools": settings.with_tools, "id": key} | (own or {})
    header = yaml.safe_dump(written, allow_unicode=True, sort_keys=False, width=LINE_WIDTH)
    stem = [day.isoformat() if day else "", _slug(str(front["title"])), part, key[:6]]
    return ArchivePage(
        id=key,
        folder=f"{day.year:04}" if day else "",
        name=f"{'-'.join(filter(None, stem))}.md",
        raw=with_checksum(header, f"\n{body}"),
        updated=datetime.fromisoformat(str(front["updated"])),
    )


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


@lru_cache(maxsize=1024)  # a channel has few people, each with many messages
def _name(given: str) -> str:
    """Return a name as one line."""
    return " ".join(readable(given).split())[:MAX_TITLE_CHARS] or "somebody"


def _title(given: str) -> str:
    """Return a title as one line: the first one with text."""
    line = next((line for line in readable(given).split("\n") if line.strip(" #*>-`\t")), "")
    words = " ".join(line.lstrip("# ").split())
    if len(words) <= MAX_TITLE_CHARS:
        return words or _UNTITLED
    return words[:MAX_TITLE_CHARS].rsplit(" ", 1)[0] + "…"


def _slug(title: str) -> str:
    try:
        return slug(title.lstrip("./\\"), kind="title")
    except InvalidError:  # no character that a file name can use
        return _UNTITLED
