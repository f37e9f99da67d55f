"""Recall: the core notes and the hits of a search as one text for a prompt, within a token budget. Pure.

The core comes first and has its own share of the budget; hits follow, best first. A hit is sent with its
whole section if that is small relative to the room left, otherwise with its neighbours, otherwise alone. A
piece that does not fit is cut at the end of a line or sentence and marked as cut. No line or near-duplicate
is sent twice.
"""

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import Literal, NamedTuple

from memd.records import Confidence, LaterStatement
from memd.search.dedup import Fingerprint, fingerprint, is_in, is_near
from memd.search.search import Hit
from memd.search.snippet import Line, Part, Passage, passage

# No tokenizer fits every model; this estimate errs little, and answers name it.
ESTIMATOR = "ceil(UTF-8 bytes / 4)"
BYTES_PER_TOKEN = 4
CORE_SHARE = 1 / 4  # of the budget: the core must leave room for the hits
# A section of up to this size, about three chunks, is sent whole if it fits; a longer section must leave as
# much room for other hits. In benchmarks.recall, 2,400 includes fewer relevant passages, 4,000 as many.
SECTION_BYTES = 3_200
SECTION_SHARE = 1 / 2  # of the room left
# A piece cut to less than about a sentence is useless. Ignored if nothing else has been sent.
MIN_CUT_BYTES = 120
TITLE_CHARS = 60  # of a note that is named

Format = Literal["markdown", "xml"]
Lines = dict[Line, str]  # of one source

# The ends of lines, and of sentences as in memd.sources.chunk.
_ENDS = re.compile(
    r"\n|[.!?\u2026][\"'\u201d\u2019)\]]*(?=\s|$)"
    r"|[\u3002\uff01\uff1f\uff1b][\u300d\u300f\u201d\u2019\uff09]*"
)
_SPACES = re.compile(r"\s")
_TICKS = re.compile(r"`{3,}")
# Characters that XML 1.0 cannot represent.
_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk that may be sent, with the text around it."""

    id: int  # of its chunk
    path: str
    about: str  # the headings above it, or the title of its source
    day: date
    origin: str  # "human" or "agent"
    score: float | None  # None: a core note
    confidence: Confidence | None  # None: a core note
    own: Lines
    beside: Lines = field(default_factory=dict)  # its own lines and those of neighbours that match, too
    section: Callable[[], Lines] = dict  # loads the lines of its section
    match_line: int = 0  # of the source; a cut piece includes it
    superseded_by: tuple[str, ...] = ()
    expired: date | None = None  # the last day on which it held, if that is past
    entries: tuple[str, ...] = ()  # of an archived conversation: the entries written from it
    external: bool = False  # derived from an external source
    later: LaterStatement | None = None  # where a later note says that something in it has changed

    @property
    def passage(self) -> Passage:
        """Its own lines as a passage."""
        found = _passage(self.own)
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Sent:
    """The part of a piece that is sent."""

    piece: Piece
    passage: Passage
    lines: Lines  # of the passage
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class NoteTitle:
    """A note that is named instead of shown."""

    title: str
    path: str
    day: date | None = None  # on which it is due
    id: int = 0  # of its chunk that was found


@dataclass(frozen=True, slots=True)
class Titles:
    """Notes that are named under a line that says why."""

    head: str
    notes: tuple[NoteTitle, ...]


@dataclass(frozen=True, slots=True)
class Recalled:
    """The text of a recall, with the pieces sent and omitted, and the notes named by title and path."""

    text: str
    tokens: int  # of the whole *text*, estimated
    sent: tuple[Sent, ...]
    omitted: tuple[tuple[Piece, str], ...]  # with the reason
    named: tuple[NoteTitle, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)  # what the folders are that the text tells of


def piece_of(hit: Hit, said: Confidence, section: Callable[[], Lines]) -> Piece:
    """Convert a hit to a piece; *said*: the hit's confidence."""
    chunk, source = hit.chunk, hit.source
    return Piece(
        id=hit.candidate.id,
        path=source.path,
        about=chunk.heading or source.title,
        day=source.day,
        origin=chunk.origin or source.origin,
        score=hit.candidate.score,
        confidence=said,
        own=hit.parts[0].lines,
        beside={line: text for part in hit.parts for line, text in part.lines.items()},
        section=section,
        match_line=hit.snippet.match_line,
        superseded_by=hit.superseded_by,
        expired=hit.expired,
        entries=hit.entries,
        external=source.external,
        later=hit.later,
    )


