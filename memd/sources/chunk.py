"""The chunker: cuts a parsed text into chunks at its headings and blocks.

Small neighbouring sections are joined; long sections are packed from their paragraphs, items and rows with
some overlap; only a line that is itself too long is cut inside. A section is first cut into atoms, the
largest blocks that fit: a list is split before its items are, and fences, tables and items only if one alone
is too long for the model. The atoms are then packed in order, and each chunk begins with the last lines of
the previous one. Behind a cut inside a line, the last words before it are in the context.

The text is tokenized once; each later count is two binary searches. Such counts are approximate (cutting a
word changes its pieces), so the final text is counted where certainty is needed.

Pure: no file, no clock. Must not know where chunks are stored nor which model reads them.
"""

import math
import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from operator import itemgetter

from memd.records import Chunk, ChunkLimits, Document, Tokenizer
from memd.sources.front_matter import FrontMatter, read_front_matter
from memd.sources.links import read_links
from memd.sources.markdown import (
    Block,
    Lines,
    fold_blobs,
    headings,
    inline_tags,
    read_blocks,
    read_plain,
    segments,
    split_lines,
    without_hidden,
)
from memd.text import normalized

# Characters tokenized at once: for longer texts the tokenizers library needs more time and memory per
# character.
BATCH_CHARS = 32_000
# A stretch is dense if it has more word pieces than one per two ASCII characters plus three per other
# character. Prose has one per four, Hangul two or three per syllable.
ASCII_A_PIECE = 2
PIECES_A_LETTER = 3
# After so many pieces in dense stretches, each further character of the text counts as one piece. Finding
# four million takes 5 s.
MAX_DENSE_PIECES = 600_000
# How far a cut moves back to keep a sentence whole: at most 40 % of a part.
_SENTENCE_FROM = 0.6
# Longest run of combining marks that a cut respects; arbitrary, no script needs more.
_MAX_MARKS = 16

# Chinese and Japanese are written without spaces: each character counts as a word, as each is a word piece.
# Korean has spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SENTENCE_END = re.compile(
    r"[.!?\u2026][\"'\u201d\u2019)\]]*\s+"  # sentence ends in Latin, Greek and Cyrillic
    r"|[\u3002\uff01\uff1f\uff1b][\u300d\u300f\u201d\u2019\uff09]*\s*"  # full-width marks need no space
)
_CLAUSE_END = re.compile(r"[,;:]\s+|[\uff0c\u3001\uff1a]\s*")
_SPACE = re.compile(r"\s+")
_NO_WORD = re.compile(r"\W+")
_WORD_START = re.compile(rf"(?<!\w)\w|{_WORD.pattern.partition('|')[0]}")
# Of the words before a cut inside a line, which the part behind it repeats in its context. Both arbitrary:
# quoted phrases are mostly shorter, and what is repeated takes room from what is not.
REPEATED_WORDS, REPEATED_CHARS = 8, 100
REPEATED_SHARE = 0.1  # of the pieces of a part of a line that are left for them
_PARTING = frozenset(" \n\r\t")


Masked = Callable[[dict[str, object]], dict[str, object]]


