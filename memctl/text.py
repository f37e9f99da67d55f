"""Properties of the terminal on stdout, and text made safe for it.

Notes and file names may contain escape sequences: a terminal must show them, not obey them.
"""

import os
import re
import sys
from contextlib import suppress
from typing import Any

DEFAULT_COLUMNS, DEFAULT_LINES = 80, 24  # without a terminal
# Patterns are strings here: each output compiles only those that it needs, which saves time.

# U+2400 + n is the picture of control character n: ␛ for ESC. Tab and line feed stay.
_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)} | {0x7F: 0x2421}
# C1 controls (some terminals take U+009B for ESC [), marks that reorder what follows, lone surrogates.
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Unicode's Bidi_Control
_FILLERS = "\u115f\u1160\u3164\uffa0"  # Hangul fillers: invisible, but as wide as a letter
_UNSAFE = f"[\x80-\x9f{_DIRECTIONS}{_FILLERS}\ud800-\udfff]"
_LINE_ENDS = str.maketrans({"\t": " ", "\n": "\u240a", "\u2028": " ", "\u2029": " "})
_JSON_UNSAFE = f"[\x7f-\x9f\u2028\u2029{_DIRECTIONS}{_FILLERS}]"
_WIDE = {"W", "F"}  # values of Unicode's East Asian Width that take two columns of a terminal
_SURROGATE = "[\ud800-\udfff]"


def terminal_width() -> int | None:
    """Return the width of the terminal on stdout; None if stdout is not a terminal."""
    return columns() if sys.stdout.isatty() else None


def columns() -> int:
    """Return COLUMNS, or the width of the terminal on stdout."""
    with suppress(ValueError):
        if (found := int(os.environ.get("COLUMNS", ""))) > 0:
            return found
    return terminal_size()[0]


def terminal_size() -> tuple[int, int]:
    """Return columns and lines of the terminal on stdout; shutil would take a twentieth of a start."""
    columns = lines = 0
    with suppress(OSError, ValueError, AttributeError):  # no terminal, or it was closed
        columns, lines = os.get_terminal_size(sys.__stdout__.fileno())  # type: ignore[union-attr]
    return columns or DEFAULT_COLUMNS, lines or DEFAULT_LINES


def wants_colour(choice: str = "auto") -> bool:
    """Return whether to colour stdout; "auto": if it is a terminal that can show colours."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not is_plain_terminal()


def is_plain_terminal() -> bool:
    """Return whether the terminal is one that knows no control sequences, or is not named."""
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")


def safe(text: str) -> str:
    """Return *text* without characters that a terminal would obey; line ends and tabs stay."""
    return re.sub(_UNSAFE, "\ufffd", text.replace("\r\n", "\n").translate(_PICTURES))


def one_line(text: str) -> str:
    """Return *text* made safe and on one line, as paths and quickfix entries must be."""
    return safe(text.rstrip("\r\n")).translate(_LINE_ENDS)


def width_of(text: str) -> int:
    """Return the width of *text* in columns of a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in _WIDE) for character in text
    )


def folded(text: str, columns: int | None) -> list[str]:
    """Return *text* in parts of at most *columns*, cut at spaces if there are any; None: in one part."""
    parts = []
    while columns is not None and width_of(text) > columns:
        end = 1  # also of a wide character in a single column
        while width_of(text[: end + 1]) <= columns:
            end += 1
        space = text.rfind(" ", 1, end + 1)
        end = space if space > 0 else end
        parts.append(text[:end])
        text = text[end:].lstrip(" ")
    return [*parts, text] if text or not parts else parts


def any_text(raw: str) -> str:
    """Return a command line argument as valid Unicode: bytes that are not UTF-8 become U+FFFD."""
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def to_json(answer: Any) -> str:
    """Return *answer* as one line of JSON that is valid for strict parsers and safe for terminals.

    All but ASCII is escaped if the encoding of stdout is not UTF.
    """
    import json

    is_escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(_well_formed(answer), ensure_ascii=is_escaped, allow_nan=False)
    # json escapes C0 only; these characters occur only in strings, where an escape means the same.
    return re.sub(_JSON_UNSAFE, lambda match: f"\\u{ord(match[0]):04x}", text)


def _well_formed(value: Any) -> Any:
    """Return *value* without lone surrogates, which json would write and other parsers refuse."""
    if isinstance(value, str):
        return re.sub(_SURROGATE, "\ufffd", value)
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_well_formed(item) for item in value]
    return value


def about(left_s: float) -> str:
    """Return an estimated time, rounded as people do."""
    minutes = (left_s + 30) / 60
    if minutes < 2:  # noqa: PLR2004 (up to a minute and a half)
        return f"{max(5, round(left_s / 5) * 5)} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"  # noqa: PLR2004 (an hour and a half)
