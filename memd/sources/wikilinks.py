"""Links of a note: Obsidian's ``[[wikilinks]]``, and ``related`` and ``supersedes`` in the front matter.

Targets are returned as written; `memd.index.links`, which knows all notes, resolves them. Pure.
"""

import re
from collections.abc import Iterator, Sequence

from memd.records import Link, LinkKind
from memd.sources.front_matter import FrontMatter
from memd.sources.markdown import Block, Lines, prose

# Targets of a text, and of each key of its front matter: far more than people write. Arbitrary.
MAX_LINKS = 1_000
MAX_TARGET_CHARS = 1_000  # of a path; a longer target is a paragraph

_WIKILINK = re.compile(r"(?<!\\)\[\[([^\[\]\n]+)\]\]")
_MILLISECONDS = re.compile(r"\d{13}")  # in the front matter of Dendron, whose links are [[label|note]]
_KEYS: tuple[LinkKind, ...] = ("related", "supersedes")


def read_links(lines: Lines, blocks: Sequence[Block], front: FrontMatter) -> tuple[Link, ...]:
    """Return the links of a note, from the front matter first; each target occurs once per kind.

    Links in code and HTML do not count. An embed (``![[note]]``) is a link; a link to a heading of the same
    note is not.
    """
    is_dendron = any(
        _MILLISECONDS.fullmatch(one) for key in ("created", "updated") for one in front.texts(key)
    )
    return (*_of_front(front), *_of_text(lines, blocks, label_first=is_dendron))


def _of_front(front: FrontMatter) -> Iterator[Link]:
    for kind in _KEYS:
        targets = dict.fromkeys(_unlinked(text) for text in front.texts(kind))
        yield from (Link(kind, target, None) for target in list(targets)[:MAX_LINKS] if _is_target(target))


def _of_text(lines: Lines, blocks: Sequence[Block], *, label_first: bool) -> Iterator[Link]:
    found: dict[str, int] = {}  # target → its first line
    for start, text in prose(lines, blocks, "[["):
        at, number = 0, start + 1
        for match in _WIKILINK.finditer(text):
            number, at = number + text.count("\n", at, match.start()), match.start()
            target = _target(match[1].rpartition("|")[2] if label_first else match[1])
            if _is_target(target):
                found.setdefault(target, number)
            if len(found) == MAX_LINKS:
                break
        if len(found) == MAX_LINKS:
            break
    yield from (Link("text", target, line) for target, line in found.items())


def _unlinked(text: str) -> str:
    """Return the target in a front matter value: a ``[[note#part|alias]]``, or the value as a whole.

    YAML reads the brackets of an unquoted link as two lists, so the value may be ``note|alias``.
    """
    match = _WIKILINK.fullmatch(text)
    return _target(match[1]) if match else text.partition("|")[0].strip()


def _target(inside: str) -> str:
    """Return the part before heading and alias; in a table the bar is escaped with a backslash."""
    return inside.partition("|")[0].removesuffix("\\").partition("#")[0].strip()


def _is_target(target: str) -> bool:
    return 0 < len(target) <= MAX_TARGET_CHARS