class Measure:
    """Counts words and word pieces of any stretch [begin, stop) of one text, from line *first* on."""

    def __init__(self, lines: Lines, first: int, tokenizer: Tokenizer) -> None:
        self.lines = lines
        self._pieces = array("I")
        self._parts_at_spaces = tokenizer.parts_at_spaces
        self.counted = len(lines.text)  # after this offset each character counts as a piece
        begin = lines.starts[first] if first < len(lines) else len(lines.text)
        dense = 0
        for start, stop in _batches(lines.text, begin):
            if dense > MAX_DENSE_PIECES:
                self.counted = start
                self._pieces.extend(range(start, len(lines.text)))
                break
            text = lines.text[start:stop]
            found = [start + at for at, _ in tokenizer.spans(text)]
            self._pieces.extend(found)
            plain = len(text.encode("ascii", errors="ignore"))
            if len(found) > plain // ASCII_A_PIECE + (len(text) - plain) * PIECES_A_LETTER:
                dense += len(found)
        self._words = array("I", (match.start() for match in _WORD.finditer(lines.text, begin)))

    def words(self, begin: int, stop: int) -> int:
        """Return the number of words that begin in the stretch."""
        return bisect_left(self._words, stop) - bisect_left(self._words, begin)

    def pieces(self, begin: int, stop: int) -> int:
        """Return the number of word pieces that begin in the stretch."""
        return bisect_left(self._pieces, stop) - bisect_left(self._pieces, begin)

    def most_pieces(self, begin: int, stop: int) -> int | None:
        """Return the maximum number of pieces of the stretch as a separate text; None if unknown."""
        text = self.lines.text
        if not self._parts_at_spaces:
            return None
        apart = (begin == 0 or text[begin - 1] in _PARTING) and (stop == len(text) or text[stop] in _PARTING)
        if apart and stop <= self.counted:
            return self.pieces(begin, stop)
        return stop - begin if text[begin:stop].isascii() else None

    def offsets(self, blocks: Sequence[Block]) -> tuple[int, int]:
        """Return the begin of the first and the end of the last of neighbouring *blocks*."""
        return self.lines.starts[blocks[0].start], self.lines.ends[blocks[-1].end - 1]

    def after_pieces(self, begin: int, count: int) -> int:
        """Return the offset of the piece that follows the next *count* pieces."""
        index = bisect_left(self._pieces, begin) + count
        return self._pieces[index] if index < len(self._pieces) else len(self.lines.text)


@dataclass(frozen=True, slots=True)
class Room:
    """The limits of a chunk."""

    words: float
    pieces: int
    chars: int

    def holds(self, measure: Measure, begin: int, stop: int) -> bool:
        """Return whether the stretch is within the limits."""
        return (
            stop - begin <= self.chars
            and measure.pieces(begin, stop) <= self.pieces
            and measure.words(begin, stop) <= self.words
        )


def best_cut(text: str, begin: int, limit: int) -> int:
    """Return the end of a part of a line that begins at *begin* and must not extend beyond *limit*.

    After a sentence or a clause if one ends late enough, otherwise after white space or a sign, otherwise at
    the limit, but not between a character and its combining marks.
    """
    late = begin + int((limit - begin) * _SENTENCE_FROM)
    half = begin + (limit - begin) // 2
    for pattern, start in ((_SENTENCE_END, late), (_CLAUSE_END, late), (_SPACE, half), (_NO_WORD, half)):
        cut = max((match.end() for match in pattern.finditer(text, start, limit)), default=0)
        if cut > begin:
            return cut
    marks = next((n for n in range(_MAX_MARKS) if not unicodedata.combining(text[limit - n])), 0)
    return max(limit - marks, begin + 1)


def _batches(text: str, begin: int) -> Iterator[tuple[int, int]]:
    while begin < len(text):
        stop = begin + BATCH_CHARS
        if stop < len(text):
            stop = max(text.rfind("\n", begin, stop), text.rfind(" ", begin, stop)) + 1 or stop
        yield begin, min(stop, len(text))
        begin = stop


# A section with less than this share of a chunk's words is joined with its neighbour if both fit: it has too
# little text to be ranked by meaning, while longer sections keep a vector of their own. Arbitrary.
SMALL = 0.25


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks up to the next one."""

    trail: tuple[Block, ...]  # the headings above it and its own, outermost first
    blocks: Sequence[Block]
    lead: int  # how many of the first blocks are headings, the last ones of the trail

    @property
    def parent(self) -> tuple[Block, ...]:
        """The headings above its first heading."""
        return self.trail[: len(self.trail) - self.lead]

    @property
    def title(self) -> str:
        """The heading path in its displayed form."""
        return " > ".join(heading.title for heading in self.trail if heading.title)


def read_sections(blocks: Iterable[Block]) -> Iterator[Section]:
    """Split blocks into sections at headings.

    A heading that is followed directly by a deeper heading shares a section with it: a chunk of a heading
    alone is of no use.
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

    The later one must be a sibling or a descendant of the first, under the same parent, so that the heading
    path of the first one fits both. The result has the trail of its first section.
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


