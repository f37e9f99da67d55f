"""What a note offers to links: title, aliases, headings and tags; and which notes changed. For any thread."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memd.index.links import Run
from memd.records import Heading
from memd.text import normalized

CHANGED = """
    SELECT id, aliases, headings, title FROM sources LEFT JOIN outlines ON source = id
    WHERE path > ? AND changed > ? AND gone_at IS NULL ORDER BY path
"""
REMOVED = (
    "SELECT path FROM sources WHERE gone_at IS NOT NULL AND changed > ? AND path NOT GLOB '/*' ORDER BY path"
)
PURGED = "SELECT value FROM meta WHERE key = 'names_purged'"
OUTLINE = "SELECT aliases, headings, title FROM sources LEFT JOIN outlines ON source = id WHERE id = ?"

_NO_SLUG = re.compile(r"[^\w\- ]")
_REPEATED = re.compile(r"-\d+$")


class Outline(NamedTuple):
    """Aliases and headings of a source."""

    source: int
    aliases: tuple[str, ...]
    headings: tuple[Heading, ...]


def outlines(run: Run, after: str, since: int) -> Iterator[Outline]:
    """Yield the sources with a path after *after* that changed after the generation *since*, by path."""
    for source, *stored in run(CHANGED, (after, since)):
        yield _outline(source, *stored)


def outline(run: Run, source: int) -> Outline:
    """Return the outline of a source."""
    for stored in run(OUTLINE, (source,)):
        return _outline(source, *stored)
    return Outline(source, (), ())


def removed(run: Run, since: int) -> list[str] | None:
    """Return the paths that went after the generation *since*; None if it is too long ago."""
    if any(purged > since for (purged,) in run(PURGED, ())):
        return None
    return [path for (path,) in run(REMOVED, (since,))]


def heading_of(headings: Sequence[Heading], part: str) -> Heading | None:
    """Return the heading that a link names: as Obsidian writes it, by its text, or as Markdown, by its slug.

    Of a path of headings (``A#B``) the last one counts; of equal slugs the first, and ``-1`` is the second.
    """
    wanted = part.rpartition("#")[2].strip()
    plain = _plain(wanted)
    for heading in headings:
        if _plain(heading.title) == plain:
            return heading
    slug = wanted.casefold()
    named = [one for one in headings if slug_of(one.title) == slug]
    if not named and (repeated := _REPEATED.search(slug)):
        again = [one for one in headings if slug_of(one.title) == slug[: repeated.start()]]
        named = again[int(repeated[0][1:6]) :]
    return named[0] if named else None


def slug_of(title: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return _NO_SLUG.sub("", normalized("NFC", title).casefold()).replace(" ", "-")


def _plain(title: str) -> str:
    """Return a heading as Obsidian compares it: without the signs that a link cannot have."""
    return " ".join(re.sub(r"[#|^:\[\]]|%%", " ", normalized("NFC", title).casefold()).split())


def only_title(title: str) -> Heading:
    """Return the one heading of a source of which no outline is stored: most short notes begin so."""
    return Heading(1, 1, title)


def _outline(source: int, aliases: str | None, headings: str | None, title: str) -> Outline:
    if aliases is None or headings is None:
        return Outline(source, (), (only_title(title),))
    each: Iterable[list[int | str]] = json.loads(headings)
    return Outline(source, tuple(json.loads(aliases)), tuple(Heading(*one) for one in each))  # type: ignore[arg-type]
