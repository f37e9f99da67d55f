"""Snippets: the part of a chunk that shows why it was found. Pure."""

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice

from memd import analysis

SNIPPET_CHARS = 300  # about three lines of a terminal
# A stretch of a text, as it stands in the file, that no word of it goes beyond.
_STRETCH = re.compile(f"[{analysis.SPACELESS}]+|[^\\s\\x00-/:-@\\[-`{{-\\x7f{analysis.SPACELESS}]+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """The text to show, and where its match stands."""

    text: str
    match_line: int  # of the file, 1-based
    match_column: int  # in bytes of that line, 1-based; 1 where no word of the query stands in the chunk
    match_text: str  # that line, whole
    has_match: bool  # whether a word of the query stands in it


def snippet(text: str, start_line: int, pieces: tuple[str, ...], *, start_byte: int = 0) -> Snippet:
    """Return the stretch of a chunk with the most of the query's words, and the first of them in it.

    Args:
        text: the chunk as it stands in the file.
        start_line: the file's line that it begins in.
        pieces: words and spaceless runs of the query.
        start_byte: of that line, that the chunk begins at.
    """
    marks = _marks(text, pieces)
    if not marks:
        lines = text.split("\n")
        first = next((number for number, line in enumerate(lines) if line.strip()), 0)
        return Snippet(
            _window(text, 0),
            start_line + first,
            1 if first else 1 + start_byte,
            lines[first].rstrip("\r"),
            has_match=False,
        )
    at = _densest(marks)
    line_start = text.rfind("\n", 0, at) + 1
    line_end = text.find("\n", at)
    line = text[line_start : line_end if line_end >= 0 else len(text)].rstrip("\r")
    column = len(text[line_start:at].encode(errors="replace")) + 1
    if line_start == 0:
        column += start_byte
    return Snippet(_window(text, at), start_line + text.count("\n", 0, at), column, line, has_match=True)


def _marks(text: str, pieces: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return (offset, what was matched) of every place where a word of the query stands."""
    words = {_plain(piece) for piece in pieces if not analysis.is_spaceless(piece)}
    found = _ascii_marks(text, words) if text.isascii() else _any_marks(text, words, pieces)
    return sorted(found or _inner_marks(text, words))


def _ascii_marks(text: str, words: set[str]) -> list[tuple[int, str]]:
    """Do it word by word: most text is such, and to compile an expression of a query's words takes longer."""
    lower, found = text.lower(), []
    for word in filter(None, words):
        at = lower.find(word)
        while at >= 0:
            end = at + len(word)
            # Of one character, "" in front of the text and behind it.
            if not lower[at - 1 : at].isalnum() and not lower[end : end + 1].isalnum():
                found.append((at, word))
            at = lower.find(word, end)
    return found


def _any_marks(text: str, words: set[str], pieces: tuple[str, ...]) -> list[tuple[int, str]]:
    """Do it stretch by stretch, each compared as it is searched."""
    runs = [
        run for piece in pieces if analysis.is_spaceless(piece) for run in analysis.pairs(piece) or [piece]
    ]
    found = []
    for stretch in _STRETCH.finditer(text):
        raw = stretch[0]
        if raw.isascii():
            if (lower := raw.lower()) in words:
                found.append((stretch.start(), lower))
            continue
        for piece in analysis.pieces(raw):
            if analysis.is_spaceless(piece):
                wanted = [run for run in runs if run in piece]
            else:
                wanted = [plain for plain in (_plain(piece),) if plain in words]
            found += [(stretch.start() + _place(raw, one), one) for one in wanted]
    return found


def _inner_marks(text: str, words: set[str]) -> list[tuple[int, str]]:
    """Return the first place of each piece of a word, as the substring tier finds it."""
    found = []
    for word in filter(None, words):
        if place := re.search(re.escape(word), text, re.IGNORECASE):
            found.append((place.start(), word))
        elif not text.isascii():
            others = (one for one in _STRETCH.finditer(text) if not one[0].isascii())
            within = (one for one in others if word in _plain(analysis.searched(one[0])))
            found += [(one.start() + _place(one[0], word), word) for one in islice(within, 1)]
    return found


def _place(raw: str, wanted: str) -> int:
    """Return where in *raw*, as it stands in the file, that begins which is searched as *wanted*."""
    if (at := raw.find(wanted)) >= 0:
        return at

    def has(part: str) -> bool:
        return wanted in _plain(analysis.searched(part)) or wanted in analysis.searched(part)

    stop = bisect_left(range(len(raw)), True, key=lambda count: has(raw[:count]))  # noqa: FBT003
    after = bisect_left(range(stop), True, key=lambda start: not has(raw[start:stop]))  # noqa: FBT003
    return max(after - 1, 0)


def _densest(marks: list[tuple[int, str]]) -> int:
    """Return the offset of the mark from which a snippet sees the most different words."""
    best, best_count = marks[0][0], 0
    most = len({word for _, word in marks})
    for number, (start, _) in enumerate(marks):
        seen = {word for offset, word in marks[number : number + 50] if offset < start + SNIPPET_CHARS}
        if len(seen) > best_count:
            best, best_count = start, len(seen)
        if best_count == most:
            break
    return best


def _window(text: str, at: int) -> str:
    """Return about SNIPPET_CHARS around *at*, from the start of a line or word."""
    start = max(text.rfind("\n", 0, at) + 1, 0)
    if at - start > SNIPPET_CHARS // 3:
        start = at - SNIPPET_CHARS // 3
        space = text.find(" ", start, at)
        start = space + 1 if space >= 0 else start
    end = min(start + SNIPPET_CHARS, len(text))
    if end < len(text):
        space = text.rfind(" ", at, end)
        end = space if space > at + SNIPPET_CHARS // 3 else end
    return (
        ("… " if start > 0 and text[start - 1] != "\n" else "")
        + text[start:end].strip()
        + (" …" if end < len(text) else "")
    )


def _plain(word: str) -> str:
    """Return a word that is written as it is searched as FTS5 compares it: in lower case, without accents."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word).casefold()
    return "".join(character for character in decomposed if not unicodedata.combining(character))
