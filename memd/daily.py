"""The format of a daily file, memory/YYYY-MM-DD.md: blocks of Markdown, each after a mark with its id.

A mark is an HTML comment on its own line, with the size and the checksum of the Markdown that follows. So a
block ends where its writer ended it, whatever Markdown it contains, and later changes are detectable. The
last line of a block is a comment with its id: where git joins the lines that two machines have appended
("merge=union"), a last line that both blocks had would stay only once. As in an entry, the checksum is not a
signature. Text outside of blocks was written by people. Pure; no access to the disk.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import quote, unquote

# The name of a daily file is only the date: a session log "2026-05-01-standup.md" has another writer.
PATH = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md")
ID = re.compile(r"[0-9a-f]{16}")
_MARK = re.compile(
    rb"^<!-- memd entry=(?P<id>[0-9a-f]{16}) bytes=(?P<size>[0-9]{1,7}) at=(?P<at>\S+)"
    rb" origin=(?P<origin>agent|human) client=(?P<client>\S*) session=(?P<session>\S*)"
    rb" sha256=(?P<digest>[0-9a-f]{64}) -->\r?$",
    re.MULTILINE,
)
# Allowed in a value of a mark: neither "-->", which quoting prevents, nor white space.
_SAFE = ":/@+."


@dataclass(frozen=True, slots=True)
class DailyBlock:
    """One entry of a daily file; offsets are in the file's bytes."""

    id: str
    at: str  # the time of writing, ISO 8601 with offset
    origin: str  # "agent" or "human"
    client: str
    session: str
    start: int  # of its mark
    body: int  # of its Markdown
    text_stop: int  # of its Markdown without the last line, which is a comment of memd's
    stop: int
    is_whole: bool  # it is unchanged; otherwise it ends at the next mark, or with the file


def path_of(day: date) -> str:
    """Return the path of the daily file of a day, relative to the workspace."""
    return f"memory/{day.isoformat()}.md"


def marked(entry_id: str, body: str, *, origin: Mapping[str, str], at: datetime) -> bytes:
    """Return the bytes of a block: its mark, *body*, which must end with a line break, and the last line."""
    raw = body.encode() + _last_line(entry_id.encode())
    client, session = (quote(origin.get(key, ""), safe=_SAFE) for key in ("client", "session"))
    fields = (
        f"<!-- memd entry={entry_id} bytes={len(raw)} at={at.isoformat(timespec='seconds')}"
        f" origin={origin.get('origin', 'agent')} client={client} session={session}"
    ).encode()
    return b"%s sha256=%s -->\n%s" % (fields, _digest(fields, raw), raw)


def has_mark(text: str) -> bool:
    """Return whether a line of *text* looks like a mark."""
    return _MARK.search(text.encode(errors="replace")) is not None


def blocks(raw: bytes) -> list[DailyBlock]:
    """Return the blocks in a daily file's bytes, in order."""
    marks = list(_MARK.finditer(raw))
    ends = [mark.start() for mark in marks[1:]]
    # zip would need as many ends as marks; there is one more end.
    return [_block(raw, mark, end) for mark, end in zip(marks, [*ends, len(raw)], strict=False)]


def _block(raw: bytes, mark: re.Match[bytes], end: int) -> DailyBlock:
    body = min(mark.end() + 1, end)
    stop = body + int(mark["size"])
    fields = raw[mark.start() : mark.start("digest") - len(b" sha256=")]
    # Blocks do not contain marks, so no byte is hashed twice.
    is_whole = stop <= end and _digest(fields, raw[body:stop]) == mark["digest"]
    stop = stop if is_whole else end
    text, last = raw[body:stop].rstrip(), _last_line(mark["id"]).rstrip()
    return DailyBlock(
        id=mark["id"].decode(),
        at=mark["at"].decode(errors="replace"),
        origin=mark["origin"].decode(),
        client=unquote(mark["client"].decode(errors="replace")),
        session=unquote(mark["session"].decode(errors="replace")),
        start=mark.start(),
        body=body,
        text_stop=body + len(text) - len(last) if text.endswith(last) else stop,
        stop=stop,
        is_whole=is_whole,
    )


def _last_line(entry_id: bytes) -> bytes:
    return b"<!-- memd end=%s -->\n" % entry_id


def _digest(fields: bytes, body: bytes) -> bytes:
    return hashlib.sha256(fields + b"\n" + body).hexdigest().encode()
