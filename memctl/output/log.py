"""Parse and print the daemon's log.

memd writes JSON objects; Python and C libraries write plain lines between them; the journal also has lines
of systemd. Each becomes a `Record`, and each record is printed on one line.
"""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memctl.output.marker import Marker
from memctl.text import one_line, to_json

_STYLES = {"error": "1;31", "critical": "1;31", "warning": "33"}  # SGR
_SHOWN_FIRST = ("timestamp", "level", "event")  # in columns of their own


class LogRecord(NamedTuple):
    """One line of the log."""

    text: str
    fields: dict[str, Any] | None  # the JSON object of a line by memd
    at: datetime | None
    by: str  # the program that wrote the line; "" for memd


def from_line(raw: str) -> LogRecord:
    """Return the record of a line of the log file."""
    fields, at = _object(raw), None
    with suppress(ValueError):
        at = datetime.fromisoformat(str((fields or {}).get("timestamp")))
    return LogRecord(raw, fields, at, "")


def from_journal(raw: str) -> LogRecord:
    """Return the record of a journal entry: a JSON object whose MESSAGE is the line that was written."""
    entry = _object(raw) or {"MESSAGE": raw}
    message = entry.get("MESSAGE")
    if isinstance(message, list):  # journald writes bytes that are not UTF-8 as a list of numbers
        message = bytes(message).decode("utf-8", "replace")
    record = from_line(str(message))
    stamp = str(entry.get("__REALTIME_TIMESTAMP") or "")
    at = datetime.fromtimestamp(int(stamp) / 1e6, UTC) if stamp.isdecimal() else None
    by = str(entry.get("SYSLOG_IDENTIFIER") or "") if entry.get("_COMM") == "systemd" else ""
    return record._replace(at=record.at or at, by=by)


def as_object(record: LogRecord) -> dict[str, Any]:
    """Return a record for programs: the object that memd wrote, or a plain line with its known facts."""
    if record.fields is not None:
        return record.fields
    fields = {"timestamp": record.at.isoformat() if record.at else "", "by": record.by, "text": record.text}
    return {key: value for key, value in fields.items() if value or key == "text"}


def line(record: LogRecord, marker: Marker) -> str:
    """Return a record for people: local time, level, event and details."""
    time = record.at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if record.at else ""
    if record.fields is None:
        return "  ".join(filter(None, [time, record.by, one_line(record.text)]))
    level, event = (one_line(str(record.fields.get(key, ""))) for key in ("level", "event"))
    details = [
        f"{one_line(key)}={one_line(value) if isinstance(value, str) else to_json(value)}"
        for key, value in record.fields.items()
        if key not in _SHOWN_FIRST
    ]
    shown = marker.paint(f"{level:<7}", _STYLES[level]) if level in _STYLES else f"{level:<7}"
    return "  ".join(filter(None, [time, shown, event, " ".join(details)]))


def _object(raw: str) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
