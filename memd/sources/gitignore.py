"""Translates one line of a gitignore file into regular expressions for RE2.

pathspec does most of the work. Where it differs from git (wildmatch.c and dir.c), the line is prepared here:
escapes, bracket expressions, trailing white space, and runs of stars. Text is Latin-1, one character for
each byte, because git compares bytes. No I/O.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

# pathspec's ending of a pattern that names a file, or a folder with everything in it.
_FILE_OR_FOLDER: Final = "(?:(?P<ps_d>/)|$)"
_STARS: Final = re.compile(r"(?<![^/])\*{3,}(?![^/])")  # a name of three or more stars equals two
# Git compares the part before the first wildcard separately, and then treats the stars after it as the start
# of a pattern: "a**/b" matches "ab", "ax/b" and "a/x/b".
_LATE_STARS: Final = re.compile(r"(?=.*/)(!?/?[^*?\[\\]*[^*?\[\\/!])(?:\*{2,}/)*\*{2,}(/|$)", re.DOTALL)

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

    includes: bool  # False: it begins with "!"
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
    # Imported when there is a rule: the daemon's start does not wait for it.
    from pathspec.patterns.gitignore.base import GitIgnorePatternError  # noqa: PLC0415
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # noqa: PLC0415

    line = _trimmed(line.encode("utf-8", "surrogateescape").decode("latin-1").partition("\0")[0])
    try:
        plain, literals = _plain(line.removesuffix("/"))
        expression, includes = GitIgnoreSpecPattern.pattern_to_regex(plain)
    except (_NoPatternError, GitIgnorePatternError):
        return None
    if expression is None or includes is None:
        return None
    base = _whole(expression)
    for number, literal in enumerate(literals):
        base = base.replace(_mark(number), literal)
    return Rule(includes, base + ("/" if line.endswith("/") else "/?"), f"{base}/.+")


def _whole(expression: str) -> str:
    """Turn pathspec's expression, which is meant for a search, into one that matches a whole path."""
    if expression == ".":  # "*" and "**"
        return ".*[^/]"
    if expression.endswith(_FILE_OR_FOLDER):
        return expression.removesuffix(_FILE_OR_FOLDER)
    inside = expression if expression.startswith("^") else f".*{expression}"
    return f"{inside}.*[^/]"  # "a/**": the contents of the folder, not the folder itself


def _trimmed(line: str) -> str:
    """Cut off trailing spaces that are not escaped with a backslash."""
    kept = at = 0
    while at < len(line):
        at += 2 if line[at] == "\\" else 1
        if line[at - 1 : at] != " " or line[at - 2 : at - 1] == "\\":
            kept = at
    return line[:kept]


def _plain(line: str) -> tuple[str, list[str]]:
    """Replace the parts that pathspec would read in another way than git by marks, which it copies unchanged.

    Returns the pattern, and the expression to insert at each mark.
    """
    if line.endswith("/") or line.removeprefix("!").startswith("\\/"):
        raise _NoPatternError  # no path has two slashes in a row, or begins with one
    literals: list[str] = []
    parts: list[str] = []
    late = _LATE_STARS.match(line)
    slash = "/" if late else ""
    at = 0
    while at < len(line):
        if late and at == late.end(1):
            end, expression = late.end(), "(?:.*/)?" if late[2] else ".*"
        else:
            end, expression = _token(line, at)
        if line[at] == "[" and "/" in line[at:end]:
            slash = "/"  # git searches for a slash before it parses brackets
        parts.append(_mark(len(literals)) if expression else line[end - 1])
        literals += [expression] if expression else []
        at = end
    pattern = _STARS.sub("**", "".join(parts))
    rest = pattern.removeprefix("!")
    return pattern.removesuffix(rest) + (slash if "/" not in rest else "") + rest, literals


def _token(line: str, at: int) -> tuple[int, str]:
    """Return the end of the token at *at*, and its expression; "" if pathspec reads it as git does."""
    char = line[at]
    if char == "\\":
        escaped = line[at + 1 : at + 2]
        if not escaped:
            raise _NoPatternError
        return at + 2, "" if escaped == "/" else re.escape(escaped)
    if char == "[":
        end, members = _bracket(line, at + 1)
        if not members:
            raise _NoPatternError
        return end, "[" + "".join(f"\\x{first:02x}-\\x{last:02x}" for first, last in _ranges(members)) + "]"
    return at + 1, re.escape(char) if char.isspace() else ""  # pathspec strips trailing white space


def _mark(number: int) -> str:
    return f"\0{number}\0"  # no name and no line has a NUL


def _bracket(line: str, at: int) -> tuple[int, frozenset[str]]:
    """Return the end of a bracket expression and the bytes that it matches; *at* is just after its "["."""
    negated = line[at : at + 1] in {"!", "^"}
    at += negated
    found: set[str] = set()
    before = ""
    first = True
    while first or line[at : at + 1] != "]":
        first = False
        at, before = _member(line, at, before, found)
    every = frozenset(map(chr, range(256))) - {"/"}
    return at + 1, every - found if negated else every & found


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


def _ranges(members: frozenset[str]) -> Iterator[tuple[int, int]]:
    numbers = sorted(map(ord, members))
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
