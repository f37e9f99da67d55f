"""Edit a client's JSON file: set members, append elements, and remove them again. Pure.

Each edit is made both to the text and to its parsed value, which must agree at the end: an edit that would
change anything else is refused.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memctl.agents import json_splice
from memctl.agents.edits import ByHandError, EditError, at, runs_memctl, runs_memctl_and_more
from memctl.agents.json_splice import BLANKS, BOM, Key


@dataclass(frozen=True, slots=True)
class Entry:
    """A member to set, as memd's MCP server."""

    path: tuple[str, ...]
    value: Any
    is_own: Callable[[Any], bool] = runs_memctl
    replaces: bool = False  # replace another program's value, and restore it later; False: an error
    if_missing: bool = False  # of the whole file, as its version: any value that is there stays


@dataclass(frozen=True, slots=True)
class Element:
    """An element to append to an array, as a group of hooks, or a name."""

    path: tuple[str, ...]
    value: Any
    is_own: Callable[[Any], bool] = runs_memctl
    if_there: bool = False  # only if the array exists: without an allowlist, everything is allowed


Edit = Entry | Element


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A JSON file with the edits that register memctl."""

    path: Path
    edits: tuple[Edit, ...]

    def has(self, text: str) -> bool:
        """Return whether the text contains any of the edits."""
        plain, _ = _read(text)
        return any(any(_places(plain, edit)) for edit in self.edits)

    def installed(self, text: str | None) -> str:
        """Return the text with all edits; those of an earlier installation are replaced."""
        draft = _Draft(text or "")
        for edit in self.edits:
            _install(draft, edit)
        return draft.finished()

    def uninstalled(self, text: str, backup: str | None) -> str | None:
        """Return the text without the edits, and without the containers made for them that are empty now."""
        before, _ = _read(backup or "")
        draft = _Draft(text)
        for edit in self.edits:
            if not (places := list(_places(draft.plain, edit))):
                continue
            draft.own += [(edit, at(draft.plain, place)) for place in places]
            replaced = at(before, edit.path) if isinstance(edit, Entry) and edit.replaces else None
            if replaced is not None and not edit.is_own(replaced):
                draft.put(edit.path, replaced)
                continue
            for place in reversed(places):
                draft.remove(place)
            for depth in reversed(range(1, len(edit.path) + isinstance(edit, Element))):
                outer = edit.path[:depth]
                if at(draft.plain, outer) in ({}, []) and at(before, outer) is None:
                    draft.remove(outer)
        for edit in self.edits:
            only = {edit.path[0]: edit.value}
            if isinstance(edit, Entry) and edit.if_missing and draft.plain == only != before:
                draft.remove(edit.path)
        changed = draft.finished()
        return None if backup is None and draft.plain == {} else changed


class _Draft:
    """A JSON text and its value, edited together; only the value if the text is not plain JSON."""

    def __init__(self, text: str) -> None:
        self.plain, self.reason = _read(text)
        self.own: list[tuple[Edit, Any]] = []  # values added or removed, to print for an edit by hand
        self._text = text if text.strip(BLANKS + BOM) else f"{BOM if text[:1] == BOM else ''}{{}}\n"

    def put(self, path: Sequence[Key], value: Any) -> None:
        """Set a member, and create missing objects on its path."""
        outer = self.plain
        for key in path[:-1]:
            outer = outer[key] if isinstance(key, int) else outer.setdefault(key, {})
        outer[path[-1]] = value
        self._splice(json_splice.put, path, value)

    def append(self, path: Sequence[Key], value: Any) -> None:
        """Append an element to an array, which is created if it is missing."""
        there = at(self.plain, path)
        if there is None:
            self.put(path, [value])
            return
        there.append(value)
        self._splice(json_splice.append, path, value)

    def remove(self, path: Sequence[Key]) -> None:
        """Remove a member or an element."""
        del at(self.plain, path[:-1])[path[-1]]
        self._splice(json_splice.remove, path)

    def finished(self) -> str:
        """Return the text. Raises ByHandError if it is not plain JSON and would have to change."""
        if self.reason and self.own:
            shown: dict[str, Any] = {}  # only these members and elements
            for edit, value in self.own:
                outer = shown
                for key in edit.path[:-1]:
                    outer = outer.setdefault(key, {})
                if isinstance(edit, Element):
                    outer.setdefault(edit.path[-1], []).append(value)
                else:
                    outer[edit.path[-1]] = value
            raise ByHandError(self.reason, json.dumps(shown, indent=2, ensure_ascii=False))
        if not self.reason and _read(self._text) != (self.plain, ""):
            raise EditError("an edit would have changed other parts of the file; this is a bug in memctl")
        return self._text

    def _splice(self, splice: Callable[..., str], *arguments: Any) -> None:
        if not self.reason:
            self._text = splice(self._text, *arguments)


def _read(text: str) -> tuple[Any, str]:
    try:
        return json_splice.read(text)
    except ValueError as error:
        raise EditError(str(error)) from error


def _install(draft: _Draft, edit: Edit) -> None:
    there = _expect_way(draft.plain, edit)
    places = list(_places(draft.plain, edit))
    if isinstance(edit, Entry):
        if there is not None and edit.if_missing:
            return
        if there is not None and not places and not edit.replaces:
            raise EditError(f"{'.'.join(edit.path)} exists, and is not memd's: rename or remove it")
        if there != edit.value:
            draft.own.append((edit, edit.value))
            draft.put(edit.path, edit.value)
        return
    if any(at(draft.plain, place) == edit.value for place in places) or (edit.if_there and there is None):
        return
    if any(runs_memctl_and_more(hook) for _, hook in _hooks(there)):
        return  # the user's own line calls memctl: another hook would do the same twice
    wanted = [hook["command"] for _, hook in _hooks([edit.value]) if _is_own_line(edit, hook)]
    own = [(*edit.path, *place) for place, hook in _hooks(there) if _is_own_line(edit, hook)]
    if len(own) == len(wanted) == len(places) == 1:  # its matcher, its timeout and other keys are the user's
        if at(draft.plain, own[0])["command"] != wanted[0]:
            draft.own.append((edit, edit.value))
            draft.put((*own[0], "command"), wanted[0])
        return
    for place in reversed(places):
        draft.remove(place)
    draft.own.append((edit, edit.value))
    draft.append(edit.path, edit.value)


def _expect_way(plain: Any, edit: Edit) -> Any:
    """Return the value at an edit's path; None if it is missing. Raises EditError for a wrong type."""
    for depth, key in enumerate(edit.path):
        if not isinstance(plain, dict):
            raise EditError(f"{'.'.join(edit.path[:depth]) or 'the whole'} is not an object")
        if key not in plain:
            return None
        plain = plain[key]
    if isinstance(edit, Element) and not isinstance(plain, list):
        raise EditError(f"{'.'.join(edit.path)} is not an array")
    return plain


