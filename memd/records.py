"""The records that packages exchange: sources, chunks, file stamps, limits.

Frozen records only: no I/O, no clock, no defaults that hide a decision.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, NamedTuple, Protocol

from msgspec import UNSET, Struct, UnsetType

from memd.text import normalized

NOT_UTF8 = "not UTF-8"  # begins the warning about a text in which bytes were replaced


class FileStamp(NamedTuple):
    """The fields of lstat that show a change; equal stamps of an old file mean "unchanged".

    A tuple, for speed: a scan makes and compares two for each file.
    """

    mtime_ns: int
    ctime_ns: int
    size_bytes: int
    inode: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source as read: decoded, without BOM, with the line ends of the file."""

    path: str  # relative to the workspace, "/" on every platform
    stamp: FileStamp
    text: str
    hash: bytes  # blake2b-128 of the file's bytes
    settled: bool  # False: it changed during the read, or less than 100 ms before
    warnings: tuple[str, ...] = ()  # about bytes that are not UTF-8


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that matches the patterns of sources but cannot be indexed."""

    path: str
    reason: str  # one of memd.sources.scan.REASONS
    detail: str = ""  # of failed: the step and the kind of exception, without its text
    stamp: FileStamp | None = field(default=None, compare=False)  # of a file whose bytes are no text


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The limits of a chunk's length."""

    words: int  # the target
    overlap_words: int  # repeated from the end of the previous chunk
    max_tokens: int  # word pieces that the model reads, without special tokens


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of one source."""

    start_line: int  # 1-based, inclusive, of the file
    end_line: int
    heading: str  # the headings above it and its own, outermost first, joined by " > "; "" without
    text: str  # contiguous text of those lines; only the last or the only line may be cut
    start_byte: int  # offset of the text in its first line; not 0 only in a line too long for one chunk
    # Precedes the text in the model's input: title, aliases, tags, headings that the text lacks, the words
    # before a cut inside a line.
    context: str
    entry: str = ""  # id of its daily entry; "" if it is from none
    origin: str = ""  # who wrote that entry, "human" or "agent"; "" for that of the source
    assistant: float = 0.0  # share of its lines that an assistant said, on a page of a conversation

    @property
    def embed_text(self) -> str:
        """The model's input."""
        return normalized("NFC", self.context + self.text).replace("\r\n", "\n")


# How a link is written: [[in the text]], as Markdown's link or image, or under a key of the front matter. The
# definition of a Markdown reference is none, and not stored.
LinkKind = Literal["text", "markdown", "image", "related", "supersedes", "definition"]
# Why a link leads to no note, or may lead to another one. "outside": of the workspace; "file": to what is no
# note; "part": to a note without that heading.
Why = Literal["", "missing", "ambiguous", "outside", "file", "part"]


class Link(NamedTuple):
    """A link from one note to another."""

    kind: LinkKind
    target: str  # the other's path, name, alias or id, as written; without the link's alias and heading
    line: int | None  # 1-based; None in front matter
    column: int = 0  # 1-based, in characters; 0 in front matter
    part: str = ""  # the heading or block that it names


class Heading(NamedTuple):
    """A heading of a note."""

    line: int  # 1-based
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed source."""

    title: str  # front matter, else the first heading of level 1, else ""
    tags: tuple[str, ...]  # of the front matter, then the inline tags of the text
    front_matter: dict[str, object]  # every key as text, lists and maps of text; {} without front matter
    chunks: tuple[Chunk, ...]
    warnings: tuple[str, ...] = field(default=())
    # Other names of the note: aliases and title in its front matter.
    aliases: tuple[str, ...] = field(default=())
    entry_id: str = ""  # of the front matter
    links: tuple[Link, ...] = field(default=())
    headings: tuple[Heading, ...] = field(default=())


def origin_of(front_matter: Mapping[str, object]) -> Literal["human", "agent"]:
    """Return who wrote a note, by its front matter."""
    source = front_matter.get("source")
    return "agent" if isinstance(source, dict) and source.get("origin") == "agent" else "human"


class Tokenizer(Protocol):
    """The model's division of a text into word pieces."""

    @property
    def parts_at_spaces(self) -> bool:
        """Whether no piece extends over an ASCII space or line break, so that counts can be added there."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return [start, end) character offsets of each word piece, special tokens excluded."""

    def count(self, text: str) -> int:
        """Return the number of word pieces of *text*, special tokens excluded."""


# Above this score, cosines are compressed so that equal vectors, and no others, have a score of 1.
KNEE = 0.8
# Of the shipped model on memd/embedding/cosine_pairs.json: the mean cosine of a question and the note of
# another question, and of a question and its own note.
RANDOM_MEAN = 0.0433
PAIR_MEAN = 0.3846


