"""Where else the words of an entry stand: other notes, archives, daily files, git. Nothing is changed there.

Runs in a reading thread.
"""

import re
from pathlib import Path

from memd.api.results import Location
from memd.index.snapshot import View
from memd.search.keyword import phrase_expression

MIN_LETTERS = 12  # of a line that is looked for: a shorter one is said by many
MAX_LINES = 50  # of an entry that are looked for, a phrase each: arbitrary, an entry is short
MAX_PLACES = 20  # that are named; arbitrary, as many as somebody reads
MAX_GIT_INDEX_BYTES = 256 << 20  # of a repository with a million files; what is longer is not read

_LETTERS = re.compile(r"[^\W_]")
_SPACES = re.compile(r"\s+")


def elsewhere(view: View, path: str, entry: str = "") -> list[Location]:
    """Return where lines of a note, or of its daily *entry*, stand elsewhere, by path and line."""
    source = view.snapshot.source_at(path)
    if source is None:
        return []
    found: set[tuple[str, int, int]] = set()
    for line in _lines(view, source.id, entry):
        ids = view.matching("words", phrase_expression(line))
        for chunk in view.chunks(ids).values():
            is_itself = (chunk.source, chunk.entry) == (source.id, entry)
            if is_itself or _plain(line) not in _plain(chunk.text):
                continue
            found.add((view.snapshot.sources[chunk.source].path, chunk.start_line, chunk.end_line))
        if len(found) >= MAX_PLACES:
            break
    return [
        Location(path=other, start_line=start, end_line=end)
        for other, start, end in sorted(found)[:MAX_PLACES]
    ]


def is_in_git(root: Path, path: str) -> bool:
    """Tell whether a git repository around *root* lists the file: then its history has what it said.

    Its index is read as bytes: git itself runs programs that the configuration of a repository names.
    """
    for folder in (root, *root.parents):
        index = folder / ".git" / "index"
        try:
            if not index.is_file() or index.stat().st_size > MAX_GIT_INDEX_BYTES:
                continue
            listed = index.read_bytes()
        except OSError:
            continue
        name = (root / path).relative_to(folder).as_posix().encode(errors="surrogateescape")
        return name + b"\0" in listed
    return False


def _lines(view: View, source: int, entry: str) -> list[str]:
    """Return the lines of a note, or of a daily entry in it, that say something, each once."""
    lines: dict[str, None] = {}
    for chunk in view.reader.chunks_of(source):
        if chunk.entry != entry:
            continue
        for line in chunk.text.splitlines():
            if len(_LETTERS.findall(line)) >= MIN_LETTERS:
                lines.setdefault(line.strip())
    return list(lines)[:MAX_LINES]


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()
