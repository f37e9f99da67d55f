"""Edits of JSON that people write: with comments, trailing commas, or JSON5's looser forms. Pure.

A text is parsed into values that know where they stand; an edit changes the characters that it must, and no
other: comments, order, indentation and line ends of all else stay. What is parsed is what VS Code, Zed,
OpenCode and OpenClaw take, each its part of it.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 200  # arbitrary: no configuration nests so deep, and Python's stack bears it

Key = str | int
_INDENT = "  "  # where a file shows none
_BLANK = re.compile(r"(?:\s|\ufeff|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/]+")  # a number, a constant, or a key without quotes
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_CONSTANTS = {"true": True, "false": False, "null": None}


class JsonSyntaxError(ValueError):
    """The text is no JSON, not even a loose one; the message has line and column."""


@dataclass(frozen=True, slots=True)
class Item:
    """A member of an object or an element of an array: its key and value, and where it stands."""

    key: Key
    start: int  # of the key, or of an element's value
    value: "JsonValue"
    comma: int | None  # where the comma behind it stands


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A value and where it stands: text[start:end]."""

    start: int
    end: int
    items: tuple[Item, ...]  # of an object or array
    plain: Any  # as json.loads returns it

    def at(self, key: Key) -> "JsonValue | None":
        """Return the value of a key; of two that are the same the last, as every parser takes it."""
        return next((item.value for item in reversed(self.items) if item.key == key), None)


def parse(text: str) -> JsonValue:
    """Return the one value of a text. Raises JsonSyntaxError."""
    parser = _Parser(text)
    value = parser.value(0, MAX_DEPTH)
    end = parser.skip(value.end)
    if end != len(text):
        raise parser.error(end, "text behind the end")
    return value


def put(text: str, path: Sequence[Key], new: Any) -> str:
    """Return *text* with *new* at *path*; objects on the way are made where they are missing.

    Raises:
        JsonSyntaxError: *text* is none.
        TypeError: something on the way is no object; the message names it.
    """
    return _changed(text, path, new, append=False)


def append(text: str, path: Sequence[Key], new: Any) -> str:
    """Return *text* with *new* as the last element of the array at *path*, which is made where it is missing.

    Raises as `put`; TypeError also where no array is at *path*.
    """
    return _changed(text, path, new, append=True)


def _changed(text: str, path: Sequence[Key], new: Any, *, append: bool) -> str:
    here = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(here.plain, dict):
            raise TypeError(f"{_shown(path[:depth])} is no object")
        below = here.at(key)
        if below is None:
            missing: Any = [new] if append else new
            for outer in reversed(path[depth + 1 :]):
                missing = {outer: missing}
            return _inserted(text, here, f"{json.dumps(key)}: ", missing)
        here = below
    if not append:
        is_flat = "\n" not in text[here.start : here.end]
        written = _flat(new) if is_flat else _dumped(new, text, _indent_at(text, here.start))
        return text[: here.start] + written + text[here.end :]
    if not isinstance(here.plain, list):
        raise TypeError(f"{_shown(path)} is no array")
    return _inserted(text, here, "", new)


def remove(text: str, path: Sequence[Key]) -> str:
    """Return *text* without what is at *path*, and without the comma that it needed. Raises KeyError."""
    outer = parse(text)
    for key in path[:-1]:
        outer = outer.at(key) or _missing(path)
    found = [index for index, item in enumerate(outer.items) if item.key == path[-1]]
    index = found[-1] if found else _missing(path)
    item = outer.items[index]
    begin = _content_end(text, outer.start + 1, item.start)
    end = item.value.end if item.comma is None else item.comma + 1
    if index and item.comma is None and (comma := outer.items[index - 1].comma) is not None:
        return text[:comma] + text[comma + 1 : begin] + text[end:]
    return text[:begin] + text[end:]


def _missing(path: Sequence[Key]) -> Any:
    raise KeyError(_shown(path))


def _shown(path: Sequence[Key]) -> str:
    return ".".join(map(str, path)) or "the whole"


