"""Splice members and elements into JSON text without changing any other character. Pure.

The scanner of the json module finds the positions. Text that is not plain JSON (comments, trailing commas,
JSON5, duplicate keys) can be read, but is never changed, because its meaning differs between clients.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

Key = str | int
BOM = "\ufeff"
BLANKS = " \t\r\n"
_INDENT = "  "  # if a file has no indented line
_BLANK = re.compile(r"[ \t\r\n]*")
_FIRST_INDENTED = re.compile(r"\n([ \t]+)[^\s]")
# Extensions of JSON, and strings, which must be skipped to find them (group 1). An unterminated string or
# comment matches to the end of the text; otherwise each opening would be searched again, in quadratic time.
_LOOSE = re.compile(
    r"""("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|'((?:[^'\\]|\\.)*+)(?:'|\\?\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)"""
    r"""|,(?=(?>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))*+[}\]])|([\w$+.-]+)(\s*+:)?""",
    re.DOTALL,
)
_WORD = re.compile(r"true|false|-?\d+(\.\d+)?([eE][+-]?\d+)?")
_ESCAPE = re.compile(r'\\(.)|"', re.DOTALL)
_value_at = json.JSONDecoder().raw_decode


class _TwiceError(ValueError):
    """An object has a duplicate key."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A member of an object or an element of an array, with its offsets in the text."""

    key: Key
    start: int  # of the member's key, or of the element
    value: int  # start of the value
    end: int


def read(text: str) -> tuple[Any, str]:
    """Return the value of a text, and the reason why it cannot be edited, or ""; {} of a blank text.

    Raises:
        ValueError: it is not JSON, not even with comments; the message has line and column.
    """
    bare = text.removeprefix(BOM)
    if not bare.strip(BLANKS):
        return {}, ""
    try:
        return json.loads(bare, object_pairs_hook=_object, parse_constant=_no_constant), ""
    except _TwiceError as error:
        return json.loads(bare), str(error)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        try:
            # JSON with comments, trailing commas, or JSON5's keys and strings.
            value = json.loads(_LOOSE.sub(_plain, bare), strict=False)
        except (ValueError, RecursionError):
            raise error from None
        return value, f"it has comments, or is otherwise not plain JSON ({error})"


def put(text: str, path: Sequence[Key], new: Any) -> str:
    """Return *text* with *new* at *path*; missing objects on the path are created."""
    at, depth = _reached(text, path)
    if depth == len(path):
        end = _value_at(text, at)[1]
        return text[:at] + _written(text, new, at, is_flat="\n" not in text[at:end]) + text[end:]
    for outer in reversed(path[depth + 1 :]):
        new = {outer: new}
    return _with_last(text, at, f"{json.dumps(path[depth])}: ", new)


def append(text: str, path: Sequence[Key], new: Any) -> str:
    """Return *text* with *new* appended to the array at *path*, which is created if it is missing."""
    at, depth = _reached(text, path)
    return _with_last(text, at, "", new) if depth == len(path) else put(text, path, [new])


def remove(text: str, path: Sequence[Key]) -> str:
    """Return *text* without the member or element at *path* and its comma."""
    at, _ = _reached(text, path[:-1])
    items, close = _items(text, at)
    index = next(index for index, item in enumerate(items) if item.key == path[-1])
    if index:
        return text[: items[index - 1].end] + text[items[index].end :]
    if len(items) > 1:
        return text[: items[0].start] + text[items[1].start :]
    return text[: at + 1] + text[close:]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(f"it has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _plain(found: re.Match[str]) -> str:
    quoted, quoted_once, word, colon = found.groups()
    if quoted:
        return quoted
    if quoted_once is not None:
        return f'"{_ESCAPE.sub(_escaped, quoted_once)}"'
    if word is None:
        return " "
    if colon:
        return f"{json.dumps(word)}:"
    return word if _WORD.fullmatch(word) else "null"  # other words of JSON5 do not occur in memd's parts


def _escaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return '\\"'
    return found[0] if found[1] in 'bfnrtu"\\/' else found[1]


def _blank(text: str, place: int) -> int:
    """Return the offset of the next character that is not blank."""
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _reached(text: str, path: Sequence[Key]) -> tuple[int, int]:
    """Return the offset of the innermost existing value on *path*, and the number of keys that lead to it."""
    at = _blank(text, len(BOM) if text.startswith(BOM) else 0)
    for depth, key in enumerate(path):
        below = next((item.value for item in _items(text, at)[0] if item.key == key), None)
        if below is None:
            return at, depth
        at = below
    return at, len(path)


def _items(text: str, at: int) -> tuple[list[_Item], int]:
    """Return the items of the object or array that begins at *at*, and the offset of its closing bracket."""
    found: list[_Item] = []
    place = _blank(text, at + 1)
    while text[place] not in "}]":
        start, key = place, len(found)
        if text[at] == "{":
            key, place = _value_at(text, place)
            place = _blank(text, _blank(text, place) + 1)
        end = _value_at(text, place)[1]
        found.append(_Item(key, start, place, end))
        place = _blank(text, end)
        if text[place] == ",":
            place = _blank(text, place + 1)
    return found, place


def _with_last(text: str, at: int, prefix: str, new: Any) -> str:
    """Append an item to the object or array at *at*, laid out like its other items."""
    items, close = _items(text, at)
    if not items:
        newline, outer = newline_of(text), _indent_at(text, at)
        inner = newline + outer + _unit(text)
        added = inner + prefix + _written(text, new, at, deeper=True)
        closing = "" if "\n" in text[at:close] else newline + outer
        return text[: at + 1] + added + closing + text[at + 1 :]
    last = items[-1]
    before = items[-2].end if len(items) > 1 else at + 1
    gap = text[before : last.start].rpartition(",")[2]
    is_flat = "\n" not in gap
    if is_flat and len(items) == 1:
        gap = " "
    elif not is_flat:
        gap = newline_of(text) + gap.rpartition("\n")[2]
    added = prefix + _written(text, new, last.start, is_flat=is_flat)
    return f"{text[: last.end]},{gap}{added}{text[last.end :]}"


def _written(text: str, new: Any, at: int, *, is_flat: bool = False, deeper: bool = False) -> str:
    """Return the JSON of a value, indented like the line of *at*, or one level deeper."""
    if is_flat:
        return json.dumps(new, ensure_ascii=False)
    unit = _unit(text)
    indent = _indent_at(text, at) + (unit if deeper else "")
    return json.dumps(new, indent=unit, ensure_ascii=False).replace("\n", newline_of(text) + indent)


def newline_of(text: str) -> str:
    """Return the line end of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """Return one level of indentation, taken from the first indented line."""
    found = _FIRST_INDENTED.search(text)
    return found[1] if found else _INDENT


def _indent_at(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
