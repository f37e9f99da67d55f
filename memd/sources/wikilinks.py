"""Links of a note: ``[[wikilinks]]`` in its text (Obsidian's), ``related`` and ``supersedes`` above it.

What a target means is not known here: it is resolved where all notes are known (`memd.index.links`). Pure.
"""

import re
from collections.abc import Iterator, Sequence

from memd.records import Link, LinkKind
from memd.sources.markdown import Block, FrontMatter, Lines, prose

# Targets of a note and of each key of its front matter: far more than anybody writes. Arbitrary.
MAX_LINKS = 1_000
MAX_TARGET_CHARS = 1_000  # of a path; longer ones are somebody's paragraph

_WIKILINK = re.compile(r"(?<!\\)\[\[([^\[\]\n]+)\]\]")
_KEYS: tuple[LinkKind, ...] = ("related", "supersedes")


def read_links(lines: Lines, blocks: Sequence[Block], front: FrontMatter) -> tuple[Link, ...]:
    """Return a note's links, those of its front matter first; each target once a kind.

    None is in code or HTML. An embed (``![[note]]``) is a link, one to a heading of the note itself is none.
    """
    return (*_of_front(front), *_of_text(lines, blocks))


def _of_front(front: FrontMatter) -> Iterator[Link]:
    for kind in _KEYS:
        targets = dict.fromkeys(_unlinked(text) for text in front.texts(kind))
        yield from (Link(kind, target, None) for target in list(targets)[:MAX_LINKS] if _is_target(target))


def _of_text(lines: Lines, blocks: Sequence[Block]) -> Iterator[Link]:
    found: dict[str, int] = {}  # target → its first line
    for start, text in prose(lines, blocks, "[["):
        at, number = 0, start + 1
        for match in _WIKILINK.finditer(text):
            number, at = number + text.count("\n", at, match.start()), match.start()
            target = _target(match[1])
            if _is_target(target):
                found.setdefault(target, number)
            if len(found) == MAX_LINKS:
                break
        if len(found) == MAX_LINKS:
            break
    yield from (Link("text", target, line) for target, line in found.items())


def _unlinked(text: str) -> str:
    """Return what a value of the front matter names: ``[[note#part|alias]]`` as in a text, else all of it.

    YAML takes the brackets of a link without quotes for two lists, so its alias may come alone.
    """
    match = _WIKILINK.fullmatch(text)
    return _target(match[1]) if match else text.partition("|")[0].strip()


def _target(inside: str) -> str:
    """Return what stands before alias and heading; in a table the bar has a backslash in front."""
    return inside.partition("|")[0].removesuffix("\\").partition("#")[0].strip()


def _is_target(target: str) -> bool:
    return 0 < len(target) <= MAX_TARGET_CHARS
