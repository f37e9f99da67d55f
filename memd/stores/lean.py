"""The lean form of evidence, made of whole sources: what ranking needs of them beside the shown texts.

For stores that keep whole sources and cannot count terms by themselves. Pure and thread-safe.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np

from memd.index.postings import MAX_COUNT
from memd.languages import FUNCTION_WORDS, Language
from memd.search.source_scores import PLACES
from memd.search.word_forms import SIGNS
from memd.stores.store import (
    ChunkFacts,
    ChunkKey,
    Evidence,
    Forms,
    PublishedChunk,
    PublishedSource,
    SourceFacts,
    Wanted,
)

Counts = list[int]  # of each part of a query


def lean_of(sources: Iterable[PublishedSource], chunks: Sequence[ChunkKey], wanted: Wanted) -> Evidence:
    """Return the evidence of *chunks*, whose sources are among the whole *sources*."""
    asked: dict[tuple[str, str], set[int]] = {}
    for key in chunks:
        asked.setdefault((key.workspace, key.path), set()).add(key.ordinal)
    some = [
        source for source in sources if source.chunks and (source.key.workspace, source.key.path) in asked
    ]
    rows = _Rows()
    counted = counter(wanted)
    sizes: list[int] = []
    counts: list[int] = []
    facts: list[ChunkFacts] = []
    at: list[int] = []
    chunk_counts: list[int] = []
    spread: list[int] = []
    for number, source in enumerate(some):
        each = [counted(chunk.words) for chunk in source.chunks]
        sizes += [len(each), sum(chunk.length for chunk in source.chunks), source.chunks[0].length]
        counts += [sum(column) for column in zip(*each, strict=True)]
        counts += each[0]
        for ordinal in sorted(asked[source.key.workspace, source.key.path]):
            if ordinal < len(each):
                chunk = source.chunks[ordinal]
                facts.append(chunk_facts(chunk))
                at += [number, ordinal, chunk.length, rows.row_of(chunk)]
                chunk_counts += each[ordinal]
        for ordinal in places_of(len(each)):
            if source.chunks[ordinal].vector is not None:
                spread += [number, ordinal, rows.row_of(source.chunks[ordinal])]
    return Evidence(
        tuple(map(source_facts, some)),
        packed(sizes),
        packed(counts),
        tuple(facts),
        packed(at),
        packed(chunk_counts),
        packed(spread),
        b"".join(rows.vectors),
    )


def joined(each: Sequence[Evidence]) -> Evidence:
    """Return the evidence of several stores as one; their vectors are of one model."""
    some = [one for one in each if one.sources]
    if len(some) == 1:
        return some[0]
    ats, spreads = [], []
    sources = rows = 0
    for one in some:
        at = np.frombuffer(one.at, "<i4").reshape(-1, 4).copy()
        spread = np.frombuffer(one.places, "<i4").reshape(-1, 3).copy()
        count = 1 + max(at[:, 3].max(initial=-1), spread[:, 2].max(initial=-1))
        at[:, 0] += sources
        spread[:, 0] += sources
        at[at[:, 3] >= 0, 3] += rows
        spread[:, 2] += rows
        ats.append(at.tobytes())
        spreads.append(spread.tobytes())
        sources, rows = sources + len(one.sources), rows + int(count)
    return Evidence(
        tuple(source for one in some for source in one.sources),
        b"".join(one.sizes for one in some),
        b"".join(one.counts for one in some),
        tuple(chunk for one in some for chunk in one.chunks),
        b"".join(ats),
        b"".join(one.chunk_counts for one in some),
        b"".join(spreads),
        b"".join(one.vectors for one in some),
    )


def packed(numbers: Sequence[int]) -> bytes:
    """Return numbers as little-endian int32."""
    return np.asarray(numbers, "<i4").tobytes()


def places_of(size: int) -> list[int]:
    """Return the ordinals of the chunks that represent a source of *size* chunks in the vector arm."""
    return sorted({(2 * step + 1) * size // (2 * PLACES) for step in range(PLACES)})


def source_facts(source: PublishedSource) -> SourceFacts:
    """Return what ranking needs of a source."""
    return SourceFacts(
        source.key,
        source.title,
        source.tags,
        source.day,
        source.day_of,
        source.origin,
        source.valid_until,
        source.evergreen,
        source.external,
        source.mtime_ns,
    )


def chunk_facts(chunk: PublishedChunk) -> ChunkFacts:
    """Return what an answer needs of a chunk."""
    return ChunkFacts(
        chunk.start_line,
        chunk.end_line,
        chunk.start_byte,
        chunk.heading,
        chunk.text,
        chunk.context,
        chunk.hash,
        chunk.signature,
        chunk.entry,
        chunk.origin,
    )


def has_phrase(words: str, phrase: str) -> bool:
    """Return whether a chunk with these *words* has a phrase."""
    if phrase.endswith("*"):
        return f" {phrase[:-1]}" in f" {words}"
    return f" {phrase} " in f" {words} "


def counter(wanted: Wanted) -> Callable[[str], Counts]:
    """Return a function that counts each part of a query in the words of a chunk, as an index does."""

    def counted(words: str) -> Counts:
        terms = words.split(" ")
        known = set(terms)
        found = [terms.count(term) if term in known else 0 for term in wanted.terms]
        found += [sum(map(_beginning(one), terms)) for one in wanted.prefixes]
        found += [_of_forms(one, terms, known) for one in wanted.forms]
        if wanted.whole:
            found.append(int(has_phrase(words, wanted.whole)))
        return [min(count, MAX_COUNT) for count in found]

    return counted


def _beginning(start: str) -> Callable[[str], bool]:
    return lambda term: term.startswith(start)


def _of_forms(forms: Forms, terms: Sequence[str], known: set[str]) -> int:
    if forms.word in known:
        return 0
    found = sum(terms.count(form) for form in forms.forms if form in known)
    return 0 if not found or is_foreign(forms, known) else found


def is_foreign(forms: Forms, known: set[str]) -> bool:
    """Return whether a chunk with these terms is recognisably in another language than the forms."""

    def signs(language: str) -> int:
        return len(function_words(language) & known)

    least = max(signs(forms.language) + 1, SIGNS)
    return any(signs(other) >= least for other in forms.others)


def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language; none of one that memd does not know."""
    return FUNCTION_WORDS.get(cast("Language", language), frozenset())


class _Rows:
    """The rows of a matrix that is being collected: one for equal texts."""

    def __init__(self) -> None:
        self.vectors: list[bytes] = []
        self._by_hash: dict[bytes, int] = {}

    def row_of(self, chunk: PublishedChunk) -> int:
        """Return the row of a chunk's vector; -1 if it has none."""
        if chunk.vector is None:
            return -1
        row = self._by_hash.setdefault(chunk.hash, len(self.vectors))
        if row == len(self.vectors):
            self.vectors.append(chunk.vector)
        return row
