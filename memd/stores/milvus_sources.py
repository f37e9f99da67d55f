"""Packed sources: how the rows of Milvus hold them, and the evidence of a query read out of them. Pure.

A source is a row with two texts: its head, which is the source without chunks, and its body, which has of all
chunks what ranking counts: their words, and the vectors of those that represent the source. What an answer
shows of a chunk is in a row of its own, so that a query reads it of its candidates alone.

The body has sections, each in base64 by itself, of which only what is needed is decoded. One is an inverted
index of the source: looking in the text of some thousand chunks for each word of a query took ten times as
long. Its terms are hashes of 48 bits: among 10^6 of them a word is taken for another one once in 10^8 times.
"""

import hashlib
import struct
import zlib
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from memd.index.postings import MAX_COUNT
from memd.search.word_forms import SIGNS
from memd.stores.lean import chunk_facts, function_words, has_phrase, packed, places_of, source_facts
from memd.stores.milvus_rows import MAX_HEAD_CHARS, unpacked
from memd.stores.milvus_rows import packed as packed_value
from memd.stores.store import ChunkFacts, Evidence, Forms, PublishedChunk, PublishedSource, Wanted

MAX_SHOWN_CHARS: Final = 60_000  # in a row of its own; a VARCHAR has 65,535. A line of 100 kB has more
_ALIGNED: Final = 3  # bytes that are four characters of base64
# Chunks; bytes of the words, of the hashes and of a vector; terms and postings of the inverted index.
_NUMBERS: Final = struct.Struct("<6i")
_EACH: Final = 3  # numbers of a chunk: its length, whether it has a vector, characters of it in the body or 0
_SIZE: Final = struct.Struct("<3i")  # of a chunk's row: bytes of what is shown, and of its vector; 0
_LOW_BITS: Final = 16  # of a term's hash, by which most terms that no query has are passed over

Shown = Mapping[int, str]  # ordinal of a chunk → its packed row
Array = Any  # of numpy


_HEADS: Final = msgspec.msgpack.Decoder(PublishedSource)
_CHUNKS: Final = msgspec.msgpack.Decoder(PublishedChunk)
_TEXTS: Final = msgspec.msgpack.Decoder(tuple[str, ...])
_HASHES: Final = msgspec.msgpack.Decoder(tuple[bytes, ...])


class _Index(NamedTuple):
    """The inverted index of a source."""

    low: Array  # uint32: of each term's hash
    high: Array  # uint16
    sizes: Array  # postings of each term
    ordinals: Array  # of each posting
    counts: Array  # uint8


