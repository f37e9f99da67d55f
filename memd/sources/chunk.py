"""Which chunks does a text consist of?

The text is cut at headings; small neighbouring sections are joined, long ones are packed from their
paragraphs, items and rows with some overlap, and only a line that is itself too long is cut inside.
Pure: no file, no clock. It must not know where chunks are stored nor which model reads them.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from memd.records import Chunk, ChunkLimits, Document, Tokenizer
from memd.sources.blocks import Block, read_blocks, read_plain
from memd.sources.frontmatter import FrontMatter, read_front_matter
from memd.sources.lines import Lines, split_lines
from memd.sources.measure import Measure, Room, best_cut
from memd.sources.packing import SLACK, pack
from memd.sources.sections import Section, join_small, read_sections

# The heading path, and again title with tags, may take this part of what the model reads.
PREFIX_SHARE = 0.25
# Characters a word piece, at most: prose has 4 to 6; padded tables and indented code have room. Needed
# because the tokenizer calls any "word" of over 100 characters one unknown piece, and 1 MB of base64 is one.
MAX_CHARS_PER_PIECE = 16


@dataclass(frozen=True, slots=True)
class _Page:
    """What all steps need to know of one text."""

    lines: Lines
    tokenizer: Tokenizer
    limits: ChunkLimits
    front: FrontMatter

    @property
    def max_chars(self) -> int:
        return self.limits.max_tokens * MAX_CHARS_PER_PIECE


def parse(text: str, *, tokenizer: Tokenizer, limits: ChunkLimits, plain: bool = False) -> Document:
    r"""Cut *text* into chunks.

    Every non-blank line outside of the front matter is in a chunk. A chunk's text is what stands at its
    lines, line breaks included; only where a line is itself too long, the text is a part of it (the first
    part may have the line's headings in front). No chunk is blank, none has more than
    ``limits.max_tokens`` word pieces in what the model reads. A note of nothing but front matter is one
    chunk if that has a title or tags, else none.

    Args:
        text: of a source, without its BOM; ``\n`` and ``\r\n`` end lines.
        tokenizer: of the model that reads the chunks.
        limits: of a chunk; its words are a target, its word pieces a promise.
        plain: take neither Markdown nor front matter for what they are.

    Returns:
        Title, tags, front matter, and the chunks in the order of the text. Warnings name line numbers
        and no word of the text.
    """
    lines = split_lines(text)
    front = FrontMatter({}) if plain else read_front_matter(lines)
    literal = [Block("code_block", 0, front.lines)] if front.is_text else []
    found, warnings = read_plain(lines) if plain else read_blocks(lines, front.lines)
    blocks = [*literal, *found]
    page = _Page(lines, tokenizer, limits, front)
    chunks = tuple(_chunks(page, blocks) if blocks else _front_matter_chunk(page))
    level_1 = (block.title for block in blocks if block.level == 1 and block.title)
    return Document(
        front.title or next(level_1, ""), front.tags, front.values, chunks, front.warnings + warnings
    )


def _chunks(page: _Page, blocks: list[Block]) -> Iterator[Chunk]:
    limits = page.limits
    measure = Measure(page.lines, blocks[0].start, page.tokenizer)
    # A joined section may get half of what headings, title and tags can take in front of it.
    most = Room(limits.words, int(limits.max_tokens * (1 - PREFIX_SHARE)), page.max_chars)
    is_first = True
    for section in join_small(read_sections(blocks), measure, limits.words, most):
        prefix = _prefix(page, section, 0, 0, is_first=is_first)
        pieces = max(1, limits.max_tokens - page.tokenizer.count(prefix))
        room = Room(limits.words, pieces, page.max_chars)
        begin, stop = measure.offsets(section.blocks)
        if Room(limits.words * SLACK, pieces, page.max_chars).holds(measure, begin, stop):
            stretches = iter([(begin, stop)])
        else:
            stretches = pack(measure, section.blocks, section.lead, room, limits.overlap_words)
        for one_begin, one_stop in stretches:
            yield from _checked(page, section, one_begin, one_stop, is_first=is_first)
            is_first = False


def _checked(page: _Page, section: Section, begin: int, stop: int, *, is_first: bool) -> Iterator[Chunk]:
    """Yield the stretch as a chunk, or in halves where its real count is over the limit."""
    text = page.lines.text[begin:stop]
    first, last = page.lines.number_at(begin) + 1, page.lines.number_at(stop - 1) + 1
    start_byte = page.lines.bytes_before(begin)
    for prefix in (_prefix(page, section, begin, stop, is_first=is_first), ""):
        chunk = Chunk(first, last, section.title, text, start_byte, f"{prefix}\n\n" if prefix else "")
        if _fits(page, chunk) or len(text) == 1:
            yield chunk
            return
    for half_begin, half_stop in _halves(page.lines, begin, stop):
        yield from _checked(page, section, half_begin, half_stop, is_first=is_first)
        is_first = False


def _fits(page: _Page, chunk: Chunk) -> bool:
    return page.tokenizer.count(chunk.embed_text) <= page.limits.max_tokens


def _halves(lines: Lines, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cut near the middle: between lines, or within the only one. Neither half is blank at its edges."""
    first, last = lines.number_at(begin), lines.number_at(stop - 1)
    middle = (begin + stop) // 2
    cut = best_cut(lines.text, begin, middle)
    if first < last:
        cut = lines.starts[min(max(lines.number_at(middle), first + 1), last)]
    for one_begin, one_stop in ((begin, cut), (cut, stop)):
        part = lines.text[one_begin:one_stop]
        if part.strip():
            yield one_begin + _blank_head(part), one_begin + len(part.rstrip())


def _blank_head(text: str) -> int:
    """Return how long the blank lines at the top of *text* are; its indentation stays."""
    blank = text[: len(text) - len(text.lstrip())]
    return blank.rfind("\n") + 1


def _prefix(page: _Page, section: Section, begin: int, stop: int, *, is_first: bool) -> str:
    """Return what the stretch does not show itself: its headings, and for the first one title and tags."""
    starts = page.lines.starts
    hidden = [block.title for block in section.trail if not begin <= starts[block.start] < stop]
    share = int(page.limits.max_tokens * PREFIX_SHARE)
    path = _path(page.tokenizer, [title for title in hidden if title], share)
    if not is_first:
        return path
    title = page.front.title
    shown = f"{path}\n{page.lines.text[begin:stop]}".casefold()
    about = [] if title.casefold() in shown else [title]
    top = _clipped(page.tokenizer, "\n".join([*about, ", ".join(page.front.tags)]).strip(), share)
    return "\n".join(part for part in (top, path) if part)


def _path(tokenizer: Tokenizer, titles: list[str], pieces: int) -> str:
    """Join headings; where that is too long, the outer ones go first."""
    while len(titles) > 1 and tokenizer.count(" > ".join(titles)) > pieces:
        titles = titles[1:]
    return _clipped(tokenizer, " > ".join(titles), pieces)


def _clipped(tokenizer: Tokenizer, text: str, pieces: int) -> str:
    if not text:  # most chunks have nothing in front
        return ""
    text = unicodedata.normalize("NFC", text[: pieces * MAX_CHARS_PER_PIECE])
    spans = tokenizer.spans(text)
    return text if len(spans) <= pieces else text[: spans[pieces][0]].rstrip()


def _front_matter_chunk(page: _Page) -> Iterator[Chunk]:
    """Make a note that is all front matter findable by its title and tags."""
    lines, front = page.lines, page.front
    about = "\n".join([front.title, ", ".join(front.tags)]).strip()
    if not about:
        return
    context = _clipped(page.tokenizer, about, page.limits.max_tokens // 2) + "\n\n"
    chunk = Chunk(1, 1, "", lines.line(0), 0, context)
    for last in range(1, front.lines):
        longer = Chunk(1, last + 1, "", lines.text[: lines.ends[last]], 0, context)
        if lines.ends[last] > page.max_chars or not _fits(page, longer):
            break
        chunk = longer
    yield chunk
