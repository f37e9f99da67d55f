"""Which blocks does a Markdown text consist of, and at which lines?

CommonMark with tables, by markdown-it's block rules. Its inline rules are off: they would cost most of
the time and we keep the text as it is written. Link definitions are off, too: they would swallow lines.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from memd.sources.lines import Lines

# A token takes about 500 bytes, and a file of "- a" lines makes five a line: long texts are parsed in
# slices of so many lines, cut where no list or fence is open, so that 4 MiB do not become 1 GB.
SLICE_LINES = 4_000
# A slice ends here at the latest, even within a fence: bounds memory on hostile texts.
MAX_SLICE_LINES = 20_000
# More lines are taken as plain text. Real notes of 4 MiB have half as many; markdown-it needs 3 s here.
MAX_MARKDOWN_LINES = 100_000
# Lines of such a text that make a block: few objects even for a million lines. Arbitrary.
PLAIN_LINES = 32
# What a heading adds to its chunks; longer ones are somebody's paragraph.
MAX_TITLE_CHARS = 200

_MARKDOWN = MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])
_INLINE = MarkdownIt("commonmark")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_MARKUP = re.compile(r"[\\`*_\[\]<&!]")


@dataclass(frozen=True, slots=True)
class Block:
    """One block and the blocks in it. Its first and last line are not blank."""

    kind: str  # markdown-it's name of the token: paragraph, heading, fence, bullet_list, list_item, …
    start: int  # line, counted from 0
    end: int  # behind the last line
    level: int = 0  # of a heading: 1 to 6
    title: str = ""  # of a heading: its text without markup
    children: tuple["Block", ...] = ()


def read_blocks(lines: Lines, first: int) -> Iterator[Block]:
    """Yield the outermost blocks from line *first* on, in order; every non-blank line is in one."""
    if len(lines) - first > MAX_MARKDOWN_LINES:
        for start in range(first, len(lines), PLAIN_LINES):
            block = _trim(lines, Block("paragraph", start, min(start + PLAIN_LINES, len(lines))))
            if block is not None:
                yield block
        return
    for start, end in _slices(lines, first):
        # markdown-it takes a lone \r for a line break, which would shift all line numbers behind it.
        text = "\n".join(lines.line(number).replace("\r", " ") for number in range(start, end))
        at = start
        for block in _tree(_MARKDOWN.parse(text), start):
            trimmed = _trim(lines, replace(block, start=max(block.start, at)))
            if trimmed is not None:
                yield from _plain(lines, at, trimmed.start)
                yield trimmed
                at = trimmed.end
        yield from _plain(lines, at, end)


def segments(lines: Lines, block: Block) -> Iterator[Block]:
    """Cut *block* where its children begin; together the pieces have all of its non-blank lines."""
    starts = [block.start, *(child.start for child in block.children[1:]), block.end]
    for child, start, end in zip(block.children, starts, starts[1:], strict=False):
        trimmed = _trim(lines, replace(child, start=start, end=end))
        if trimmed is not None:
            yield trimmed


def _slices(lines: Lines, first: int) -> Iterator[tuple[int, int]]:
    start, open_fence = first, ""
    for number in range(first, len(lines)):
        long = number - start
        if long >= SLICE_LINES:
            apart = lines.is_blank(number - 1) and not lines.line(number)[:1].isspace()
            if (apart and not open_fence) or long >= MAX_SLICE_LINES:
                yield start, number
                start, open_fence = number, ""
        fence = _FENCE.match(lines.line(number))
        if fence and open_fence in {"", fence[1]}:
            open_fence = "" if open_fence else fence[1]
    if start < len(lines):
        yield start, len(lines)


def _tree(tokens: Sequence[Token], shift: int) -> list[Block]:
    found: list[list[Block]] = [[]]
    opened: list[tuple[Token, str]] = []
    for token in tokens:
        if token.nesting == 1:
            opened.append((token, ""))
            found.append([])
        elif token.nesting == -1:
            children = found.pop()
            _add(found[-1], *opened.pop(), shift, children)
        elif token.type == "inline":
            if opened and opened[-1][0].type == "heading_open":
                opened[-1] = (opened[-1][0], token.content)
        else:
            _add(found[-1], token, "", shift, [])
    return found[0]


def _add(siblings: list[Block], token: Token, content: str, shift: int, children: list[Block]) -> None:
    if token.map is None:  # a table's cell
        return
    start, end = token.map[0] + shift, token.map[1] + shift
    kind = token.type.removesuffix("_open")
    if kind == "heading":
        siblings.append(Block(kind, start, end, int(token.tag[1:]), plain_title(content)))
    else:
        siblings.append(Block(kind, start, end, children=tuple(children)))


def plain_title(content: str) -> str:
    """Return what a reader sees of a heading."""
    title = " ".join(content.split())
    cut = title[: 2 * MAX_TITLE_CHARS]  # inline rules are quadratic on hostile text
    if _MARKUP.search(cut):
        children = _INLINE.parseInline(cut)[0].children or []
        cut = " ".join("".join(_visible(child) for child in children).split())
    return cut if len(cut) <= MAX_TITLE_CHARS else cut[: MAX_TITLE_CHARS - 1] + "…"


def _visible(token: Token) -> str:
    return " " if token.type in {"softbreak", "hardbreak"} else token.content * (token.type != "html_inline")


def _trim(lines: Lines, block: Block) -> Block | None:
    """Leave out blank lines at both ends; None if nothing is left."""
    start, end = block.start, block.end
    while start < end and lines.is_blank(end - 1):
        end -= 1
    while start < end and lines.is_blank(start):
        start += 1
    return replace(block, start=start, end=end) if start < end else None


def _plain(lines: Lines, start: int, end: int) -> Iterator[Block]:
    """Yield the stretches of non-blank lines as paragraphs."""
    first = start
    for number in range(start, end + 1):
        if number == end or lines.is_blank(number):
            if first < number:
                yield Block("paragraph", first, number)
            first = number + 1
