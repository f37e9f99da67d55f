"""Which blocks stand under which headings, and which sections are too small to stand alone?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memd.sources.blocks import Block
from memd.sources.measure import Measure, Room

# A section with less than this part of a chunk's words is joined with its neighbour if both fit: alone it
# says too little to be ranked by meaning, while longer ones keep a vector of their own. Arbitrary.
SMALL = 0.25


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks up to the next one."""

    trail: tuple[Block, ...]  # the headings above and of it, outermost first
    blocks: Sequence[Block]
    lead: int  # so many of the blocks, from the first, are headings that end its trail

    @property
    def parent(self) -> tuple[Block, ...]:
        """The headings above its first one."""
        return self.trail[: len(self.trail) - self.lead]

    @property
    def title(self) -> str:
        """The heading path as people read it."""
        return " > ".join(heading.title for heading in self.trail if heading.title)


def read_sections(blocks: Iterable[Block]) -> Iterator[Section]:
    """Cut before headings.

    A heading that has nothing but deeper headings under it goes with the first of them: a chunk that is
    one bare heading finds nothing.
    """
    trail: tuple[Block, ...] = ()
    inside: list[Block] = []
    lead = 0
    for block in blocks:
        if block.kind == "heading":
            above = tuple(heading for heading in trail if heading.level < block.level)
            if lead == len(inside) > 0 and len(above) == len(trail):
                lead += 1
            else:
                if inside:
                    yield Section(trail, inside, lead)
                inside, lead = [], 1
            trail = (*above, block)
        inside.append(block)
    if inside:
        yield Section(trail, inside, lead)


def join_small(sections: Iterable[Section], measure: Measure, words: int, room: Room) -> Iterator[Section]:
    """Join neighbours that fit into one chunk if one of them is small.

    The later one must stand beside or below the first, under the same parent: what is joined belongs
    together, and the first one's heading path says where. The result has the trail of its first section.
    """
    whole: Section | None = None
    for section in sections:
        if whole is None:
            whole = section
        elif _belong(whole, section, measure, words, room):
            whole = Section(whole.trail, [*whole.blocks, *section.blocks], whole.lead)
        else:
            yield whole
            whole = section
    if whole is not None:
        yield whole


def _belong(first: Section, then: Section, measure: Measure, words: int, room: Room) -> bool:
    if then.trail[: len(first.parent)] != first.parent:
        return False
    begin, middle, stop = (*measure.offsets(first.blocks), measure.offsets(then.blocks)[1])
    small = min(measure.words(begin, middle), measure.words(middle, stop)) < words * SMALL
    return small and room.holds(measure, begin, stop)
