r"""The Markdown parser: splits a text into lines and blocks, within a budget of work.

CommonMark with tables, by markdown-it's block rules. Its inline rules are off, because they would take most
of the time and the text is kept as written. Link definitions are off, because they would consume lines.
Tables have rows but no cells: markdown-it fills up missing cells, and 29 KB can cause a million of them.

A line ends at ``\n`` or ``\r\n`` and nowhere else, as Vim, git, grep and ripgrep count, so that memd's line
numbers open the right place. A lone ``\r``, a form feed or U+2028 belongs to its line (`str.splitlines` would
break there); of a text without any ``\n``, `scan.with_line_feeds` makes lines before. A text that ends with a
line break has no empty line after it.

Warnings contain a line number and no words of the note, because they are logged.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token

from memd.records import Heading

# Without marks, a line of a megabyte would be encoded again for each of its chunks.
BYTE_MARK = 4_096


@dataclass(frozen=True, slots=True)
class Lines:
    """A text and the offsets of its lines, counted from 0."""

    text: str
    starts: Sequence[int]  # of each line's first character
    ends: Sequence[int]  # after each line's last character, without its line break
    marks: Sequence[int]  # bytes before each BYTE_MARK-th character; empty for ASCII, which needs none
    folded: Sequence[
        tuple[int, int]
    ] = ()  # end of each shortened run, and how many bytes it lacks in its line

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, number: int) -> str:
        """Return a line without its line break."""
        return self.text[self.starts[number] : self.ends[number]]

    def is_blank(self, number: int) -> bool:
        """Return whether a line is empty or only white space."""
        return not self.line(number).strip()

    def number_at(self, offset: int) -> int:
        """Return the number of the line that contains the character at *offset*."""
        return bisect_right(self.starts, offset) - 1

    def bytes_before(self, offset: int) -> int:
        """Return the number of bytes of the line before the character at *offset*."""
        start = self.starts[self.number_at(offset)]
        lacking = sum(lacks for at, lacks in self.folded if start < at <= offset)
        return lacking + (self._bytes_at(offset) - self._bytes_at(start) if self.marks else offset - start)

    def _bytes_at(self, offset: int) -> int:
        mark = offset // BYTE_MARK
        return self.marks[mark] + _bytes(self.text[mark * BYTE_MARK : offset])


def split_lines(text: str) -> Lines:
    """Find the lines of *text*."""
    starts, ends = array("I"), array("I")
    begin = 0
    while begin < len(text):
        found = text.find("\n", begin)
        stop = len(text) if found < 0 else found
        starts.append(begin)
        ends.append(stop - 1 if found > begin and text[stop - 1] == "\r" else stop)
        begin = stop + 1
    return Lines(text, starts, ends, _marks(text))


# What a run of base64 is for the index: its characters mean nothing to a model, and nobody searches for them.
BLOB = "base64"
# A data URI; or one long line, or lines of the widths that encoders wrap at (64, 76, 256 and blank lines).
# Not a part of a web token, which has dots: what masks secrets knows it by its parts.
_BLOB = re.compile(
    r"(data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w.+-]{1,80}=[^\s;,]{1,80}){0,4}(?:(?:;[\w-]{1,20})?,"
    r"(?:[\w.~:/?@!$&*+;=,-]|%[0-9A-F]{2}|\([^\s()<>\"']{1,80}\)){200,}|;base64,"
    r"(?:[A-Z0-9+/_=-]|%[0-9A-F]{2})*"
    r"(?:\r?\n[ \t>]*[A-Z0-9+/_=-]{60,}(?:\r?\n[ \t>]*[A-Z0-9+/_-]*(?:={1,2}|(?=[\"')])))?)*))"
    r"|(?<![A-Z0-9+/_.-])[A-Z0-9+/_-]{60,}(?![A-Z0-9+/_-]|\.[A-Z0-9])={0,2}"
    r"(?:(?:\r?\n[ \t>]*){1,2}[A-Z0-9+/_-]{60,}={0,2})*"
    r"(?:(?:\r?\n[ \t>]*){1,2}(?:[A-Z0-9+/_-]{20,}|[A-Z0-9+/_-]*=)={0,2}(?![\w+/=-]))?",
    re.IGNORECASE | re.ASCII,
)
MIN_BLOB_CHARS = 200
# The words of a path before base64, or behind it ("code/aB3…"): grep -w finds them.
_WORDS = r"(?:[a-z]{2,24}|[A-Z][a-z]{1,23}|[A-Z]{2,24})[0-9]{0,4}"
_PATH_CHARS = 200
_WORDS_BEFORE = re.compile(rf"(?:/?{_WORDS}[/+-])*")
_WORDS_BEHIND = re.compile(rf"(?:[/+-]{_WORDS})*/?\Z")
_PARTS_OF_PATHS = re.compile("[/_-]")
# Text has a separator every few characters (paths, rulers, slugs), base64 one in 32.
_MIN_LETTERS_A_SEPARATOR = 12
_HASHES = re.compile(r"[0-9a-fA-F\s>]+")


def fold_blobs(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return *text* with one word for each run of base64, and `Lines.folded`; the line breaks stay."""
    parts: list[str] = []
    folded: list[tuple[int, int]] = []
    at = size = 0
    for match in _BLOB.finditer(text):
        begin, end = match.span()
        if match[1] is None:
            if words := _WORDS_BEFORE.match(text, begin, min(begin + _PATH_CHARS, end)):
                begin = words.end()
            if words := _WORDS_BEHIND.search(text, max(end - _PATH_CHARS, begin), end):
                end = words.start()
        run = text[begin:end]
        if match[1] is None and not _is_blob(run):
            continue
        short = BLOB + "\r\n" * run.count("\r\n") + "\n" * (run.count("\n") - run.count("\r\n"))
        parts += [text[at:begin], short]
        size += begin - at + len(short)
        at = end
        folded.append((size, len(run.rpartition("\n")[2]) - len(short.rpartition("\n")[2])))
    return "".join([*parts, text[at:]]), folded


