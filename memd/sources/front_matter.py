"""The front matter of a note, in YAML.

Scalars stay text (no dates, no booleans). Hostile or broken front matter does not count as front matter: the
caller chunks it as text, so that no word of the file is lost. Warnings contain a line number and no words of
the note, because they are logged.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from memd.sources.markdown import Lines

MAX_ID_CHARS = 64  # memd's own have 16. Arbitrary
# More than any real front matter; the pure-Python YAML parser needs about half a second for this size.
MAX_BYTES = 64 * 1024

MAX_KEY_CHARS = 40  # a longer one is a sentence with a colon. Arbitrary
_USUAL_KEYS = frozenset({"title", "tags", "tag", "aliases", "alias", "created", "id", "type", "status"})
_OPENING = re.compile(r"---[ \t]*")
_CLOSING = re.compile(r"(?:---|\.\.\.)[ \t]*")
_SURROGATE_OR_NUL = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of one note; empty if the note has none."""

    values: dict[str, object]
    lines: int = 0  # from the top of the file, with both fences; 0 without front matter
    is_text: bool = False  # the lines are broken YAML: index them as text
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title on one line; "" if there is none."""
        title = self.values.get("title")
        return " ".join(title.split()) if isinstance(title, str) else ""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of a list or of a comma-separated text, each once, without a leading ``#``."""
        return tuple(dict.fromkeys(filter(None, (tag.lstrip("#").strip() for tag in self._listed("tags")))))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the note (Obsidian's aliases), from a list or a comma-separated text, each once."""
        return tuple(dict.fromkeys(filter(None, self._listed("aliases"))))

    @property
    def entry_id(self) -> str:
        """The id of an entry that memd wrote; "" if there is none."""
        found = self.values.get("id")
        return found if isinstance(found, str) and len(found) <= MAX_ID_CHARS else ""

    def texts(self, key: str) -> Iterator[str]:
        """Yield the texts of a list, or a single text, which may contain commas, as paths do.

        Nested lists are flattened, because YAML reads an unquoted ``[[note]]`` as one.
        """
        waiting = [self.values.get(key)]
        while waiting:
            one = waiting.pop()
            if isinstance(one, list):
                waiting += reversed(one)
            elif isinstance(one, str) and one.strip():
                yield one.strip()

    def _listed(self, key: str) -> Iterator[str]:
        given = self.values.get(key)
        raw: Iterable[object] = given.split(",") if isinstance(given, str) else ()
        if isinstance(given, list):
            raw = given
        return (" ".join(one.split()) for one in raw if isinstance(one, str))


def read_front_matter(lines: Lines) -> FrontMatter:
    """Read the front matter of a note.

    YAML that is not a mapping is not front matter (a note may open with a thematic break). Broken YAML is
    text: one block if it has no blank line, otherwise it is parsed as Markdown like the rest.
    """
    end = closing_line(lines)
    if end is None or (end > 1 and lines.is_blank(1)):  # the latter: text between two thematic breaks
        return FrontMatter({})
    inside = lines.text[lines.starts[1] : lines.starts[end]]
    try:
        if len(inside.encode(errors="replace")) > MAX_BYTES:
            return _broken(lines, end, f"front matter is longer than {MAX_BYTES // 1024} KiB")
        values = _without_traps(yaml.load(inside, Loader=_Loader))  # noqa: S506 - makes only text, lists and maps
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        return _broken(lines, end, f"front matter is not valid YAML at line {line}")
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):  # the last two: from escapes
        return _broken(lines, end, "front matter is not valid YAML")
    if values is None:
        return FrontMatter({}, end + 1)
    return FrontMatter(values, end + 1) if isinstance(values, dict) and _is_keyed(values) else FrontMatter({})


def _is_keyed(values: Mapping[str, object]) -> bool:
    """Return whether a map has keys, and is no letterhead or sentence between two thematic breaks."""
    if any(key.casefold() in _USUAL_KEYS or "date" in key.casefold() for key in values):
        return True
    return not any(" " in key or len(key) > MAX_KEY_CHARS for key in values)


def outermost_entries(text: str) -> list[tuple[str, str | None]] | None:
    """Return the keys and values of a YAML map, including those of maps merged into it; None if not a map.

    A key may occur more than once. A value that is a list or a map is None.
    """
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        return None
    if node is not None and not isinstance(node, yaml.MappingNode):
        return None
    found: list[tuple[str, str | None]] = []
    waiting, seen = [node], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or part is None:
            continue
        seen.add(id(part))
        if isinstance(part, yaml.SequenceNode):
            waiting += part.value
        for key, value in part.value if isinstance(part, yaml.MappingNode) else ():
            if key.value == "<<":
                waiting.append(value)
            elif isinstance(key, yaml.ScalarNode):
                found.append((key.value, value.value if isinstance(value, yaml.ScalarNode) else None))
    return found


def closing_line(lines: Lines) -> int | None:
    """Return the line that ends the front matter; None if the text does not begin with front matter."""
    if not len(lines) or not _OPENING.fullmatch(lines.line(0)):
        return None
    return next((n for n in range(1, len(lines)) if _CLOSING.fullmatch(lines.line(n))), None)


def _broken(lines: Lines, end: int, problem: str) -> FrontMatter:
    in_one = not any(lines.is_blank(number) for number in range(end))
    return FrontMatter({}, end + 1 if in_one else 0, in_one, (f"{problem}; it is indexed as text",))


def _without_traps(value: object) -> object:
    r"""Replace characters that YAML escapes can make but SQLite or UTF-8 cannot store (``"\ud800"``)."""
    if isinstance(value, str):
        return _SURROGATE_OR_NUL.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_traps(item) for item in value]
    if isinstance(value, dict):
        return {str(_without_traps(key)): _without_traps(item) for key, item in value.items()}
    return value


class _Loader(yaml.BaseLoader):
    """A loader that keeps scalars as text and refuses aliases: 271 bytes of them can grow to megabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:  # an alias event has an anchor, too
            raise yaml.MarkedYAMLError(problem="an anchor or alias", problem_mark=event.start_mark)
        return super().compose_node(parent, index)
