"""Passages: the lines that a hit shows, of one chunk or of chunks that follow each other. Pure."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from memd.index.reader import StoredChunk

# Where a line begins: its number in the file, bytes of it in front. Chunks overlap by whole lines, so what is
# in two of them begins at the same place; each part of a line that is too long begins at a place of its own.
Line = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a source."""

    start_line: int  # 1-based, inclusive
    end_line: int
    start_byte: int  # of the first line, that the text begins at
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """What a hit shows of one chunk."""

    rank: int  # of the chunk among the candidates, the best 0
    lines: dict[Line, str]  # but for those of better hits


def lines_of(chunk: StoredChunk, without: Container[Line] = ()) -> dict[Line, str]:
    """Return the lines of a chunk but for some of them."""
    found = {}
    for number, text in enumerate(chunk.text.split("\n")):
        line = chunk.start_line + number, 0 if number else chunk.start_byte
        if line not in without:
            found[line] = text
    return found


def passage(parts: Iterable[Part]) -> Passage | None:
    """Return parts of a source as a passage, without blank lines at its ends; None where nothing is left."""
    lines = {line: text for part in parts for line, text in part.lines.items()}
    told = sorted(line for line, text in lines.items() if text.strip())
    if not told:
        return None
    text, last, end = "", told[0], told[0]
    for line in sorted(line for line in lines if told[0] <= line <= told[-1]):
        # Blank lines between two chunks are in neither, nor is the space between two parts of a line.
        text += "\n" * (line[0] - last[0]) or " " * (line > end)
        text += lines[line]
        last, end = line, (line[0], line[1] + len(lines[line].encode(errors="replace")))
    return Passage(told[0][0], last[0], told[0][1], text)
