"""Conflict copies: recognizes files that sync programs write when a note was changed in two places. Pure."""

import re

# Dropbox, Nextcloud and Obsidian Sync; Seafile; Syncthing; ownCloud.
_COPY = re.compile(
    r"(?P<stem>.+?)(?:"
    r" \([^()]*conflicted copy[^()]*(?:\(\d+\))?\)"
    r"| \(SFConflict [^()]*\)"
    r"|\.sync-conflict-\d{8}-\d{6}(?:-[a-z0-9]{7})?"
    r"|_conflict-\d{8}-\d{6}"
    r")(?P<suffix>(?:\.[^./]+)?)",
    re.IGNORECASE | re.DOTALL,
)


def original_of(path: str) -> str | None:
    """Return the path of the file that *path* is a conflict copy of; None if its name is not a copy's."""
    if "conflict" not in path.casefold():
        return None
    folder, slash, name = path.rpartition("/")
    found = _COPY.fullmatch(name)
    return f"{folder}{slash}{found['stem']}{found['suffix']}" if found else None
