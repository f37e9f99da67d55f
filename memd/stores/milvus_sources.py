"""Packed sources: how the rows of Milvus hold them, and the evidence of a query read out of them. Pure.

A source is a row with two texts: its head, which is the source without chunks, and its body, which has of all
chunks what ranking counts: their words, and the vectors of those that represent the source. What an answer
shows of a chunk is in a row of its own, so that a query reads it of its candidates alone.

The body has sections, each in base64 by itself, of which only what is needed is decoded.
"""

import struct
import zlib
from binascii import a2b_base64, b2a_base64
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from memd.index.postings import MAX_COUNT
from memd.stores.lean import chunk_facts, is_foreign, packed, places_of, source_facts
from memd.stores.milvus_rows import MAX_HEAD_CHARS, unpacked
from memd.stores.milvus_rows import packed as packed_value
from memd.stores.store import ChunkFacts, Evidence, Forms, PublishedChunk, PublishedSource, Wanted

MAX_SHOWN_CHARS: Final = 60_000  # in a row of its own; a VARCHAR has 65,535. A line of 100 kB has more
_ALIGNED: Final = 3  # bytes that are four characters of base64
_NUMBERS: Final = struct.Struct("<3i")  # chunks, bytes of the words, bytes of a vector
_EACH: Final = 3  # numbers of a chunk: its length, whether it has a vector, characters of it in the body or 0
_SIZE: Final = struct.Struct("<3i")  # of a chunk's row: bytes of what is shown, and of its vector; 0

Counts = list[int]  # of each part of a query
# (words of all chunks, ordinals of some) → counts in all of them together, counts in each of these.
CountParts = Callable[[Sequence[str], Sequence[int]], tuple[Counts, list[Counts]]]
Shown = Mapping[int, str]  # ordinal of a chunk → its packed row


class _Words(Struct, frozen=True, array_like=True):
    words: tuple[str, ...]  # of each chunk
    hashes: tuple[bytes, ...]


_HEADS: Final = msgspec.msgpack.Decoder(PublishedSource)
_CHUNKS: Final = msgspec.msgpack.Decoder(PublishedChunk)
_WORDS: Final = msgspec.msgpack.Decoder(_Words)


def packed_source(source: PublishedSource) -> tuple[str, str, list[str]]:
    """Return the head and the body of a source, and the row of each chunk; "": it is in the body."""
    chunks = source.chunks
    places = places_of(len(chunks)) if chunks else []
    vectors = [chunks[ordinal].vector or b"" for ordinal in places]
    vector_bytes = max(map(len, vectors), default=0)
    rows = [_packed_chunk(chunk, has_vector=chunk.ordinal not in places) for chunk in chunks]
    inside = ["" if len(row) <= MAX_SHOWN_CHARS else row for row in rows]
    words = _Words(tuple(one.words for one in chunks), tuple(one.hash for one in chunks))
    of_words = zlib.compress(msgspec.msgpack.encode(words), 1)
    numbers = [
        number
        for one, row in zip(chunks, inside, strict=True)
        for number in (one.length, one.vector is not None, len(row))
    ]
    first = _NUMBERS.pack(len(chunks), len(of_words), vector_bytes)
    sections = [first, struct.pack(f"<{len(numbers)}i", *numbers), of_words]
    sections += [vector.ljust(vector_bytes, b"\0") for vector in vectors]
    body = _base64(b"".join(map(_padded, sections))) + "".join(inside)
    head = packed_value(msgspec.structs.replace(source, chunks=()))
    rows = [row if len(row) <= MAX_SHOWN_CHARS else "" for row in rows]
    # A note may have more links than a row takes; then all of it is in the part that may have many rows.
    return (head, body, rows) if len(head) <= MAX_HEAD_CHARS else ("", f"{head} {body}", rows)