# Prose is not cut up to this multiple of the wanted words: better than a remainder of a few words.
SLACK = 1.5
# Overlap may exceed the wanted words by this factor, since it consists of whole lines.
OVERLAP_SLACK = 1.5

# Cut only if the model's limit requires it: half a fence or half a table is not valid Markdown.
_SOLID = {"fence", "code_block", "html_block", "table", "list_item"}
_LIMITLESS = math.inf


@dataclass(frozen=True, slots=True)
class _Atom:
    begin: int
    stop: int
    block: Block | None  # None: a part of a line, which is never packed with others so that lines stay whole


def pack(
    measure: Measure, blocks: Sequence[Block], lead: int, room: Room, overlap_words: int
) -> Iterator[tuple[int, int]]:
    """Yield the stretches [begin, stop) of the chunks of a long section.

    *lead* of its *blocks* are headings, which stay together with the following text. *room*: words are a
    target, word pieces and characters are limits. About *overlap_words* are repeated, in whole lines.
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
    narrow = replace(room, pieces=max(1, int(room.pieces * (1 - REPEATED_SHARE))))
    for start, end in cut_line(measure, begin, stop, narrow):
        part = text[start:end]
        if part.strip():
            yield _Atom(start + len(part) - len(part.lstrip()), start + len(part.rstrip()), None)


def cut_line(measure: Measure, begin: int, stop: int, room: Room) -> Iterator[tuple[int, int]]:
    """Yield parts of about equal length of a line that is too long, cut after sentences if possible."""
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
    """Return the begin of the chunk that contains *following*: its own, or some whole lines before it."""
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
    """Yield the possible starts of an overlap, backwards: never the very first line, nor inside an item."""
    for atom in reversed(atoms):
        if atom.block is None:
            return
        for number in reversed(_entries(atom.block)):
            start = measure.lines.starts[number]
            if start > atoms[0].begin and not measure.lines.is_blank(number):
                yield start


def _entries(block: Block) -> Sequence[int]:
    """Return the lines of *block* at which reading may begin."""
    if block.kind in _SOLID:
        return [block.start]
    if block.children:
        return [block.start, *(child.start for child in block.children[1:])]
    return range(block.start, block.end)


# The heading path may take this share of the model's input, and title with tags the same again.
PREFIX_SHARE = 0.25
# Maximum characters per word piece: prose has 4 to 6; padded tables and indented code have room. Necessary
# because the tokenizer makes one unknown piece of any "word" of over 100 characters, such as 1 MB of base64.
MAX_CHARS_PER_PIECE = 16
# Cache size for the counts of headings, heading paths and contexts of one text. Arbitrary.
COUNTS_KEPT = 1_000
_JOINT = " > "
# A turn's heading in an archive, if the turn is the page's first or of another day than the one before. The
# headings in a turn's text have deeper levels.
_TURN_LEVEL = 2
THINKING = " (thinking)"  # behind the name of a speaker
_TURN_DAY = re.compile(r".* · (\d{4}-\d\d-\d\d) \d\d:\d\d", re.DOTALL)
# In English, as memd reads dates in questions. Not by strftime, whose words depend on the locale.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class _CutNote:
    """The text and settings that all steps share."""

    lines: Lines
    tokenizer: Tokenizer
    limits: ChunkLimits
    front: FrontMatter
    title: str  # as a person sees it
    folders: Sequence[str]
    days: Sequence[tuple[int, str]]  # from which line on a text is of which day; empty: none has a day
    # The tokenizer's functions with a cache: the same headings precede many chunks.
    count: Callable[[str], int]
    spans: Callable[[str], list[tuple[int, int]]]

    @property
    def max_chars(self) -> int:
        return self.limits.max_tokens * MAX_CHARS_PER_PIECE


def parse(
    text: str,
    *,
    tokenizer: Tokenizer,
    limits: ChunkLimits,
    plain: bool = False,
    is_top: bool = True,
    day: date | None = None,
    masked: Masked | None = None,
    place: Sequence[str] = (),
) -> Document:
    r"""Cut *text* into chunks.

    Every non-blank line outside of the front matter is in a chunk. The text of a chunk is exactly its lines,
    with their line breaks; only if a line is itself too long, the text is a part of it (the first part may
    begin with the headings above the line); base64 is one word. No chunk is blank, and none has more than
    ``limits.max_tokens`` word pieces in the model's input. A note of only front matter is one chunk.

    Args:
        text: of a source, without its BOM; ``\n`` and ``\r\n`` end lines.
        tokenizer: of the model that reads the chunks.
        limits: of a chunk; its words are a target, its word pieces a promise.
        plain: ignore Markdown and front matter.
        is_top: *text* begins at the top of the file, so that it may begin with front matter.
        day: of a page of an archive. The context of each of its chunks has the day of its first turn: a
            question may name the day, and the turns rarely do.
        place: the names of the note's folders and of its file, as words; "" for a name of none. That of
            the file is the title of a text that has none. The context of each chunk has the title, that of
            one that does not show the title itself, and of the first, the folders, too.
        masked: returns the front matter to be used instead of that of the text; None: as it is.

    Returns:
        Title, tags, front matter, and the chunks in the order of the text. Warnings contain line numbers
        and no words of the text.
    """
    text, folded = fold_blobs(text if plain else without_hidden(text))
    lines = replace(split_lines(text), folded=folded)
    front = FrontMatter({}) if plain or not is_top else read_front_matter(lines)
    front = front if masked is None else replace(front, values=masked(front.values))
    literal = [Block("code_block", 0, front.lines)] if front.is_text else []
    found, warnings = read_plain(lines) if plain else read_blocks(lines, front.lines)
    blocks = [*literal, *found]
    count, spans = lru_cache(COUNTS_KEPT)(tokenizer.count), lru_cache(COUNTS_KEPT)(tokenizer.spans)
    days = [] if day is None else list(_days(day, found))
    level_1 = next((block.title for block in blocks if block.level == 1 and block.title), "")
    title = front.title or level_1
    *folders, name = place or ("",)
    page = _CutNote(lines, tokenizer, limits, front, title or name, folders, days, count, spans)
    measure = Measure(lines, blocks[0].start if blocks else len(lines), tokenizer)
    if measure.counted < len(text):
        number = lines.number_at(measure.counted) + 1
        warnings += (f"too-complex: from line {number} on it is cut into short chunks",)
    chunks = tuple(_chunks(page, measure, blocks) if blocks else _front_matter_chunk(page))
    assistants = front.values.get("assistants")
    if day is not None and isinstance(assistants, list):
        chunks = tuple(_with_shares(chunks, found, assistants))
    tags = front.tags if plain else merged_tags(front.tags, inline_tags(lines, found))
    return Document(
        title,
        tags,
        front.values,
        chunks,
        front.warnings + warnings,
        tuple(filter(None, (*front.aliases, front.title))),
        front.entry_id,
        () if plain else read_links(lines, found, front),
        tuple(headings(found)),
    )


def merged_tags(tags: tuple[str, ...], inline: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags of front matter and text, each once, ignoring case."""
    known = {tag.casefold() for tag in tags}
    return (*tags, *(tag for tag in inline if tag.casefold() not in known))


