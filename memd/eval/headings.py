"""The headings of notes, and which of them make questions. Pure, and the same for the same notes and seed.

A heading is what its writer calls the text below it: a question with a known answer. It says something
only where it has two words of its own, stands in one note alone, and has text below it.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memd.eval.words import content_words, words
from memd.search.filters import BY_KEY
from memd.sources.markdown import MAX_TITLE_CHARS, Block, closing_line, plain_title, read_blocks, split_lines

MIN_CONTENT_WORDS = 2  # one word alone is a label: "Postgres" stands above a hundred different texts
MIN_BELOW = 40  # letters and digits below a heading; arbitrary: half a line is no answer

_WIKI_LINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]")
_ANCHOR = re.compile(r"\s*\{#[^}]*\}$")  # {#name}, which some renderers take as the heading's own name
_OPERATOR = re.compile(rf"(?<!\S)({'|'.join(BY_KEY)}):(?=\S)")


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading; lines are counted from 0."""

    level: int  # 1 to 6
    text: str  # as a reader sees it, without markup
    start: int
    end: int  # behind its last line: a Setext heading has two or more


@dataclass(frozen=True, slots=True)
class Choice:
    """One heading that is asked for."""

    path: str
    heading: Heading
    first_line: int  # of the text below it, counted from 0

    @property
    def words(self) -> tuple[str, ...]:
        """The heading's words, as `words` has them."""
        return words(self.heading.text)

    @property
    def query(self) -> str:
        """What is typed: the heading without anything that a search would take for an operator."""
        text = re.sub(r"(?<!\S)-+(?=\w)", "", self.heading.text.replace('"', " "))
        return " ".join(_OPERATOR.sub(r"\1 ", text).split())


@dataclass(frozen=True, slots=True)
class Chosen:
    """The questions, and how many headings make none."""

    choices: tuple[Choice, ...]  # ordered by path, one a note
    headings: int  # of all notes
    left_out: Mapping[str, int]  # why → how many
    notes: int  # with at least one heading that could be asked for


def front_matter_end(lines: Sequence[str]) -> int:
    """Return how many lines the front matter has, both fences included; 0 without one."""
    end = closing_line(split_lines("\n".join(lines)))
    return 0 if end is None else end + 1


def headings(lines: Sequence[str]) -> list[Heading]:
    """Return the headings of a text, in its order: outermost ones that have a text."""
    blocks, _ = read_blocks(split_lines("\n".join(lines)), front_matter_end(lines))
    return [heading for block in blocks if block.level and (heading := _heading(block)).text]


def visible(markup: str) -> str:
    """Return what a reader sees of a line of Markdown."""
    return _plain(plain_title(markup))


def _heading(block: Block) -> Heading:
    return Heading(block.level, _plain(block.title), block.start, block.end)


def _plain(title: str) -> str:
    """Return a title without what CommonMark does not know: links as wikis write them, and anchors."""
    return " ".join(_ANCHOR.sub("", _WIKI_LINK.sub(r"\1", title)).split())


def choose(texts: Mapping[str, Sequence[str]], *, wanted: int, seed: int) -> Chosen:
    """
    Choose at most one heading a note, and at most *wanted* of them.

    One, because each that is held out takes a part of the note's own words away, and two would take more
    than a reader ever misses. A choice depends on the seed, the path and the heading alone, so another note
    more or less changes one question and not all of them.

    Args:
        texts: path → lines.
        wanted: questions.
        seed: another one chooses others.
    """
    found = {path: headings(lines) for path, lines in texts.items()}
    # The notes that a heading stands in, not its places: a note may repeat itself.
    spread = Counter(title for known in found.values() for title in {words(one.text) for one in known})
    left_out: Counter[str] = Counter()
    best: list[tuple[bytes, Choice]] = []
    for path, known in found.items():
        usable = []
        for choice, fault in _judged(path, texts[path], known, spread):
            if fault:
                left_out[fault] += 1
            else:
                usable.append((_lot(seed, path, choice.heading.text), choice))
        if usable:
            best.append((_lot(seed, path, ""), min(usable, key=lambda drawn: drawn[0])[1]))
    drawn = sorted(best, key=lambda lot: lot[0])[:wanted]
    choices = sorted((choice for _, choice in drawn), key=lambda choice: choice.path)
    return Chosen(tuple(choices), sum(map(len, found.values())), dict(left_out), len(best))


def _judged(
    path: str, lines: Sequence[str], known: Sequence[Heading], spread: Mapping[tuple[str, ...], int]
) -> Iterator[tuple[Choice, str]]:
    """Yield each heading with why it makes no question; "" where it makes one."""
    for position, heading in enumerate(known):
        first_line, amount = _below(lines, known, position)
        fault = ""
        if content_words(heading.text) < MIN_CONTENT_WORDS or len(heading.text) >= MAX_TITLE_CHARS:
            fault = "too general"
        elif spread[words(heading.text)] > 1:
            fault = "in several notes"
        elif amount < MIN_BELOW:
            fault = "nothing below"
        yield Choice(path, heading, first_line), fault


def _below(lines: Sequence[str], known: Sequence[Heading], position: int) -> tuple[int, int]:
    """Return the first line of the text below a heading, and how many letters and digits it has there."""
    heading = known[position]
    later = [other for other in known if other.start >= heading.end]
    stop = next((other.start for other in later if other.level <= heading.level), len(lines))
    titles = {number for other in later for number in range(other.start, other.end)}
    inside = [n for n in range(heading.end, stop) if n not in titles and lines[n].strip()]
    amount = sum(character.isalnum() for number in inside for character in lines[number])
    return (inside[0] if inside else heading.start), amount


def _lot(seed: int, path: str, heading: str) -> bytes:
    """Draw a lot that stays the same in each run."""
    return hashlib.blake2b(f"{seed}\0{path}\0{heading}".encode(), digest_size=8).digest()
