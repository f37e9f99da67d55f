"""The rows that the index keeps of a source, derived from its text: chunks, hashes, signatures, links.

The signatures of two chunks tell that their texts are equal, or that they are no near-duplicates. A
signature is a hash of the text, one of its numbers, how many word triples it has at most, and a bitmap of
some of them. Nothing is estimated. A bit that only one of two bitmaps has means a triple that only one of
the two texts has, and of such near-duplicates have few. Texts that have nothing to do with each other differ
in a hundred bits. What this leaves open the texts decide.

Pure: no file, no clock, no database, no numpy; it runs in any thread or process. Indexing stores what these
functions return, and the check derives it again.
"""

import hashlib
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import filterfalse
from pathlib import PurePosixPath
from zlib import crc32

from memd import daily
from memd.index.links import Name, names_of
from memd.records import Chunk, ChunkLimits, DayOf, Document, FileStamp, Link, SourceText, Tokenizer
from memd.sources.privacy import is_private
from memd.text import (
    fold,
    is_spaceless,
    normalized,
    paired,
    pairs_of,
    pieces_of,
    scripts_of,
    searched_text,
    trigrams,
)

NAME_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)")
# Chunks of one source that get a vector; words alone find the others. 1,500 are 1.4 MB of prose,
# 225,000 words, more than a page of an archive has (1 MiB), and a minute of the shipped model at most. 4 MiB
# that are made to be slow are 8,000 to 29,000 chunks: 5 to 18 minutes of processor time at each save.
EMBEDDED_CHUNKS = 1_500
LONG_NOTE = "long-note"  # begins the warning
_ARCHIVES = "memory/archives/"  # conversations that were imported

SHINGLE = 3  # words; as usual for near-duplicate detection (Broder 1997 uses 4 to 10 on whole pages)
MIN_JACCARD = 0.8  # of the triples; of 200 words, seven may differ
# Of the triples of two near-duplicates together, as many at most does only one of them have. With s in common
# of a and b, J = s / (a + b - s), and only one has a + b - 2 s.
MOST_DIFFERING = (1 - MIN_JACCARD) / (1 + MIN_JACCARD)
BITS = 256  # of a bitmap; those of 200 words set a third of them
# Hash of the text, hash of its numbers, triples at most, bitmap: in all a thirtieth of an average text.
FORM = struct.Struct(f"<8sII{BITS // 8}s")
KNOWN_WORDS = 100_000  # whose hashes are kept, about 10 MB


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk on its way into the store."""

    start_line: int
    end_line: int
    start_byte: int
    heading: str
    text: str
    context: str
    hash: bytes
    scripts: tuple[str, ...]  # that it is written in
    signature: bytes
    words: str  # prepared for the words table
    trigrams: str  # prepared for the trigram table
    beyond: bool  # the first EMBEDDED_CHUNKS of its source: it gets no vector
    entry: str = ""  # this and the next as in a chunk
    origin: str = ""


@dataclass(frozen=True, slots=True)
class NewSource:
    """A source on its way into the store."""

    path: str
    stamp: FileStamp
    hash: bytes
    title: str
    tags: tuple[str, ...]
    day: date
    day_of: DayOf
    origin: str
    front_matter: Mapping[str, object]
    warnings: tuple[str, ...]
    private: bool  # no agent may have it
    chunks: tuple[NewChunk, ...]
    names: tuple[Name, ...]  # by which links call it
    links: tuple[Link, ...]


def prepare(
    source: SourceText, stamp: FileStamp, *, tokenizer: Tokenizer, limits: ChunkLimits, plain: bool = False
) -> NewSource:
    """Cut a source into chunks and derive what the tables need.

    Args:
        source: as it was read.
        stamp: that it is kept under.
        tokenizer: of the model that reads the chunks.
        limits: of a chunk.
        plain: take neither Markdown nor front matter for what they are.
    """
    # Markdown and YAML: a start with nothing new to index answers without them.
    from memd.sources.chunk import parse  # noqa: PLC0415
    from memd.sources.daily import parse_daily  # noqa: PLC0415

    cut = parse_daily if daily.PATH.fullmatch(source.path) else parse
    document = cut(source.text, tokenizer=tokenizer, limits=limits, plain=plain)
    name = PurePosixPath(source.path).stem
    day, day_of = _day_of(document, source)
    return NewSource(
        path=source.path,
        stamp=stamp,
        hash=source.hash,
        title=document.title or name,
        tags=document.tags,
        day=day,
        day_of=day_of,
        origin=_origin(document),
        front_matter=document.front_matter,
        warnings=document.warnings + _length_warning(document.chunks),
        private=is_private(source.text),
        chunks=tuple(
            _prepared_chunk(chunk, source.path, number) for number, chunk in enumerate(document.chunks)
        ),
        names=names_of(source.path, document.aliases, document.entry_id),
        links=document.links,
    )


def is_beyond(number: int) -> bool:
    """Tell whether the chunk of this number in its source, from 0, is one too many to get a vector."""
    return number >= EMBEDDED_CHUNKS


def shown_warning(warnings: Sequence[str]) -> str:
    """Return what `status` shows of a source's warnings: the first one, and that it is long."""
    first, *others = map(str, warnings)
    return "; ".join([first, *(text for text in others if text.startswith(LONG_NOTE))])