def _is_blob(run: str) -> bool:
    solid = "".join(run.split())
    if len(solid) <= MIN_BLOB_CHARS or not any(sign.isdigit() for sign in solid):
        return False
    if "\n" in run and _HASHES.fullmatch(run):  # a list of checksums, one of which may be looked for
        return False
    return len(_PARTS_OF_PATHS.findall(solid)) * _MIN_LETTERS_A_SEPARATOR < len(solid)


# A comment of Obsidian: within a line, or from the beginning of a line to the end of one. What is in code is
# passed over.
_COMMENT = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)|(`+)(?!`)[^\n]{0,1000}?(?<!`)\2(?!`)"
    r"|(?P<comment>(?<![%\w])%%(?!%)[^\n]*?(?<!%)%%(?![%\w])|^%%(?!%)[^\n]*\n.*?%%[ \t]*$)",
    re.MULTILINE | re.DOTALL,
)
# A drawing of Excalidraw as JSON, below its heading.
_DRAWING = re.compile(
    r"^#{1,6} Drawing[ \t]*\r?\n\s*```(?:compressed-)?json\r?\n.*?(?:^```[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
# What `memctl agents install` wrote for models (memctl/agents/instructions.py): no words of the user's.
_INSTRUCTIONS = re.compile(r"^<!-- memd: begin -->\r?\n.*?<!-- memd: end -->", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"[^\r\n]")


def without_hidden(text: str) -> str:
    """Return *text* with spaces for what is no text: comments, drawings as JSON, memd's instructions."""
    if "<!-- memd: begin -->" in text:
        text = _INSTRUCTIONS.sub(lambda found: _SHOWN.sub(" ", found[0]), text)
    if "%%" in text:
        text = _COMMENT.sub(lambda found: _SHOWN.sub(" ", found[0]) if found["comment"] else found[0], text)
    if "excalidraw" in text:
        text = _DRAWING.sub(lambda found: _SHOWN.sub(" ", found[0]), text)
    return text


def _marks(text: str) -> Sequence[int]:
    marks = array("I")
    if not text.isascii():
        marks.append(0)
        for start in range(0, len(text), BYTE_MARK):
            marks.append(marks[-1] + _bytes(text[start : start + BYTE_MARK]))
    return marks


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


# A token takes about 500 bytes, and a file of "- a" lines makes five per line: long texts are parsed in
# slices of so many lines, cut where no list or fence is open, so that 4 MiB do not take 1 GB.
SLICE_LINES = 4_000
# A slice ends here at the latest, even within a fence, which bounds memory on hostile texts.
MAX_SLICE_LINES = 20_000
# A text with more lines is parsed as plain text. Real notes of 4 MiB have half; markdown-it needs 3 s here.
MAX_MARKDOWN_LINES = 100_000
# Lines of plain text per block, which keeps objects few even for a million lines. Arbitrary.
PLAIN_LINES = 32
# The number of rules that may be tried on one text: WORK, plus one for every CHARS_A_WORK characters; the
# rest is parsed as plain text. Counted rather than timed, so that a text is cut the same way on every
# machine. Real notes try one rule for every 4 to 6 characters, lists of short words up to two per character,
# and a deep quote followed by short lines 30. A rule takes 0.4 to 2.5 µs.
WORK = 500_000
CHARS_A_WORK = 4
# Length of a heading in the context of its chunks; a longer one is a paragraph.
MAX_TITLE_CHARS = 200
# A heading with more brackets keeps its markup: for each unclosed one the rest of the line is read again,
# 4 ms for 50 of them. Arbitrary; people link once or twice.
MAX_TITLE_BRACKETS = 12

TOO_LONG = f"too-complex: more than {MAX_MARKDOWN_LINES:,} lines; all is indexed as plain text"
TOO_COMPLEX = "too-complex: all is indexed as plain text"

# Inline tags of a note, and the characters of one: far more than people write. Arbitrary.
MAX_INLINE_TAGS = 1_000
MAX_TAG_CHARS = 200

# Tags end as in Obsidian, at white space and punctuation, including Chinese and Japanese; or as in Logseq; or
# behind two to four words at a sign, as in Bear ("#learning C# now" has none).
_WORD = (
    r"""[^\s\u2000-\u206f\u2e00-\u2e7f\u3000-\u303f\uff00-\uff0f"""
    r"""\uff1a-\uff20'!"#$%&()*+,.:;<=>?@^`{|}~\[\]\\]+"""
)
_TAG = re.compile(
    rf"(?<!\S)#(?:\[\[([^\[\]|\n]+)\]\]|({_WORD}(?: {_WORD}){{1,3}})(?<! [A-Z])#(?![\w#])|({_WORD}))"
)
_SAYS = re.compile(r"[^\d/_-]")  # #1984 is a number
# Three, six or eight hexadecimal digits that include digits or are all the same letter; #e2e, #bad and
# #facade are words.
_COLOUR = re.compile(
    r"([a-f])\1{2}(?:\1{3})?|(?=(?:\D?\d){2})[0-9a-f]{3}|(?=.*\d)(?:[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE
)
_BACKTICKS = re.compile("`+")
_NO_PROSE = frozenset({"fence", "code_block", "html_block"})

_INLINE = MarkdownIt("commonmark")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_MARKUP = re.compile(r"[\\`*_\[\]<&!]")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")


@dataclass(frozen=True, slots=True)
class Block:
    """One block and the blocks in it. Its first and last lines are not blank."""

    kind: str  # markdown-it's name of the token: paragraph, heading, fence, bullet_list, list_item, …
    start: int  # line, counted from 0
    end: int  # after the last line
    level: int = 0  # of a heading: 1 to 6
    title: str = ""  # of a heading: its text without markup
    children: tuple["Block", ...] = ()


def read_blocks(lines: Lines, first: int) -> tuple[list[Block], tuple[str, ...]]:
    """Return the outermost blocks from line *first* on, in order; every non-blank line is in one of them.

    Also returns warnings if text that is too complex was parsed as plain text. They contain no note text.
    """
    if len(lines) - first > MAX_MARKDOWN_LINES:
        return list(_coarse(lines, first, len(lines))), (TOO_LONG,)
    work = WORK + len(lines.text) // CHARS_A_WORK
    blocks: list[Block] = []
    warnings: list[str] = []
    for start, end in _slices(lines, first):
        try:
            tree, work = _parsed(lines, start, end, work)
        except TooComplexError:
            blocks.extend(_coarse(lines, start, len(lines)))
            warnings.append(f"too-complex: from line {start + 1} on it is indexed as plain text")
            break
        except Exception:  # noqa: BLE001 - markdown-it has raised IndexError for a quote with a list with HTML
            blocks.extend(_coarse(lines, start, end))
            warnings.append(f"too-complex: lines {start + 1} to {end} are indexed as plain text")
            continue
        blocks.extend(_covering(lines, tree, start, end))
    return blocks, tuple(warnings)


def read_plain(lines: Lines) -> tuple[list[Block], tuple[str, ...]]:
    """Return blocks of plain text without Markdown, and the warning about it."""
    return list(_coarse(lines, 0, len(lines))), (TOO_COMPLEX,)


def inline_tags(lines: Lines, blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return the inline tags of a text, by Obsidian's rules or as Logseq's `#[[two words]]`, each once.

    Also as Bear's `#two words#`. A tag follows white space and has a character other than digits. Tags in
    code, HTML or links do not count, nor do colours.
    """
    found: dict[str, str] = {}
    for _, text in texts(lines, blocks, "#"):
        for match in _TAG.finditer(_without_code(text)):
            tag = (match[1] or match[2] or match[3]).strip("/ ")
            if len(tag) <= MAX_TAG_CHARS and _SAYS.search(tag) and not _COLOUR.fullmatch(tag):
                found.setdefault(tag.casefold(), tag)
        if len(found) >= MAX_INLINE_TAGS:
            break
    return tuple(found.values())[:MAX_INLINE_TAGS]


def texts(lines: Lines, blocks: Sequence[Block], sign: str) -> Iterator[tuple[int, str]]:
    """Yield offset and text of each innermost block that contains *sign* and is neither code nor HTML."""
    waiting = list(reversed(blocks)) if sign in lines.text else []
    while waiting:
        block = waiting.pop()
        if block.children:
            waiting += reversed(block.children)
        elif block.kind not in _NO_PROSE and block.end > block.start:
            begin = lines.starts[block.start]
            text = lines.text[begin : lines.ends[block.end - 1]]
            if sign in text:
                yield begin, text


def headings(blocks: Sequence[Block]) -> Iterator[Heading]:
    """Yield the headings that open sections: those in lists and quotes do not."""
    yield from (Heading(one.start + 1, one.level, one.title) for one in blocks if one.kind == "heading")


def _without_code(text: str) -> str:
    """Return a paragraph without its code spans; a span ends at a run of equally many backticks."""
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    closing: dict[int, int] = {}  # length → the next run of it
    closed_by = [0] * len(runs)
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        closed_by[number] = closing.get(length, 0)
        closing[length] = number
    parts, at, number = [], 0, 0
    while number < len(runs):
        last = closed_by[number]
        if last:
            breaks = text.count("\n", runs[number][0], runs[last][1])
            parts += [text[at : runs[number][0]], "\n" * breaks, "`"]
            at, number = runs[last][1], last
        number += 1
    return "".join([*parts, text[at:]])


def segments(lines: Lines, block: Block) -> Iterator[Block]:
    """Cut *block* where its children begin; the pieces have all of its non-blank lines."""
    starts = [block.start, *(child.start for child in block.children[1:]), block.end]
    for child, start, end in zip(block.children, starts, starts[1:], strict=False):
        trimmed = _trim(lines, replace(child, start=start, end=end))
        if trimmed is not None:
            yield trimmed


def _slices(lines: Lines, first: int) -> Iterator[tuple[int, int]]:
    start, open_fence = first, ""
    for number in range(first, len(lines)):
        long = number - start
        if long >= SLICE_LINES:
            apart = lines.is_blank(number - 1) and not lines.line(number)[:1].isspace()
            if (apart and not open_fence) or long >= MAX_SLICE_LINES:
                yield start, number
                start, open_fence = number, ""
        fence = _FENCE.match(lines.line(number))
        if fence and open_fence in {"", fence[1]}:
            open_fence = "" if open_fence else fence[1]
    if start < len(lines):
        yield start, len(lines)


class TooComplexError(Exception):
    """The work budget of a text is used up."""


class _State(StateBlock):
    """A parser state that counts the rules tried; nearly each rule begins by calling `is_code_block`."""

    work = 0  # the remaining budget

    def is_code_block(self, line: int) -> bool:
        self.work -= 1
        if self.work < 0:
            raise TooComplexError
        return super().is_code_block(line)


def _parsed(lines: Lines, start: int, end: int, work: int) -> tuple[list[Block], int]:
    """Return the blocks of a slice as parsed by markdown-it, and the remaining part of *work*.

    Raises:
        TooComplexError: *work* was not enough.
    """
    # markdown-it takes a lone \r for a line break, which would shift all line numbers behind it.
    text = "\n".join(lines.line(number).replace("\r", " ") for number in range(start, end))
    state = _State(text, _MARKDOWN, {}, [])
    state.work = work
    _MARKDOWN.block.tokenize(state, 0, state.lineMax)
    return _tree(state.tokens, start), state.work


def _covering(lines: Lines, tree: list[Block], start: int, end: int) -> Iterator[Block]:
    """Yield the blocks of a slice without blank edges, and the lines between them as paragraphs."""
    at = start
    for block in tree:
        trimmed = _trim(lines, replace(block, start=max(block.start, at)))
        if trimmed is not None:
            yield from _plain(lines, at, trimmed.start)
            yield trimmed
            at = trimmed.end
    yield from _plain(lines, at, end)


def _coarse(lines: Lines, first: int, end: int) -> Iterator[Block]:
    """Yield plain text in blocks of PLAIN_LINES lines."""
    for start in range(first, end, PLAIN_LINES):
        block = _trim(lines, Block("paragraph", start, min(start + PLAIN_LINES, end)))
        if block is not None:
            yield block


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's
    """Parse a table as markdown-it's rule does, but without its cells."""
    if not table(state, start, end, True):  # noqa: FBT003 - silent: only tests whether a table begins here
        return False
    if silent:
        return True
    outer, state.parentType = state.parentType, "table"
    lines = _open(state, "table", start)
    _open(state, "thead", start)[1] = start + 1
    _row(state, start)
    state.push("thead_close", "thead", -1)
    line = start + 2
    body: list[int] | None = None
    while line < end and _is_row(state, line, end):
        body = body or _open(state, "tbody", line)
        _row(state, line)
        line += 1
    if body is not None:
        state.push("tbody_close", "tbody", -1)
        body[1] = line
    state.push("table_close", "table", -1)
    lines[1] = line
    state.parentType = outer
    state.line = line
    return True


def _math(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's
    """Parse lines between `$$` as a fence: a line of "=" in them underlines no heading."""
    at = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("$$", at):
        return False
    if "$$" in state.src[at + 2 : state.eMarks[start]]:
        return False
    for line in range(start + 1, end):
        text = state.src[state.bMarks[line] : state.eMarks[line]]
        if not text.strip():
            return False
        if "$$" in text:
            if not silent:
                state.push("fence", "math", 0).map = [start, line + 1]
                state.line = line + 1
            return True
    return False


def _is_row(state: StateBlock, line: int, end: int) -> bool:
    """Return whether a table continues: no other block begins, and the line is not blank or indented."""
    if state.sCount[line] < state.blkIndent:
        return False
    if any(rule(state, line, end, True) for rule in state.md.block.ruler.getRules("blockquote")):  # noqa: FBT003
        return False
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    return bool(text.strip()) and not state.is_code_block(line)


def _row(state: StateBlock, line: int) -> None:
    _open(state, "tr", line)[1] = line + 1
    state.push("tr_close", "tr", -1)


def _open(state: StateBlock, tag: str, start: int) -> list[int]:
    """Open an element at a line; return its [start, end] lines, whose end the caller fills in."""
    token = state.push(f"{tag}_open", tag, 1)
    token.map = [start, start]
    return token.map


def _tree(tokens: Sequence[Token], shift: int) -> list[Block]:
    found: list[list[Block]] = [[]]
    opened: list[tuple[Token, str]] = []
    for token in tokens:
        if token.nesting == 1:
            opened.append((token, ""))
            found.append([])
        elif token.nesting == -1:
            children = found.pop()
            _add(found[-1], *opened.pop(), shift, children)
        elif token.type == "inline":
            if opened and opened[-1][0].type == "heading_open":
                opened[-1] = (opened[-1][0], token.content)
        else:
            _add(found[-1], token, "", shift, [])
    return found[0]


def _add(siblings: list[Block], token: Token, content: str, shift: int, children: list[Block]) -> None:
    if token.map is None:  # a table's cell
        return
    start, end = token.map[0] + shift, token.map[1] + shift
    kind = token.type.removesuffix("_open")
    if kind == "heading":
        siblings.append(Block(kind, start, end, int(token.tag[1:]), plain_title(content)))
    else:
        siblings.append(Block(kind, start, end, children=tuple(children)))


def plain_title(content: str) -> str:
    """Return a heading as rendered, without its markup."""
    title = " ".join(content.split())
    cut = title[: 2 * MAX_TITLE_CHARS]  # inline rules are quadratic on hostile text
    if _MARKUP.search(cut) and cut.count("[") <= MAX_TITLE_BRACKETS:
        shown = cut if "`" in cut else _WIKI_LINK.sub(r"\1", cut)
        children = _INLINE.parseInline(shown)[0].children or []
        cut = " ".join("".join(_visible(child) for child in children).split())
    return cut if len(cut) <= MAX_TITLE_CHARS else cut[: MAX_TITLE_CHARS - 1] + "…"


def _visible(token: Token) -> str:
    return " " if token.type in {"softbreak", "hardbreak"} else token.content * (token.type != "html_inline")


def _trim(lines: Lines, block: Block) -> Block | None:
    """Strip blank lines at both ends; None if nothing is left."""
    start, end = block.start, block.end
    while start < end and lines.is_blank(end - 1):
        end -= 1
    while start < end and lines.is_blank(start):
        start += 1
    return replace(block, start=start, end=end) if start < end else None


def _plain(lines: Lines, start: int, end: int) -> Iterator[Block]:
    """Yield the runs of non-blank lines as paragraphs."""
    first = start
    for number in range(start, end + 1):
        if number == end or lines.is_blank(number):
            if first < number:
                yield Block("paragraph", first, number)
            first = number + 1


_MARKDOWN = MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])
_MARKDOWN.block.ruler.before(
    "fence", "math", _math, {"alt": ["paragraph", "reference", "blockquote", "list"]}
)
_MARKDOWN.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