def _days(first: date, blocks: Iterable[Block]) -> Iterator[tuple[int, str]]:
    """Yield the line from which on each day counts, and the day as people write it: after its ISO form."""
    yield 0, _written(first)
    for block in blocks:
        if block.level == _TURN_LEVEL and (dated := _TURN_DAY.fullmatch(block.title)):
            with suppress(ValueError):  # digits that are no date
                yield block.start, _written(date.fromisoformat(dated[1]))


def _with_shares(
    chunks: Iterable[Chunk], blocks: Iterable[Block], assistants: Sequence[str]
) -> Iterator[Chunk]:
    """Yield the chunks with the share of their lines that one of the *assistants* said."""
    turns = {block.start + 1: block.title for block in blocks if block.level == _TURN_LEVEL}
    starts = [0, *turns]
    is_assistant = [
        False,
        *(title.partition(" · ")[0].removesuffix(THINKING) in assistants for title in turns.values()),
    ]
    for chunk in chunks:
        said = [
            is_assistant[bisect_right(starts, number) - 1]
            for number, line in enumerate(chunk.text.split("\n"), chunk.start_line)
            if line.strip() and number not in turns
        ]
        yield replace(chunk, assistant=sum(said) / len(said)) if any(said) else chunk


def _written(day: date) -> str:
    return f"{day.isoformat()}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def _chunks(page: _CutNote, measure: Measure, blocks: list[Block]) -> Iterator[Chunk]:
    limits = page.limits
    # A joined section leaves half of the share that headings, title and tags may take in front of it.
    most = Room(limits.words, int(limits.max_tokens * (1 - PREFIX_SHARE)), page.max_chars)
    is_first = True
    for section in join_small(read_sections(blocks), measure, limits.words, most):
        prefix = _prefix(page, section, 0, 0, is_first=is_first)
        pieces = max(1, limits.max_tokens - page.count(prefix))
        room = Room(limits.words, pieces, page.max_chars)
        begin, stop = measure.offsets(section.blocks)
        if Room(limits.words * SLACK, pieces, page.max_chars).holds(measure, begin, stop):
            stretches = iter([(begin, stop)])
        else:
            stretches = pack(measure, section.blocks, section.lead, room, limits.overlap_words)
        for one_begin, one_stop in stretches:
            yield from _checked(page, measure, section, one_begin, one_stop, is_first=is_first)
            is_first = False


