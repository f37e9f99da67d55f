r"""Where do the lines of a text begin and end?

A line ends at ``\n`` or ``\r\n`` and nowhere else: this is what Vim, git, grep and ripgrep count, so that
a line number of ours opens the right place. A lone ``\r``, a form feed or U+2028 belongs to its line
(`str.splitlines` would break there). A text that ends with a line break has no empty line after it.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lines:
    """A text and the offsets of its lines, counted from 0."""

    text: str
    starts: Sequence[int]  # of each line's first character
    ends: Sequence[int]  # behind each line's last character, its line break not counted

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, number: int) -> str:
        """Return a line without its line break."""
        return self.text[self.starts[number] : self.ends[number]]

    def is_blank(self, number: int) -> bool:
        """Tell whether a line has nothing but white space."""
        return not self.line(number).strip()

    def number_at(self, offset: int) -> int:
        """Return the line in which the character at *offset* stands."""
        return bisect_right(self.starts, offset) - 1

    def bytes_before(self, offset: int) -> int:
        """Return how many bytes of its line stand before the character at *offset*."""
        start = self.starts[self.number_at(offset)]
        # A string knows whether it is ASCII; else a megabyte in one line would be encoded for each chunk.
        return offset - start if self.text.isascii() else len(self.text[start:offset].encode())


def split_lines(text: str) -> Lines:
    """Find the lines of *text*."""
    starts, ends = array("I"), array("I")
    begin = 0
    while begin < len(text):
        found = text.find("\n", begin)
        stop = len(text) if found < 0 else found
        starts.append(begin)
        ends.append(stop - 1 if found > begin and text[stop - 1] == "\r" else stop)
        begin = stop + 1
    return Lines(text, starts, ends)
