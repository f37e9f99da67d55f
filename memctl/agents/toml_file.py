"""Edit a client's TOML file: append memd's table as text, and remove it again. Pure.

tomllib parses the text before and after: an edit that would change anything except the table is refused.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memctl.agents.edits import ByHandError, EditError, appended, at, runs_memctl
from memctl.agents.json_splice import BLANKS, BOM, newline_of

# A string or comment, which may be unterminated, or the header of a table, which is the group.
_TOML_KEY = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_TOML = re.compile(
    r'"{3}(?:[^\\]|\\.)*?(?:"{3,5}|\Z)' + r"|'{3}.*?(?:'{3,5}|\Z)|#[^\n]*"
    rf"|^{BOM}?[ \t]*(\[\[?[ \t]*{_TOML_KEY}(?:[ \t]*\.[ \t]*{_TOML_KEY})*[ \t]*\]\]?)"
    r"""|"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?""",
    re.DOTALL | re.MULTILINE,
)
_BEHIND_LAST_KEY = re.compile(r"^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:#[^\n]*)?\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A TOML file with the table that registers memctl."""

    path: Path
    table: tuple[str, str]
    value: dict[str, Any]

    def has(self, text: str) -> bool:
        """Return whether the table exists and runs memctl."""
        return runs_memctl(at(self._parsed(text), self.table))

    def installed(self, text: str | None) -> str:
        """Return the text with the table at its end; the rest does not change."""
        text = text or ""
        parsed = self._parsed(text)
        there = at(parsed, self.table)
        if there == self.value:
            return text
        if there is not None and not runs_memctl(there):
            raise EditError(f"{'.'.join(self.table)} exists, and is not memd's: rename or remove it")
        rest = _cut(text, self.table)
        block = [f"[{'.'.join(self.table)}]", *_toml_lines(self.value)]
        return self._checked(appended(rest, block, newline_of(text)), parsed, self.value)

    def uninstalled(self, text: str, backup: str | None) -> str | None:
        """Return the text without the table."""
        parsed = self._parsed(text)
        there = at(parsed, self.table)
        if not runs_memctl(there):
            return text
        changed = self._checked(_cut(text, self.table), parsed, there, is_gone=True)
        return None if backup is None and not changed.strip(BLANKS) else changed

    def _checked(
        self, changed: str, before: dict[str, Any], value: dict[str, Any], *, is_gone: bool = False
    ) -> str:
        """Return *changed* if only the table differs from *before*. Raises ByHandError otherwise."""
        outer, name = self.table
        tables = {key: there for key, there in before.get(outer, {}).items() if key != name}
        wanted = before | {outer: tables if is_gone else tables | {name: value}}
        try:
            after = self._parsed(changed)
        except EditError:
            after = {}
        if {outer: {}} | after != wanted:
            lines = f"{name} = {{ {', '.join(_toml_lines(value))} }}"
            reason = f"it writes {outer}, or {outer}.{name}, in an unusual form"
            raise ByHandError(reason, f"# below {outer}:\n{lines}")
        return changed

    def _parsed(self, text: str) -> dict[str, Any]:
        import tomllib

        try:
            # Floats are kept as text, because nan is not equal to itself.
            parsed = tomllib.loads(text.removeprefix(BOM), parse_float=str)
        except (ValueError, RecursionError) as error:
            raise EditError(str(error)) from error
        if not isinstance(parsed.get(self.table[0], {}), dict):
            raise EditError(f"{self.table[0]} is not a table")
        return parsed


def _blocks(text: str, table: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of a TOML table and of each of its subtables, from header to last key."""
    import tomllib

    headers = [found for found in _TOML.finditer(text) if found[1]]
    blocks = []
    for index, found in enumerate(headers):
        end = headers[index + 1].start() if index + 1 < len(headers) else len(text)
        if table[-1] in found[1] and at(tomllib.loads(found[1]), table) is not None:
            behind = _BEHIND_LAST_KEY.search(text, found.end(), end)
            blocks.append((found.start(1), behind.start() if behind else end))
    return blocks


def _cut(text: str, table: Sequence[str]) -> str:
    """Return TOML without a table, and without the blank line that was inserted before it."""
    for start, end in reversed(_blocks(text, table)):
        head = re.sub(r"\n\r?\n\Z", "\n", text[:start])
        if end == len(text) and not text.endswith("\n"):
            head = re.sub(r"\r?\n\Z", "", head)
        text = head + text[end:]
    return text


def _toml_lines(table: dict[str, Any]) -> list[str]:
    """Return the lines of a table of strings and lists of strings, which TOML writes like JSON except DEL."""
    return [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for key, value in table.items()
    ]