def packed_source(source: PublishedSource) -> tuple[str, str, list[str]]:
    """Return the head and the body of a source, and the row of each chunk; "": it is in the body."""
    chunks = source.chunks
    places = places_of(len(chunks)) if chunks else []
    vectors = [chunks[ordinal].vector or b"" for ordinal in places]
    vector_bytes = max(map(len, vectors), default=0)
    rows = [_packed_chunk(chunk, has_vector=chunk.ordinal not in places) for chunk in chunks]
    inside = ["" if len(row) <= MAX_SHOWN_CHARS else row for row in rows]
    words = zlib.compress(msgspec.msgpack.encode(tuple(one.words for one in chunks)), 1)
    hashes = msgspec.msgpack.encode(tuple(one.hash for one in chunks))
    index = _indexed([one.words for one in chunks])
    numbers = [
        number
        for one, row in zip(chunks, inside, strict=True)
        for number in (one.length, one.vector is not None, len(row))
    ]
    first = _NUMBERS.pack(
        len(chunks), len(words), len(hashes), vector_bytes, len(index.low), len(index.ordinals)
    )
    sections = [first, struct.pack(f"<{len(numbers)}i", *numbers), words, hashes]
    sections.append(b"".join(one.tobytes() for one in index))
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
        numbers = _NUMBERS.unpack(self._bytes(0, _NUMBERS.size))
        self.count, self._words_size, self._hashes_size, self._vector_bytes, self._terms, self._size = numbers
        table_bytes = 4 * _EACH * self.count
        table = struct.unpack(f"<{_EACH * self.count}i", self._bytes(_NUMBERS.size, table_bytes))
        self.lengths, self._has_vector, self._inside = (table[at::_EACH] for at in range(_EACH))
        self._words_at = _NUMBERS.size + table_bytes
        self._hashes_at = self._words_at + _whole(self._words_size)
        self._index_at = self._hashes_at + _whole(self._hashes_size)
        ordinal_bytes = _ordinals(self.count).itemsize
        self._index_bytes = self._terms * (6 + ordinal_bytes) + self._size * (ordinal_bytes + 1)
        self._vectors_at = self._index_at + _whole(self._index_bytes)

    def source(self) -> PublishedSource:
        """Return the source without its chunks."""
        return _HEADS.decode(unpacked(self._head))

    def words(self) -> tuple[str, ...]:
        """Return the words of each chunk."""
        return _TEXTS.decode(zlib.decompress(self._bytes(self._words_at, self._words_size)))

    def hashes(self) -> tuple[bytes, ...]:
        """Return the hash of each chunk."""
        return _HASHES.decode(self._bytes(self._hashes_at, self._hashes_size))

    def index(self) -> _Index:
        """Return the inverted index."""
        raw = self._bytes(self._index_at, self._index_bytes)
        found = []
        at = 0
        for kind, size in (
            ("<u4", self._terms), ("<u2", self._terms), (_ordinals(self.count), self._terms),
            (_ordinals(self.count), self._size), ("u1", self._size),
        ):  # fmt: skip
            found.append(np.frombuffer(raw, kind, size, at))
            at += found[-1].nbytes
        return _Index(*found)

    def counted(self) -> Iterable[tuple[str, int]]:
        """Return the words and the length of each chunk."""
        return zip(self.words(), self.lengths, strict=True) if self.count else ()

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
        vectors = self.place_vectors()
        chunks = []
        for ordinal, (words, digest) in enumerate(zip(self.words(), self.hashes(), strict=True)):
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
    some = [one for one in sources if one[0].count]
    heads = [one.source() for one, _, _ in some]
    facts: list[ChunkFacts] = []
    at: list[int] = []
    spread: list[int] = []
    rows = _Rows()
    for number, (one, ordinals, shown) in enumerate(some):
        hashes, vectors = one.hashes(), one.place_vectors()
        for ordinal in ordinals:
            chunk, vector = one.shown(ordinal, shown)
            facts.append(msgspec.structs.replace(chunk_facts(chunk), hash=hashes[ordinal]))
            row = rows.row_of(vectors.get(ordinal, vector), hashes[ordinal])
            at += (number, ordinal, one.lengths[ordinal], row)
        for ordinal, vector in vectors.items():
            spread += (number, ordinal, rows.row_of(vector, hashes[ordinal]))
    counts = _counts([one for one, _, _ in some], wanted)
    starts = np.cumsum([0, *(one.count for one, _, _ in some)])
    asked = [
        start + one
        for start, (_, ordinals, _) in zip(starts.tolist(), some, strict=False)
        for one in ordinals
    ]
    starts = starts[:-1]
    totals = np.add.reduceat(counts, starts, axis=1) if some else counts
    return Evidence(
        tuple(map(source_facts, heads)),
        packed([size for one, _, _ in some for size in (one.count, sum(one.lengths), one.lengths[0])]),
        np.concatenate([totals, counts[:, starts]]).T.astype("<i4").tobytes(),
        tuple(facts),
        packed(at),
        counts[:, asked].T.astype("<i4").tobytes(),
        packed(spread),
        b"".join(rows.vectors),
    )


class _Rows:
    """The rows of a matrix that is being collected: one for equal texts."""

    def __init__(self) -> None:
        self.vectors: list[bytes] = []
        self._by_hash: dict[bytes, int] = {}

    def row_of(self, vector: bytes | None, digest: bytes) -> int:
        """Return the row of a chunk's vector; -1 if it has none."""
        if vector is None:
            return -1
        row = self._by_hash.setdefault(digest, len(self.vectors))
        if row == len(self.vectors):
            self.vectors.append(vector)
        return row


# -- counts ------------------------------------------------------------------------------------------------


