"""The place of a conversation in the archive: the pages that hold its first turns, only ever extended.

Where the turns of these pages are no beginning of the conversation, it was split, or another one has its id:
it gets pages of its own, a branch. Turns are compared by their lines, both sides masked by the shapes of
today, and without their headings, whose times follow the zone of the machine.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from memd.entries.checksum import flaw
from memd.entries.secrets import mask
from memd.imports.archive import Archive
from memd.imports.conversation import RANK, Conversation, Document, is_session_id
from memd.imports.page import (
    ArchivePage,
    Settings,
    Slot,
    Transcript,
    document_page,
    page_id,
    pages,
    transcript,
)

# Of pages of the archive to what was read now. unknown: its owner deleted or changed all of them.
Relation = Literal["extended", "older", "other", "unknown"]

_TURNS = re.compile(rb"\nturns: (\d{1,9})\ntools: (true|false)\n")
_UPDATED = re.compile(rb"\nupdated: '(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d)'\n")
_FRONT_END = b"\n---\n"
_MASKED = re.compile(r"\[masked: [^\[\]\n]*\]")
_MARK = "\0"  # no page has it


@dataclass(frozen=True, slots=True)
class Placed:
    """Pages as they would be where they belong."""

    pages: list[ArchivePage]
    older: bool  # the archive has more of it, or what came later


@dataclass(frozen=True, slots=True)
class _Kept:
    """A page that memd wrote and nobody changed."""

    raw: bytes
    turns: int
    with_tools: bool
    updated: datetime


def document(of: Document, archive: Archive, settings: Settings) -> Placed:
    """Place a note, which is rewritten as it changes."""
    page = document_page(of, settings)
    there = archive.find(page.id)
    kept = _read(*there) if there else None
    return Placed([page], older=kept is not None and kept.updated > page.updated)


def conversation(of: Conversation, archive: Archive, settings: Settings) -> Placed:
    """Place a conversation, which is read to its end."""
    first = next(of.turns, None)  # its id is known then
    if first is None:
        return Placed([], older=False)
    of.turns = itertools.chain([first], of.turns)
    slots = list(_slots(of, archive, settings.client))
    # What was asked for once is not taken away by an import that did not ask.
    if any(kept is not None and kept.with_tools for _, there in slots[:1] for kept in there):
        settings = replace(settings, with_tools=True)
    read = transcript(of, with_tools=settings.with_tools)
    unknown: Placed | None = None
    for slot, there in slots:
        placed, relation = _placed(read, slot, there, settings)
        # What has more under a former id may be of the session whose id that is.
        is_others = slot.conversation != of.id and is_session_id(slot.conversation)
        if relation == "extended" or (relation == "older" and not is_others):
            return placed
        if relation == "unknown":
            unknown = unknown or placed
    branch = 1 + sum(slot.conversation == of.id for slot, _ in slots)
    return unknown or Placed(pages(read, settings, Slot(of.id, branch)), older=False)


def _slots(of: Conversation, archive: Archive, client: str) -> Iterator[tuple[Slot, list[_Kept | None]]]:
    """Yield where pages of the conversation may be, with those that are there."""
    branch = 1
    while there := _kept(archive, client, Slot(of.id, branch)):
        yield Slot(of.id, branch), there
        branch += 1
    former = Slot(of.former_id)
    if branch > 1 or not of.former_id or archive.was_put(page_id(client, former, 1)):
        return
    if there := _kept(archive, client, former):
        yield former, there


def _kept(archive: Archive, client: str, slot: Slot) -> list[_Kept | None]:
    """Return the pages of a slot in their order, None for each that its owner deleted or changed."""
    found: list[_Kept | None] = []
    for number in itertools.count(1):
        key = page_id(client, slot, number)
        there = archive.find(key)
        if there is None and not archive.was_written(key):
            break
        found.append(_read(*there) if there else None)
    return found


def _read(path: str, raw: bytes) -> _Kept | None:
    head = raw.partition(_FRONT_END)[0] + b"\n"
    turns, updated = _TURNS.search(head), _UPDATED.search(head)
    if turns is None or updated is None or flaw(raw, path.rpartition("/")[2]):
        return None
    return _Kept(raw, int(turns[1]), turns[2] == b"true", datetime.fromisoformat(updated[1].decode()))


def _placed(
    read: Transcript, slot: Slot, there: list[_Kept | None], settings: Settings
) -> tuple[Placed, Relation]:
    kept = [one for one in there if one is not None]
    is_alike = all(one.with_tools == settings.with_tools for one in kept)
    ends = [one.turns if one else None for one in there] if is_alike else []
    made = pages(read, settings, slot, ends)
    relation = _relation(there, made) if is_alike else _relation_by_lines(kept, made)
    latest = max((one.updated for one in kept), default=None)
    if relation == "other" and read.of.is_export and latest and made and latest > made[-1].updated:
        relation = "older"  # an export of an earlier day, before the conversation was changed
    return Placed(made, older=relation == "older"), relation


def _relation(there: list[_Kept | None], made: list[ArchivePage]) -> Relation:
    """Compare page with page: they end where they ended before."""
    relation: Relation = "unknown"
    for number, kept in enumerate(there):
        if kept is None:
            continue
        now = made[number].raw if number < len(made) else b""
        before_lines, now_lines = ([], []) if now == kept.raw else (_lines(kept.raw), _lines(now))
        if not _begins(now_lines, before_lines):
            if not _begins(before_lines, now_lines):
                return "other"
            relation = "older"
        elif relation == "unknown":
            relation = "extended"
    return relation


def _relation_by_lines(kept: list[_Kept], made: list[ArchivePage]) -> Relation:
    """Compare pages with tools and such without: all lines of one side come in that order on the other."""
    before = [line for one in kept for line in _lines(one.raw)]
    now = [line for one in made for line in _lines(one.raw)]
    if _is_within(before, now):
        return "extended"
    return "older" if _is_within(now, before) else "other"


def _lines(raw: bytes) -> list[str]:
    """Return the lines of a page's turns, a mark in the place of each secret."""
    text = _MASKED.sub(_MARK, mask(raw.partition(_FRONT_END)[2].decode()))
    heading = f"{'#' * RANK} "
    return [line for each in text.split("\n") if (line := each.strip()) and not line.startswith(heading)]


def _begins(lines: list[str], start: list[str]) -> bool:
    return len(lines) >= len(start) and all(map(_is_same, lines, start))


def _is_within(few: list[str], many: Iterable[str]) -> bool:
    rest = iter(many)
    return all(any(_is_same(one, other) for other in rest) for one in few)


def _is_same(one: str, other: str) -> bool:
    """Compare lines; where a secret is masked, what is around it: other shapes reach farther."""
    if one == other:
        return True
    if _MARK not in one + other:
        return False
    heads = sorted((one.partition(_MARK)[0], other.partition(_MARK)[0]), key=len)
    tails = sorted((one.rpartition(_MARK)[2], other.rpartition(_MARK)[2]), key=len)
    return heads[1].startswith(heads[0]) and tails[1].endswith(tails[0])
