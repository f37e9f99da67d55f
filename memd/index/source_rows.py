"""The database rows of a source, derived from its text: chunks, hashes, signatures, links.

Signatures show that the texts of two chunks are equal, or that they cannot be near-duplicates. A signature
has a hash of the text, a hash of its numbers, the maximum number of its word triples, and a bitmap of some of
them. This is exact, not an estimate: a bit in only one of two bitmaps means a triple in only one of the
texts, and near-duplicates have few of these, while unrelated texts differ in about a hundred bits. If
signatures do not decide, the texts are compared.

Pure functions, without files, clock, database or numpy, for any thread or process. Indexing stores their
results, and the check derives these again.
"""

import hashlib
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import filterfalse
from pathlib import PurePosixPath
from typing import Final
from zlib import crc32

from memd import daily
from memd.entries.secrets import mask
from memd.grouped_numbers import numbers_in
from memd.index.links import Name, names_of
from memd.index.secret_words import masked_document
from memd.named_days import Time, day_within, leading_time
from memd.records import (
    Chunk,
    ChunkLimits,
    DayOf,
    Document,
    FileStamp,
    Heading,
    Link,
    Source,
    SourceText,
    Tokenizer,
    origin_of,
)
from memd.sources.privacy import is_private
from memd.text import (
    SPACELESS,
    caseless,
    fold,
    humps_of,
    hyphenated_in,
    is_spaceless,
    normalized,
    paired,
    pairs_of,
    pieces_of,
    scripts_of,
    searched_text,
    trigrams,
)

# As Obsidian, Logseq and Dendron write it in a name; or without signs, perhaps with the time of a note of a
# Zettelkasten behind it.
NAME_DAY = re.compile(
    r"(?:daily\.journal\.)?(\d{4})([-_. ]|(?<=19\d\d)|(?<=20\d\d))(\d{2})\2(\d{2})"
    r"(?:(?<=\d{8})\d{4}(?:\d{2})?)?(?!\d)"
)
# A day in front matter, perhaps of a link; or Dendron's milliseconds, other programs' seconds.
# `leading_time` reads days in words, weeks, months and quarters.
_WRITTEN_DAY = re.compile(
    r"[\[\"' ]*(\d{4})(?:([-/_.])|[\u5e74\ub144] ?)(\d{1,2})(?(2)\2|[\u6708\uc6d4] ?)(\d{1,2})(?!\d)"
)
_EPOCH = re.compile(r"(\d{10})(?:\d{3})?")
# In this order, as an edit makes no note of yesterday one of today; but an entry is of the day of its text.
DAY_KEYS: tuple[DayOf, ...] = ("date", "day", "created", "published", "updated", "lastmod")
ENTRY_DAY_KEYS: tuple[DayOf, ...] = ("updated", "created")
# As plugins of editors and other programs call them, without the signs between their words.
_DAYS_ALSO = {
    "created": ("datecreated", "createdat", "createdon"),
    "updated": ("modified", "datemodified", "updatedat", "lastmodified", "lastmodifiedat"),
}
# Of the last day on which a note holds.
_LAST_DAYS = ("validuntil", "validto", "validthrough", "expires", "expireson", "expiry", "expirydate")
_OLDEST_NS = -(1 << 31) * 10**9  # in 1901; ext4 and XFS have none before
NO_FRONT = "{}"
AGENTS, PEOPLE = 1, 2  # values of chunks.hidden_from
_OF_ENTRIES = frozenset({"source", "sha256"})  # keys whose values nobody searches for
# What a reader does not see, each within a line: the target of a link or of one with a label, a footnote,
# a reference ("grid[row][col]" has none), how a character is read, a tag of HTML.
_LINK = re.compile(
    r"\]\((?P<target>[^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)"
    r"|\[\[(?P<note>[^\[\]\n|]+)\|(?P<label>[^\[\]\n]*)\]\]"
    r"|\[\^(?P<footnote>[^\]\s]{1,80})\](?!:)"
    r"|(?<![\w\]])\[(?P<words>[^\[\]\n]{1,200})\]\[(?P<reference>[^\[\]\n]{0,100})\]"
    r"|<(?:rp>[^<\n]{0,9}(?:</rp>)?<)?rt>(?P<reading>[^<\n]{0,100})(?:</rt>)?(?:<rp>[^<\n]{0,9}(?:</rp>)?)?"
    r"|</?(?:ruby|rb)>"
    r"|</?(?P<tag>(?:b|br|del|em|i|ins|mark|small|span|strong|sub|sup|u)\b[^<>\n]{0,200})>"
)
_UNSEEN = ("target", "note", "footnote", "reference", "reading", "tag")
# Within a word: un**believ**able, foo<wbr>bar, H<sub>2</sub>O. It is found in parts, and whole.
_IN_WORD = r"(?:\*{1,3}|==|~~|&shy;|</?(?:b|em|i|mark|strong|sub|sup|u|wbr) ?/?>)"
_MAY_BE_IN_WORD = re.compile(rf"{_IN_WORD}(?=[^\W_])")  # a tenth of the time
_WORD_IN_PARTS = re.compile(rf"(?<![^\W_])[^\W_]+(?:{_IN_WORD}[^\W_]+)+")
_EMPHASIS = re.compile(f"(?<=[{SPACELESS}])[*_~=`\\[\\]]{{1,8}}(?=[{SPACELESS}])")
# Chunks of one source that get a vector; the others are found by keywords only. 1,500 chunks are 1.4 MB of
# prose, 225,000 words: more than a page of an archive (1 MiB), and at most a minute with the shipped model.
# 4 MiB of adversarial text have 8,000 to 29,000 chunks: 5 to 18 minutes of processor time per save.
EMBEDDED_CHUNKS = 1_500
LONG_NOTE = "long-note"  # prefix of the warning
OWN = "memory/"
ARCHIVES = "memory/archives/"  # imported conversations
_JOINED_BY = re.compile(r"[-_.\s]+")
_IS_WORD = re.compile(r"[^\W\d_]{2,}|[^\W\d_\x00-\x7f]")  # letters; of Han one is a word
_CREATED = re.compile(r"^created: '?(\d{4}-\d\d-\d\d)", re.MULTILINE)  # in the front matter of a page