def _inserted(text: str, outer: JsonValue, prefix: str, new: Any) -> str:
    """Put a last item into an object or array, as its others are written."""
    close = outer.end - 1
    last = outer.items[-1] if outer.items else None
    is_flat = "\n" not in text[outer.start : close] and bool(outer.items)
    comma_at = last.value.end if last and last.comma is None else None
    end = _content_end(text, outer.start + 1, close)
    trailing = "," if last and last.comma is not None else ""
    if is_flat:
        added = f" {prefix}{_flat(new)}{trailing}"
    else:
        newline = _newline(text)
        indent = _indent_at(text, last.start) if last else _indent_at(text, outer.start) + _unit(text)
        added = f"{newline}{indent}{prefix}{_dumped(new, text, indent)}{trailing}"
        if last is None and "\n" not in text[end:close]:
            added += newline + _indent_at(text, outer.start)
            return text[:end] + added + text[close:]
    if comma_at is None:
        return text[:end] + added + text[end:]
    return f"{text[:comma_at]},{text[comma_at:end]}{added}{text[end:]}"


def _content_end(text: str, begin: int, end: int) -> int:
    """Return where the last character that is not blank ends in text[begin:end]; comments are not blank."""
    return begin + len(text[begin:end].rstrip())


def _dumped(new: Any, text: str, indent: str) -> str:
    lines = json.dumps(new, indent=_unit(text), ensure_ascii=False).split("\n")
    return (_newline(text) + indent).join(lines)


def _flat(new: Any) -> str:
    return json.dumps(new, ensure_ascii=False)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """Return how the text indents one level: as its first indented line does."""
    found = re.search(r"^([ \t]+)[^\s/*]", text, re.MULTILINE)
    return found[1] if found else _INDENT


def _indent_at(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text

    def error(self, place: int, what: str) -> JsonSyntaxError:
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        return JsonSyntaxError(f"line {line} column {column}: {what}")

    def skip(self, place: int) -> int:
        found = _BLANK.match(self.text, place)
        return found.end() if found else place

    def value(self, place: int, depth: int) -> JsonValue:
        place = self.skip(place)
        if not depth:
            raise self.error(place, f"nested deeper than {MAX_DEPTH} levels")
        opening = self.text[place : place + 1]
        if opening in {"{", "["}:
            return self.items(place, depth, "}" if opening == "{" else "]")
        end, plain = self.scalar(place)
        return JsonValue(place, end, (), plain)

    def items(self, start: int, depth: int, closing: str) -> JsonValue:
        found: list[Item] = []
        place = self.skip(start + 1)
        while self.text[place : place + 1] != closing:
            if found and found[-1].comma is None:
                raise self.error(place, f"a comma or {closing} is missing")
            begin, key = place, len(found)
            if closing == "}":
                key, place = self.key(place)
            value = self.value(place, depth - 1)
            place = self.skip(value.end)
            comma = place if self.text[place : place + 1] == "," else None
            found.append(Item(key, begin, value, comma))
            place = self.skip(place + 1) if comma is not None else place
        plain: Any = [item.value.plain for item in found]
        if closing == "}":
            plain = {item.key: item.value.plain for item in found}
        return JsonValue(start, place + 1, tuple(found), plain)

    def key(self, place: int) -> tuple[Any, int]:
        quoted = _STRING.match(self.text, place)
        found = quoted or _WORD.match(self.text, place)
        if found is None:
            raise self.error(place, "a key is missing")
        colon = self.skip(found.end())
        if self.text[colon : colon + 1] != ":":
            raise self.error(colon, "a colon is missing")
        return (_unquoted(found[0]) if quoted else found[0]), colon + 1

    def scalar(self, place: int) -> tuple[int, Any]:
        if found := _STRING.match(self.text, place):
            return found.end(), _unquoted(found[0])
        found = _WORD.match(self.text, place)
        if found is None:
            raise self.error(place, "a value is missing")
        if found[0] in _CONSTANTS:
            return found.end(), _CONSTANTS[found[0]]
        try:
            return found.end(), _number(found[0])
        except ValueError:
            raise self.error(place, f"{found[0][:20]!r} is no value") from None


def _number(word: str) -> float:
    if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]+", word):
        return int(word, 16)
    if not re.fullmatch(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|Infinity|NaN)", word):
        raise ValueError
    return int(word) if re.fullmatch(r"[+-]?\d+", word) else float(word)


def _unquoted(quoted: str) -> str:
    def plain(found: re.Match[str]) -> str:
        what = found[1]
        if what[0] in "ux" and len(what) > 1:
            return chr(int(what[1:], 16))
        return "" if what in {"\n", "\r\n"} else _ESCAPED.get(what, what)

    if quoted[0] == '"':
        with suppress(ValueError):  # an escape that only JSON5 has
            return str(json.loads(quoted, strict=False))
    return _ESCAPE.sub(plain, quoted[1:-1])
