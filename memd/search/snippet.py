"""The lines that a hit shows: passages of its chunks, the snippet in them, and sections around them.

A passage is the text of one chunk or of consecutive chunks. A snippet is the part of a passage that shows why
it was found: the tightest span of the query's words, each weighted by its rarity. The words of a quoted
phrase or of an identifier with punctuation count again if they are adjacent in the text, and once more if the
punctuation is the same. The line of the span with the highest weight becomes the match line. Another form of
a word has a little less weight than the word. A line that asks passes most of its weight to the next one,
which may answer; code that follows is shown in place of the text before it. A chunk without a telling word of
the query, found by its meaning, shows its first line that is no heading.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

from memd.index.outlines import outline
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import Heading, Source
from memd.search.query import FORMS_SHARE, Query, content_words
from memd.text import SPACELESS, is_spaceless, pairs_of, pieces_of, searched_text

SNIPPET_CHARS = 300  # about three lines of a terminal
STOP_WORD_WEIGHT = 0.01  # it decides only if nothing else does
# Share of the weight of all found words that a span as long as a snippet loses, so that words in one sentence
# come before the same words in two.
LENGTH_COST = 0.5
LINE_CHARS = 60  # added length per line break in a span, because one line is named. Arbitrary
MAX_MARKS = 50  # of a span: a query may be a page; arbitrary
# From this number on, as of a query with many word forms, a text is split into its words first: a search for
# each of 60 words takes 87 µs, after the split 37 µs.
MANY_WORDS = 16
_SPACED = {number: " " for number in range(128) if not chr(number).isalnum()}
# What names no line: addresses, pictures, tags, and lines that open or close code.
_QUIET = re.compile(
    r"(?:https?://|www\.)[^\s<>()\[\]]+|!\[\[[^\]\n]*\]\]|!\[[^\]\n]*\]\([^)\n]*\)|(?<=\])\([^)\n]*\)"
    r"|<[^<>\n]*>|^[ \t]*(?:`{3,}|~{3,}).*",
    re.MULTILINE,
)
# Opens code; without words behind it, it may close it.
_FENCE = re.compile(r"(?:[ \t>]|[-*+] |\d{1,9}[.)] )*(`{3,}|~{3,})[ \t]*([^\s`]{0,20})[^`]*")
_HEADING = re.compile(r" {0,3}(?:> ?)*(?:#{1,6}(?:\s|$)|[=-]+\s*$)")  # or the line below one
_COMMENTS = {"<!--": "-->", "%%": "%%"}  # of HTML, of Obsidian: how they begin and end
_IN_BLOCK = re.compile(r"[ \t]*(?:[-*+>|]|\d{1,9}[.)]\s)| {4}|\t")
_ASKS = re.compile(r"[?\uff1f][\s*_\"'\u201d\u2019)\]]*$")
# In conversations the line with all the words of a question is often the other's question.
ASKED_SHARE = 0.7
_TURN = re.compile(r"#{1,6} .+ · ")  # a heading between a question and its answer on a page of a conversation
# Up to four lines of a code block, behind the line that opens it.
_CODE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,}).*\n(?:(?![ \t]*(?P=fence)).*\n?){1,4}", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_GAP = re.compile(r"\n[ \t]*\n")
_MAYBE_QUIET = ("```", "]", "<", "://", "www.", "~~~")  # a text with none of them has nothing quiet
# A stretch of the raw text that contains whole words.
_STRETCH = re.compile(f"[{SPACELESS}]+|[^\\s\\x00-/:-@\\[-`{{-\\x7f{SPACELESS}]+")

# Where a line begins: its number in the file, and the byte offset within that line. Chunks overlap by whole
# lines, so shared text has the same key in both; the parts of a line that is too long have different offsets.
Line = tuple[int, int]

# Chunks before and after a hit that may be shown: longer sections leave no room for anything else.
AROUND = 4
CODE_CHUNKS = 32  # before a hit, of which one may open the code in which it begins. Arbitrary
FIRST_CHUNKS = 200  # of a core note; the core's share of a budget never holds more


class Phrase(NamedTuple):
    """Words of a query that belong together."""

    words: tuple[str, ...]  # in the form in which texts are compared
    typed: str  # in lower case
    weight: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """The words and phrases that are marked in a text."""

    words: frozenset[str]  # content words, and all words of phrases
    marked: frozenset[str]  # these, and the other forms of words
    runs: tuple[str, ...]  # of spaceless scripts, in pairs of characters
    weights: Mapping[str, float]  # of words and runs
    phrases: tuple[Phrase, ...]
    forms: Mapping[str, str] = field(default_factory=dict)  # other form of a word → that word


@dataclass(frozen=True, slots=True)
class Snippet:
    """The text to show, and the position of its match."""

    text: str
    match_line: int  # of the file, 1-based
    match_column: int  # in bytes of that line, 1-based; 1 if the chunk has no word of the query
    match_text: str  # that line, whole
    weight: float  # of the query's words in the match; 0 if there are none
    start: int  # line in which the text begins


class _Mark(NamedTuple):
    """An occurrence in a text of a word or phrase of the query."""

    start: int
    end: int
    what: str
    weight: float


def wanted(query: Query, weights: Mapping[str, float]) -> Wanted:
    """Return the words and phrases of *query* that are marked in texts.

    *weights*: known weights of terms; other words have 1, stop words STOP_WORD_WEIGHT.
    """
    telling = set(content_words(query.pieces))
    words = {_plain(piece): piece for piece in query.pieces if not is_spaceless(piece)}
    runs = {run: run for piece in query.pieces for run in _runs(piece)}
    weighed = {
        word: weights.get(word, 1.0) if piece in telling or word in runs else STOP_WORD_WEIGHT
        for word, piece in {**words, **runs}.items()
    }
    every = sum(weighed.values())
    # Quoted phrases have the weight of all words: a chunk is a hit only because it has each of them.
    phrases = [_phrase(typed, weighed, every) for typed in query.phrases]
    # A word of plain letters is no phrase.
    signed = (typed for typed in dict.fromkeys(query.words) if not (typed.isascii() and typed.isalnum()))
    phrases += [_phrase(typed, weighed, 0.0) for typed in signed]
    some = tuple(phrase for phrase in phrases if len(phrase.words) > 1)
    in_phrases = {word for phrase in some for word in phrase.words}
    content = {word for word in words if weighed[word] != STOP_WORD_WEIGHT or word in in_phrases} - {""}
    forms = {form: word for word, its in query.forms.items() for form in its if form not in words}
    weighed |= {form: FORMS_SHARE * weighed.get(word, 1.0) for form, word in forms.items()}
    return Wanted(
        frozenset(content),
        frozenset(content.union(forms)),
        tuple(runs),
        weighed,
        some,
        forms,
    )


def snippet(text: str, start_line: int, query: Wanted, *, start_byte: int = 0) -> Snippet:
    """Return the stretch of a chunk around the tightest span of the query's words, and that span's line.

    Args:
        text: the chunk's text, as in the file.
        start_line: the line of the file in which the chunk begins.
        query: the words and phrases to mark.
        start_byte: byte offset of the chunk in that line.
    """
    marks = _marks(text, query)
    if not marks:  # found by its meaning: the first line that is no heading, as titles are shown beside it
        lines = text.split("\n")
        every = range(len(lines))
        told = (at for at in _told(lines) if _says_something(lines[at]))
        says = (at for at in every if _says_something(lines[at]))
        some = (at for at in every if lines[at].strip())
        first = next(chain(told, says, some), 0)
        whole, at = lines[first].rstrip("\r"), sum(len(line) + 1 for line in lines[:first])
        column, named = 1 if first else 1 + start_byte, start_line + first
        return Snippet(_window(text, at), named, column, whole, 0.0, named)
    span = _tightest(text, marks)
    line_start, line = _best_line(text, span, marks)
    # Point at a phrase, otherwise at the first content word.
    pointed = max(
        line, key=lambda mark: (" " in mark.what, mark.weight > STOP_WORD_WEIGHT, -mark.start), default=None
    )
    at = pointed.start if pointed else line_start
    line_end = _end_of_line(text, at)
    whole = text[line_start:line_end].rstrip("\r")
    column = len(text[line_start:at].encode(errors="replace")) + 1
    if line_start == 0:
        column += start_byte
    first = text.rfind("\n", 0, span[0].start) + 1
    is_near = line_start + len(whole) - first <= SNIPPET_CHARS
    start = span[0].start if is_near else at
    named, begins = (start_line + text.count("\n", 0, place) for place in (at, start))
    shown = _before_code(text, start, line_end) or _window(text, start)
    return Snippet(shown, named, column, whole, _weight(span), begins)


def _phrase(typed: str, weights: Mapping[str, float], more: float) -> Phrase:
    """Return a phrase with the weight of its words plus *more*."""
    words = tuple(word for piece in pieces_of(typed) for word in (_runs(piece) or (_plain(piece),)))
    return Phrase(words, typed.lower(), more + sum(weights.get(word, 0.0) for word in set(words)))


def _runs(piece: str) -> list[str]:
    """Return the character pairs of a spaceless piece; none for other pieces."""
    return (pairs_of(piece) or [piece]) if is_spaceless(piece) else []


def _marks(text: str, query: Wanted) -> list[_Mark]:
    """Return all occurrences of the query's words and phrases, in order."""
    places = sorted(_word_marks(text, query, query.marked) or _inner_marks(text, query.words))
    marks = [
        _Mark(at, at + len(word), query.forms.get(word, word), query.weights.get(word, 1.0))
        for at, word in places
    ]
    more = [mark for phrase in query.phrases for mark in _phrase_marks(text, marks, phrase)]
    found = sorted([*marks, *more]) if more else marks
    if not found or not any(sign in text for sign in _MAYBE_QUIET):
        return found
    quiet: list[tuple[int, int]] = []
    end = -1
    for mark in found:
        if mark.start > end:  # another line
            start, end = text.rfind("\n", 0, mark.start) + 1, _end_of_line(text, mark.start)
            quiet += [match.span() for match in _QUIET.finditer(text, start, end)]

    def is_quiet(at: int) -> bool:
        before = bisect_right(quiet, at, key=itemgetter(0))
        return before > 0 and at < quiet[before - 1][1]

    # An address that is asked for is found in addresses only.
    return [mark for mark in found if "/" in mark.what or not is_quiet(mark.start)] or found


