"""What may a changed path mean for the index? A guess from names; the disk is asked later."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path

from memd.registry import is_folder
from memd.sources.scan import Rules

# Files that change which others are sources; a scan begins by looking whether the configuration changed.
RULE_FILES = frozenset({".gitignore", ".memdignore", "pyvenv.cfg"})
CONFIG = "memory/config.toml"  # ours, or one that makes a folder below a workspace of its own


class Meaning(Enum):
    """What to do about a path."""

    NOTHING = 0
    SOURCE = 1  # look at this file
    FOLDER = 2  # look through this folder
    RULES = 3  # other files may be sources now: read the rules again, compare everything


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
    if not path or name in RULE_FILES or f"/{path}".endswith(f"/{CONFIG}"):  # "": the root itself
        return Meaning.RULES
    if folder and rules.folder(f"{folder}/") is None:
        return Meaning.NOTHING  # node_modules and the like change all day
    if is_folder(absolute):
        # One that is not searched may have the place of one that was.
        is_searched = rules.folder(f"{path}/") is not None
        return Meaning.FOLDER if is_searched or has_below(path) else Meaning.NOTHING
    if rules.selects(path):
        return Meaning.SOURCE
    # A folder that is gone took its notes with it.
    return Meaning.FOLDER if has_below(path) else Meaning.NOTHING


def below(root: Path, absolute: str) -> str:
    """Return a path relative to *root*; "" for the root itself and what is not in it."""
    path = absolute.removeprefix(f"{root}/")
    return "" if path == absolute else path