# First headings that tell less than the name of their file.
_SAY_NOTHING = frozenset({
    "note", "notes", "summary", "overview", "introduction", "intro", "contents", "table of contents",
    "untitled", "title", "notiz", "notizen", "zusammenfassung", "überblick", "übersicht", "einleitung",
    "inhalt", "résumé", "sommaire", "resumen", "notas", "introducción", "riassunto", "samenvatting",
})  # fmt: skip
_TRUE = frozenset({"true", "yes", "on"})  # of YAML 1.1; scalars of front matter are text
EXTERNAL: Final = "external"  # value of `derived_from`
SESSION = "source.session"  # the field that names the conversation of an entry or of an archived page
# Arbitrary limits: a filter compares short values, and a note may be hostile.
MAX_FIELDS = 200  # of a source
MAX_FIELD_CHARS = 200  # of a key or value; a longer one is cut
MAX_DEPTH = 4  # of maps in each other

SHINGLE = 3  # words; as usual for near-duplicate detection (Broder 1997 uses 4 to 10 on whole pages)
MIN_JACCARD = 0.8  # of the triples; of 200 words, seven may differ
# The largest share of the triples of two near-duplicates, taken together, that only one of them has. With s
# common triples of a and b, J = s / (a + b - s), and a + b - 2 s are in only one.
MOST_DIFFERING = (1 - MIN_JACCARD) / (1 + MIN_JACCARD) + 1e-9  # rounded up: of 9 triples, 1 may differ
BITS = 256  # per bitmap; 200 words set a third of them
# Hash of the text, hash of its numbers, maximum number of triples, bitmap: a thirtieth of an average text.
FORM = struct.Struct(f"<8sII{BITS // 8}s")


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to be stored."""

    chunk: Chunk
    hash: bytes
    scripts: tuple[str, ...]  # scripts of its text
    signature: bytes
    words: str  # prepared for the words table
    trigrams: str  # prepared for the trigram table
    beyond: bool  # beyond the first EMBEDDED_CHUNKS of its source: no vector
    hidden_from: int = 0  # as in the table


@dataclass(frozen=True, slots=True)
class NewSource:
    """A source to be stored."""

    source: Source  # its id is not known yet
    stamp: FileStamp
    hash: bytes
    front_matter: Mapping[str, object]
    warnings: tuple[str, ...]
    private: bool  # hidden from agents
    fields: frozenset[tuple[str, str]]  # (key, value) of its front matter
    secret_fields: frozenset[tuple[str, str]]  # the same with secrets; none if it has none
    told: str  # as in the table
    chunks: tuple[NewChunk, ...]
    names: tuple[Name, ...]  # by which links refer to it
    links: tuple[Link, ...]
    aliases: tuple[str, ...] = ()  # as written
    headings: tuple[Heading, ...] = ()


def _title(document: Document, name: str) -> str:
    """Return the title of a note; the *name* of its file instead of a first heading that says nothing."""
    is_heading = not document.front_matter.get("title")
    says_less = _plain(document.title) in _SAY_NOTHING and _plain(name) not in _SAY_NOTHING
    return name if is_heading and says_less else document.title or name


def _plain(title: str) -> str:
    return normalized("NFC", title).strip(" .:").casefold()


def prepare(
    source: SourceText, stamp: FileStamp, *, tokenizer: Tokenizer, limits: ChunkLimits, plain: bool = False
) -> NewSource:
    """Cut a source into chunks and derive the rows of all tables; *plain*: no Markdown, no front matter."""
    # Imported here for Markdown and YAML: a start without changed files does not need them.
    from memd.sources.chunk import parse  # noqa: PLC0415
    from memd.sources.daily import parse_daily  # noqa: PLC0415

    if daily.PATH.fullmatch(source.path):
        cut = partial(parse_daily, tokenizer=tokenizer, limits=limits, plain=plain)
    else:
        cut = partial(
            parse,
            tokenizer=tokenizer,
            limits=limits,
            plain=plain,
            day=_archived_on(source),
            place=place_of(source.path),
        )
    document, whole = masked_document(source.text, cut)
    name = PurePosixPath(source.path).stem
    day, day_of = _day_of(document, source)
    front = document.front_matter
    as_json = json.dumps(front)
    valid_until, warnings = _valid_until(front)
    sessions = _sessions(source)
    named, told = (_title(whole, name), whole.tags), (_title(document, name), document.tags)
    # Of a source with a secret two copies are stored: agents see one as if the secret was never there.
    is_twofold = document.chunks != whole.chunks
    copies = [(document, PEOPLE), (whole, AGENTS)] if is_twofold else [(whole, 0)]
    return NewSource(
        source=Source(
            0,
            source.path,
            *named,
            day,
            day_of,
            origin_of(front),
            valid_until,
            evergreen=_text(front.get("evergreen")).casefold() in _TRUE,
            external=_text(front.get("derived_from")).casefold() == EXTERNAL,
        ),
        stamp=stamp,
        hash=source.hash,
        front_matter=front,
        warnings=source.warnings + document.warnings + warnings + _length_warning(whole.chunks),
        private=is_private(source.text),
        fields=fields_of(front) | sessions,
        secret_fields=fields_of(whole.front_matter) | sessions if whole is not document else frozenset(),
        told=json.dumps(told) if told != named else "",
        chunks=tuple(
            _prepared_chunk(chunk, source.path, number, as_json, hidden_from)
            for copy, hidden_from in copies
            for number, chunk in enumerate(copy.chunks)
        ),
        names=names_of(source.path, document.aliases, document.entry_id),
        links=document.links,
        aliases=document.aliases,
        headings=document.headings,
    )


def place_of(path: str) -> list[str]:
    """Return the names of a source's folders and file as words, without day, leading number and suffix.

    "" stands for a name without words. The folders of memd's own files say nothing of their subject.
    """
    *folders, name = PurePosixPath(path).with_suffix("").parts
    return [*map(_as_words, () if path.startswith(OWN) else folders), _as_words(name)]


def _as_words(name: str) -> str:
    day = NAME_DAY.match(name)
    words = [word for word in _JOINED_BY.split(name[day.end() if day else 0 :]) if word]
    words = words[1:] if words[:1] and words[0].isdecimal() else words
    return " ".join(words) if any(map(_IS_WORD.fullmatch, words)) else ""


def fields_of(front: Mapping[str, object]) -> frozenset[tuple[str, str]]:
    """Return (key, value) for each scalar of a front matter, as far as filters can use them.

    A key is folded (`folded_key`); that of a value in a map is the path to it, joined by dots. Each member of
    a list is a value of its key.
    """
    found: dict[tuple[str, str], None] = {}
    waiting: list[tuple[str, object, int]] = [(key, value, 1) for key, value in reversed(list(front.items()))]
    while waiting and len(found) < MAX_FIELDS:
        key, value, depth = waiting.pop()
        if isinstance(value, dict) and depth < MAX_DEPTH:
            waiting += [(f"{key}.{inner}", one, depth + 1) for inner, one in reversed(list(value.items()))]
        elif isinstance(value, list) and depth < MAX_DEPTH:
            waiting += [(key, one, depth + 1) for one in reversed(value)]
        elif folded := folded_key(key):
            found[folded, _text(value)[:MAX_FIELD_CHARS]] = None
    return frozenset(found)


def folded_key(key: str) -> str:
    """Return a key of front matter in the form that filters compare: the same in any case and normal form."""
    return " ".join(caseless(key).split())[:MAX_FIELD_CHARS]


def written_time(text: str) -> Time | None:
    """Return the day, week, month or quarter that a value of front matter names; None: none."""
    if _EPOCH.fullmatch(text):
        day: date | None = calendar_day(int(text[:10]) * 10**9)
    elif found := _WRITTEN_DAY.match(text) or NAME_DAY.match(text):
        day = _day_at(found)
    else:
        return leading_time(text)
    return Time(day, day) if day else None


def is_beyond(number: int) -> bool:
    """Return whether the chunk at index *number* of its source is beyond those that get a vector."""
    return number >= EMBEDDED_CHUNKS


def shown_warning(warnings: Sequence[str]) -> str:
    """Return the text that `status` shows for a source's warnings: the first, and one about its length."""
    first, *others = map(str, warnings)
    return "; ".join([first, *(text for text in others if text.startswith(LONG_NOTE))])


