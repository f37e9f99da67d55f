"""Text of a conversation made fit for a note: no recalled notes, no secrets, no heading of its own rank.

Pure.
"""

import re
from collections.abc import Callable

from memd.entries.secrets import mask
from memd.sources.markdown import read_blocks, split_lines

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
