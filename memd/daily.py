"""The format of a daily file, memory/YYYY-MM-DD.md: blocks of Markdown, each behind a mark with its id.

A mark is an HTML comment in a line of its own. It says how many bytes of Markdown follow and holds their
checksum, so a block ends where its writer ended it, whatever Markdown it holds, and a changed block can be
told from a block that memd wrote. Like an entry's, the checksum is no signature. Text outside of blocks is a
person's. Pure; must not look at the disk.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import quote, unquote

# A daily file is named by its day alone: a session log "2026-05-01-standup.md" is somebody else's.
PATH = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md")
ID = re.compile(r"[0-9a-f]{16}")
_MARK = re.compile(
    rb"^<!-- memd entry=(?P<id>[0-9a-f]{16}) bytes=(?P<size>[0-9]{1,7}) at=(?P<at>\S+)"
    rb" origin=(?P<origin>agent|human) client=(?P<client>\S*) session=(?P<session>\S*)"
    rb" sha256=(?P<digest>[0-9a-f]{64}) -->\r?$",
    re.MULTILINE,
)
# In a value of a mark: not "-->", which quoting keeps from being there, nor white space.
_SAFE = ":/@+."


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of a daily file, by offsets in its bytes."""

    id: str
    at: str  # when it was written, ISO 8601 with offset
    origin: str  # "agent" or "human"
    client: str
    start: int  # of its mark
    body: int  # of its Markdown
    stop: int
    is_whole: bool  # it is as memd wrote it; else it ends at the next mark, or with the file


def path_of(day: date) -> str:
    """Return the path of the daily file of a day, relative to the workspace."""
    return f"memory/{day.isoformat()}.md"


def marked(entry_id: str, body: str, *, origin: Mapping[str, str], at: datetime) -> bytes:
    """Return a block as it is written: its mark, and *body*, which ends with a line break."""
    raw = body.encode()
    client, session = (quote(origin.get(key, ""), safe=_SAFE) for key in ("client", "session"))
    fields = (
        f"<!-- memd entry={entry_id} bytes={len(raw)} at={at.isoformat(timespec='seconds')}"
        f" origin={origin.get('origin', 'agent')} client={client} session={session}"
    ).encode()
    return b"%s sha256=%s -->\n%s" % (fields, _digest(fields, raw), raw)


def has_mark(text: str) -> bool:
    """Return whether a line of *text* would be taken for a mark."""
    return _MARK.search(text.encode(errors="replace")) is not None


def blocks(raw: bytes) -> list[Block]:
    """Return the blocks of a daily file's bytes, in their order."""
    marks = list(_MARK.finditer(raw))
    ends = [mark.start() for mark in marks[1:]]
    # Of no mark there is one end too many.
    return [_block(raw, mark, end) for mark, end in zip(marks, [*ends, len(raw)], strict=False)]


def _block(raw: bytes, mark: re.Match[bytes], end: int) -> Block:
    body = min(mark.end() + 1, end)
    stop = body + int(mark["size"])
    fields = raw[mark.start() : mark.start("digest") - len(b" sha256=")]
    # No block has another mark in it, so no byte is hashed twice.
    is_whole = stop <= end and _digest(fields, raw[body:stop]) == mark["digest"]
    return Block(
        id=mark["id"].decode(),
        at=mark["at"].decode(errors="replace"),
        origin=mark["origin"].decode(),
        client=unquote(mark["client"].decode(errors="replace")),
        start=mark.start(),
        body=body,
        stop=stop if is_whole else end,
        is_whole=is_whole,
    )


def _digest(fields: bytes, body: bytes) -> bytes:
    return hashlib.sha256(fields + b"\n" + body).hexdigest().encode()