def _says_something(line: str) -> bool:
    """Return whether a line is more than markup, a picture or a rule."""
    return any(map(str.isalnum, _QUIET.sub("", line)))


def _told(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines that are neither headings nor in comments that begin a line; no code is a heading."""
    end = ""  # of the comment or the code that is open
    for at, line in enumerate(lines):
        text = line.strip()
        if end:
            if end not in _COMMENTS.values():
                yield at
            end = "" if text.endswith(end) else end
            continue
        fence = _FENCE.fullmatch(line)
        begins = next((sign for sign in _COMMENTS if text.startswith(sign)), "")
        if begins and _COMMENTS[begins] not in text[len(begins) :]:
            end = _COMMENTS[begins]
        elif fence:
            end = fence[1]
        elif not (begins and text.endswith(_COMMENTS[begins])) and not _is_heading(lines, at):
            yield at


def _is_heading(lines: Sequence[str], at: int) -> bool:
    """Return whether a line is a heading, or one by the line below it: not in a list, a quote or a table."""
    if _HEADING.match(lines[at]):
        return True
    below = lines[at + 1] if at + 1 < len(lines) else ""
    return bool(_HEADING.match(below)) and "#" not in below and not _IN_BLOCK.match(lines[at])


def _word_marks(text: str, query: Wanted, words: frozenset[str]) -> list[tuple[int, str]]:
    """Return (offset, word or run) of every occurrence of *words* and of the query's runs."""
    return _ascii_marks(text, words) if text.isascii() else _any_marks(text, words, query.runs)


def _phrase_marks(text: str, marks: list[_Mark], phrase: Phrase) -> Iterator[_Mark]:
    """Yield where a phrase's words are adjacent; a second mark if the text is written as typed."""
    for number, first in enumerate(marks):
        if first.what != phrase.words[0]:
            continue
        end, left = first.end, list(phrase.words[:0:-1])
        for mark in marks[number + 1 :]:
            if not left or any(map(str.isalnum, text[end : mark.start])):
                break
            if mark.what == left[-1]:
                end = mark.end
                left.pop()
        if left:
            continue
        yield _Mark(first.start, end, f"{phrase.typed} ", phrase.weight)  # no word has a space
        if text[first.start : end].lower() in phrase.typed:
            yield _Mark(first.start, end, f"{phrase.typed}  ", phrase.weight)


def _ascii_marks(text: str, words: frozenset[str]) -> list[tuple[int, str]]:
    """Search ASCII text word by word, which is faster than compiling an expression of the query's words."""
    lower, found = text.lower(), []
    for word in words if len(words) < MANY_WORDS else words.intersection(lower.translate(_SPACED).split()):
        at = lower.find(word)
        while at >= 0:
            end = at + len(word)
            # The slices have one character, or none at the ends of the text.
            if not lower[at - 1 : at].isalnum() and not lower[end : end + 1].isalnum():
                found.append((at, word))
            at = lower.find(word, end)
    return found


def _any_marks(text: str, words: frozenset[str], runs: tuple[str, ...]) -> list[tuple[int, str]]:
    """Search stretch by stretch, each in the form in which it is indexed."""
    found = []
    for stretch in _STRETCH.finditer(text):
        raw = stretch[0]
        if raw.isascii():
            if (lower := raw.lower()) in words:
                found.append((stretch.start(), lower))
            continue
        for piece in pieces_of(raw):
            if is_spaceless(piece):
                wanted = [run for run in runs if run in piece]
            else:
                wanted = [plain for plain in (_plain(piece),) if plain in words]
            found += [(stretch.start() + _place(raw, word), word) for word in wanted]
    return found


def _inner_marks(text: str, words: Iterable[str]) -> list[tuple[int, str]]:
    """Return the first occurrence of each word as a substring, like the keyword arm's ``like`` tier."""
    if text.isascii():  # then no word beyond ASCII is in it, and a search without expressions does the same
        lower = text.lower()
        return [(at, word) for word in words if (at := lower.find(word)) >= 0]
    found, lower = [], text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := one.lower()) == 1 else one for one in text)
    others = [(run, _plain(searched_text(run[0]))) for run in _STRETCH.finditer(text) if not run[0].isascii()]
    for word in words:
        if (at := lower.find(word)) >= 0:
            found.append((at, word))
        else:
            within = (run for run, plain in others if word in plain)
            found += [(run.start() + _place(run[0], word), word) for run in islice(within, 1)]
    return found


