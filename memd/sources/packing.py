"""How is a section that is too long for one chunk cut into several?

First into atoms, the largest blocks that fit: a list goes to pieces before its items do, and fences,
tables and items only if they alone are too long for the model. Then atoms are packed in their order, each
chunk beginning with the last lines of the one before.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memd.sources.blocks import Block, segments
from memd.sources.measure import Measure, Room, best_cut

# Prose this much longer than the words wanted is not cut yet: better than a rest of a few words.
SLACK = 1.5
# Overlap may be this much longer than wanted, since it is made of whole lines.
OVERLAP_SLACK = 1.5

# Cut only where the model's limit says so: half a fence or half a table is no Markdown.
_SOLID = {"fence", "code_block", "html_block", "table", "list_item"}
_LIMITLESS = math.inf


@dataclass(frozen=True, slots=True)
class _Atom:
    begin: int
    stop: int
    block: Block | None  # what it is; None: a part of a line, which stands alone so that lines stay whole


def pack(
    measure: Measure, blocks: Sequence[Block], lead: int, room: Room, overlap_words: int
) -> Iterator[tuple[int, int]]:
    """Yield the stretches [begin, stop) of a long section's chunks.

    Args:
        measure: of the text.
        blocks: of the section, its headings first.
        lead: how many of them are headings: they go with what follows, never alone.
        room: of a chunk; words are a target, word pieces and characters are limits.
        overlap_words: about so many are repeated in whole lines.
    """
    atoms = list(_section_atoms(measure, blocks, lead, room))
    begin, at = atoms[0].begin, 0
    while at < len(atoms):
        following = at + 1
        while following < len(atoms) and _goes_on(measure, begin, atoms, following, room):
            following += 1
        yield begin, atoms[following - 1].stop
        if following < len(atoms):
            begin = _overlap(measure, atoms[at:following], atoms[following], room, overlap_words)
        at = following


def _goes_on(measure: Measure, begin: int, atoms: Sequence[_Atom], index: int, room: Room) -> bool:
    if atoms[index].block is None or atoms[index - 1].block is None:
        return False
    return room.holds(measure, begin, atoms[index].stop)


def _section_atoms(measure: Measure, blocks: Sequence[Block], lead: int, room: Room) -> Iterator[_Atom]:
    rest = blocks[lead:]
    begin, after = measure.offsets(blocks)[0], measure.offsets(rest)[0] if rest else 0
    half = Room(_LIMITLESS, room.pieces // 2, room.chars // 2)
    if not lead or not rest or not half.holds(measure, begin, after):
        for block in blocks:
            yield from _atoms(measure, block, room)
        return
    less = replace(
        room, pieces=room.pieces - measure.pieces(begin, after), chars=room.chars - (after - begin)
    )
    for index, block in enumerate(rest):
        for number, atom in enumerate(_atoms(measure, block, room if index else less)):
            yield atom if index or number else replace(atom, begin=begin)


def _atoms(measure: Measure, block: Block, room: Room) -> Iterator[_Atom]:
    lines = measure.lines
    begin, stop = measure.offsets([block])
    solid = block.kind in _SOLID
    wanted = replace(room, words=_LIMITLESS if solid else room.words * SLACK)
    if wanted.holds(measure, begin, stop):
        yield _Atom(begin, stop, block)
    elif block.children:
        for segment in segments(lines, block):
            yield from _atoms(measure, segment, room)
    else:
        for number in range(block.start, block.end):
            if not lines.is_blank(number):
                yield from _line_atoms(measure, Block(block.kind, number, number + 1), wanted)


def _line_atoms(measure: Measure, line: Block, room: Room) -> Iterator[_Atom]:
    begin, stop = measure.offsets([line])
    if room.holds(measure, begin, stop):
        yield _Atom(begin, stop, line)
        return
    text = measure.lines.text
    for start, end in cut_line(measure, begin, stop, room):
        part = text[start:end]
        if part.strip():
            yield _Atom(start + len(part) - len(part.lstrip()), start + len(part.rstrip()), None)


def cut_line(measure: Measure, begin: int, stop: int, room: Room) -> Iterator[tuple[int, int]]:
    """Yield parts of about equal length of a line that is too long, behind sentences where it can be."""
    while begin < stop:
        pieces, words = measure.pieces(begin, stop), measure.words(begin, stop)
        parts = math.ceil(max(pieces / room.pieces, words / room.words, (stop - begin) / room.chars))
        if parts <= 1:
            yield begin, stop
            return
        limit = min(
            measure.after_pieces(begin, min(math.ceil(pieces / parts * 1.1), room.pieces)),
            begin + room.chars,
            stop - 1,
        )
        cut = best_cut(measure.lines.text, begin, max(limit, begin + 1))
        yield begin, cut
        begin = cut


def _overlap(
    measure: Measure, before: Sequence[_Atom], following: _Atom, room: Room, overlap_words: int
) -> int:
    """Return where the chunk that has *following* begins: there, or some whole lines before."""
    best = following.begin
    if following.block is None:
        return best
    for start in _line_starts(measure, before):
        words = measure.words(start, following.begin)
        if words > overlap_words * OVERLAP_SLACK or not room.holds(measure, start, following.stop):
            break
        best = start
        if words >= overlap_words:
            break
    return best


def _line_starts(measure: Measure, atoms: Sequence[_Atom]) -> Iterator[int]:
    """Yield, backwards, where an overlap may begin: never at the very first line, nor inside an item."""
    for atom in reversed(atoms):
        if atom.block is None:
            return
        for number in reversed(_entries(atom.block)):
            start = measure.lines.starts[number]
            if start > atoms[0].begin and not measure.lines.is_blank(number):
                yield start


def _entries(block: Block) -> Sequence[int]:
    """Return the lines at which one may begin to read *block*."""
    if block.kind in _SOLID:
        return [block.start]
    if block.children:
        return [block.start, *(child.start for child in block.children[1:])]
    return range(block.start, block.end)
