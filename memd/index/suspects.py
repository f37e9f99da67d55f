"""The list of notes that were being parsed when the daemon died, kept in a file in the index folder.

The daemon writes it before it parses and removes it when the rows are committed. What it still names at the
next start may be why there is a next start. It is not flushed: it must survive a process, not a power cut.
"""

import json
from contextlib import suppress
from pathlib import Path


class Suspects:
    """The names of what is in hand, one file for each lane. A disk that is full costs this help, no more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def mark(self, lane: str, paths: list[str]) -> None:
        """Say what is about to be parsed."""
        with suppress(OSError):
            self._file(lane).write_text(json.dumps(paths), encoding="ascii")

    def clear(self, lane: str) -> None:
        """Say that it went well."""
        with suppress(OSError):
            self._file(lane).unlink(missing_ok=True)

    def clear_all(self) -> None:
        """Say that the daemon stops because it was told to."""
        for file in self._folder.glob("parsing.*"):
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def left(self) -> frozenset[str]:
        """Return what was in hand at the last end of the daemon."""
        found: set[str] = set()
        for file in self._folder.glob("parsing.*"):
            with suppress(OSError, ValueError):
                found.update(path for path in json.loads(file.read_bytes()) if isinstance(path, str))
        return frozenset(found)

    def _file(self, lane: str) -> Path:
        return self._folder / f"parsing.{lane}"