def _counts(sources: Sequence[Packed], wanted: Wanted) -> Array:
    """Return the count of each part of a query (row) in each chunk (column) of some sources."""
    chunks = sum(one.count for one in sources)
    names = dict.fromkeys(wanted.terms)
    for forms in wanted.forms:
        names |= dict.fromkeys((forms.word, *forms.forms))
        for language in (forms.language, *forms.others) if forms.others else ():
            names |= dict.fromkeys(function_words(language))
    rows = {name: number for number, name in enumerate(names)}
    of_terms = _of_terms(sources, list(rows), chunks)
    parts = [of_terms[rows[term]] for term in wanted.terms]
    if wanted.prefixes or wanted.whole:
        texts = [f" {words} " for one in sources for words in one.words()]
        begun = [f" {start}" for start in wanted.prefixes]
        parts += [np.array([text.count(one) for text in texts], np.int32) for one in begun]
    parts += [_of_forms(forms, of_terms, rows) for forms in wanted.forms]
    if wanted.whole:
        parts.append(np.array([has_phrase(text[1:-1], wanted.whole) for text in texts], np.int32))
    found = np.zeros((len(parts), chunks), np.int32)
    for row, part in zip(found, parts, strict=True):
        np.minimum(part, MAX_COUNT, out=row)
    return found


def _of_forms(forms: Forms, of_terms: Array, rows: Mapping[str, int]) -> Array:
    """Return the counts of the forms of a word in chunks without it, see `Forms`."""
    found = of_terms[[rows[form] for form in forms.forms]].sum(axis=0)
    found[of_terms[rows[forms.word]] > 0] = 0
    if forms.others and found.any():

        def signs(language: str) -> Array:
            its = [rows[word] for word in function_words(language)]
            return (of_terms[its] > 0).sum(axis=0)

        least = np.maximum(signs(forms.language) + 1, SIGNS)
        for other in forms.others:
            found[signs(other) >= least] = 0
    return found


def _of_terms(sources: Sequence[Packed], terms: Sequence[str], chunks: int) -> Array:
    """Return the count of each term (row) in each chunk (column)."""
    found = np.zeros((len(terms), chunks), np.int32)
    if not terms or not sources:
        return found
    each = [one.index() for one in sources]
    low, high, sizes, ordinals, counts = (np.concatenate(some) for some in zip(*each, strict=True))
    firsts = np.cumsum([0, *(one.count for one in sources)])[:-1]
    first = np.repeat(firsts, [len(one.low) for one in each])  # chunk of each term's source
    keys = np.array([_key(term) for term in terms], np.uint64)
    order = np.argsort(keys)
    mask = np.zeros(1 << _LOW_BITS, np.bool_)
    mask[(keys & ((1 << _LOW_BITS) - 1)).astype(np.int64)] = True
    near = np.flatnonzero(mask[low & ((1 << _LOW_BITS) - 1)])
    whole = high[near].astype(np.uint64) << 32 | low[near]
    place = np.minimum(np.searchsorted(keys[order], whole), len(keys) - 1)
    is_hit = keys[order][place] == whole
    hits, term = near[is_hit], order[place[is_hit]]
    ends = np.cumsum(sizes, dtype=np.int64)
    lengths = sizes[hits].astype(np.int64)
    # The postings of all hits, one after the other.
    begun = np.repeat(ends[hits] - lengths - np.cumsum(lengths) + lengths, lengths)
    postings = begun + np.arange(len(begun))
    found[np.repeat(term, lengths), np.repeat(first[hits], lengths) + ordinals[postings]] = counts[postings]
    return found


def _indexed(texts: Sequence[str]) -> _Index:
    """Return the inverted index of the words of some chunks."""
    postings: dict[str, list[tuple[int, int]]] = {}
    for ordinal, text in enumerate(texts):
        for term, count in Counter(filter(None, text.split(" "))).items():
            postings.setdefault(term, []).append((ordinal, min(count, MAX_COUNT)))
    keys = np.array([_key(term) for term in postings], np.uint64)
    both = np.array([one for some in postings.values() for one in some], np.int64).reshape(-1, 2)
    return _Index(
        (keys & 0xFFFFFFFF).astype("<u4"),
        (keys >> 32).astype("<u2"),
        np.array([len(some) for some in postings.values()], _ordinals(len(texts))),
        both[:, 0].astype(_ordinals(len(texts))),
        both[:, 1].astype("u1"),
    )


def _ordinals(chunks: int) -> Any:
    """Return the type of the ordinals, and of numbers, of a source's chunks."""
    return np.dtype("<u2" if chunks < 1 << 16 else "<u4")


def _key(term: str) -> int:
    """Return the 48 bits that stand for a term."""
    raw = term.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=6).digest(), "little")


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