def read_by_model(context: str, text: str) -> str:
    """Return the text of a chunk that the model embeds."""
    return normalized("NFC", context + text).replace("\r\n", "\n")


def hash_of(read: str) -> bytes:
    """Return the key of a text's vector."""
    return hashlib.blake2b(read.encode(), digest_size=16).digest()


def searchable(read: str, path: str, front: str | None) -> str:
    """Return the searchable text of a chunk, of which the model reads *read*.

    The first chunk of a source also contains the file name and the values of the *front* matter (JSON; None
    for another chunk), for keyword search only. Phrases are found over what a reader does not see within a
    sentence: the targets of links come last, and between characters of a script without spaces there is no
    emphasis. Numbers in groups, and words with markup or one hyphen in them, are also there in one piece, and
    names as in code also by their words.
    """
    text = read
    if front is not None:
        shown = read.casefold()
        values: list[str] = []
        if front != NO_FRONT:
            with suppress(ValueError, AttributeError):  # a damaged text, which the check finds
                values = list(_values(json.loads(front)))
        more = [one for one in values if one.casefold() not in shown]
        text = "\n".join(filter(None, [PurePosixPath(path).stem, read, *more]))
    whole: list[str] = []
    if any(text[place.start() - 1 : place.start()].isalnum() for place in _MAY_BE_IN_WORD.finditer(text)):
        whole = [re.sub(_IN_WORD, "", word[0]) for word in _WORD_IN_PARTS.finditer(text)]
    whole += [word.replace("-", "") for word in hyphenated_in(text)]
    whole += [words for _, words in humps_of(text)]
    if any(sign in text for sign in ("](", "][", "[[", "[^", "<")):
        text = _with_targets_last(text)
    if not text.isascii():
        text = _EMPHASIS.sub("", text)
    whole += [form for _, forms in numbers_in(text) for form in forms]
    return searched_text("\n".join([text, *dict.fromkeys(whole)]))


