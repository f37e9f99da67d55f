"""Edits of a client's files: their interface, their errors, and files that are memd's alone.

Pure: texts in, texts out. A server or hook is memd's own if it runs memctl; another server of that name
belongs to somebody else and stops an installation. How JSON and TOML are edited is in modules of their own.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Protocol


class EditError(ValueError):
    """The text of a file cannot be edited; the message says why."""


class ByHandError(EditError):
    """memctl does not edit this file; *lines* are those that its owner should add or remove."""

    def __init__(self, reason: str, lines: str) -> None:
        super().__init__(reason)
        self.lines = lines


def runs_memctl(value: Any) -> bool:
    """Return whether a server or hook runs `memctl mcp` or `memctl hook`."""
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


def at(plain: Any, path: Sequence[str | int]) -> Any:
    """Return the value at a path; None where there is none."""
    for key in path:
        try:
            plain = plain[key]
        except (KeyError, IndexError, TypeError):
            return None
    return plain


class Target(Protocol):
    """A file, and what belongs into it. Texts are those of the file, None where there is none."""

    @property
    def path(self) -> Path: ...  # noqa: D102

    def has(self, text: str) -> bool:
        """Return whether anything of memd's is in the text. Raises EditError."""

    def installed(self, text: str | None) -> str:
        """Return the text with memd's parts added. Raises EditError, ByHandError."""

    def uninstalled(self, text: str, backup: str | None) -> str | None:
        """Return the text without memd's parts, None where all is memd's; *backup*: as it was before."""

    def like(self, text: str) -> "Target":
        """Return the same target as another memctl installed it, or with other options. Raises EditError."""


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is memd's alone; its first line says so."""

    path: Path
    content: str

    def has(self, text: str) -> bool:
        """Return whether the file is memd's."""
        return self._is_ours(text)

    def installed(self, text: str | None) -> str:
        """Return its content. Raises EditError where somebody else's file has its name."""
        if text is not None and not self._is_ours(text):
            raise EditError("it is not memd's: rename or remove it")
        return self.content

    def uninstalled(self, text: str, backup: str | None) -> str | None:  # noqa: ARG002 - as the others
        """Return None; the text unchanged where the file is somebody else's."""
        return None if self._is_ours(text) else text

    def like(self, text: str) -> "WholeFile":
        """Return this target with the content *text*."""
        return replace(self, content=text) if self._is_ours(text) else self

    def _is_ours(self, text: str) -> bool:
        return text.partition("\n")[0] == self.content.partition("\n")[0]


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
