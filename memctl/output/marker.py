"""Colours on a terminal, and the marks on words that were asked for.

Colours are made by hand and not by a library: loading one would take longer than the search. Highlights are
a matter of display only: the daemon knows what matched, this marks the words that a reader looks for.
"""

import re
from collections.abc import Sequence

# SGR numbers; path, line and match as grep colours them.
PATH, LINE, HEADING, FAINT, MATCH = "35", "32", "1", "2", "1;31"
SENTENCE, CODE = "1", "36"  # bold, cyan

# Texts until a query is to be marked: compiling them would cost each start a millisecond.
_FILTER = r"(?<!\S)(?:path|tag|since|until|after|before):(?:\"[^\"]*\"|\S*)|(?<!\S)-\w\S*"
# Scripts without spaces between words: Han, kana, Hangul.
_UNSPACED = "\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_FIRST_UNSPACED = _UNSPACED[0]
_RUN = f"[{_UNSPACED}]+"
# A word ends where letters of another kind begin: \b would not see the end of "API" in "API設計".
_EDGE_LEFT, _EDGE_RIGHT = rf"(?<![^\W{_UNSPACED}])", rf"(?![^\W{_UNSPACED}])"
_MAX_WORDS = 64  # a query may be a page; marking every word of it would mark everything


class Marker:
    """Paints text; keeps the query's words compiled for all hits of an answer."""

    def __init__(self, query: str, *, colour: bool) -> None:
        self._colour = colour
        self._words = pattern_of(query) if query else None

    def paint(self, text: str, sgr: str) -> str:
        """Return *text* in the style *sgr*, or as it is without colours."""
        return f"\x1b[{sgr}m{text}\x1b[0m" if self._colour and text else text

    def mark(self, text: str, base: str = "") -> str:
        """Return *text* with the query's words marked, the rest in the style *base*."""
        if self._words is None or not self._colour:
            return self.paint(text, base) if base else text
        parts = self._words.split(text)
        # split with one group gives plain, match, plain, match, …
        return "".join(
            self.paint(part, MATCH) if position % 2 else (self.paint(part, base) if base else part)
            for position, part in enumerate(parts)
        )

    def count(self, text: str) -> int:
        """Return how many different words of the query are in *text*."""
        return len({word.casefold() for word in self._words.findall(text)}) if self._words else 0

    def first(self, text: str) -> int:
        """Return the place of the first word of the query in *text*, 0 where there is none."""
        found = self._words.search(text) if self._words else None
        return found.start() if found else 0


def pattern_of(query: str) -> re.Pattern[str] | None:
    """Return what finds the words of *query* in a text, as one group; None where it has no word."""
    import unicodedata

    composed = unicodedata.normalize("NFC", re.sub(_FILTER, " ", query))
    # Most queries have none of these, and their ranges take longer to compile than all else.
    has_runs = any(one >= _FIRST_UNSPACED for one in composed)
    runs = re.findall(_RUN, composed) if has_runs else []
    spaced = re.sub(_RUN, " ", composed) if has_runs else composed
    words = sorted({word for word in re.findall(r"\w+", spaced) if len(word) > 1}, key=len, reverse=True)
    words = words[:_MAX_WORDS]
    pieces = [piece for run in runs for piece in _pieces(run)][: _MAX_WORDS - len(words)]
    # Case is ignored in the words alone: in the edges it would be looked up for each character of the ranges.
    whole = f"{_EDGE_LEFT}(?i:{_any_of(words)}){_EDGE_RIGHT}" if words else ""
    alternatives = "|".join(filter(None, [whole, f"(?i:{_any_of(pieces)})" if pieces else ""]))
    return re.compile(f"({alternatives})") if alternatives else None


def _any_of(texts: Sequence[str]) -> str:
    return "|".join(map(re.escape, texts))


def _pieces(run: str) -> list[str]:
    """Return a run whole, then its pairs: what the n-grams of the keyword arm may have found."""
    return [run, *(run[at : at + 2] for at in range(len(run) - 1) if len(run) > 2)]  # noqa: PLR2004