def _values(front: Mapping[str, object]) -> Iterator[str]:
    """Yield the scalars of a front matter, without what memd writes into entries and nobody searches for."""
    is_entry = isinstance(front.get("source"), dict) and "sha256" in front
    waiting: list[object] = [front[key] for key in front if not (is_entry and key in _OF_ENTRIES)][::-1]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list | dict):
            waiting += list(one.values() if isinstance(one, dict) else one)[::-1]


def _with_targets_last(text: str) -> str:
    targets: list[str] = []

    def shown(link: re.Match[str]) -> str:
        targets.append(next(filter(None, link.group(*_UNSEEN)), ""))
        if link["target"] is not None:
            return "]"
        return link["words"] or (f"[[{link['label']}]]" if link["note"] else " " * bool(link["tag"]))

    return "\n".join([_LINK.sub(shown, text), *targets])


def full_texts(read: str, path: str, front: str | None) -> tuple[str, str]:
    """Return the text for the words table and for the trigrams table."""
    text = searchable(read, path, front)
    return paired(text), " ".join(trigrams(text))


def compared_words(text: str) -> tuple[list[str], frozenset[str]]:
    """Return the words of a text for comparison, and those of them with a digit.

    In spaceless scripts each pair of characters is a word.
    """
    pieces = pieces_of(fold(text))
    numbers = frozenset(piece for piece in filterfalse(str.isalpha, pieces) if any(map(str.isdigit, piece)))
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


def _prepared_chunk(chunk: Chunk, path: str, number: int, front: str, hidden_from: int) -> NewChunk:
    """Derive the rows of a chunk."""
    read = chunk.embed_text
    words, trigrams = full_texts(read, path, None if number else front)
    return NewChunk(
        chunk,
        hash=hash_of(mask(read) if hidden_from == AGENTS else read),
        scripts=scripts_of(read),
        signature=signature(chunk.heading, chunk.text),
        words=words,
        trigrams=trigrams,
        beyond=is_beyond(number),
        hidden_from=hidden_from,
    )


