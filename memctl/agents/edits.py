"""Edits of a client's configuration: what is put into it, how it is told from all else, and its way out.

Pure: texts in, texts out. An entry or element is memd's own if it runs memctl, or says so; an entry of
that name that does not is somebody else's and stops an installation.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Protocol

from memctl.agents import json_edit
from memctl.agents.json_edit import JsonSyntaxError, Key

Json = dict[str, Any]


class EditError(ValueError):
    """A file's text is not one that can be edited; the message says why."""


def runs_memctl(value: Any) -> bool:
    """Tell whether a server or hook runs `memctl mcp` or `memctl hook`."""
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A member that is set: an MCP server of memd's."""

    path: tuple[str, ...]
    value: Any
    is_own: Callable[[Any], bool] = runs_memctl
    replaces: bool = False  # another's value, which comes back in the end; without, that is an error


@dataclass(frozen=True, slots=True)
class Element:
    """An element that is appended to an array: a group of hooks, or a name."""

    path: tuple[str, ...]
    value: Any
    is_own: Callable[[Any], bool] = runs_memctl
    if_there: bool = False  # only to an array that is there: an allowlist that is not there allows all


Edit = Entry | Element


class Target(Protocol):
    """A file, and what belongs into it."""

    @property
    def path(self) -> Path: ...  # noqa: D102

    def installed(self, text: str | None) -> str:
        """Return the text with all that belongs into it. Raises EditError."""

    def uninstalled(self, text: str, backup: str | None) -> str | None:
        """Return the text without; *backup*: what it was before. None: it was all ours. Raises EditError."""

    def like(self, text: str) -> "Target":
        """Return the same target as another memctl installed it, or with other options. Raises EditError."""


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A JSON file; *strict*: its client takes no comments."""

    path: Path
    edits: tuple[Edit, ...]
    strict: bool = False

    def installed(self, text: str | None) -> str:
        """Return the text with every edit made; one that is made already is made anew in its place."""
        text = text if text and text.strip() else "{}\n"
        try:
            self._check(text)
            for edit in self.edits:
                text = _with(text, edit)
        except (JsonSyntaxError, TypeError) as error:
            raise EditError(str(error)) from error
        return text

    def uninstalled(self, text: str, backup: str | None) -> str | None:
        """Return the text without any; containers that are empty now and were not there before go, too."""
        try:
            self._check(text)
            before = json_edit.parse(backup).plain if backup and backup.strip() else {}
        except JsonSyntaxError as error:
            raise EditError(str(error)) from error
        for edit in self.edits:
            places = list(_places(json_edit.parse(text).plain, edit))
            if not places:
                continue
            replaced = _get(before, edit.path) if isinstance(edit, Entry) and edit.replaces else None
            if replaced is not None and not edit.is_own(replaced):
                text = json_edit.put(text, edit.path, replaced)
                continue
            for place in reversed(places):
                text = json_edit.remove(text, place)
            for depth in reversed(range(1, len(edit.path) + isinstance(edit, Element))):
                outer = edit.path[:depth]
                if _get(json_edit.parse(text).plain, outer) in ({}, []) and _get(before, outer) is None:
                    text = json_edit.remove(text, outer)
        return None if backup is None and "".join(text.split()) == "{}" else text

    def like(self, text: str) -> "JsonFile":
        """Return it with the values of memd's own in *text*."""
        try:
            plain = json_edit.parse(text).plain
        except JsonSyntaxError as error:
            raise EditError(str(error)) from error
        found = [next(_places(plain, edit), None) for edit in self.edits]
        edits = [
            replace(edit, value=_get(plain, place)) if place else edit
            for edit, place in zip(self.edits, found, strict=True)
        ]
        return replace(self, edits=tuple(edits))

    def _check(self, text: str) -> None:
        json_edit.parse(text)
        if self.strict:
            try:
                json.loads(text)
            except ValueError as error:
                raise JsonSyntaxError(str(error)) from error