def _place(raw: str, wanted: str) -> int:
    """Return the offset in the raw text *raw* of the characters that are indexed as *wanted*."""
    if (at := raw.find(wanted)) >= 0:
        return at

    def has(part: str) -> bool:
        return wanted in _plain(searched_text(part)) or wanted in searched_text(part)

    stop = bisect_left(range(len(raw)), True, key=lambda count: has(raw[:count]))  # noqa: FBT003
    after = bisect_left(range(stop), True, key=lambda start: not has(raw[start:stop]))  # noqa: FBT003
    return max(after - 1, 0)


def _tightest(text: str, marks: list[_Mark]) -> list[_Mark]:
    """Return the marks of the span with the highest weight minus a cost for its length."""
    cost = _weight(marks) * LENGTH_COST / SNIPPET_CHARS  # per character
    best, best_value = marks[:1], float("-inf")
    every = len({mark.what for mark in marks})
    for number, first in enumerate(marks):
        # Where the same follows, a span of both starts better there.
        is_again = number + 1 < len(marks) and first.what == marks[number + 1].what
        counted: set[str] = set()
        weight, end = 0.0, first.end
        for count, mark in enumerate(marks[number : number + (1 if is_again else MAX_MARKS)], 1):
            if mark.start >= first.start + SNIPPET_CHARS or len(counted) == every:
                break
            if mark.what in counted:
                continue
            counted.add(mark.what)
            weight, end = weight + mark.weight, max(end, mark.end)
            length = end - first.start + LINE_CHARS * text.count("\n", first.start, end)
            value = weight - cost * length
            if value > best_value:
                best, best_value = marks[number : number + count], value
    return best