def _day_of(document: Document, source: SourceText) -> tuple[date, DayOf]:
    """Return the date at the beginning of the name, in front matter, within the name, or of the change."""
    day = _named_day(source)
    if day is not None:
        # A record cannot be newer than the file: a wrong date would make it look recent forever. A diary may
        # be written ahead. One day of tolerance for clocks and time zones.
        is_record = source.path.startswith(ARCHIVES)
        latest = calendar_day(source.stamp.ctime_ns).toordinal() + 1
        return date.fromordinal(min(day.toordinal(), latest)) if is_record else day, "name"
    written = _joined_keys(document.front_matter)
    is_entry = isinstance(document.front_matter.get("source"), dict) and document.entry_id
    for key in ENTRY_DAY_KEYS if is_entry else DAY_KEYS:
        for called in (key, *_DAYS_ALSO.get(key, ())):
            if (time := written_time(written.get(called, ""))) is not None:
                return time.first, key
    if (within := day_within(PurePosixPath(source.path).stem)) and not is_entry:
        return within, "name"
    return calendar_day(source.stamp.mtime_ns), "changed"


def _named_day(source: SourceText) -> date | None:
    path = PurePosixPath(source.path).with_suffix("")
    named = (_WRITTEN_DAY if path.name[4:5] in "\u5e74\ub144" else NAME_DAY).match(path.name)
    named = named or _WRITTEN_DAY.fullmatch("/".join(path.parts[-3:]))  # 2026/05/01.md
    if named:
        return _day_at(named)
    time = leading_time(path.name)
    return time.first if time else None


def _day_at(found: re.Match[str]) -> date | None:
    return _iso_day(f"{found[1]}-{int(found[3]):02}-{int(found[4]):02}")


def _archived_on(source: SourceText) -> date | None:
    """Return the day on which a conversation in the archive began, also if the user renamed the page."""
    if not source.path.startswith(ARCHIVES):
        return None
    created = _CREATED.search(source.text.partition("\n---")[0])
    return _named_day(source) or (_iso_day(created[1]) if created else None)


def calendar_day(time_ns: int) -> date:
    """Return the local date of a time."""
    if time_ns < _OLDEST_NS:  # after 2262, modulo 2^64 as `stamp_of` has it
        time_ns += 1 << 64
    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).astimezone().date()
    except (OverflowError, ValueError, OSError):  # some file systems accept any number
        return date.max


def _iso_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _text(value: object) -> str:
    """Return a scalar of front matter on one line; "" for anything else."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _joined_keys(front: Mapping[str, object]) -> dict[str, str]:
    """Return the scalars of a front matter, by their keys without signs between the words.

    That of a value in a map begins with the map's: `date: {created: DAY}`.
    """
    found: dict[str, str] = {}
    for key, value in front.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        found |= {_JOINED_BY.sub("", folded_key(key + name)): _text(one) for name, one in inner}
    return found


def _valid_until(front: Mapping[str, object]) -> tuple[date | None, tuple[str, ...]]:
    """Return the last day on which a note holds, and a warning if its `valid_until` is not a day."""
    written = _joined_keys(front)
    for given in filter(None, map(written.get, _LAST_DAYS)):
        with suppress(ValueError, OverflowError):
            at = datetime.fromisoformat(given)
            return (at if at.tzinfo is None else at.astimezone()).date(), ()
        if time := written_time(given):
            return time.last, ()
    if front.get("valid_until", "") == "":
        return None, ()
    return None, ("valid_until is not a day like 2026-05-31, and is ignored",)


def _sessions(source: SourceText) -> frozenset[tuple[str, str]]:
    """Return as fields the conversations that the entries of a daily file come from."""
    if not daily.PATH.fullmatch(source.path):
        return frozenset()
    named = (mask(_text(block.session))[:MAX_FIELD_CHARS] for block in daily.blocks(source.text.encode()))
    return frozenset((SESSION, one) for one in named if one)


def _bitmap(found: Sequence[str]) -> bytes:
    """Return the bitmap of the triples whose first word has an odd hash; half of them suffice."""
    hashes = [crc32(word.encode()) for word in found]
    bits = 0
    for first, second, third in zip(hashes, hashes[1:], hashes[2:], strict=False):
        if first & 1:
            bits |= 1 << ((first + 3 * second + 5 * third) >> 7) % BITS
    return bits.to_bytes(BITS // 8, "little")
