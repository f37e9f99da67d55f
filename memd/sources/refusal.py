"""The reason why a path is not a source: by the rules for its name, else by the file on the disk."""

import os
from pathlib import Path

from memd.records import Skipped, SourceText
from memd.sources.ignore import REFUSALS, Refusal
from memd.sources.scan import REASONS, Rules, read_source

# Reason in Refusal → what people are told; in the order in which they are looked at.
WHY_NOT = {**REFUSALS, **REASONS, "folder-link": "is a link to a folder, and those are not followed"}


def look(root: Path, path: str, rules: Rules, *, now_ns: int) -> SourceText | Refusal | None:
    """Return the source at *path*, or why it is none; None where nothing has that name.

    Args:
        root: of the workspace.
        path: relative to it, with "/".
        rules: what the workspace selects.
        now_ns: the clock just before the call, as time.time_ns() has it.

    Raises:
        StorageError: the root itself is gone or cannot be opened.
    """
    if "\0" in path or not os.path.lexists(root / path):
        return None
    for place in _folders_above(path):
        if os.path.islink(root / place):  # noqa: PTH114 - Path's raises for what is too long
            return Refusal("folder-link", place)
    if os.path.isdir(root / path):  # noqa: PTH112
        return Refusal("folder-link" if os.path.islink(root / path) else "directory", path)  # noqa: PTH114
    if refused := rules.refusal(path):
        return refused
    found = read_source(root, path, now_ns=now_ns)
    return Refusal(found.reason, path) if isinstance(found, Skipped) else found


def told(refused: Refusal, path: str) -> str:
    """Return why *path* is refused as a sentence without its end."""
    what = "it" if refused.place == path else refused.place
    rule = f" by {refused.rule}" if refused.rule else ""
    return f"{what} {WHY_NOT[refused.reason]}{rule}"


def _folders_above(path: str) -> list[str]:
    names = path.split("/")[:-1]
    return ["/".join(names[: count + 1]) for count in range(len(names))]
