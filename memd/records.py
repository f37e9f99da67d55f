"""The records that packages exchange: sources, chunks, file stamps, limits.

Frozen records and nothing else: no I/O, no clock, no defaults that hide a decision.
"""

from dataclasses import dataclass, field
from datetime import date
from typing import Literal, NamedTuple, Protocol

from memd.text import normalized


class FileStamp(NamedTuple):
    """What lstat says of a file; equal stamps of an old file mean "unchanged".

    A tuple: a scan makes two of them for each file there is, and compares them.
    """

    mtime_ns: int
    ctime_ns: int
    size_bytes: int
    inode: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source as it was read: decoded, without its BOM, line ends as in the file."""

    path: str  # relative to the workspace, "/" on every platform
    stamp: FileStamp
    text: str
    hash: bytes  # blake2b-128 of the file's bytes
    settled: bool  # False: it changed while it was read, or less than 100 ms before


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that the patterns select and that is not indexed."""

    path: str
    reason: str  # one of memd.sources.scan.REASONS


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """How long a chunk may be."""

    words: int  # about as many in a chunk
    overlap_words: int  # repeated from the end of the one before
    max_tokens: int  # word pieces the model reads, its special tokens not counted


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of one source."""

    start_line: int  # 1-based, inclusive, of the file
    end_line: int
    heading: str  # the headings above and of it, outermost first, joined by " > "; "" without
    text: str  # a contiguous stretch of those lines; only the last one may be cut, or the only one
    start_byte: int  # of the first line, that the text begins at: not 0 only in a line too long for one chunk
    context: str  # what the model reads in front of it: title, aliases, tags, headings the text does not show
    entry: str = ""  # id of the daily entry that it is from; "" where it is from none
    origin: str = ""  # who wrote that entry, "human" or "agent"; "" where its source says so

    @property
    def embed_text(self) -> str:
        """What the model reads."""
        return normalized("NFC", self.context + self.text).replace("\r\n", "\n")


# Where a link stands: in the text, or under a key of the front matter.
LinkKind = Literal["text", "related", "supersedes"]


class Link(NamedTuple):
    """What a note says of another one."""

    kind: LinkKind
    target: (
        str  # the other's path, name, alias or id, as it is written; without alias and heading of the link
    )
    line: int | None  # 1-based; None where it stands in the front matter


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed source."""

    title: str  # front matter, else the first heading of level 1, else ""
    tags: tuple[str, ...]  # of the front matter, then those that stand in the text
    front_matter: dict[str, object]  # every key as text, lists and maps of text; {} without
    chunks: tuple[Chunk, ...]
    warnings: tuple[str, ...] = field(default=())
    aliases: tuple[str, ...] = field(
        default=()
    )  # other names of the note: what its front matter says is one, and its title there
    entry_id: str = ""  # of the front matter
    links: tuple[Link, ...] = field(default=())  # each target once a kind


class Tokenizer(Protocol):
    """How the model cuts a text into word pieces."""

    @property
    def parts_at_spaces(self) -> bool:
        """Whether no piece depends on what is behind an ASCII space or line break: counts add up there."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return [start, end) character offsets of each word piece, special tokens excluded."""

    def count(self, text: str) -> int:
        """Return how many word pieces *text* has, special tokens excluded."""


Mode = Literal["hybrid", "keyword", "vector"]  # the arms of a search that answer
PER_SOURCE = 3  # hits of one source in an answer; a long file must not fill it
Confidence = Literal["strong", "weak", "none"]  # how good the best match is, see memd.search.ranking
Action = Literal["write", "revise", "supersede", "forget", "unindex"]  # what was done with an entry
# Where a source's day is from: its name, a key of its front matter, or the file's last change.
DayOf = Literal["name", "updated", "created", "changed"]


@dataclass(frozen=True, slots=True)
class Source:
    """One indexed file as the store knows it."""

    id: int
    path: str
    title: str
    tags: tuple[str, ...]
    day: date  # from its name, else front matter's updated or created, else its mtime
    day_of: DayOf
    origin: str  # "human" or "agent"

    @property
    def dated(self) -> bool:
        """Whether its name starts with the day: then it decays."""
        return self.day_of == "name"
