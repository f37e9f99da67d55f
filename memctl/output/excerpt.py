"""Choose the lines of a hit's snippet that a result page shows, and mark the query's words in them.

Fence lines of Markdown code blocks are left out; the lines between them are coloured as code.
"""

import re
from typing import Any

from memctl.output.marker import CODE, Marker
from memctl.text import safe, width_of

_FENCE = r"\s*(?:`{3,}|~{3,})"


def excerpt(hit: dict[str, Any], marker: Marker, *, rows: int, columns: int | None) -> list[str]:
    """Return the lines to show, with marks; the line of the match is always among them.

    The hit's heading is already shown above them; where it is the match, the lines are of its section.
    *rows*: most rows of the screen to fill; *columns*: its width, None: lines are not wrapped.
    """
    heading, match = (hit.get("heading") or "").rpartition(" > ")[2], safe(hit.get("match_text") or "")
    lines, is_code = list[tuple[str, bool]](), False  # text, and whether it is between fences
    is_named = False  # the line of the match was the heading
    for line in safe(hit.get("snippet") or "").splitlines():
        text = line.strip()
        if re.match(_FENCE, line):
            is_code = not is_code
        elif text.startswith("#") and text.strip("# \t") == heading:
            is_named = is_named or text == match.strip()
        elif is_named and lines and text.startswith("#") and not is_code:
            break
        elif text:
            lines.append((line, is_code))

    def worth(at: int) -> tuple[int, int]:
        bare = lines[at][0].strip(" …")  # a snippet may be cut: the line may hold only a part of the match
        return len(bare) if bare in match else 0, marker.count(lines[at][0])

    best = max(range(len(lines)), key=worth, default=0)
    first = max(min(best, len(lines) - rows), 0)
    if columns is not None and any(width_of(text.strip()) > columns for text, _ in lines[first:best]):
        first = best  # a wrapped line before the best one would take its row
    shown: list[str] = []
    for text, is_code in lines[first:]:
        left = rows - len(shown)
        parts = [text.rstrip()] if columns is None else _wrapped(text.strip(), marker, left, columns)
        shown += [marker.mark(part, CODE if is_code else "") for part in parts[:left]]
    return shown


def fitted(text: str, columns: int, *, ellipsis: str = "…") -> str:
    """Return *text*; if it is wider than *columns*, its beginning and an *ellipsis*."""
    if width_of(text) <= columns:
        return text
    room, end = columns - len(ellipsis), 0
    while end < len(text) and (room := room - width_of(text[end])) >= 0:
        end += 1
    return f"{text[:end]}{ellipsis}" if columns > 0 else ""


def shortened(text: str, columns: int) -> str:
    """Return *text*; if it is wider than *columns*, its first folder or third, "…" and its end."""
    if width_of(text) <= columns:
        return text
    start = text[: text.find("/", 1) + 1]
    if not 0 < width_of(start) <= columns // 2:
        start = fitted(text, (columns - 1) // 3, ellipsis="")
    return f"{start}{end_of(text, columns - width_of(start))}"


def end_of(text: str, columns: int) -> str:
    """Return *text*; if it is wider than *columns*, "…" and its end."""
    return fitted(text[::-1], columns)[::-1]


def _wrapped(text: str, marker: Marker, rows: int, columns: int) -> list[str]:
    """Wrap a line; if it needs more than *rows*, return the part around the query's first word."""
    if width_of(text) > rows * columns:
        before = max(marker.first(text) - columns // 3, 0)
        start = text.rfind(" ", 0, before) + 1 if before else 0
        text = f"… {text[start:]}" if start else text
    parts: list[str] = []
    while text and len(parts) < rows:
        part = fitted(text, columns, ellipsis="" if len(parts) < rows - 1 else "…")
        space = part.rfind(" ")
        if part != text and len(parts) < rows - 1 and space > columns // 2:  # else break inside the word
            part = part[:space]
        parts.append(part)
        text = text[len(part) :].lstrip()
    return parts
