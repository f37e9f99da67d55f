"""What does an entry hold, and may it be written?

Its file is front matter by a serializer and then the agent's Markdown to the character. The title stands
in the front matter, where the index reads it. Must not know how files get to the disk safely (place.py),
nor the index: who calls this tells it.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from memd.errors import InvalidError, SecretError, StorageError
from memd.memory.naming import entry_name, one_line, slug, utf8
from memd.memory.place import place
from memd.secrets import find_secrets

MAX_CONTENT_BYTES = 256 * 1024  # an entry is a fact with its reasons, not a document
MAX_TAGS = 32  # arbitrary; keeps the front matter far below the 64 KiB that its reader takes
MAX_TAG_BYTES = 128

_ATTEMPTS = 8  # 24 random bits in the name: two collisions in a row mean that something else is wrong
_LINE_WIDTH = 1 << 16  # never folded: one line a value, for grep and for people


@dataclass(frozen=True, slots=True)
class Written:
    """One entry as it now stands on the disk."""

    path: str  # relative to the workspace, "/" on every platform
    id: str  # 16 hex digits, also in the front matter; the first six are in the name
    created: str  # ISO 8601 with offset


def write_entry(
    root: Path,
    *,
    topic: str,
    title: str,
    content: str,
    tags: Sequence[str] = (),
    origin: Mapping[str, str],
    now: datetime,
    new_id: Callable[[], str] = lambda: secrets.token_hex(8),
) -> Written:
    """Write one fact to memory/<topic>/<title>-<6 hex>.md; it is on the disk when this returns.

    Args:
        root: the workspace; memory/ stands in it.
        topic: words that name the folder.
        title: words that name the file and, white space tidied, the entry.
        content: Markdown, at most 256 KiB; becomes the file's body.
        tags: labels; a leading "#" and repetitions are dropped.
        origin: who writes; "client" and "session", either may be absent.
        now: the time of writing, with its zone.
        new_id: makes the entry's id; asked again while the name is taken.

    Raises:
        InvalidError: a value is empty, too long, reserved, a path, or not text.
        SecretError: a value holds a secret of a known shape.
        UnsafeError, WorkspaceError, NoSpaceError, StorageError: as memd.memory.place says.
    """
    folder = slug(topic, kind="topic")
    front: dict[str, object] = {
        "title": one_line(title, "title"),
        "topic": one_line(topic, "topic"),
        "tags": _tags(tags),
        "created": now.isoformat(timespec="seconds"),
    }
    source = _source(origin)
    _check_content(content)
    _refuse_secrets(
        {"content": [content], "title": [title], "topic": [topic], "tags": tags, "source": source.values()}
    )
    for _ in range(_ATTEMPTS):
        entry_id = new_id()
        name = entry_name(title, entry_id)
        body = _render({**front, "id": entry_id, "source": source}, content)
        if place(root, folder, name, body.encode()):
            return Written(path=f"memory/{folder}/{name}", id=entry_id, created=str(front["created"]))
    raise StorageError(f"memory/{folder}/{name} is taken, and so were {_ATTEMPTS - 1} other names: try again")


def _tags(tags: Sequence[str]) -> list[str]:
    if len(tags) > MAX_TAGS:
        raise InvalidError(f"there are {len(tags)} tags, at most {MAX_TAGS} are allowed")
    lines = (one_line(tag, "tag", MAX_TAG_BYTES).lstrip("# ") for tag in tags)
    return list(dict.fromkeys(line for line in lines if line))


def _source(origin: Mapping[str, str]) -> dict[str, str]:
    given = {key: one_line(origin[key], f"source.{key}") for key in ("client", "session") if origin.get(key)}
    return {"origin": "agent", **given}


def _check_content(content: str) -> None:
    size_bytes = len(utf8(content, "content"))
    if size_bytes > MAX_CONTENT_BYTES:
        raise InvalidError(
            f"content has {size_bytes} bytes, at most {MAX_CONTENT_BYTES} are allowed. "
            f"Split it, or save it as a Markdown file in the workspace"
        )
    if "\0" in content:
        raise InvalidError(f"content holds a NUL at character {content.index(chr(0)) + 1}. Remove it")
    if not content.strip():
        raise InvalidError("content is empty. Say the fact in it; the title only names it")


def _refuse_secrets(texts: Mapping[str, Iterable[str]]) -> None:
    for where, values in texts.items():
        for value in values:
            for found in find_secrets(value):
                line = value.count("\n", 0, found.start) + 1
                # Kind and place, never the secret itself: errors are shown and logged.
                raise SecretError(
                    f"{where}, line {line}, holds a secret ({found.kind}) and nothing was written. "
                    f"Say where it is kept instead of what it is"
                )


def _render(front: Mapping[str, object], content: str) -> str:
    header = yaml.safe_dump(dict(front), allow_unicode=True, sort_keys=False, width=_LINE_WIDTH)
    end = "" if content.endswith("\n") else "\n"
    return f"---\n{header}---\n\n{content}{end}"