def _with(text: str, edit: Edit) -> str:
    plain = json_edit.parse(text).plain
    places = list(_places(plain, edit))
    if isinstance(edit, Entry):
        there = _get(plain, edit.path)
        if there is not None and not places and not edit.replaces:
            raise EditError(f"{'.'.join(edit.path)} is there already, and is not memd's: rename or remove it")
        return text if there == edit.value else json_edit.put(text, edit.path, edit.value)
    if any(_get(plain, place) == edit.value for place in places):
        return text
    if edit.if_there and _get(plain, edit.path) is None:
        return text
    for place in reversed(places):
        text = json_edit.remove(text, place)
    return json_edit.append(text, edit.path, edit.value)


def _places(plain: Any, edit: Edit) -> Iterator[tuple[Key, ...]]:
    """Yield where memd's own stands; of a group that has others' hooks, too, the hook inside of it."""
    there = _get(plain, edit.path)
    if isinstance(edit, Entry):
        if there is not None and edit.is_own(there):
            yield edit.path
        return
    for index, group in enumerate(there if isinstance(there, list) else ()):
        if edit.is_own(group):
            yield (*edit.path, index)
        inner = group.get("hooks") if isinstance(group, dict) else None
        ours = (
            [number for number, hook in enumerate(inner) if edit.is_own(hook)]
            if isinstance(inner, list)
            else []
        )
        if ours and len(ours) == len(inner or ()):
            yield (*edit.path, index)
        else:
            for number in ours:
                yield (*edit.path, index, "hooks", number)


def _get(plain: Any, path: Sequence[Key]) -> Any:
    for key in path:
        try:
            plain = plain[key]
        except (KeyError, IndexError, TypeError):
            return None
    return plain


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A TOML file with one table of memd's."""

    path: Path
    table: tuple[str, str]
    value: Json

    def installed(self, text: str | None) -> str:
        """Return the text with the table; all else in it stays."""
        import tomlkit

        outer, name = self.table
        document = self._parsed(text or "")
        there = _get(document, self.table)
        if there == self.value:
            return text or ""
        if there is not None and not runs_memctl(there.unwrap()):
            raise EditError(f"{outer}.{name} is there already, and is not memd's: rename or remove it")
        if outer not in document:
            document[outer] = tomlkit.table(is_super_table=True)
        document[outer][name] = self.value
        return tomlkit.dumps(document)

    def uninstalled(self, text: str, backup: str | None) -> str | None:
        """Return the text without the table."""
        import tomlkit

        outer, name = self.table
        document = self._parsed(text)
        there = _get(document, self.table)
        if there is None or not runs_memctl(there.unwrap()):
            return text
        del document[outer][name]
        if not document[outer] and outer not in self._parsed(backup or ""):
            del document[outer]
        changed = tomlkit.dumps(document)
        return None if backup is None and not changed.strip() else changed

    def like(self, text: str) -> "TomlFile":
        """Return it with the table of *text*."""
        there = _get(self._parsed(text), self.table)
        return self if there is None else replace(self, value=there.unwrap())

    def _parsed(self, text: str) -> Any:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        try:
            document = tomlkit.parse(text)
            outer = document.get(self.table[0], {})
        except TOMLKitError as error:
            raise EditError(str(error)) from error
        if not isinstance(outer, dict):
            raise EditError(f"{self.table[0]} is no table")
        return document


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is memd's alone; its first line says so."""

    path: Path
    content: str

    def installed(self, text: str | None) -> str:
        """Return its content. Raises EditError where somebody else's file has its name."""
        if text is not None and not self._is_ours(text):
            raise EditError("it is not memd's: rename or remove it")
        return self.content

    def uninstalled(self, text: str, backup: str | None) -> str | None:  # noqa: ARG002 - as the others
        """Return None, or another's text as it is."""
        return None if self._is_ours(text) else text

    def like(self, text: str) -> "WholeFile":
        """Return it with that content."""
        return replace(self, content=text) if self._is_ours(text) else self

    def _is_ours(self, text: str) -> bool:
        return text.partition("\n")[0] == self.content.partition("\n")[0]
