"""Conversations and turns, the common result of all readers, and the cleanup of their texts for notes.

Pure; must not know the file formats of clients, nor the layout of the archive's pages.
"""

import hashlib
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
AGENT = "Agent"  # who asks a sub-agent
SUBAGENT = (  # why a session file is skipped
    "is a subagent's: its result is in the session that started it (--subagents makes a page of it)"
)

SESSION_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")

Kind = Literal["said", "tool", "thinking"]

# Text that memd's own hook put into a prompt: whole lines, from the first of these to the last.
_RECALL = re.compile(r"^<(memd-recall)\b[^>\n]*>[ \t]*$", re.MULTILINE)
_RECALL_END = re.compile(r"^[ \t]*</memd-recall>[ \t]*(?:\n|\Z)", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))"
)  # a terminal's colours and titles
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n{4,}")

# Possible starts of a block that extends beyond its turn, or of a heading: most texts have none.
_SUSPECT = re.compile(
    r"```|~~~|^ {0,3}(?:#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$)"
    r"|^ {0,3}<(?:script|pre|style|textarea|!|\?)",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MILLISECONDS = 100_000_000_000  # a larger number is not of seconds: those end in the year 5138
RANK = 2  # of a turn's heading; headings in its text get deeper levels


@dataclass(frozen=True, slots=True)
class Turn:
    """The text of one speaker without interruption."""

    speaker: str
    text: str
    at: datetime | None = None  # with a time zone
    kind: Kind = "said"
    record: str = ""  # the client's id of it, for `Conversation.abandoned`
    forks: bool = False  # it does not go on from the turn before


@dataclass(slots=True)
class Conversation:
    """One conversation. A streaming reader sets title and project when it reads them."""

    id: str  # the client's id, known when the first turn is read
    turns: Iterator[Turn]
    is_export: bool = False  # from an export, which may be older than the archive
    title: str = ""  # "" if the client has none
    project: str = ""  # the folder in which an agent worked
    started: datetime | None = None  # for turns that have no time
    written_by: Literal["agent", "human"] = "agent"
    abandoned: set[str] = field(default_factory=set)  # records of branches that were left; known at the end


@dataclass(frozen=True, slots=True)
class ForeignNote:
    """A note that another program keeps."""

    id: str  # its path in the program's folder, with "#" and the title for a section of it
    title: str
    text: str
    day: date | None  # the day that it is about; None: valid until it is changed
    changed: datetime
    projects: tuple[str, ...] | None = None  # the folders that it is about; None: the program has no projects


@dataclass(slots=True)
class Problems:
    """Skipped items and reasons, counted per file and reason: a broken file may have a million bad lines."""

    found: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    parts: set[tuple[str, str]] = field(default_factory=set)  # of files that were imported otherwise

    def add(self, where: str, why: str, line: int = 0, *, part: bool = False) -> None:
        """Count one problem.

        Args:
            where: the file.
            why: the reason; with *line* its first word is the counted unit: line, conversation, message.
            line: from 1; 0 if the problem has no line.
            part: the rest of the file is imported, which a *line* implies.
        """
        self.found.setdefault((where, why), [0, line])[0] += 1
        if part or line:
            self.parts.add((where, why))

    def add_if_none(self, where: str, why: str, *, part: bool = False) -> None:
        """Count a problem unless the file has another one, which would explain it."""
        if all(other != where for other, _ in self.found):
            self.add(where, why, part=part)

    def rows(self) -> list[dict[str, str | int | bool]]:
        """Return a row for each file and reason, in the order of their first occurrence."""
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
    """Return the id of the session that a file belongs to.

    Args:
        path: of the file.
        named: the id in its name, or the part of the name in that place.
        recorded: the id in its first records. A forked or resumed file begins with the records of another
            session: then its name distinguishes the two.
    """
    if not recorded:
        return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    return recorded if recorded == named else f"{recorded}/{named}"


def is_session_id(name: str) -> bool:
    """Return whether *name* has the format of clients' session ids."""
    return bool(SESSION_ID.fullmatch(name))


def moment(value: object) -> datetime | None:
    """Return the time that a client wrote, in this machine's zone; None if it is not a time.

    Args:
        value: ISO 8601, or seconds or milliseconds since 1970.
    """
    try:
        if isinstance(value, str) and not (value.isdecimal() and len(value) > len("20260501")):
            return datetime.fromisoformat(value).astimezone()
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            at_s = float(value)
            return datetime.fromtimestamp(at_s / 1000 if at_s > _MILLISECONDS else at_s).astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    return None


def text(value: object) -> str:
    """Return *value* if it is text, otherwise ""."""
    return value if isinstance(value, str) else ""


def identifier(value: object) -> str:
    """Return *value* as an id if it is text or a number, otherwise ""."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def fields(value: object) -> dict[str, object]:
    """Return *value* if it is a JSON object, otherwise {}."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return *value* if it is a list, otherwise []."""
    return value if isinstance(value, list) else []


def blocks(content: object) -> list[dict[str, object]]:
    """Return the blocks of a content; a text is one, and so is one that stands in no list."""
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    return list(map(fields, listed or [content] * isinstance(content, dict)))


def joined(content: object) -> str:
    """Return the text of a content, which is a text or a list of blocks with texts, and marks of pictures."""
    if isinstance(content, str):
        return content
    return "\n\n".join(filter(None, map(_shown, items(content))))


def _shown(block: object) -> str:
    kind = text(fields(block).get("type")).removeprefix("input_")
    return f"[{kind}]" if kind in {"image", "document"} else text(fields(block).get("text", block))


def readable(text: str) -> str:
    """Return *text* without recalled notes, secrets and invisible characters."""
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
    """Return *text* without its blocks, in one pass, even if many blocks are never closed.

    Args:
        text: to remove them from.
        opening: of a block; its first group is the name.
        closing: returns the pattern of the end, given the name.
        instead: returns what to keep of a block, given its content.
    """
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()  # names without a further closing tag
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
    """Return Markdown that cannot extend beyond its turn: deeper headings, closed fences and HTML."""
    if not _SUSPECT.search(text):
        return text
    blocks, warnings = read_blocks(split_lines(text), 0)
    if warnings:  # too complex to parse: its end is unknown
        return fenced(text)
    lines = text.split("\n")
    for block in reversed(blocks):
        first = lines[block.start]
        if block.kind == "heading":
            lower = _HEADING.sub(lambda marks: marks[1] + "#" * min(len(marks[2]) + RANK, 6), first, count=1)
            if lower != first:
                lines[block.start : block.end] = [lower]
            else:  # a line of = or - is a heading after text, and a rule after an empty line
                lines.insert(block.end - 1, "")
        elif block.kind == "html_block":
            lines[block.start] = first.replace("<", "\\<", 1)
    last = blocks[-1] if blocks else None
    if last and last.kind == "fence":
        lines += _closing(lines[-(last.end - last.start) :])
    return "\n".join(lines)


def fenced(text: str) -> str:
    """Return *text* as a fenced code block."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _closing(block: list[str]) -> list[str]:
    """Return the line that closes a fenced block; none if it is closed."""
    opened = _FENCE.match(block[0])
    closed = _FENCE.fullmatch(block[-1].rstrip()) if len(block) > 1 else None
    if opened is None or (closed and closed[1].startswith(opened[1])):
        return []
    return [opened[1]]