def _best_line(text: str, span: list[_Mark], marks: list[_Mark]) -> tuple[int, list[_Mark]]:
    """Return the start of the line of *span* with the highest weight, or that of an answer, and its marks."""
    lines: dict[int, list[_Mark]] = {}
    for mark in span:
        lines.setdefault(text.rfind("\n", 0, mark.start) + 1, []).append(mark)
    worth = {start: _weight(of) for start, of in lines.items()}
    asking = []
    for start, of in list(lines.items()):
        end = _end_of_line(text, start)
        if not _ASKS.search(text, start, end) or (answer := _next_text(text, end)) is None:
            continue
        asking.append(start)
        worth[start] *= ASKED_SHARE
        lines[answer] = [mark for mark in marks if answer <= mark.start < _end_of_line(text, answer)]
        passed = [mark._replace(weight=ASKED_SHARE * mark.weight) for mark in of]
        worth[answer] = _weight([*lines[answer], *passed])
    best = max(worth, key=lambda start: (worth[start], start not in asking))
    return best, lines[best]


def _next_text(text: str, at: int) -> int | None:
    """Return the start of the next line with text, which is no heading but one between two turns."""
    while (start := at + 1) < len(text):
        at = _end_of_line(text, start)
        line = text[start:at]
        if _HEADING.match(line) and not _TURN.match(line):
            return None
        if not _TURN.match(line) and _says_something(line):
            return start
    return None