def _checked(
    page: _CutNote, measure: Measure, section: Section, begin: int, stop: int, *, is_first: bool
) -> Iterator[Chunk]:
    """Yield the stretch as a chunk, or as halves if its exact count exceeds the limit."""
    text = page.lines.text[begin:stop]
    first, last = page.lines.number_at(begin) + 1, page.lines.number_at(stop - 1) + 1
    start_byte = page.lines.bytes_before(begin)
    most = measure.most_pieces(begin, stop)
    prefix = _prefix(page, section, begin, stop, is_first=is_first)
    above = f"{prefix}\n\n" if prefix else ""
    for context in dict.fromkeys((above + _words_before(page, begin), above, "")):
        chunk = Chunk(first, last, section.title, text, start_byte, context)
        if _surely_fits(page, chunk, most) or _fits(page, chunk) or (len(text) == 1 and not context):
            yield chunk
            return
    for half_begin, half_stop in _halves(page.lines, begin, stop):
        yield from _checked(page, measure, section, half_begin, half_stop, is_first=is_first)
        is_first = False


def _words_before(page: _CutNote, begin: int) -> str:
    """Return the last words before a cut inside a line, so that a phrase across it is found; else ""."""
    text, most = page.lines.text, min(page.limits.overlap_words, REPEATED_WORDS)
    line = page.lines.starts[page.lines.number_at(begin)]
    start = max(line, begin - REPEATED_CHARS)
    places = [word.start() for word in _WORD_START.finditer(text, start, begin)]
    return text[places[-most:][0] : begin] if places and most else ""


def _surely_fits(page: _CutNote, chunk: Chunk, most: int | None) -> bool:
    """Return whether a text of at most *most* pieces certainly fits together with its context."""
    is_apart = chunk.context[-1:] in _PARTING or not chunk.context  # else a piece may reach into the text
    if most is None or not is_apart or most + page.count(chunk.context) > page.limits.max_tokens:
        return False
    # The model's input is normalized, which may combine characters that were counted separately.
    return chunk.text.isascii() or unicodedata.is_normalized("NFC", chunk.text)


