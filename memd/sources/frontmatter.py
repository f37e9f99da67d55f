"""What does the YAML at the top of a note say?

Scalars stay text (no dates, no booleans). Whatever is hostile or broken is not front matter: the caller
chunks it as text, so that no word of the file is lost. Warnings carry a line number and no word of the
note, because they reach the log.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from memd.sources.lines import Lines

# More than any real front matter; the pure-Python YAML parser needs about half a second for so much.
MAX_BYTES = 64 * 1024

_OPENING = re.compile(r"---[ \t]*")
_CLOSING = re.compile(r"(?:---|\.\.\.)[ \t]*")
_SURROGATE_OR_NUL = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of one note, or that there is none."""

    values: dict[str, object]
    lines: int = 0  # from the top of the file, both fences included; 0: there is none
    is_text: bool = False  # the lines are broken YAML: index them as they are
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title on one line; "" without."""
        title = self.values.get("title")
        return " ".join(title.split()) if isinstance(title, str) else ""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of a list or of a comma-separated text, each once, without a leading ``#``."""
        given = self.values.get("tags")
        raw: Iterable[object] = given.split(",") if isinstance(given, str) else ()
        if isinstance(given, list):
            raw = given
        cleaned = (" ".join(tag.split()).lstrip("#").strip() for tag in raw if isinstance(tag, str))
        return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def read_front_matter(lines: Lines) -> FrontMatter:
    """Read the front matter of a note.

    YAML that is no mapping is not front matter (a note may open with a thematic break). Broken YAML is
    text: in one stretch if no blank line interrupts it, else it is Markdown like the rest.
    """
    end = closing_line(lines)
    if end is None:
        return FrontMatter({})
    inside = lines.text[lines.starts[1] : lines.starts[end]]
    try:
        if len(inside.encode(errors="replace")) > MAX_BYTES:
            return _broken(lines, end, f"front matter is longer than {MAX_BYTES // 1024} KiB")
        values = _without_traps(yaml.load(inside, Loader=_Loader))  # noqa: S506 - makes text, lists, maps
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        return _broken(lines, end, f"front matter is not valid YAML at line {line}")
    except (yaml.YAMLError, RecursionError):
        return _broken(lines, end, "front matter is not valid YAML")
    if values is None:
        return FrontMatter({}, end + 1)
    return FrontMatter(values, end + 1) if isinstance(values, dict) else FrontMatter({})


def closing_line(lines: Lines) -> int | None:
    """Return the line that ends the front matter; None where the text does not begin with one."""
    if not len(lines) or not _OPENING.fullmatch(lines.line(0)):
        return None
    return next((n for n in range(1, len(lines)) if _CLOSING.fullmatch(lines.line(n))), None)


def _broken(lines: Lines, end: int, problem: str) -> FrontMatter:
    in_one = not any(lines.is_blank(number) for number in range(end))
    return FrontMatter({}, end + 1 if in_one else 0, in_one, (f"{problem}; it is indexed as text",))


def _without_traps(value: object) -> object:
    r"""Replace what YAML's escapes can make and neither SQLite nor UTF-8 can carry (``"\ud800"``)."""
    if isinstance(value, str):
        return _SURROGATE_OR_NUL.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_traps(item) for item in value]
    if isinstance(value, dict):
        return {str(_without_traps(key)): _without_traps(item) for key, item in value.items()}
    return value


class _Loader(yaml.BaseLoader):
    """Scalars stay text, and aliases are refused: 271 bytes of them can grow to megabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:  # an alias event has one, too
            raise yaml.MarkedYAMLError(problem="an anchor or alias", problem_mark=event.start_mark)
        return super().compose_node(parent, index)