def _end_of_line(text: str, at: int) -> int:
    return end if (end := text.find("\n", at)) >= 0 else len(text)


def _before_code(text: str, at: int, match_end: int) -> str:
    """Return the paragraph of a match with the first lines of the next code block, if both fit; else ""."""
    start, block = text.rfind("\n", 0, at) + 1, _CODE.search(text, match_end)
    if block is None or block.end() <= start + SNIPPET_CHARS or len(_FENCED.findall(text, 0, match_end)) % 2:
        return ""
    between = text[match_end : block.start()]
    end = match_end + (gap.start() if (gap := _GAP.search(between)) else len(between))
    if end - start + len(block[0]) > SNIPPET_CHARS or any(map(_HEADING.match, between.split("\n"))):
        return ""
    return f"{text[start:end].strip()} …\n{block[0].rstrip()}\n{block['fence']}"


def _weight(marks: Iterable[_Mark]) -> float:
    """Return the total weight of marks; each word counts once, by its heaviest mark."""
    says: dict[str, float] = {}
    for mark in marks:
        says[mark.what] = max(mark.weight, says.get(mark.what, 0.0))
    return sum(says.values())


def _window(text: str, at: int) -> str:
    """Return about SNIPPET_CHARS around *at*, from the start of a line or word."""
    start = max(text.rfind("\n", 0, at) + 1, 0)
    if at - start > SNIPPET_CHARS // 3:
        start = at - SNIPPET_CHARS // 3
        space = text.find(" ", start, at)
        start = space + 1 if space >= 0 else start
    end = min(start + SNIPPET_CHARS, len(text))
    if end < len(text):
        space = text.rfind(" ", at, end)
        end = space if space > at + SNIPPET_CHARS // 3 else end
    return (
        ("… " if start > 0 and text[start - 1] != "\n" else "")
        + text[start:end].strip()
        + (" …" if end < len(text) else "")
    )