def _fits(page: _CutNote, chunk: Chunk) -> bool:
    return page.tokenizer.count(chunk.embed_text) <= page.limits.max_tokens


def _halves(lines: Lines, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cut near the middle: between lines, or within a single line. Neither half has blank edges."""
    first, last = lines.number_at(begin), lines.number_at(stop - 1)
    middle = (begin + stop) // 2
    cut = best_cut(lines.text, begin, middle)
    if first < last:
        cut = lines.starts[min(max(lines.number_at(middle), first + 1), last)]
    for one_begin, one_stop in ((begin, cut), (cut, stop)):
        part = lines.text[one_begin:one_stop]
        if part.strip():
            # Without the blank lines at its top, but with the indentation after them.
            blank = part[: len(part) - len(part.lstrip())]
            yield one_begin + blank.rfind("\n") + 1, one_begin + len(part.rstrip())


def _prefix(page: _CutNote, section: Section, begin: int, stop: int, *, is_first: bool) -> str:
    """Return the context that the stretch lacks: title, day, headings, and at first the front matter.

    The title of an archived conversation is its first words, and goes with its first chunk alone. Folders
    are in front of the title: of notes whose text says little of their name they find one in six more.
    """
    starts = page.lines.starts
    hidden = [block.title for block in section.trail if not begin <= starts[block.start] < stop]
    share = int(page.limits.max_tokens * PREFIX_SHARE)
    path = _path(page, [title for title in hidden if title], share)
    if page.days:
        line = max(section.blocks[0].start, page.lines.number_at(begin))
        day = page.days[bisect_right(page.days, line, key=itemgetter(0)) - 1][1]
        path = "\n".join(filter(None, (_clipped(page, day, share), path)))
    shown = f"{path}\n{page.lines.text[begin:stop]}".casefold()
    is_shown = not page.title or page.title.casefold() in shown or (bool(page.days) and not is_first)
    about = [] if is_shown else [page.title]
    if about or is_first:
        about = [*filter(None, page.folders), *about]
    names: list[str] = []
    if is_first:
        front = page.front
        names = [one for one in (*front.aliases, *front.tags) if front.lines or one.casefold() not in shown]
    top = _clipped(page, "\n".join([_JOINT.join(about), ", ".join(names)]).strip(), share)
    return "\n".join(part for part in (top, path) if part)


def _path(page: _CutNote, titles: list[str], pieces: int) -> str:
    """Join headings; drop the outermost ones if the path is too long."""
    while len(titles) > 1 and _path_pieces(page, titles) > pieces:
        titles = titles[1:]
    return _clipped(page, _JOINT.join(titles), pieces)


def _path_pieces(page: _CutNote, titles: list[str]) -> int:
    if not page.tokenizer.parts_at_spaces:
        return page.count(_JOINT.join(titles))
    return sum(map(page.count, titles)) + (len(titles) - 1) * page.count(_JOINT)


def _clipped(page: _CutNote, text: str, pieces: int) -> str:
    if not text:  # most chunks have no context
        return ""
    text = normalized("NFC", text[: pieces * MAX_CHARS_PER_PIECE])
    if page.count(text) <= pieces:
        return text
    spans = page.spans(text)
    return text if len(spans) <= pieces else text[: spans[pieces][0]].rstrip()


def _front_matter_chunk(page: _CutNote) -> Iterator[Chunk]:
    """Yield the chunk of a note of only front matter, so that its values are found."""
    lines, front = page.lines, page.front
    if not front.values:
        return
    about = "\n".join([page.title, ", ".join([*front.aliases, *front.tags])]).strip()
    context = f"{_clipped(page, about, page.limits.max_tokens // 2)}\n\n" if about else ""
    chunk = Chunk(1, 1, "", lines.line(0), 0, context)
    for last in range(1, front.lines):
        longer = Chunk(1, last + 1, "", lines.text[: lines.ends[last]], 0, context)
        if lines.ends[last] > page.max_chars or not _fits(page, longer):
            break
        chunk = longer
    yield chunk
