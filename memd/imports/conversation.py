"""Conversations and their turns, as every reader yields them, and their text made fit for a note.

Pure; must not know how a client writes its files, nor what a page of the archive looks like.
"""

import hashlib
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from memd.entries.secrets import mask
from memd.sources.markdown import read_blocks, split_lines

USER = "User"
ASSISTANT = "Assistant"
SUBAGENT = (
    "is a subagent's: what came of it stands in the session that asked"  # why a session file is skipped
)

_SESSION_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")

Kind = Literal["said", "tool", "thinking"]

# What a hook of memd's put into a prompt: whole lines, of which the first and the last are these.
_RECALL = re.compile(r"^<(memd-recall)\b[^>\n]*>[ \t]*$", re.MULTILINE)
_RECALL_END = re.compile(r"^[ \t]*</memd-recall>[ \t]*(?:\n|\Z)", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))"
)  # colours and titles of a terminal
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n{4,}")

# What may begin a block that reaches over the end of a turn, or a heading: most texts have neither.
_SUSPECT = re.compile(
    r"```|~~~|^ {0,3}(?:#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$)"
    r"|^ {0,3}<(?:script|pre|style|textarea|!|\?)",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
RANK = 2  # of a turn's heading; those in its text come below it
_LOWEST = 6


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
    """Return whether *name* is an id as clients give their sessions."""
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


def readable(text: str) -> str:
    """Return *text* without recalled notes, secrets, and characters that nobody sees."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "<memd-recall" in text:
        text = without_blocks(text, _RECALL, lambda _: _RECALL_END)
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))
    return mask(_BLANK_LINES.sub("\n\n\n", text)).strip("\n").rstrip()


def without_blocks(
    text: str,
    opening: re.Pattern[str],
    closing: Callable[[str], re.Pattern[str]],
    instead: Callable[[str], str] = lambda _: "",
) -> str:
    """Return *text* without its blocks, in one pass, however many of them are opened and never closed.

    Args:
        text: that has them.
        opening: of a block; its first group is the name.
        closing: of a name.
        instead: of what a block holds, what is left of it.
    """
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()  # names of which no closing comes any more
    for begin in opening.finditer(text):
        name = begin[1]
        if begin.start() < at or name in unclosed:
            continue
        if end := closing(name).search(text, begin.end()):
            kept += [text[at : begin.start()], instead(text[begin.end() : end.start()])]
            at = end.end()
        else:
            unclosed.add(name)
    return "".join([*kept, text[at:]])


def inside_turn(text: str) -> str:
    """Return Markdown that stays inside of its turn: headings below its own, fences and HTML closed."""
    if not _SUSPECT.search(text):
        return text
    blocks, warnings = read_blocks(split_lines(text), 0)
    if warnings:  # too complex to be read: nobody could say where it ends
        return fenced(text)
    lines = text.split("\n")
    for block in reversed(blocks):
        first = lines[block.start]
        if block.kind == "heading":
            lower = _HEADING.sub(_lowered, first, count=1)
            # A line of = or - below a text makes it a heading, and below an empty line a line.
            lines[block.start : block.end] = (
                [lower] if lower != first else _parted(lines[block.start : block.end])
            )
        elif block.kind == "html_block":
            lines[block.start] = first.replace("<", "\\<", 1)
    last = blocks[-1] if blocks else None
    if last and last.kind == "fence":
        lines += _closing(lines[-(last.end - last.start) :])
    return "\n".join(lines)


def fenced(text: str) -> str:
    """Return *text* as a block of code."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _lowered(match: re.Match[str]) -> str:
    return match[1] + "#" * min(len(match[2]) + RANK, _LOWEST)


def _parted(lines: list[str]) -> list[str]:
    return [*lines[:-1], "", lines[-1]]


def _closing(block: list[str]) -> list[str]:
    """Return the line that closes a fenced block; none where it is closed."""
    opened = _FENCE.match(block[0])
    closed = _FENCE.fullmatch(block[-1].rstrip()) if len(block) > 1 else None
    if opened is None or (closed and closed[1].startswith(opened[1])):
        return []
    return [opened[1]]