def recall(
    core: Sequence[Piece],
    hits: Sequence[Piece],
    budget_tokens: int,
    *,
    style: Format = "markdown",
    preface: str = "",
    left_out: Sequence[tuple[Piece, str]] = (),
    known: Mapping[str, set[Line]] = MappingProxyType({}),
    titles: Sequence[Titles] = (),
    folders: Callable[[Sequence[str]], Mapping[str, str]] = lambda _: {},
) -> Recalled:
    """Fill the budget; a piece that is too long is omitted, and shorter pieces after it are still tried.

    The budget applies to the final text, including markup, source lines and *preface*.

    Args:
        core: pieces that come first, in this order, within CORE_SHARE.
        hits: best first.
        budget_tokens: for the whole text.
        style: the format of the text.
        preface: a remark before the hits.
        left_out: pieces that must not be sent, with the reason.
        known: path → lines that the reader has already.
        titles: of notes to be named between the core and the hits.
        folders: returns what the folders of paths are, in a line each.
    """
    filling = _Filling(_FRAMES[style], budget_tokens * BYTES_PER_TOKEN, _lines={**known})
    core_bytes = int(filling.most_bytes * CORE_SHARE)
    omitted = [(piece, why) for piece in core if (why := filling.add(piece, core_bytes))]
    named = [note for one in titles for note in filling.add_titles(one)]
    filling.remark = filling.frame.remark(preface) if preface else ""
    omitted += [(piece, why) for piece in hits if (why := filling.add(piece, filling.most_bytes))]
    lines = folders([sent.piece.path for sent in filling.sent if sent.piece.path])
    told = {folder: line for folder, line in lines.items() if filling.add_line(f"{folder}/ is: {line}")}
    text = filling.text()
    return Recalled(text, count_tokens(text), tuple(filling.sent), (*omitted, *left_out), tuple(named), told)


