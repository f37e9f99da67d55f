"""Translates one line of a gitignore file into regular expressions for RE2, by git's wildmatch.c and dir.c.

A line is read as git reads it, for lines that no program should have written, too: a pattern that matches
other paths than in git hides notes. Text is Latin-1, one character for each byte, because git compares bytes.
No I/O.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_WILD: Final = re.compile(r"[*?\[\\]|\Z")
# A line without the spaces at its end that no backslash escapes; all of one that ends with a backslash.
_KEPT: Final = re.compile(r"(?: *(?:\\.|[^\\ ]))*(?: *\\\Z)?", re.DOTALL)
_STARS: Final = re.compile(r"\*+")
_NOTHING: Final = re.compile(r"(?:\*{2,}/)+\*+")  # what matches an empty text, too

_Test = Callable[[str], bool]
# POSIX classes as in wildmatch.c, limited to ASCII in every locale.
_CLASSES: Final[dict[str, _Test]] = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "blank": lambda c: c in " \t",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": str.isdigit,
    "graph": lambda c: "!" <= c <= "~",
    "lower": str.islower,
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    "space": lambda c: c in " \t\n\r\v\f",
    "upper": str.isupper,
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern. Its expressions match whole paths; the path of a folder ends with "/"."""

    named: str  # matches the paths that the pattern names
    below: str  # matches the paths inside a folder that the pattern names


class _NoPatternError(Exception):
    """The line is not a pattern that git can ever match."""


def is_comment(line: str) -> bool:
    """Return whether a line is empty or a comment."""
    return not line.strip(" ") or line.startswith("#")


def translated(line: str) -> Rule | None:
    """Return the rule of a line; None for a comment, an empty line, and a pattern that matches nothing."""
    if is_comment(line):
        return None
    line = line.encode("utf-8", "surrogateescape").decode("latin-1").partition("\0")[0]
    line = _KEPT.match(line)[0]  # type: ignore[index] # it matches any text
    pattern = line.removeprefix("!").removesuffix("/")
    if not pattern or pattern.endswith("/") or pattern.startswith("\\/"):
        return None  # no path has two slashes in a row, or begins with one
    try:
        base = _expression(pattern)
    except _NoPatternError:
        return None
    return Rule(base + ("/" if line.endswith("/") else "/?"), f"{base}/.+")


def _expression(pattern: str) -> str:
    # A pattern with a slash anywhere, in brackets too, is that of a path; any other that of a name.
    is_path = "/" in pattern
    pattern = pattern.removeprefix("/")
    # Git compares what is before the first wildcard by itself, and takes the rest for a pattern that begins
    # there: "x/a**/b" matches "x/ab", "x/ac/b" and "x/a/c/b".
    begin = _WILD.search(pattern).start()  # type: ignore[union-attr] # \Z always matches
    may_add_nothing = pattern[begin - 1 : begin] not in {"", "/"} and _NOTHING.fullmatch(pattern, begin)
    parts = [] if is_path else ["(?:.*/)?"]
    at = 0
    while at < len(pattern):
        char, before = pattern[at], pattern[at - 1 : at]
        if stars := _STARS.match(pattern, at):
            at = stars.end()
            is_apart = stars.start() == begin or before in {"", "/"}
            if is_path and len(stars[0]) > 1 and is_apart and re.match(r"\Z|\\?/", pattern[at:]):
                parts.append("(?:.*/)?" if pattern[at : at + 1] == "/" else ".*")
                at += pattern[at : at + 1] == "/"
            else:
                parts.append("[^/]*")
            if at == len(pattern) and before in {"", "/"} and not may_add_nothing:
                parts.append("[^/]")  # a name: the path of the folder itself ends with "/"
        elif char == "?":
            parts.append("[^/]")
            at += 1
        elif char == "[":
            at, expression = _bracket(pattern, at + 1)
            parts.append(expression)
        else:
            at += char == "\\"
            if at == len(pattern):
                raise _NoPatternError
            parts.append(re.escape(pattern[at]))
            at += 1
    return "".join(parts)


def _bracket(line: str, at: int) -> tuple[int, str]:
    """Return the end of a bracket expression, and its expression; *at* is just after its "["."""
    negated = line[at : at + 1] in {"!", "^"}
    at += negated
    found: set[str] = set()
    before = ""
    first = True
    while first or line[at : at + 1] != "]":
        first = False
        at, before = _member(line, at, before, found)
    members = found | {"/"} if negated else found - {"/"}
    if not members:
        raise _NoPatternError
    return at + 1, "[{}{}]".format("^" * negated, "".join(f"\\x{ord(one):02x}" for one in sorted(members)))


def _member(line: str, at: int, before: str, found: set[str]) -> tuple[int, str]:
    """Add the member at *at* to *found*; return where the next one begins, and how a range may begin."""
    char = line[at : at + 1]
    if not char:
        raise _NoPatternError  # no end
    if char == "-" and before and line[at + 1 : at + 2] not in {"", "]"}:
        at += line[at + 1] == "\\"
        last = line[at + 1 : at + 2]
        if not last:
            raise _NoPatternError
        found.update(map(chr, range(ord(before), ord(last) + 1)))
        return at + 2, ""
    if char == "\\":
        char = line[at + 1 : at + 2]
        if not char:
            raise _NoPatternError
        found.add(char)
        return at + 2, char
    if line.startswith("[:", at):
        end = line.find("]", at + 2)
        if end < 0:
            raise _NoPatternError
        if end > at + 2 and line[end - 1] == ":":
            test = _CLASSES.get(line[at + 2 : end - 1])
            if test is None:
                raise _NoPatternError
            found.update(filter(test, map(chr, range(128))))
            return end + 1, ""
    found.add(char)
    return at + 1, char
