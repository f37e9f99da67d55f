"""The layout of a page for people: titles, facts and tables as aligned text.

On a terminal the text is coloured and folded to its width; elsewhere it is plain, and each row is one line.
Written by hand because rich takes longer to load than the command takes to run.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memctl.output.marker import FAINT, HEADING, Marker
from memctl.text import folded, width_of

_GAP = "  "  # between columns, and before the facts below a title
# In fewer columns a folder's path takes too many lines: each row becomes a list of facts. Arbitrary.
_NARROWEST = 20


class Cell(NamedTuple):
    """A text on one line, and the SGR numbers of its style on a terminal."""

    text: str
    sgr: str = ""


Row = tuple[Cell, ...]


class PageBlock(NamedTuple):
    """A part of a page; blocks are separated by empty lines."""

    title: str  # "" for none
    rows: Sequence[Row]  # all of the same length
    columns: tuple[str, ...] = ()  # headings of a table; without them the rows are facts below the title
    numbers: frozenset[str] = frozenset()  # the columns that are aligned at the right


def drawn(blocks: Iterable[PageBlock], *, width: int | None = None, colour: bool = False) -> str:
    """Return a page; *width* is that of the terminal, None if it is not shown on one."""
    return "".join(f"{line}\n" for line in lines(blocks, width=width, colour=colour))


def lines(blocks: Iterable[PageBlock], *, width: int | None, colour: bool) -> list[str]:
    """Return the lines of a page."""
    page, marker = list[str](), Marker("", colour=colour)
    for block in blocks:
        page += [""] if page else []
        page += [marker.paint(part, HEADING) for part in folded(block.title, width) if part]
        page += _table(block, width, marker)
    return page


def _table(block: PageBlock, width: int | None, marker: Marker) -> Iterator[str]:
    """Yield the lines of the rows, below their headings; only the widest column is folded."""
    headings = [tuple(Cell(title, HEADING) for title in block.columns)] if block.columns else []
    rows = [*headings, *block.rows]
    widths = [max(width_of(cell.text) for cell in column) for column in zip(*rows, strict=True)]
    indent = _GAP if block.title and not block.columns else ""
    if width is not None and widths:
        widest = widths.index(max(widths))
        room = width - len(indent) - len(_GAP) * (len(widths) - 1) - sum(widths) + widths[widest]
        if block.columns and room < min(widths[widest], _NARROWEST):
            titles = [Cell(title, FAINT) for title in block.columns[1:]]
            facts = [  # a row is a list of facts below its first cell
                PageBlock(row[0].text, [fact for fact in zip(titles, row[1:], strict=True) if fact[1].text])
                for row in block.rows
            ]
            yield from lines(facts, width=width, colour=marker.colour)
            return
        widths[widest] = min(widths[widest], max(room, 1))
    right = [title in block.numbers for title in block.columns] or [False] * len(widths)
    for row in rows:
        parts = [folded(cell.text, columns) for cell, columns in zip(row, widths, strict=True)]
        for number in range(max(map(len, parts))):
            cells = []
            for part, columns, cell, at_right in zip(parts, widths, row, right, strict=True):
                text = part[number] if number < len(part) else ""
                shown, spaces = marker.paint(text, cell.sgr), " " * (columns - width_of(text))
                cells.append(f"{spaces}{shown}" if at_right else f"{shown}{spaces}")
            yield f"{indent}{_GAP.join(cells)}".rstrip()