def count_tokens(text: str) -> int:
    """Estimate the tokens of *text*, see ESTIMATOR."""
    return -(-_size(text) // BYTES_PER_TOKEN)


class PromptFormat(NamedTuple):
    """A format that joins pieces, so that a note's text cannot break out of its piece."""

    piece: Callable[[Sent], str]  # formats a piece, including its source
    remark: Callable[[str], str]  # formats a remark by memd itself
    whole: Callable[[Sequence[str]], str]  # joins the formatted parts


def _as_markdown(sent: Sent) -> str:
    """Return a heading, a source line, and a fenced block with a fence longer than any in the text."""
    piece, text = sent.piece, sent.passage.text
    fence = "`" * (max((len(run) for run in _TICKS.findall(text)), default=2) + 1)
    newer = f", superseded by {', '.join(piece.superseded_by)}" if piece.superseded_by else ""
    weak = ", weak match" if piece.confidence == "weak" else ""
    cut = ", cut" if sent.is_cut else ""
    old = f", expired (was valid until {piece.expired.isoformat()})" if piece.expired else ""
    later = f", later: {_place_of(piece.later)}" if piece.later else ""
    see = f", see {', '.join(piece.entries)}" if piece.entries else ""
    facts = f"{piece.day.isoformat()}, written by {_writer(piece)}{newer}{old}{later}{see}{weak}{cut}"
    place = f"{piece.path}:{sent.passage.start_line}-{sent.passage.end_line}"
    lines = [_line(f"Source: {place} ({facts})"), "", fence, text, fence]
    # A text that begins with a heading needs no other heading.
    return "\n".join(lines if text.startswith("#") else [f"### {_line(piece.about)}", *lines])


def _as_xml(sent: Sent) -> str:
    """Return an element with its source in attributes; text and values are escaped."""
    piece, shown = sent.piece, sent.passage
    values = {
        "path": piece.path,
        "lines": f"{shown.start_line}-{shown.end_line}",
        "date": piece.day.isoformat(),
        "origin": piece.origin,
        "about": piece.about,
        "derived_from": "external" if piece.external else "",
        "superseded_by": ", ".join(piece.superseded_by),
        "expired": piece.expired.isoformat() if piece.expired else "",
        "later": _place_of(piece.later) if piece.later else "",
        "see": ", ".join(piece.entries),
        "match": "weak" if piece.confidence == "weak" else "",
        "cut": "true" if sent.is_cut else "",
    }
    attributes = " ".join(
        f'{key}="{html.escape(_line(_xml(value)))}"' for key, value in values.items() if value
    )
    return f"<note {attributes}>\n{_content(shown.text)}\n</note>"


def _place_of(later: LaterStatement) -> str:
    return f"{later.path}:{later.line}, {later.date}"


_FRAMES: dict[Format, PromptFormat] = {
    "markdown": PromptFormat(_as_markdown, lambda text: text, "\n\n".join),
    "xml": PromptFormat(
        _as_xml,
        lambda text: f"<remark>{_content(text)}</remark>",
        lambda parts: "\n".join(["<memory>", *parts, "</memory>"]) if parts else "",
    ),
}


@dataclass(slots=True)
class _Filling:
    """The state of `recall`: the text so far."""

    frame: PromptFormat
    most_bytes: int
    sent: list[Sent] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    remark: str = ""  # added before the next piece, if one follows
    _lines: dict[str, set[Line]] = field(default_factory=dict)  # lines that the reader has, by path
    _fingerprints: dict[Passage, Fingerprint] = field(default_factory=dict)  # those computed so far

    def add_titles(self, titles: Titles) -> tuple[NoteTitle, ...]:
        """Add as many titles as fit, under their head; return their notes."""
        for most in range(len(titles.notes), 0, -1):
            if self.add_line("\n".join([titles.head, *map(_named, titles.notes[:most])])):
                return titles.notes[:most]
        return ()

    def add_line(self, text: str) -> bool:
        """Add a remark of its own if it fits; return whether it does."""
        part = self.frame.remark(text)
        if _size(self._with(part)) > self.most_bytes:
            return False
        self._parts.append(part)
        return True

    def text(self) -> str:
        """Return the whole text."""
        return self.frame.whole(self._parts)

    def add(self, piece: Piece, most_bytes: int) -> str:
        """Add the part of a piece that fits and is new; return the reason if nothing is added, or ""."""
        known = self._lines.get(piece.path, set())
        lines = {line: text for line, text in piece.own.items() if line not in known}
        own = _passage(lines)
        if own is None:
            return "its lines are sent with another hit, or known"
        # With the first character of the text, which decides whether the markup adds a heading.
        framed = self.frame.piece(Sent(piece, replace(own, text=own.text[:1]), {}))
        room = most_bytes - _size(self._with(framed)) + _size(own.text[:1])
        # Typically ten of fifty hits fit: load nothing for the rest.
        if self.sent and room < min(MIN_CUT_BYTES, _size(own.text)):
            return self._too_long(piece, own, most_bytes)
        if like := next((before for before in self.sent if self._is_like(piece, before)), None):
            return f"nearly the same as {like.piece.path}:{like.passage.start_line}-{like.passage.end_line}"
        if any(self._put(sent, most_bytes) for sent in self._forms(piece, lines, room, most_bytes)):
            return ""
        return self._too_long(piece, own, most_bytes)

    def _too_long(self, piece: Piece, own: Passage, most_bytes: int) -> str:
        before = _size(self._with())
        needed = _size(self._with(self.frame.piece(Sent(piece, own, {})))) - before
        left = max(most_bytes - before, 0) // BYTES_PER_TOKEN
        return f"over budget: {-(-needed // BYTES_PER_TOKEN)} tokens, {left} left"

    def _is_like(self, piece: Piece, before: Sent) -> bool:
        """Return whether a piece is a near-duplicate of a sent piece, or is contained in a sent core note.

        The search has already compared hits of different sources.
        """
        if before.piece.score is None:
            return is_in(self._fingerprint(piece.passage), self._fingerprint(before.passage))
        same_source = piece.path == before.piece.path
        return same_source and is_near(
            self._fingerprint(piece.passage), self._fingerprint(before.piece.passage)
        )

    def _fingerprint(self, shown: Passage) -> Fingerprint:
        if shown not in self._fingerprints:
            self._fingerprints[shown] = fingerprint(shown.text)
        return self._fingerprints[shown]

    def _forms(self, piece: Piece, own: Lines, room: int, most_bytes: int) -> Iterator[Sent]:
        """Yield the possible forms of a piece, longest first; context is added only if all of it is new."""
        known = self._lines.get(piece.path, set())
        most = max(room * SECTION_SHARE, SECTION_BYTES)
        whole = _passage(own)
        if whole is None:
            return
        # If the piece alone does not fit, load no context.
        for lines in (piece.section(), piece.beside, own) if _size(whole.text) <= room else ():
            shown = _passage(lines)
            if shown is None or not known.isdisjoint(lines):
                continue
            if lines is own or lines is piece.beside or _size(shown.text) <= most:
                yield Sent(piece, shown, lines)
        cut = self._cut(piece, whole, most_bytes)
        if cut is not None:
            yield Sent(piece, cut, _lines(cut), is_cut=True)

    def _put(self, sent: Sent, most_bytes: int) -> bool:
        part = self.frame.piece(sent)
        if _size(self._with(part)) > most_bytes:
            return False
        self._parts += [self.remark, part] if self.remark else [part]
        self.remark = ""
        self.sent.append(sent)
        self._lines.setdefault(sent.piece.path, set()).update(sent.lines)
        return True

    def _cut(self, piece: Piece, own: Passage, most_bytes: int) -> Passage | None:
        """Return the part of a passage that fits: its beginning, or the lines around the matching line."""
        shown = self._beginning(piece, own, most_bytes)
        if shown is not None and not shown.end_line < piece.match_line <= own.end_line:
            return shown
        behind = self._beginning(piece, _from_line(own, piece.match_line), most_bytes)
        if behind is None or behind.end_line < own.end_line:
            return behind or shown
        # The rest fits: add as many earlier lines as fit.
        starts = range(own.start_line, piece.match_line + 1)
        first = bisect_left(
            starts, 0, key=lambda line: self._fits(piece, _from_line(own, line), most_bytes) - 1
        )
        return _from_line(own, starts[first]) if first < len(starts) else behind

    def _beginning(self, piece: Piece, whole: Passage, most_bytes: int) -> Passage | None:
        """Return the longest beginning of a passage that fits: whole sentences, if these are long enough."""
        for pattern in (_ENDS, _SPACES):
            ends = [match.end() for match in pattern.finditer(whole.text)]
            number = bisect_right(
                ends, 0, key=lambda end: 1 - self._fits(piece, _cut_at(whole, end), most_bytes)
            )
            shown = _cut_at(whole, ends[number - 1]) if number else None
            if shown is not None and shown.text and (not self.sent or _size(shown.text) >= MIN_CUT_BYTES):
                return shown
        return None

    def _fits(self, piece: Piece, shown: Passage, most_bytes: int) -> bool:
        return _size(self._with(self.frame.piece(Sent(piece, shown, {}, is_cut=True)))) <= most_bytes

    def _with(self, *parts: str) -> str:
        return self.frame.whole([*self._parts, *filter(None, [self.remark]), *parts])


def _named(note: NoteTitle) -> str:
    """Return the line of a note that is named, about 15 tokens."""
    title = _line(note.title)
    if len(title) > TITLE_CHARS:
        title = f"{title[: TITLE_CHARS - 1].rstrip()}\u2026"
    return f"- {f'{note.day}: ' if note.day else ''}{title} \u2014 {_line(note.path)}"


def _cut_at(whole: Passage, end: int) -> Passage:
    text = whole.text[:end].rstrip()
    return replace(whole, text=text, end_line=whole.start_line + text.count("\n"))


def _from_line(whole: Passage, line: int) -> Passage:
    if line <= whole.start_line:
        return whole
    return Passage(line, whole.end_line, 0, whole.text.split("\n", line - whole.start_line)[-1])


def _passage(lines: Lines) -> Passage | None:
    return passage([Part(0, lines)])


def _lines(shown: Passage) -> Lines:
    return {
        (shown.start_line + number, 0 if number else shown.start_byte): text
        for number, text in enumerate(shown.text.split("\n"))
        if text.strip()
    }


def _writer(one: Piece) -> str:
    return f"{'an agent' if one.origin == 'agent' else 'a person'}{' from an external source' * one.external}"


def _line(text: str) -> str:
    return _CONTROL.sub(" ", text)


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _content(text: str) -> str:
    """Escape a text as XML content; carriage returns, too, which an XML parser would turn into line feeds."""
    return html.escape(_xml(text), quote=False).replace("\r", "&#13;")


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