@dataclass(frozen=True, slots=True)
class CosineScale:
    """How the cosines of a model become scores that mean the same with every model.

    All thresholds are stated for the shipped model, whose cosines are scores already.
    """

    zero: float  # the cosine that has the score 0
    scale: float
    random_sd: float  # standard deviation of the scores of random pairs; 0 until the model is measured

    @property
    def is_measured(self) -> bool:
        """Whether the scores of this model are known to mean the same as those of the shipped one."""
        return self.random_sd > 0

    @property
    def bend(self) -> float:
        """The slope above KNEE, relative to the slope below."""
        highest = (1 - self.zero) * self.scale
        return (1 - KNEE) / (highest - KNEE) if highest > 1 else 1.0

    def score(self, cosine: float) -> float:
        """Return the score of a cosine."""
        linear = (cosine - self.zero) * self.scale
        return min(linear, KNEE + (linear - KNEE) * self.bend)

    def cosine(self, score: float) -> float:
        """Return the cosine that has a score."""
        linear = score if score <= KNEE else KNEE + (score - KNEE) / self.bend
        return self.zero + linear / self.scale

    def near(self, threshold: float) -> float:
        """Return the score that is as far above random pairs as *threshold* is with the shipped model."""
        if not self.is_measured:
            return threshold
        return threshold + (threshold - RANDOM_MEAN) * (self.random_sd / SHIPPED_COSINES.random_sd - 1)


SHIPPED_COSINES = CosineScale(0.0, 1.0, 0.0786)
UNMEASURED = CosineScale(0.0, 1.0, 0.0)


Mode = Literal["hybrid", "keyword", "vector"]  # the arms of a search that answer
PER_SOURCE = 3  # hits of one source in an answer; a long file must not fill it
Confidence = Literal["strong", "weak", "none"]  # how good the best match is, see memd.search.ranking
Action = Literal["write", "revise", "supersede", "forget", "unindex"]  # on an entry
# The origin of a source's date: its name, a key of its front matter, or the file's modification time.
DayOf = Literal["name", "date", "day", "created", "published", "updated", "lastmod", "changed"]


class Location(Struct, frozen=True, kw_only=True):
    """A range of lines of a source."""

    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive
    end_line: int


class LaterStatement(Struct, frozen=True, kw_only=True):
    """The line of a later note that says that something in a hit has changed."""

    path: str
    line: int  # 1-based
    date: str  # YYYY-MM-DD, of that note


class JournalLine(Struct, frozen=True, kw_only=True):
    """One action on an entry."""

    time: str  # ISO 8601 with milliseconds and offset
    action: Action
    id: str  # of the entry, random; "" for a file that is not an entry
    hash: str  # of the file after the action, or before its deletion; "" if unknown
    origin: str  # "human" or "agent", as the request stated
    client: str
    conversation: str


State = Literal["starting", "scanning", "busy", "ready", "missing"]  # of a workspace
Renewal = Literal["", "updated", "damaged"]  # why an incomplete index is being rebuilt
SandboxLimit = Literal["privileges", "files", "sockets", "calls"]  # that a process has put on itself


class LeftSeconds(Struct, frozen=True, kw_only=True):
    """The estimated time for pending work."""

    words: float | None  # null: not known yet
    vectors: float | None


class IndexState(Struct, frozen=True, kw_only=True):
    """The freshness of an answer."""

    state: State
    first: bool  # the first indexing is not complete
    renewed: Renewal  # why the index is built again: memd was updated, or the old index was damaged
    first_words: bool  # the first indexing of words is not complete
    pending: int  # files and vectors that are not searchable yet
    pending_files: int
    pending_vectors: int
    generation: int  # counts commits; for an agent, up to the last one that it can see
    lag_ms: int  # age of the oldest change that is not searchable yet
    embedded: float | None  # share of the chunks readable by the model with a vector; null without one
    left_s: LeftSeconds


class ProbeOutcome(Struct, frozen=True, kw_only=True):
    """The result of the last `health` or `check`."""

    ok: bool
    detail: str
    at: float  # unix seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The state of an index before a request: an answer never claims more than its view contains."""

    index: IndexState
    failing: bool  # embedding fails at present
    held: bool  # chunks wait for vectors because embedding is paused
    not_utf8: tuple[str, ...]  # the first sources that would be notes in another encoding
    synced: bool | UnsetType = UNSET  # whether earlier saves are searchable; UNSET: nobody waited for them


class Source(NamedTuple):
    """One indexed file as stored in the index.

    A tuple, for speed: a start makes one for each file.
    """

    id: int
    path: str
    title: str
    tags: tuple[str, ...]
    day: date  # from its name, else its front matter, else its mtime
    day_of: DayOf
    origin: str  # "human" or "agent"
    valid_until: date | None = None  # the last day on which it holds; None: no end
    evergreen: bool = False  # its front matter says that its score does not decay
    external: bool = False  # derived from an external source, as the web

    @property
    def dated(self) -> bool:
        """Whether its name has its day, and it is not evergreen; `memd.diaries` says which of these decay."""
        return self.day_of == "name" and not self.evergreen

    def expired(self, today: date) -> date | None:
        """Return the last day on which it held, if that day is past; None while it holds."""
        return self.valid_until if self.valid_until is not None and self.valid_until < today else None
