"""The front matter of a note: YAML, TOML (`+++`) or JSON above the text, or Logseq's `key:: value` in it.

Scalars stay text (no dates, no booleans). Hostile or broken front matter does not count as front matter: the
caller chunks it as text, so that no word of the file is lost. Warnings contain a line number and no words of
the note, because they are logged.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from typing import Any

import yaml

from memd.sources.markdown import Lines

MAX_ID_CHARS = 64  # memd's own have 16. Arbitrary
# More than any real front matter; the pure-Python YAML parser needs about half a second for this size.
MAX_BYTES = 64 * 1024

MAX_KEY_CHARS = 40  # a longer one is a sentence with a colon. Arbitrary
WARNED_LINES = 5  # named in a warning. Arbitrary
MAX_LINE_CHARS = (
    2_000  # of a line whose value may get quotes: an expression reads it several times. Arbitrary
)
_USUAL_KEYS = frozenset({"title", "tags", "tag", "aliases", "alias", "created", "id", "type", "status"})
_OPENING = re.compile(r"---[ \t]*")
_CLOSING = re.compile(r"(?:---|\.\.\.)[ \t]*")
_TOML_FENCE = re.compile(r"\+\+\+[ \t]*")
# YAML has no tab behind a colon or at the beginning of a line, but people do.
_TABBED = re.compile(r"^([ ]*(?:- +){0,3}[^\s#:][^:\n]*:)\t+", re.MULTILINE)
_INDENTED = re.compile(r"^\t+", re.MULTILINE)
# A comment for YAML, but not for people: `- #tag`, `tags: #one #two`, `title: Issue #12`.
_HASHED = re.compile(
    r"""^([ ]*(?:- +){0,3}(?:(?<=- )|[^\s#:'"{\[][^:\n]*:[ ]+))"""
    r"""((?:|\[ *|\[[^\n'"]*, *|[^\s'"{\[|>&*!#-][^\n]*? )#[^\s#](?:.*\S)?)(\s*?)$""",
    re.MULTILINE,
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#+[ \t]+(\S(?:[^\n]*\S)?)", re.MULTILINE)
_PARTS = re.compile(r"(?<=\n)(?=[^\s#\]}-])")  # where a key of the outermost map may begin
# Of what can be said once the last one counts, as for most parsers of YAML.
_SAID_ONCE = frozenset({
    "title", "id", "date", "day", "created", "published", "updated", "lastmod", "valid_until", "expires",
    "evergreen", "derived_from", "private",
})  # fmt: skip
_KEY_AND_VALUE = re.compile(
    r"""([ ]*(?:- +){0,3}(?:[^\s#:'"{\[][^:]*:[ ]+|(?<=- )))([^\s|>-](?:.*\S)?)(\s*)"""
)
_PROPERTY = re.compile(r"\s*(?:- )?([^\W\d_][\w./-]*)::(?:[ \t]+(.*))?")
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
        return next((" ".join(one.split()) for one in self._given("title") if isinstance(one, str)), "")

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of lists or of texts with commas, each once, without ``#`` and brackets."""
        # Without a comma, each word is one for Obsidian, Jekyll and Foam; not below `tag`, nor for Logseq.
        every = (*self._listed("tags", apart=self.lines > 0), *self._listed("tag"))
        each = (tag for listed in every for tag in re.split(r"\s+(?=#)", listed))
        found = (tag.strip("[] \"'").lstrip("#").strip() for tag in each)
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the note (Obsidian's aliases), from lists or comma-separated texts, each once."""
        return tuple(dict.fromkeys(filter(None, self._listed("aliases", "alias"))))

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

    def _listed(self, *keys: str, apart: bool = False) -> Iterator[str]:
        for given in self._given(*keys):
            sign = None if apart and isinstance(given, str) and not re.search(r"[,\[]", given) else ","
            raw: Iterable[object] = given.split(sign) if isinstance(given, str) else ()
            if isinstance(given, list):
                raw = [inner for one in given for inner in (one if isinstance(one, list) else [one])]
            yield from (" ".join(one.split()) for one in raw if isinstance(one, str))

    def _given(self, *keys: str) -> Iterator[object]:
        return (value for key, value in self.values.items() if key.casefold() in keys)


def read_front_matter(lines: Lines) -> FrontMatter:
    """Read the front matter of a note.

    What is not a mapping is not front matter (a note may open with a thematic break). Where it is broken it
    is text: one block if it has no blank line, otherwise it is parsed as Markdown like the rest. Logseq's
    properties are values, and stay text.
    """
    top = lines.line(0) if len(lines) else ""
    if _OPENING.fullmatch(top):
        return _read_yaml(lines)
    if _TOML_FENCE.fullmatch(top):
        return _read_toml(lines)
    return _read_json(lines) if top.startswith("{") else _read_properties(lines)


def _read_yaml(lines: Lines) -> FrontMatter:
    end = closing_line(lines)
    if end is None or (end > 1 and lines.is_blank(1)):  # the latter: text between two thematic breaks
        return FrontMatter({})
    inside = lines.text[lines.starts[1] : lines.starts[end]]
    try:
        if len(inside.encode(errors="replace")) > MAX_BYTES:
            return _broken(lines, end, f"front matter is longer than {MAX_BYTES // 1024} KiB")
        loaded, quoted = _loaded(inside)
        values = _without_traps(loaded)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        return _broken(lines, end, f"front matter is not valid YAML at line {line}", _in_parts(inside))
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):  # the last two: from escapes
        return _broken(lines, end, "front matter is not valid YAML")
    known = values if isinstance(values, dict) and _is_keyed(values) else {}
    if not known and inside.strip():  # comments alone are headings between two thematic breaks
        return FrontMatter({})
    where = ", ".join(str(number + 2) for number in sorted(quoted)[:WARNED_LINES])
    warning = f"front matter is not valid YAML at line {where}; the value there is taken as it is written"
    return FrontMatter(_with_comments(known, inside), end + 1, warnings=(warning,) if quoted else ())


def _loaded(inside: str) -> tuple[object, list[int]]:
    """Return what a YAML document says, and its lines that are valid only with their value in quotes."""
    spaced = _TABBED.sub(r"\1 ", _INDENTED.sub(lambda tabs: "  " * len(tabs[0]), inside))
    rows = _HASHED.sub(_in_quotes, spaced).split("\n")
    quoted: list[int] = []
    while True:
        try:
            return yaml.load("\n".join(rows), Loader=_Loader), quoted  # noqa: S506 - makes text, lists and maps
        except yaml.MarkedYAMLError as error:
            marks = [mark.line for mark in (error.problem_mark, error.context_mark) if mark is not None]
            found = {
                line: match
                for line in marks
                if line < len(rows)
                and line not in quoted
                and len(rows[line]) <= MAX_LINE_CHARS
                and (match := _KEY_AND_VALUE.fullmatch(rows[line]))
            }
            # Each try reads all lines again.
            if not found or (len(quoted) + 1) * len(inside) > MAX_BYTES:
                raise
            line, match = next(iter(found.items()))
            rows[line] = _in_quotes(match)
            quoted.append(line)


def _in_quotes(found: re.Match[str]) -> str:
    return "{}'{}'{}".format(found[1], found[2].replace("'", "''"), found[3])


def _in_parts(inside: str) -> dict[str, object]:
    """Return the keys that are YAML one by one, and under "" what is none; {} if it is rather prose."""
    parts: dict[bool, list[str]] = {False: [], True: []}
    for part in _PARTS.split(inside):
        is_line = "\n" not in part.strip()  # of a long list, each try to quote a value would read all
        try:
            one = _loaded(part)[0] if is_line else yaml.load(part, Loader=_Loader)  # noqa: S506 - as above
        except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
            one = None
        parts[isinstance(one, dict)].append(part)
    try:
        values = _without_traps(_loaded("".join(parts[True]))[0])
    except yaml.YAMLError:
        return {}
    if not isinstance(values, dict) or not _has_usual_key(values) or len(parts[False]) > len(parts[True]):
        return {}
    return _with_comments({**values, "": "".join(parts[False])}, inside)


def _with_comments(values: dict[str, object], inside: str) -> dict[str, object]:
    """Return the values, and the comments under "": they are found by their words."""
    comments = [one.rstrip("\"']}") for one in _COMMENT.findall(inside)]  # or a value with the sign
    said = json.dumps(values, ensure_ascii=False) if comments else ""  # most notes have none
    lost = [one for one in comments if json.dumps(one, ensure_ascii=False)[1:-1] not in said]
    return {**values, "": "\n".join([str(values.get("", "")), *lost]).strip()} if lost else values


def _read_toml(lines: Lines) -> FrontMatter:
    end = closing_line(lines)
    if end is None:
        return FrontMatter({})
    inside = lines.text[lines.starts[1] : lines.starts[end]].replace("\r\n", "\n")
    try:
        if len(inside.encode(errors="replace")) > MAX_BYTES:
            return _broken(lines, end, f"front matter is longer than {MAX_BYTES // 1024} KiB")
        values = tomllib.loads(inside, parse_float=str)
    except (ValueError, RecursionError):
        return _broken(lines, end, "front matter is not valid TOML")
    return FrontMatter({key: _as_text(value) for key, value in values.items()}, end + 1)


def _read_json(lines: Lines) -> FrontMatter:
    """Read a JSON object that ends with its line and that text follows."""
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
    try:
        values, stop = decoder.raw_decode(lines.text[:MAX_BYTES])
    except (ValueError, RecursionError):
        return FrontMatter({})
    end = lines.number_at(stop - 1)
    behind = lines.text[stop : lines.ends[end]] if lines.ends[end] > stop else ""
    if behind.strip() or not lines.text[lines.ends[end] :].strip() or not _is_keyed(values):
        return FrontMatter({})
    return FrontMatter({key: _without_traps(_as_text(value)) for key, value in values.items()}, end + 1)


def _read_properties(lines: Lines) -> FrontMatter:
    values: dict[str, object] = {}
    for number in range(len(lines)):
        found = _PROPERTY.fullmatch(lines.line(number))
        if not found or len(found[0]) > MAX_BYTES:
            break
        values.setdefault(found[1], _without_traps((found[2] or "").strip()))
    return FrontMatter(values)


def _as_text(value: object) -> object:
    if isinstance(value, dict):
        return {key: _as_text(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    return "" if value is None else str(value)


def _is_keyed(values: Mapping[str, object]) -> bool:
    """Return whether a map has keys, and is no letterhead or sentence between two thematic breaks."""
    return _has_usual_key(values) or not any(" " in key or len(key) > MAX_KEY_CHARS for key in values)


def _has_usual_key(values: Mapping[str, object]) -> bool:
    return any(key.casefold() in _USUAL_KEYS or "date" in key.casefold() for key in values)


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
    """Return the line that ends a YAML or TOML front matter; None if there is none."""
    for opening, closing in ((_OPENING, _CLOSING), (_TOML_FENCE, _TOML_FENCE)):
        if len(lines) and opening.fullmatch(lines.line(0)):
            return next((n for n in range(1, len(lines)) if closing.fullmatch(lines.line(n))), None)
    return None


def _broken(lines: Lines, end: int, problem: str, known: dict[str, object] | None = None) -> FrontMatter:
    if known:
        return FrontMatter(known, end + 1, warnings=(f"{problem}; what is no YAML is found by its words",))
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
    """A loader that keeps scalars as text and refuses aliases: 271 bytes of them can grow to megabytes.

    A key that is written again adds to its values.
    """

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            each: dict[Any, list[Any]] = {}
            for key, value in node.value:
                one = self.construct_object(value, deep=deep)
                each.setdefault(key.value, []).extend(one if isinstance(one, list) else [one])
            for key, values in each.items():
                if key.casefold() not in _SAID_ONCE and not any(isinstance(one, dict) for one in values):
                    found[key] = values if len(values) > 1 else found[key]
        return found

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:  # an alias event has an anchor, too
            raise yaml.MarkedYAMLError(problem="an anchor or alias", problem_mark=event.start_mark)
        return super().compose_node(parent, index)
