"""Terminal colours, and highlighting of the query's words.

Written by hand because a library would take longer to load than the search takes. Highlighting is for display
only: it marks the query's words wherever they occur, whatever the daemon matched.
"""

import re
from collections.abc import Sequence

from memctl.stop_words import STOP_WORDS

# SGR numbers; path, line and match have grep's colours.
PATH, LINE, HEADING, FAINT, MATCH = "35", "32", "1", "2", "1;31"
CODE = "36"  # cyan

# Compiled only when a query is marked: compiling them would cost each start a millisecond.
_FILTER = r"(?<!\S)(?:path|tag|since|until|after|before):(?:\"[^\"]*\"|\S*)|(?<!\S)-\w\S*"
# Scripts without spaces between words: Han, kana, Hangul.
_UNSPACED = "\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_FIRST_UNSPACED = _UNSPACED[0]
_RUN = f"[{_UNSPACED}]+"
# A word ends where a script without spaces begins: \b would not see the end of "API" in "API設計".
_EDGE_LEFT, _EDGE_RIGHT = rf"(?<![^\W{_UNSPACED}])", rf"(?![^\W{_UNSPACED}])"
_MAX_WORDS = 64  # a query may be a page long; marking all of its words would mark everything


class Marker:
    """Colours text; holds the compiled pattern of the query's words for all hits of an answer."""

    def __init__(self, query: str, *, colour: bool, more: Sequence[str] = ()) -> None:
        """*more*: other words that are marked, too, such as forms of those of the query."""
        self.colour = colour
        self._words = pattern_of(query, more) if query else None

    def paint(self, text: str, sgr: str) -> str:
        """Return *text* in the style *sgr*, or unchanged if colours are off."""
        return f"\x1b[{sgr}m{text}\x1b[0m" if self.colour and sgr and text else text

    def mark(self, text: str, base: str = "") -> str:
        """Return *text* with the query's words highlighted and the rest in the style *base*."""
        if self._words is None or not self.colour:
            return self.paint(text, base)
        parts = self._words.split(text)
        # split with one group gives plain, match, plain, match, …
        return "".join(
            self.paint(part, MATCH if position % 2 else base) for position, part in enumerate(parts)
        )

    def count(self, text: str) -> int:
        """Return the number of different words of the query in *text*."""
        return len({word.casefold() for word in self._words.findall(text)}) if self._words else 0

    def first(self, text: str) -> int:
        """Return the position of the query's first match in *text*; 0 if there is none."""
        found = self._words.search(text) if self._words else None
        return found.start() if found else 0


def pattern_of(query: str, more: Sequence[str] = ()) -> re.Pattern[str] | None:
    """Return a pattern that matches any telling word of *query*, or of *more*, as its one group; or None."""
    import unicodedata

    composed = unicodedata.normalize("NFC", re.sub(_FILTER, " ", query))
    # Most queries have no such character, and the ranges take longest to compile.
    has_runs = any(character >= _FIRST_UNSPACED for character in composed)
    runs = re.findall(_RUN, composed) if has_runs else []
    spaced = re.sub(_RUN, " ", composed) if has_runs else composed
    typed = {word for word in re.findall(r"\w+", spaced) if len(word) > 1}
    quoted = set(re.findall(r"\w+", " ".join(re.findall(r'"([^"]*)"', spaced))))
    saying = {word for word in typed if word in quoted or word.casefold() not in STOP_WORDS} or typed
    words = [*sorted(saying, key=len, reverse=True), *more][:_MAX_WORDS]
    # A run and its pairs of characters: the n-grams that the keyword arm may have matched.
    pairs = [[run[at : at + 2] for at in range(len(run) - 1) if len(run) > 2] for run in runs]  # noqa: PLR2004
    pieces = [piece for run, some in zip(runs, pairs, strict=True) for piece in (run, *some)]
    pieces = pieces[: _MAX_WORDS - len(words)]
    # Only the words ignore case: in the edges, every character of the ranges would be case-folded.
    whole = f"{_EDGE_LEFT}(?i:{_any_of(words)}){_EDGE_RIGHT}" if words else ""
    alternatives = "|".join(filter(None, [whole, f"(?i:{_any_of(pieces)})" if pieces else ""]))
    return re.compile(f"({alternatives})") if alternatives else None


def _any_of(texts: Sequence[str]) -> str:
    return "|".join(map(re.escape, texts))