def _plain(word: str) -> str:
    """Return a word as FTS5 compares it: in lower case, without accents."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word).casefold()
    return "".join(character for character in decomposed if not unicodedata.combining(character))


@dataclass(frozen=True, slots=True)
class Passage:
    """A range of a source's text."""

    start_line: int  # 1-based, inclusive
    end_line: int
    start_byte: int  # offset in the first line at which the text begins
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one chunk that a hit shows."""

    rank: int  # of the chunk among the candidates, the best 0
    lines: dict[Line, str]  # without lines of better hits


def lines_of(chunk: StoredChunk, without: Container[Line] = ()) -> dict[Line, str]:
    """Return the lines of a chunk, except the lines *without*."""
    texts = chunk.text.split("\n")
    found: dict[Line, str] = {(chunk.start_line, chunk.start_byte): texts[0]}
    for number, text in enumerate(texts[1:], chunk.start_line + 1):
        found[number, 0] = text
    return {line: text for line, text in found.items() if line not in without} if without else found


def passage(parts: Sequence[Part]) -> Passage | None:
    """Return parts of a source as a passage, without blank lines at its ends; None if nothing is left."""
    lines = {line: text for part in parts for line, text in part.lines.items()}
    places = sorted(lines) if len(parts) > 1 else list(lines)
    while places and not lines[places[-1]].strip():
        places.pop()
    start = next((place for place, line in enumerate(places) if lines[line].strip()), 0)
    places = places[start:]
    if not places:
        return None
    first, last = places[0], places[-1]
    is_whole = len(parts) == 1 or not any(byte for _, byte in places[1:])  # a chunk's other lines are whole
    if is_whole and last[0] - first[0] == len(places) - 1:
        return Passage(first[0], last[0], first[1], "\n".join([lines[line] for line in places]))
    text, last, end = "", first, first
    for line in places:
        # Neither chunk has the blank lines between two chunks, or the space between two parts of a line.
        text += "\n" * (line[0] - last[0]) or " " * (line > end)
        text += lines[line]
        last, end = line, (line[0], line[1] + len(lines[line].encode(errors="replace")))
    return Passage(first[0], last[0], first[1], text)


def heading_at(view: View, chunk: StoredChunk, named: Snippet, query: Wanted) -> tuple[str, Snippet]:
    """Return the headings above the named line, and the snippet: of a heading's line if only it has words.

    A chunk of short sections has the headings of its first one. Entries of a daily file keep theirs, as they
    know none of the others'.
    """

    def has_word(text: str) -> bool:
        return bool(text and _word_marks(text, query, query.marked))

    before = chunk.text.split("\n")[: max(named.match_line - chunk.start_line + 1, 0)]
    is_of_another = any(_HEADING.match(line) for line in before[1:])
    is_by_heading = not named.weight and has_word(chunk.heading)
    if chunk.entry or not (is_of_another or is_by_heading):
        return chunk.heading, named
    trail: list[Heading] = []
    for heading in outline(view.reader.each, chunk.source).headings:
        if heading.line > named.match_line:
            break
        trail = [above for above in trail if above.level < heading.level] + [heading]
    while is_by_heading and trail and not has_word(trail[-1].title):
        trail.pop()
    if is_by_heading and trail:
        line, _, title = trail[-1]
        named = replace(named, match_line=line, match_column=1, match_text=title)
    return " > ".join(heading.title for heading in trail if heading.title), named


def in_section(chunk: StoredChunk) -> bool:
    """Return whether a chunk may begin within a section, rather than with its heading."""
    return not (chunk.heading and chunk.heading.rpartition(" > ")[2] in chunk.text.partition("\n")[0])


def with_fence(chunk: StoredChunk, before: Sequence[StoredChunk], named: Snippet) -> Snippet:
    """Return a snippet that begins with the line that opens the code it is in, so that it reads as code.

    *before*: chunks of the same source before it.
    """
    if not before and "```" not in chunk.text and "~~~" not in chunk.text:
        return named
    lines = {line: text for one in (*before, chunk) for line, text in lines_of(one).items()}
    opened = ""
    for text in (lines[place] for place in sorted(lines) if place[0] < named.start):
        if ("```" in text or "~~~" in text) and (fence := _FENCE.fullmatch(text)):
            if not opened:
                opened = fence[1] + fence[2]
            elif opened.startswith(fence[1]) and not fence[2]:
                opened = ""
    return replace(named, text=f"{opened}\n{named.text}") if opened else named


def section(view: View, chunk: StoredChunk) -> dict[Line, str]:
    """Return the lines of a chunk's section, including subsections, within AROUND chunks.

    A daily entry is a section; without a heading the section is the whole note.
    """
    ids = range(chunk.id - AROUND, chunk.id + AROUND + 1)
    # A source's chunks have consecutive ids, in the order of its lines.
    near = view.reader.chunks(ids)
    own = near[chunk.id]
    beside = {
        number
        for number, other in near.items()
        if (other.source, other.entry) == (own.source, own.entry)
        and (other.heading == own.heading or other.heading.startswith(f"{own.heading} > "))
    }
    first = last = chunk.id
    while first - 1 in beside:
        first -= 1
    while last + 1 in beside:
        last += 1
    return _shown(view, range(first, last + 1))


def around(view: View, chunk_id: int) -> list[StoredChunk]:
    """Return a chunk and those of its source that `section` may show with it."""
    found = view.reader.chunks(range(chunk_id - AROUND, chunk_id + AROUND + 1))
    return [one for one in found.values() if one.source == found[chunk_id].source]


def beginning(view: View, source: Source, most_bytes: int) -> tuple[StoredChunk | None, dict[Line, str]]:
    """Return a source's first chunk, if any, and its first lines, up to just over *most_bytes*."""
    ids: list[int] = []
    chunks = view.reader.chunks_of(source.id, FIRST_CHUNKS)
    for chunk in chunks:
        ids.append(chunk.id)
        most_bytes -= len(chunk.text.encode(errors="replace"))
        if most_bytes < 0:
            break
    return next(iter(chunks), None), _shown(view, ids)


def _shown(view: View, ids: Sequence[int]) -> dict[Line, str]:
    chunks = view.chunks(ids) if ids else {}
    return {line: text for number in ids for line, text in lines_of(chunks[number]).items()}
