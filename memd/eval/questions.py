"""The questions of a measurement, and the golden file that a user writes them in.

The file is JSON, an object a line; what is wrong is said once, with line numbers:

{"query": "why did we leave kafka", "path": "decisions/queue.md", "line": 14}
{"query": "flaky tests", "path": ["ci.md", "daily/2026-05-01.md"]}
"""

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from memd.errors import InvalidError, NotFoundError

ERRORS_SHOWN = 5  # a page; who has more has the wrong file
KEYS = ("query", "path", "line", "note")  # a note is the author's own and passed over
EXAMPLE = '{"query": "why did we leave kafka", "path": "decisions/queue.md", "line": 14}'


@dataclass(frozen=True, slots=True)
class Passage:
    """Where an answer stands."""

    path: str  # of the source, relative to the workspace
    line: int | None  # 1-based; None: wherever in the source


@dataclass(frozen=True, slots=True)
class Topic:
    """One query with all that answers it."""

    text: str
    places: tuple[Passage, ...]  # each path and line once, at least one

    @property
    def paths(self) -> frozenset[str]:
        """The sources that answer it."""
        return frozenset(place.path for place in self.places)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The answers of which the line is known."""
        return tuple(place for place in self.places if place.line is not None)


def load(file: Path, root: str) -> list[Topic]:
    """
    Read a golden file.

    Args:
        file: JSON lines, UTF-8.
        root: of the workspace, absolute; a path in the file may be absolute below it.

    Raises:
        InvalidError: it cannot be read, or with the number of each line that is wrong.
        NotFoundError: it is not there.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(f"there is no golden file {file}") from None
    except OSError as error:
        raise InvalidError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from None
    return parse(text, str(file), root)


def parse(text: str, name: str, root: str) -> list[Topic]:
    """
    Return the questions of a golden file's *text*, in its order; lines that ask the same are one question.

    Blank lines and lines that begin with "#" are passed over.

    Raises:
        InvalidError: *name* and the number of each line that is wrong, with what was expected.
    """
    asked: dict[str, dict[Passage, None]] = {}
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            question = _question(line, root)
        except _BadLineError as fault:
            faults.append(f"{name}:{number}: {fault}")
        else:
            asked.setdefault(question.text, {}).update(dict.fromkeys(question.places))
    if faults:
        more = [f"and {len(faults) - ERRORS_SHOWN} more"] if len(faults) > ERRORS_SHOWN else []
        raise InvalidError("\n".join([*faults[:ERRORS_SHOWN], *more, f"A line looks so: {EXAMPLE}"]))
    if not asked:
        raise InvalidError(f"{name} asks nothing. A line looks so: {EXAMPLE}")
    return [Topic(query, tuple(places)) for query, places in asked.items()]


class _BadLineError(Exception):
    """What is wrong with one line."""


def _question(line: str, root: str) -> Topic:
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _BadLineError(f"expected a JSON object on the line, found no JSON ({error})") from None
    if not isinstance(entry, dict):
        raise _BadLineError(f"expected an object with query and path, found {_kind(entry)}")
    for key in entry:
        if key not in KEYS:
            raise _BadLineError(f"unknown key {key!r}; allowed are {', '.join(KEYS)}")
    query, line_number = entry.get("query"), entry.get("line")
    if not isinstance(query, str) or not query.strip():
        raise _BadLineError(f'"query": expected a text that is not empty, found {_kind(query)}')
    if line_number is not None and (type(line_number) is not int or line_number < 1):
        raise _BadLineError(f'"line": expected a whole number from 1, found {_kind(line_number)}')
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise _BadLineError('"query": half a character (a lone surrogate) is no text')
    paths = _paths(entry.get("path"), root)
    if line_number is not None and len(paths) > 1:
        raise _BadLineError('"line" goes with one path: write one line of the file for each place')
    return Topic(query.strip(), tuple(Passage(path, line_number) for path in paths))


def _paths(given: Any, root: str) -> list[str]:
    listed = given if isinstance(given, list) else [given]
    if not listed or not all(isinstance(path, str) and path.strip() for path in listed):
        raise _BadLineError(f'"path": expected a text or a list of texts, found {_kind(given)}')
    return list(dict.fromkeys(_relative(path, root) for path in listed))


def _relative(path: str, root: str) -> str:
    """Return *path* as memd names it: relative to the workspace, without "." and ".."."""
    pure = PurePosixPath(path)
    if pure.is_absolute() and pure.is_relative_to(root):
        pure = pure.relative_to(root)
    if pure.is_absolute() or ".." in pure.parts:
        raise _BadLineError(f'"path": {path!r} is not below the workspace {root}')
    return str(pure)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "nothing", bool: "true or false"}
    if isinstance(value, str) and not value.strip():
        return "an empty text"
    return names.get(type(value)) or f"the number {value}"
