"""Which headings does a Markdown text have, and at which lines? Pure.

A scan by lines, after CommonMark: ATX and Setext headings that stand in no fence, comment, HTML block,
quote, list item or front matter. Where a text is tricky it may miss a heading; that costs a question.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_LIST = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
_QUOTE = re.compile(r" {0,3}>")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)")
_BLOCK_TAGS = """
    address article aside base basefont blockquote body caption center col colgroup dd details
    dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6
    head header hr html iframe legend li link main menu menuitem nav noframes ol optgroup option p
    param search section summary table tbody td tfoot th thead title tr track ul
""".split()  # noqa: SIM905 (readable as words)
# How an HTML block begins → what ends it (CommonMark 0.31, 4.6); "" is a blank line.
_HTML = (
    (re.compile(r" {0,3}<(?:pre|script|style|textarea)(?:[\s>]|$)", re.IGNORECASE), "</"),
    (re.compile(r" {0,3}<!--"), "-->"),
    (re.compile(r" {0,3}<\?"), "?>"),
    (re.compile(r" {0,3}<!\[CDATA\["), "]]>"),
    (re.compile(r" {0,3}<![A-Za-z]"), ">"),
    (re.compile(rf" {{0,3}}</?(?:{'|'.join(_BLOCK_TAGS)})(?:\s|/?>|$)", re.IGNORECASE), ""),
)
# Any other tag, where it stands alone on its line; within a paragraph it is part of that.
_LONE_TAG = re.compile(r" {0,3}</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>[ \t]*")
_FRONT_MATTER = re.compile(r"---[ \t]*")
_FRONT_MATTER_END = re.compile(r"(?:---|\.\.\.)[ \t]*")

_IMAGE_OR_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])")
_WIKI_LINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>|<((?:https?|mailto):[^<>\s]*)>")
_EMPHASIS = re.compile(r"(\*{1,3}|~~|(?<![^\W_])_{1,3})(?=\S)(.+?)(?<=\S)\1(?!(?<=_)[^\W_])")
_ANCHOR = re.compile(r"\s*\{#[^}]*\}$")  # {#name}, which some renderers take as the heading's own name
# An escaped mark, or a code span: what is in either is no markup.
_LITERAL = re.compile(r"\\([!-/:-@\[-`{-~])|(?<!`)(`+)(?!`)(.+?)(?<!`)\2(?!`)")
# Literal ASCII travels through the other replacements as characters that no text has a use for.
_ASIDE = 0xE000


# Longer lines are looked at so far: nobody's heading is longer, and patterns take a hostile one's square.
MAX_LINE_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading; lines are counted from 0."""

    level: int  # 1 to 6
    text: str  # as a reader sees it, without markup
    start: int
    end: int  # behind its last line: a Setext heading has two or more


def lines_of(text: str) -> list[str]:
    r"""Return the lines of *text* as editors count them: ``\n`` or ``\r\n`` ends one, nothing else does."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def front_matter_end(lines: Sequence[str]) -> int:
    """Return how many lines the front matter has, both fences included; 0 without one."""
    if not lines or not _FRONT_MATTER.fullmatch(lines[0]):
        return 0
    ends = (number for number in range(1, len(lines)) if _FRONT_MATTER_END.fullmatch(lines[number]))
    return next(ends, -1) + 1


def headings(lines: Sequence[str]) -> list[Heading]:
    """Return the headings of a text, in its order; empty ones are left out."""
    scan = _Scan()
    for number in range(front_matter_end(lines), len(lines)):
        scan.read(number, lines[number][:MAX_LINE_CHARS])
    return [heading for heading in scan.found if heading.text]


def visible(markup: str) -> str:
    """Return what a reader sees of a heading's Markdown."""
    text = _LITERAL.sub(lambda found: (found[1] or found[3]).translate(_HIDE), markup)
    text = _WIKI_LINK.sub(r"\1", text)
    for _ in range(2):  # a link around an image
        text = _IMAGE_OR_LINK.sub(r"\1", text)
    text = _ANCHOR.sub("", _TAG.sub(lambda tag: tag[1] or "", text))
    for _ in range(2):  # emphasis in emphasis; deeper is nobody's heading
        text = _EMPHASIS.sub(r"\2", text)
    return " ".join(html.unescape(text).translate(_SHOW).split())


_HIDE = {code: _ASIDE + code for code in range(0x21, 0x7F)}
_SHOW = {hidden: code for code, hidden in _HIDE.items()}


class _Scan:
    """Reads lines and keeps what CommonMark keeps between them: which block is open."""

    def __init__(self) -> None:
        self.found: list[Heading] = []
        self._paragraph: list[str] = []  # its lines so far, which an underline would make a heading
        self._until: str | None = None  # ends the HTML block that is open; "": a blank line does
        self._fence = ""  # the marks that opened the code block which is open
        self._in_list = False  # indented lines belong to an item
        self._lazy = False  # lines go on with the paragraph of an item or a quote, up to a blank one

    def read(self, number: int, line: str) -> None:
        """Take the next line."""
        if self._fence:
            self._in_fence(line)
        elif self._until is not None:
            self._in_html(line)
        elif not line.strip():
            self._paragraph, self._lazy = [], False
        elif not self._closes_paragraph(number, line) and not self._opens(line):
            self._text(line)

    def _closes_paragraph(self, number: int, line: str) -> bool:
        """Take a heading, or a rule where that is what the line is."""
        underline, nested = _UNDERLINE.fullmatch(line), self._in_list and line[0] in " \t"
        if underline and self._paragraph:
            start = number - len(self._paragraph)
            level = 1 if "=" in underline[1] else 2
            self._add(level, " ".join(part.strip() for part in self._paragraph), start, number + 1)
        elif (heading := _ATX.fullmatch(line)) and not nested:
            self._add(len(heading[1]), heading[2] or "", number, number + 1)
        elif not _RULE.fullmatch(line):
            return False
        self._paragraph, self._lazy = [], False
        self._in_list = nested
        return True

    def _add(self, level: int, markup: str, start: int, end: int) -> None:
        self.found.append(Heading(level, visible(markup), start, end))

    def _opens(self, line: str) -> bool:
        """Take a line that opens a fence, an HTML block, a list item or a quote."""
        if fence := _FENCE.fullmatch(line):
            self._fence = fence[1] or fence[2]
        elif (ending := self._html(line)) is not None:
            self._until = ending
            self._in_html(line)
        elif _LIST.match(line):
            self._in_list = self._lazy = True
        elif _QUOTE.match(line):
            self._lazy = True
        else:
            return False
        self._paragraph = []
        return True

    def _html(self, line: str) -> str | None:
        """Return what ends the HTML block that *line* opens; None if it opens none."""
        lone = not self._paragraph and _LONE_TAG.fullmatch(line)
        return next((ending for opening, ending in _HTML if opening.match(line)), "" if lone else None)

    def _text(self, line: str) -> None:
        """Take a line of a paragraph, or one that belongs to an item, a quote or indented code."""
        if self._lazy or (line[0] in " \t" and self._in_list):
            self._lazy = True
            return
        if _INDENTED.match(line) and not self._paragraph:
            return
        self._in_list = False
        self._paragraph.append(line)

    def _in_fence(self, line: str) -> None:
        marks = line.strip(" \t")
        closes = len(marks) >= len(self._fence) and not marks.strip(self._fence[0])
        if closes and not _INDENTED.match(line):
            self._fence = ""

    def _in_html(self, line: str) -> None:
        if (self._until and self._until in line) or (not self._until and not line.strip()):
            self._until = None