def _hooks(there: Any) -> Iterator[tuple[tuple[Key, ...], Any]]:
    """Yield the hooks of an array with their paths in it: its elements, and those of groups."""
    for index, group in enumerate(there if isinstance(there, list) else ()):
        yield (index,), group
        inner = group.get("hooks") if isinstance(group, dict) else None
        for number, hook in enumerate(inner if isinstance(inner, list) else ()):
            yield (index, "hooks", number), hook


def _is_own_line(edit: Element, hook: Any) -> bool:
    return edit.is_own(hook) and isinstance(hook, dict) and "command" in hook and "args" not in hook


def _places(plain: Any, edit: Edit) -> Iterator[tuple[Key, ...]]:
    """Yield the paths of memd's values: members, groups of hooks, or single hooks in a shared group."""
    there = at(plain, edit.path)
    if isinstance(edit, Entry):
        if there is not None and edit.is_own(there):
            yield edit.path
        return
    for index, group in enumerate(there if isinstance(there, list) else ()):
        if edit.is_own(group):
            yield (*edit.path, index)
        inner = group.get("hooks") if isinstance(group, dict) else None
        inner = inner if isinstance(inner, list) else []
        ours = [number for number, hook in enumerate(inner) if edit.is_own(hook)]
        if ours and len(ours) == len(inner):
            yield (*edit.path, index)
        else:
            for number in ours:
                yield (*edit.path, index, "hooks", number)
