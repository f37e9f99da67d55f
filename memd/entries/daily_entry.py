"""Daily entries: whether a fact may go into the file of its day, and whether its block may be removed.

The file is one that many write into; memd.daily says how blocks are told apart in it. Must not know how
bytes get to the disk safely (day_file.py), nor the index: the caller tells the index.
"""

import contextlib
import re
import secrets
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from memd import daily
from memd.entries import day_file
from memd.entries.entry import Written, checked_source, hash_of, one_line, tags_of
from memd.errors import ChangedError, InvalidError, NotFoundError, StorageError, UnsafeError


def append_entry(
    root: Path,
    *,
    title: str,
    content: str,
    topic: str = "",
    tags: Sequence[str] = (),
    origin: Mapping[str, str],
    now: datetime,
    force: bool = False,
    new_id: Callable[[], str] = lambda: secrets.token_hex(8),
) -> Written:
    """Append one fact to memory/<day of *now*>.md; it is on the disk when this returns.

    The arguments are those of `write_entry`; the topic may be absent, and stands before the tags.

    Raises:
        InvalidError: as `write_entry`; or the content has a line that would be taken for a mark, or there is
            no room for it in the file.
        SecretError: as `write_entry`.
        UnsafeError, WorkspaceError, NoSpaceError, StorageError: as memd.entries.day_file says.
    """
    about = tags_of([one_line(topic, "topic"), *tags] if topic else tags)
    source = checked_source(origin, content, title=title, topic=topic, tags=tags, force=force)
    if daily.has_mark(content):
        raise InvalidError(
            "content has a line that begins a daily entry. Indent that line, or write an entry of its own"
        )
    entry_id, end = new_id(), "" if content.endswith("\n") else "\n"
    labels = " ".join(f"#{label}" for label in map(_label, about) if label)
    head = "\n".join(filter(None, [f"## {now:%H:%M} {one_line(title, 'title')}", labels]))
    path = daily.path_of(now.date())
    block = daily.marked(entry_id, f"{head}\n\n{content}{end}", origin=source, at=now)
    day_file.append(root, _name(path), block)
    created = now.isoformat(timespec="seconds")
    return Written(path=path, id=entry_id, created=created, hash=hash_of(block))


def remove_entry(root: Path, path: str, entry_id: str) -> None:
    """Remove a block from the daily file at *path*; it is off the disk when this returns.

    Raises:
        ChangedError: the block is not what memd wrote.
        NotFoundError: there is no such block (any more).
        UnsafeError, WorkspaceError, StorageError: as memd.entries.day_file says.
    """

    def find(raw: bytes) -> list[tuple[int, int]]:
        found = _of_id(raw, path, entry_id)
        for block in found:
            if not block.is_whole:
                line = raw.count(b"\n", 0, block.start) + 1
                raise ChangedError(
                    f"the entry {entry_id} was not removed: what stands at {path}:{line} is not what memd "
                    "wrote. Look at it; then delete its lines yourself"
                )
        return [(block.start, block.stop) for block in found]

    day_file.blank(root, _name(path), find)


def daily_identity(root: Path, path: str, entry_id: str) -> tuple[str, str]:
    """Return the title of a block and the hash of its bytes.

    Raises:
        NotFoundError, UnsafeError, WorkspaceError, StorageError: as `remove_entry`.
    """
    raw = day_file.read(root, _name(path))
    block = _of_id(raw, path, entry_id)[0]
    title = raw[block.body : block.stop].partition(b"\n")[0].decode(errors="replace")
    return title.lstrip("# "), hash_of(raw[block.start : block.stop])


def _of_id(raw: bytes, path: str, entry_id: str) -> list[daily.Block]:
    found = [block for block in daily.blocks(raw) if block.id == entry_id]
    if not found:
        raise NotFoundError(f"there is no entry {entry_id} in {path} (any more)")
    return found


def _name(path: str) -> str:
    return path.removeprefix("memory/")


def find_daily_entry(root: Path, entry_id: str) -> str | None:
    """Return the path of the newest daily file that has an entry of this id; None where none has."""
    days = sorted(
        (name for name in day_file.names(root) if daily.PATH.fullmatch(f"memory/{name}")), reverse=True
    )
    for name in days:
        with contextlib.suppress(NotFoundError, UnsafeError, StorageError):
            if any(block.id == entry_id for block in daily.blocks(day_file.read(root, name))):
                return f"memory/{name}"
    return None


def _label(tag: str) -> str:
    """Return a tag as it can stand in a text, behind "#"."""
    kept = (char if unicodedata.category(char)[0] in "LMN" or char in "_/" else "-" for char in tag)
    return re.sub("-+", "-", "".join(kept)).strip("-/")