def read_by_model(context: str, text: str) -> str:
    """Return what the model reads of a chunk."""
    return normalized("NFC", context + text).replace("\r\n", "\n")


def hash_of(read: str) -> bytes:
    """Return what names a text's vector."""
    return hashlib.blake2b(read.encode(), digest_size=16).digest()


def searchable(read: str, path: str, *, first: bool) -> str:
    """Return what is searched of a chunk that is read so.

    The name of a source is a keyword of its *first* chunk, not a meaning.
    """
    name = PurePosixPath(path).stem
    return searched_text(f"{name}\n{read}" if first and name else read)


def full_texts(read: str, path: str, *, first: bool) -> tuple[str, str]:
    """Return what the words and the trigrams table index of it."""
    text = searchable(read, path, first=first)
    return paired(text), " ".join(trigrams(text))


def compared_words(text: str) -> tuple[list[str], frozenset[str]]:
    """Return the words that are compared of a text, and those with a digit.

    In spaceless scripts a pair of characters is a word.
    """
    pieces = pieces_of(fold(text))
    numbers = frozenset(one for one in filterfalse(str.isalpha, pieces) if any(map(str.isdigit, one)))
    if text.isascii():
        return pieces, numbers
    split = [
        word
        for piece in pieces
        for word in ((pairs_of(piece) or [piece]) if is_spaceless(piece) else [piece])
    ]
    return split, numbers


def signature(heading: str, text: str) -> bytes:
    """Return the signature of a chunk."""
    whole = f"{heading}\n{text}"
    found, numbers = compared_words(whole)
    return FORM.pack(
        hashlib.blake2b(whole.encode(errors="surrogatepass"), digest_size=8).digest(),
        crc32(" ".join(sorted(numbers)).encode()),
        max(len(found) - SHINGLE + 1, 1) if found else 0,
        _bitmap(found),
    )


def _length_warning(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    if len(chunks) <= EMBEDDED_CHUNKS:
        return ()
    start_line = chunks[EMBEDDED_CHUNKS].start_line
    beyond = f"from line {start_line} on, beyond its first {EMBEDDED_CHUNKS:,} parts"
    return (f"{LONG_NOTE}: {beyond}, it is found by words alone",)


def _prepared_chunk(chunk: Chunk, path: str, number: int) -> NewChunk:
    """Derive what the tables need."""
    read = chunk.embed_text
    words, trigrams = full_texts(read, path, first=number == 0)
    return NewChunk(
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        start_byte=chunk.start_byte,
        heading=chunk.heading,
        text=chunk.text,
        context=chunk.context,
        hash=hash_of(read),
        scripts=scripts_of(read),
        signature=signature(chunk.heading, chunk.text),
        words=words,
        trigrams=trigrams,
        beyond=is_beyond(number),
        entry=chunk.entry,
        origin=chunk.origin,
    )


def _day_of(document: Document, source: SourceText) -> tuple[date, DayOf]:
    """Return the day that the name begins with, else that of front matter, else that of the last change."""
    named = NAME_DAY.match(PurePosixPath(source.path).stem)
    day = _iso_day(named[1]) if named else None
    if day is not None:
        # What was said was not said later than it was written down: a wrong clock would keep it young for
        # ever. A diary may be written ahead. One day more, for clocks and zones.
        is_record = source.path.startswith(_ARCHIVES)
        latest = _calendar_day(source.stamp.ctime_ns).toordinal() + 1
        return date.fromordinal(min(day.toordinal(), latest)) if is_record else day, "name"
    keys: tuple[DayOf, ...] = ("updated", "created")
    for key in keys:
        day = _iso_day(str(document.front_matter.get(key, ""))[:10])
        if day is not None:
            return day, key
    return _calendar_day(source.stamp.mtime_ns), "changed"


def _calendar_day(time_ns: int) -> date:
    """Return the day of a time on this machine's calendar."""
    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).astimezone().date()
    except (OverflowError, ValueError, OSError):  # some file systems take any number
        return date.max


def _iso_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _origin(document: Document) -> str:
    source = document.front_matter.get("source")
    return "agent" if isinstance(source, dict) and source.get("origin") == "agent" else "human"


def _bitmap(found: Sequence[str]) -> bytes:
    """Return the bits of the triples whose first word has an odd hash: a half tells as much, made sooner."""
    if len(_HASHES) > KNOWN_WORDS:
        _HASHES.clear()
    hashes = list(map(_HASHES.__getitem__, found))
    bits = 0
    for first, second, third in zip(hashes, hashes[1:], hashes[2:], strict=False):
        if first & 1:
            bits |= 1 << ((first + 3 * second + 5 * third) >> 7) % BITS
    return bits.to_bytes(BITS // 8, "little")


class _Hashes(dict[str, int]):
    """The hash of each word that was met."""

    def __missing__(self, word: str) -> int:
        self[word] = found = crc32(word.encode())
        return found


_HASHES = _Hashes()
