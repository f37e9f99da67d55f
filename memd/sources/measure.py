"""How many words, word pieces and characters does a stretch of a text have, and where may it be cut?

The text is tokenised once; every later question is two binary searches. The counts of stretches add up
only nearly (a word that is cut makes other pieces): whoever needs certainty counts the final text.
"""

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memd.records import Tokenizer
from memd.sources.blocks import Block
from memd.sources.lines import Lines

# Tokenised at once: offsets of more cost the tokenizers library more time a character and memory.
BATCH_CHARS = 32_000
# A cut moves back so far to spare a sentence: at most 40 % of a part.
_SENTENCE_FROM = 0.6
# Longest run of combining marks that a cut respects; arbitrary, no script needs more.
_MAX_MARKS = 16

# Chinese and Japanese are written without spaces: there each character counts as a word, as each is a
# word piece. Korean has spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SENTENCE_END = re.compile(
    r"[.!?\u2026][\"'\u201d\u2019)\]]*\s+"  # as Latin, Greek and Cyrillic end it
    r"|[\u3002\uff01\uff1f\uff1b][\u300d\u300f\u201d\u2019\uff09]*\s*"  # full-width marks need no space
)
_SPACE = re.compile(r"\s+")


class Measure:
    """Counts for any stretch [begin, stop) of one text, from line *first* on."""

    def __init__(self, lines: Lines, first: int, tokenizer: Tokenizer) -> None:
        self.lines = lines
        self._pieces = array("I")
        begin = lines.starts[first] if first < len(lines) else len(lines.text)
        for start, stop in _batches(lines.text, begin):
            self._pieces.extend([start + at for at, _ in tokenizer.spans(lines.text[start:stop])])
        self._words = array("I", (match.start() for match in _WORD.finditer(lines.text, begin)))

    def words(self, begin: int, stop: int) -> int:
        """Return how many words begin in the stretch."""
        return bisect_left(self._words, stop) - bisect_left(self._words, begin)

    def pieces(self, begin: int, stop: int) -> int:
        """Return how many word pieces begin in the stretch."""
        return bisect_left(self._pieces, stop) - bisect_left(self._pieces, begin)

    def offsets(self, blocks: Sequence[Block]) -> tuple[int, int]:
        """Return where the first of neighbouring *blocks* begins and where the last stops."""
        return self.lines.starts[blocks[0].start], self.lines.ends[blocks[-1].end - 1]

    def after_pieces(self, begin: int, count: int) -> int:
        """Return the offset at which the piece behind the next *count* pieces begins."""
        index = bisect_left(self._pieces, begin) + count
        return self._pieces[index] if index < len(self._pieces) else len(self.lines.text)

    def after_words(self, begin: int, count: int) -> int:
        """Return the offset at which the word behind the next *count* words begins."""
        index = bisect_left(self._words, begin) + count
        return self._words[index] if index < len(self._words) else len(self.lines.text)


@dataclass(frozen=True, slots=True)
class Room:
    """How much a chunk may hold."""

    words: float
    pieces: int
    chars: int

    def holds(self, measure: Measure, begin: int, stop: int) -> bool:
        """Tell whether the stretch fits."""
        return (
            stop - begin <= self.chars
            and measure.pieces(begin, stop) <= self.pieces
            and measure.words(begin, stop) <= self.words
        )


def best_cut(text: str, begin: int, limit: int) -> int:
    """Return where to end a part of a line that begins at *begin* and may not go past *limit*.

    Behind a sentence if one ends late enough, else behind white space, else right at the limit, but not
    between a character and its accents.
    """
    late = begin + int((limit - begin) * _SENTENCE_FROM)
    for pattern, start in ((_SENTENCE_END, late), (_SPACE, begin + (limit - begin) // 2)):
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
