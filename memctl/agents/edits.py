"""Edits of a client's files: the interface, its errors, and files that belong to memd as a whole.

Pure: text in, text out. A server or hook belongs to memd if it runs memctl; a server of the same name that
does not run memctl stops an installation. `json_file` and `toml_file` edit the two formats.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Protocol

from memctl.agents.hooks import TOOL
from memctl.agents.json_splice import BOM


class EditError(ValueError):
    """The text of a file cannot be edited; the message has the reason."""


class ByHandError(EditError):
    """memctl does not edit this file; the user should add or remove *lines*."""

    def __init__(self, reason: str, lines: str) -> None:
        super().__init__(reason)
        self.lines = lines


def runs_memctl(value: Any) -> bool:
    """Return whether a server or hook runs `memctl mcp` or `memctl hook` and no more, or asks that server."""
    if isinstance(value, dict) and value.get("type") == "mcp_tool":
        return bool(value.get("tool") == TOOL)
    return _has_memctl(value) and not _is_compound(value)


def runs_memctl_and_more(value: Any) -> bool:
    """Return whether a hook runs memctl among a user's own commands, as `memctl hook …; ./mine.sh`."""
    return _has_memctl(value) and _is_compound(value)


def _has_memctl(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    words: list[str] = []
    for part in (value.get("command"), value.get("args")):
        if isinstance(part, str):
            words += _split(part) if not isinstance(value.get("args"), list) else [part]
        elif isinstance(part, list):
            words += [word for word in part if isinstance(word, str)]
    memctl = next((at for at, word in enumerate(words) if PurePath(word).name == "memctl"), None)
    return memctl is not None and words[memctl + 1 : memctl + 2] in (["mcp"], ["hook"])


def _is_compound(value: dict[str, Any]) -> bool:
    """Return whether the command is a line for a shell with more than one command in it."""
    command = value.get("command")
    if not isinstance(command, str) or isinstance(value.get("args"), list):
        return False
    return "\n" in command.strip() or any(set(word) <= set("();<>|&") for word in _split(command) if word)


def at(plain: Any, path: Sequence[str | int]) -> Any:
    """Return the value at a path of keys and indexes; None if it is missing."""
    for key in path:
        try:
            plain = plain[key]
        except (KeyError, IndexError, TypeError):
            return None
    return plain


def appended(text: str, lines: Sequence[str], newline: str) -> str:
    """Return *text* with a block of lines behind a blank one; without a newline at the end if it has none."""
    block = newline.join(lines)
    if not text.removeprefix(BOM):
        return f"{text}{block}{newline}"
    return f"{text}{newline}{block}{newline}" if text.endswith("\n") else f"{text}{newline}{newline}{block}"


class Target(Protocol):
    """A file and the parts that memd puts into it. A *text* of None means that the file is missing."""

    @property
    def path(self) -> Path: ...  # noqa: D102

    def has(self, text: str) -> bool:
        """Return whether the text contains any part of memd. Raises EditError."""

    def installed(self, text: str | None) -> str:
        """Return the text with memd's parts added. Raises EditError, ByHandError."""

    def uninstalled(self, text: str, backup: str | None) -> str | None:
        """Return the text without memd's parts, None if nothing else is left; *backup*: the original text."""


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that belongs to memd as a whole, which its first line identifies."""

    path: Path
    content: str

    def has(self, text: str) -> bool:
        """Return whether the file belongs to memd."""
        return text.partition("\n")[0] == self.content.partition("\n")[0]

    def installed(self, text: str | None) -> str:
        """Return the content. Raises EditError if the file belongs to another program."""
        if text is not None and not self.has(text):
            raise EditError("it does not belong to memd: rename or remove it")
        return self.content

    def uninstalled(self, text: str, backup: str | None) -> str | None:  # noqa: ARG002 - as the others
        """Return None; for a file of another program, the unchanged text."""
        return None if self.has(text) else text


def _split(command: str) -> list[str]:
    words = shlex.shlex(command, posix=True, punctuation_chars=True)  # operators are words of their own
    words.whitespace_split, words.commenters = True, ""
    try:
        return list(words)
    except ValueError:
        return command.split()
