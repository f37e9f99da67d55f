"""Positions of LSP in a text: lines, and columns in the negotiated encoding. No I/O.

Lines end at LF, CR LF and CR alone; `str.splitlines` has more line ends.
"""

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

# Of a text that memd reads from an editor: it takes 500,000 in a request of 1 MiB, and a link is added.
MAX_CHARS, MAX_BYTES = 490_000, 1_000_000

_LONE = re.compile("[\ud800-\udfff]")
_BEHIND_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


def split(text: str) -> list[str]:
    """Return the lines with their ends; the last one has none and may be empty."""
    if "\r" in text:
        return _BEHIND_LINE_END.split(text)
    *lines, last = text.split("\n")  # fifty times as fast
    return [*(f"{line}\n" for line in lines), last]


def content(line: str) -> str:
    """Return a line without its end."""
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def sendable(text: str) -> str:
    """Return a text as memd takes it, with the same offsets; of one that is too long its begin."""
    return _LONE.sub("\ufffd", text[:MAX_CHARS]).encode()[:MAX_BYTES].decode(errors="ignore")


def _width(char: str, encoding: Encoding) -> int:
    if encoding == "utf-16":
        return 2 if char > "\uffff" else 1
    return 1 + (char > "\x7f") + (char > "\u07ff") + (char > "\uffff")


def units(text: str, encoding: Encoding) -> int:
    """Return the length of a text in the units of columns."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return sum(_width(char, encoding) for char in text)


def index(line: str, column: int, encoding: Encoding) -> int:
    """Return the index in *line* of a column, at most its content's end; inside of a character: its start."""
    line = content(line)
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    passed = 0
    for at, char in enumerate(line):
        passed += _width(char, encoding)
        if passed > column:
            return at
    return len(line)


class Text:
    """A text with its lines, which changes keep in step."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.encoding: Encoding = encoding
        self.lines = split(text)
        self.text = text

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.lines)

    @cached_property
    def sent(self) -> str:
        """The text as memd takes it."""
        return sendable(self.text)

    @property
    def too_long(self) -> str:
        """Up to where links and headings of a text that is too long are known; "" for any other."""
        if (known := len(self.sent)) == len(self.text):
            return ""
        return f"too long: its links and headings are read to line {self.line_at(known)[0] + 1:,} only"

    @cached_property
    def starts(self) -> list[int]:
        """Where the lines begin."""
        return list(accumulate(map(len, self.lines[:-1]), initial=0))

    @cached_property
    def memd_starts(self) -> list[int]:
        """Where the lines begin that memd counts: a lone CR ends one only in a text without any LF."""
        *parts, _ = self.text.split("\n" if "\n" in self.text else "\r")
        return list(accumulate((len(part) + 1 for part in parts), initial=0))

    def memd_line(self, offset: int) -> int:
        """Return the line of an offset as memd counts, from 1."""
        return bisect_right(self.memd_starts, offset)

    def memd_start(self, number: int) -> int:
        """Return where a line begins as memd counts, of a number that is too high the last one."""
        return self.memd_starts[min(number, len(self.memd_starts)) - 1]

    def offset(self, position: dict[str, Any]) -> int:
        """Return the offset in characters of a position, which is clamped."""
        line, at = self._place(position)
        return self.starts[line] + at

    def position(self, offset: int) -> dict[str, int]:
        """Return the position of an offset; one between CR and LF is the end of the line."""
        line, at = self.line_at(offset)
        return {"line": line, "character": units(content(self.lines[line])[:at], self.encoding)}

    def line_at(self, offset: int) -> tuple[int, int]:
        """Return the line around an offset, and the index in it."""
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]

    def span(self, start: int, stop: int) -> dict[str, Any]:
        """Return the range between two offsets."""
        return {"start": self.position(start), "end": self.position(stop)}

    def change(self, span: dict[str, Any] | None, new: str) -> None:
        """Replace a range, or all where there is none. Its cost is that of the lines that it touches."""
        if span is None:
            self.lines = split(new)
        else:
            first, begin = self._place(span["start"])
            last, end = self._place(span["end"])
            if (last, end) < (first, begin):
                (first, begin), (last, end) = (last, end), (first, begin)
            before, after = self.lines[first][:begin], self.lines[last][end:]
            # A \r at the end of the line before and a \n that begins the new text become one line end, as do
            # those of the new text and of the line behind.
            if first and not begin:
                first -= 1
                before = self.lines[first]
            if not content(after) and last + 1 < len(self.lines):
                last += 1
                after += self.lines[last]
            lines = split(before + new + after)
            if last + 1 < len(self.lines):  # what follows the last line end is the next line
                lines.pop()
            self.lines[first : last + 1] = lines
        for name in ("text", "sent", "starts", "memd_starts"):
            self.__dict__.pop(name, None)

    def _place(self, position: dict[str, Any]) -> tuple[int, int]:
        line, column = max(0, int(position["line"])), max(0, int(position["character"]))
        if line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        return line, index(self.lines[line], column, self.encoding)
