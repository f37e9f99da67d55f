"""What may a changed path mean for the index? A guess from names; the disk is asked later."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path

from memd.sources.scan import Rules
from memd.workspace import is_folder

# Files that change which others are sources; a scan begins by looking whether the configuration changed.
RULE_FILES = frozenset({".gitignore", ".memdignore", "pyvenv.cfg", "config.toml"})


class Meaning(Enum):
    """What to do about a path."""

    NOTHING = 0
    SOURCE = 1  # look at this file
    SCAN = 2  # more than this file may have changed: compare the whole folder


def meaning(absolute: str, root: Path, rules: Rules, has_below: Callable[[str], bool]) -> Meaning:
    """Return what an event for *absolute* may mean.

    Args:
        absolute: the path as the watcher reports it.
        root: of the workspace.
        rules: what is a source.
        has_below: whether the index has sources in a folder, named relative to the root.
    """
    path = below(root, absolute)
    folder, _, name = path.rpartition("/")
    if not path or name in RULE_FILES:  # the root itself was touched, moved or replaced
        return Meaning.SCAN
    if folder and rules.folder(f"{folder}/") is None:
        return Meaning.NOTHING  # node_modules and the like change all day
    if is_folder(absolute):
        return Meaning.SCAN if rules.folder(f"{path}/") is not None else Meaning.NOTHING
    if rules.selects(path):
        return Meaning.SOURCE
    # A folder that is gone took its notes with it.
    return Meaning.SCAN if has_below(path) else Meaning.NOTHING


def below(root: Path, absolute: str) -> str:
    """Return a path relative to *root*; "" for the root itself and what is not in it."""
    path = absolute.removeprefix(f"{root}/")
    return "" if path == absolute else path
