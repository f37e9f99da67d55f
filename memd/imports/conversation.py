"""Conversations and their turns, as the readers of all clients give them, and what could not be read.

Pure; must not know how a client writes its files, nor what a page of the archive looks like.
"""

import hashlib
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Literal

USER = "User"
ASSISTANT = "Assistant"
SUBAGENT = (
    "is a subagent's: what came of it stands in the session that asked"  # why a session file is skipped
)

_SESSION_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")

Kind = Literal["said", "tool", "thinking"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said without a break."""

    speaker: str
    text: str
    at: datetime | None = None  # with its zone
    kind: Kind = "said"


@dataclass(slots=True)
class Conversation:
    """One conversation. A reader of a stream fills title and project in when it meets them."""

    id: str  # the client's own, as it is known when the first turn is read
    turns: Iterator[Turn]
    former_id: str = ""  # by which pages of an earlier memd may be kept
    is_export: bool = False  # one of a service's, which may be older than what was read before
    title: str = ""  # "" where the client gave none
    project: str = ""  # the folder in which an agent worked
    started: datetime | None = None  # where the turns may have no time
    written_by: Literal["agent", "human"] = "agent"


@dataclass(frozen=True, slots=True)
class Document:
    """A note that another program keeps."""

    id: str  # its path in the program's folder
    title: str
    text: str
    day: date | None  # that it is about; None: it holds until somebody changes it
    changed: datetime


@dataclass(slots=True)
class Problems:
    """What was skipped and why, counted for each file and reason: a broken file has a million bad lines."""

    found: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    parts: set[tuple[str, str]] = field(default_factory=set)  # what was found of files that were imported

    def add(self, where: str, why: str, line: int = 0, *, part: bool = False) -> None:
        """Count one more.

        Args:
            where: the file.
            why: what is wrong; with *line* its first word is what is counted: line, conversation, message.
            line: from 1; 0 where no single one is meant.
            part: the rest of the file is imported, as it is where a line is named.
        """
        self.found.setdefault((where, why), [0, line])[0] += 1
        if part or line:
            self.parts.add((where, why))

    def add_if_none(self, where: str, why: str) -> None:
        """Count one where nothing else was wrong, which would be the reason for it."""
        if all(other != where for other, _ in self.found):
            self.add(where, why)

    def rows(self) -> list[dict[str, str | int | bool]]:
        """Return a row for each file and reason, in the order in which they were met."""
        return [
            {
                "source": where,
                "why": why,
                "count": count,
                "first_line": line,
                "whole": (where, why) not in self.parts,
            }
            for (where, why), (count, line) in self.found.items()
        ]


def session_id(path: Path, named: str, recorded: str) -> str:
    """Return which session a file is of.

    Args:
        path: of the file.
        named: the id in its name, or what the name has in its place.
        recorded: the id in its first records. A file that was forked or resumed begins with those of another
            session: then its name tells both apart.
    """
    if not recorded:
        return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    return recorded if recorded == named else f"{recorded}/{named}"


def is_session_id(name: str) -> bool:
    """Tell whether clients give such ids to their sessions."""
    return bool(_SESSION_ID.fullmatch(name))


def moment(value: object) -> datetime | None:
    """Return the time that a client wrote, in this machine's zone; None where it is none.

    Args:
        value: ISO 8601, or seconds since 1970.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at.astimezone()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value).astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    return None


def text(value: object) -> str:
    """Return a value that should be text; "" where it is none."""
    return value if isinstance(value, str) else ""


def fields(value: object) -> dict[str, object]:
    """Return a value that should be an object; {} where it is none."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return a value that should be a list; [] where it is none."""
    return value if isinstance(value, list) else []


def joined(content: object) -> str:
    """Return the text of a content: a text, or a list of blocks with one."""
    if isinstance(content, str):
        return content
    return "\n\n".join(filter(None, (text(fields(block).get("text", block)) for block in items(content))))