class Packed:
    """A packed source, of which nothing is decoded before it is asked for."""

    def __init__(self, head: str, body: str) -> None:
        if not head:
            head, _, body = body.partition(" ")
        self._head, self._body = head, body
        self.count = 0
        if not body:
            return
        self.count, self._size, self._vector_bytes = _NUMBERS.unpack(self._bytes(0, _NUMBERS.size))
        table_bytes = 4 * _EACH * self.count
        numbers = struct.unpack(f"<{_EACH * self.count}i", self._bytes(_NUMBERS.size, table_bytes))
        self.lengths, self._has_vector, self._inside = (numbers[at::_EACH] for at in range(_EACH))
        self._words_at = _NUMBERS.size + table_bytes
        self._vectors_at = self._words_at + _whole(self._size)

    def source(self) -> PublishedSource:
        """Return the source without its chunks."""
        return _HEADS.decode(unpacked(self._head))

    def words(self) -> _Words:
        """Return the words and the hash of each chunk."""
        return _WORDS.decode(zlib.decompress(self._bytes(self._words_at, self._size)))

    def counted(self) -> Iterable[tuple[str, int]]:
        """Return the words and the length of each chunk."""
        return zip(self.words().words, self.lengths, strict=True) if self.count else ()

    def has_row(self, ordinal: int) -> bool:
        """Return whether a chunk has a row of its own."""
        return not self._inside[ordinal]

    def place_vectors(self) -> dict[int, bytes]:
        """Return the vectors of the chunks that represent the source, by ordinal."""
        step = _whole(self._vector_bytes)
        return {
            ordinal: self._bytes(self._vectors_at + number * step, self._vector_bytes)
            for number, ordinal in enumerate(places_of(self.count))
            if self._has_vector[ordinal]
        }

    def shown(self, ordinal: int, rows: Shown) -> tuple[PublishedChunk, bytes | None]:
        """Return a chunk without words, hash and vector; and its vector, unless it represents the source."""
        if not self._inside[ordinal]:
            return _unpacked_chunk(rows[ordinal])
        places = len(places_of(self.count))
        start = (self._vectors_at + places * _whole(self._vector_bytes)) // 3 * 4
        start += sum(self._inside[:ordinal])
        return _unpacked_chunk(self._body[start : start + self._inside[ordinal]])

    def whole(self, rows: Shown) -> PublishedSource:
        """Return the source with all chunks; *rows* has all of their rows."""
        if not self.count:
            return self.source()
        both, vectors = self.words(), self.place_vectors()
        chunks = []
        for ordinal, (words, digest) in enumerate(zip(both.words, both.hashes, strict=True)):
            chunk, vector = self.shown(ordinal, rows)
            chunks.append(
                msgspec.structs.replace(chunk, words=words, hash=digest, vector=vectors.get(ordinal, vector))
            )
        return msgspec.structs.replace(self.source(), chunks=tuple(chunks))

    def _bytes(self, start: int, size: int) -> bytes:
        return a2b_base64(self._body[start // 3 * 4 : _whole(start + size) // 3 * 4])[:size]


def lean_of_packed(sources: Iterable[tuple[Packed, Sequence[int], Shown]], wanted: Wanted) -> Evidence:
    """Return what `memd.stores.lean.lean_of` returns.

    Args:
        sources: each with the ordinals of the chunks that are wanted, ascending, and their rows.
        wanted: what is counted.
    """
    count = part_counter(wanted)
    found = _Found()
    for one, ordinals, rows in sources:
        if one.count:
            found.add(one, ordinals, rows, count)
    return found.evidence()


class _Found:
    """Evidence that is being collected."""

    def __init__(self) -> None:
        self._sources: list[PublishedSource] = []
        self._sizes: list[int] = []
        self._counts: list[int] = []
        self._facts: list[ChunkFacts] = []
        self._at: list[int] = []
        self._chunk_counts: list[int] = []
        self._places: list[int] = []
        self._vectors: list[bytes] = []
        self._by_hash: dict[bytes, int] = {}

    def add(self, one: Packed, ordinals: Sequence[int], rows: Shown, count: CountParts) -> None:
        """Add a source and some of its chunks."""
        number = len(self._sources)
        self._sources.append(one.source())
        both, vectors = one.words(), one.place_vectors()
        total, (first, *each) = count(both.words, [0, *ordinals])
        self._sizes += (one.count, sum(one.lengths), one.lengths[0])
        self._counts += total
        self._counts += first
        for ordinal, counts in zip(ordinals, each, strict=True):
            chunk, vector = one.shown(ordinal, rows)
            digest = both.hashes[ordinal]
            self._facts.append(msgspec.structs.replace(chunk_facts(chunk), hash=digest))
            row = self._row_of(vectors.get(ordinal, vector), digest)
            self._at += (number, ordinal, one.lengths[ordinal], row)
            self._chunk_counts += counts
        for ordinal, vector in vectors.items():
            self._places += (number, ordinal, self._row_of(vector, both.hashes[ordinal]))

    def evidence(self) -> Evidence:
        """Return what was added."""
        return Evidence(
            tuple(map(source_facts, self._sources)), packed(self._sizes), packed(self._counts),
            tuple(self._facts), packed(self._at), packed(self._chunk_counts), packed(self._places),
            b"".join(self._vectors),
        )  # fmt: skip

    def _row_of(self, vector: bytes | None, digest: bytes) -> int:
        """Return the row of a chunk's vector, one for equal texts; -1 if it has none."""
        if vector is None:
            return -1
        row = self._by_hash.setdefault(digest, len(self._vectors))
        if row == len(self._vectors):
            self._vectors.append(vector)
        return row


class _Part(NamedTuple):
    """How a part of a query is counted in terms, which have a blank before and behind each."""

    in_chunk: Callable[[str], int]
    signs: tuple[str, ...]  # texts of which each chunk that has the part has one
    is_sum: bool  # whether the count in all chunks, if it is small, is that in their joined terms


def part_counter(wanted: Wanted) -> CountParts:
    """Return a function that counts each part of a query in the words of a source's chunks.

    It returns the sums over all chunks, and the counts in some of them, as `memd.stores.lean.counter` has
    them. Most sources have few of the parts: what no chunk has is not looked for in each.
    """
    parts = [*map(_term, wanted.terms), *map(_beginning, wanted.prefixes), *map(_forms, wanted.forms)]
    if wanted.whole:
        parts.append(_phrase(wanted.whole))

    def counted(words: Sequence[str], some: Sequence[int]) -> tuple[Counts, list[Counts]]:
        whole = f" {' '.join(words)} "
        ends = list(accumulate(len(one) + 1 for one in words))
        texts = [f" {words[ordinal]} " for ordinal in some]
        total: Counts = []
        each: list[Counts] = [[] for _ in some]
        for part in parts:
            found = part.in_chunk(whole) if part.is_sum else 1
            if found and (not part.is_sum or found > MAX_COUNT):
                having = {bisect_right(ends, at) for at in _places(whole, part.signs)}
                found = sum(min(part.in_chunk(f" {words[one]} "), MAX_COUNT) for one in having)
            total.append(found)
            for counts, text in zip(each, texts, strict=True):
                counts.append(min(part.in_chunk(text), MAX_COUNT) if found else 0)
        return total, each

    return counted


def _places(text: str, signs: Iterable[str]) -> Iterator[int]:
    """Yield where some texts begin."""
    for sign in signs:
        at = text.find(sign)
        while at >= 0:
            yield at
            at = text.find(sign, at + 1)


def _term(term: str) -> _Part:
    return _Part(_count_of(term), (f" {term} ",), is_sum=True)


def _count_of(term: str) -> Callable[[str], int]:
    alone, twice = f" {term} ", f" {term} {term} "

    def count(text: str) -> int:
        found = text.count(alone)
        # Two in a row share a blank, which `count` sees once.
        return text.split(" ").count(term) if found and twice in text else found

    return count


def _beginning(start: str) -> _Part:
    begun = f" {start}"
    return _Part(lambda text: text.count(begun), (begun,), is_sum=True)


def _forms(forms: Forms) -> _Part:
    some = [(f" {form} ", _count_of(form)) for form in forms.forms]
    word = f" {forms.word} "

    def in_chunk(text: str) -> int:
        found = sum(count(text) for form, count in some if form in text)
        if not found or word in text:
            return 0
        return 0 if forms.others and is_foreign(forms, set(text.split(" "))) else found

    return _Part(in_chunk, tuple(form for form, _ in some), is_sum=False)


def _phrase(phrase: str) -> _Part:
    sign = f" {phrase[:-1]}" if phrase.endswith("*") else f" {phrase} "
    return _Part(lambda text: int(sign in text), (sign,), is_sum=False)


def _packed_chunk(chunk: PublishedChunk, *, has_vector: bool) -> str:
    """Return the row of a chunk: what is not in the body of its source, with its vector if *has_vector*."""
    bare = msgspec.structs.replace(chunk, words="", hash=b"", vector=None)
    shown = zlib.compress(msgspec.msgpack.encode(bare), 1)
    vector = (chunk.vector or b"") if has_vector else b""
    return _base64(b"".join(map(_padded, (_SIZE.pack(len(shown), len(vector), 0), shown, vector))))


def _unpacked_chunk(row: str) -> tuple[PublishedChunk, bytes | None]:
    raw = a2b_base64(row)
    size, vector_bytes, _ = _SIZE.unpack_from(raw)
    start = _SIZE.size + _whole(size)
    chunk = _CHUNKS.decode(zlib.decompress(raw[_SIZE.size : _SIZE.size + size]))
    return chunk, raw[start : start + vector_bytes] if vector_bytes else None


def _base64(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).decode()


def _padded(section: bytes) -> bytes:
    return section + bytes(-len(section) % _ALIGNED)


def _whole(size: int) -> int:
    return size + -size % _ALIGNED
