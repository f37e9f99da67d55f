"""Which notes fade with age, and why. Pure.

A day at the beginning of a name belongs to a blog post, a decision or minutes as often as to a log, and what
they say is no less true years later. A diary is called by its day alone, or its folder says what it is.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from memd.named_days import leading_time
from memd.records import Source

# Its name is a day; its folder; a pattern of `decay` in the configuration.
Fading = Literal["name", "memory", "journals", "daily-notes", "pattern"]
_IS_DAY = re.compile(r"(?:.*/)?(?:daily\.journal\.)?\d{4}([-_. ])\d{2}\1\d{2}\.[^./]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Diaries:
    """The rules of one workspace."""

    patterns: tuple[str, ...] = ()  # of `decay`
    selects: Callable[[str], bool] = field(default=lambda _: False, compare=False)  # whether they name a path
    folder: str = ""  # of Obsidian's daily notes, "a/b/"
    _known: dict[str, Fading | None] = field(default_factory=dict, compare=False)  # of paths asked for

    def why(self, source: Source) -> Fading | None:
        """Return why the score of a note decays; None: it does not, as of each without a day in its name."""
        if not source.dated:
            return None
        path = source.path
        if path not in self._known:
            self._known[path] = self._why(path)
        return self._known[path]

    def _why(self, path: str) -> Fading | None:
        if _IS_DAY.fullmatch(path):
            return "name"
        name = path.rpartition("/")[2].rpartition(".")[0]
        # Else its day is within the name, "meeting-2026-10-14.md": that is no diary, whatever its folder.
        if name[:1].isdigit() or name.startswith("daily.journal.") or leading_time(name):
            if path.startswith("memory/"):  # sessions, and what `memctl import` has archived
                return "memory"
            if "journals" in path.casefold().split("/")[:-1]:  # Logseq's
                return "journals"
            if self.folder and path.startswith(self.folder):
                return "daily-notes"
        return "pattern" if self.selects(path) else None
