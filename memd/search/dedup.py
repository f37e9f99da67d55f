"""Near-duplicates: a candidate that says nearly the same as a better one is named by it and takes no place.

Decided on headings and text: shared word triples, and the same numbers, since two texts that differ in a
number state different facts; so do equal logs of two days. Text is loaded only where length and
vectors say that two may be alike, and compared only with what is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from memd import analysis
from memd.index.columns import HAS_NUMPY, Columns, take
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.search.ranking import PER_SOURCE, Candidate, Candidates

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np

WINDOW = 100  # first candidates that are looked at for what a hit stands for, whatever the limit
SHINGLE = 3  # words; as usual for near-duplicate detection (Broder 1997 uses 4 to 10 on whole pages)
MIN_JACCARD = 0.8  # of the triples; of 200 words, seven may differ
MIN_COSINE = 0.95  # 94 of 100 pairs of manual pages that are nearly the same have it; others differ in title
MIN_LENGTH_SHARE = 0.8  # a shorter text can't reach MIN_JACCARD
MIN_TERMS = 8  # what is shorter says little beside the name of its file; arbitrary
ROUGHLY = 0.5  # share of words in common, as they stand there, below which triples need no counting
ROUGHLY_FROM = 10  # words; of spaceless text there are too few


@dataclass(slots=True)
class Dedup:
    """What became of the candidates, as far as they were looked at."""

    kept: list[Candidate] = field(default_factory=list)  # best first
    folded: dict[int, list[int]] = field(default_factory=dict)  # kept chunk → what it stands for
    crowded: set[int] = field(default_factory=set)  # chunks whose source had its places already

    @property
    def into(self) -> dict[int, int]:
        """Folded chunk → the kept one that stands for it."""
        return {one: kept for kept, folded in self.folded.items() for one in folded}


def fold(view: View, candidates: Candidates, limit: int, alive: Callable[[str], bool]) -> Dedup:
    """Keep the first *limit* that are not nearly the same as a better one, at most PER_SOURCE of a source.

    What becomes of a candidate depends on better ones alone, so a higher *limit* only adds.

    Args:
        view: that they are from.
        candidates: best first.
        limit: of the answer.
        alive: whether a source is still on the disk; what is not is in no answer. Asked of those alone that
            may be in one.
    """
    found = Dedup()
    taken: Counter[int] = Counter()
    window = max(WINDOW, limit)
    ids, sources = candidates.numbers()
    likeness = _Likeness(view, ids[:window], sources)
    for place, (number, source) in enumerate(zip(ids, sources, strict=True)):
        if place == window:
            if len(found.kept) == limit:
                break
            likeness = _Likeness(view, ids, sources)
        kept = likeness.first_like(found.kept, number)
        if kept is None and len(found.kept) == limit:
            continue
        if not alive(view.snapshot.sources[source].path):
            continue
        if kept is not None:
            found.folded.setdefault(kept, []).append(number)
        elif taken[source] == PER_SOURCE:
            found.crowded.add(number)
        else:
            taken[source] += 1
            found.kept.append(candidates[place])
    return found


class _Likeness:
    """Tells which candidates are nearly the same; keeps what was read and made of their texts."""

    def __init__(self, view: View, candidates: Sequence[int], sources: Sequence[int]) -> None:
        self._possible: dict[int, set[int]] = {}  # chunk → better ones
        if not HAS_NUMPY:
            return
        self._view = view
        columns, rows = view.snapshot.columns, view.snapshot.rows
        lengths = take(columns.length, candidates)
        ids = [one for one, length in zip(candidates, lengths, strict=True) if length >= MIN_TERMS]
        places = _near(
            rows.buffer, rows.count, rows.dim, columns, ids, cosine=MIN_COSINE, share=MIN_LENGTH_SHARE
        )
        for better, other in places:
            self._possible.setdefault(ids[other], set()).add(ids[better])
        self._row = dict(zip(ids, take(columns.row, ids), strict=True))
        self._source = dict(zip(candidates, sources, strict=False))

    def first_like(self, kept: Sequence[Candidate], other: int) -> int | None:
        """Return the first of those that are *kept* that *other* is nearly the same as."""
        possible = self._possible.get(other)
        if not possible:
            return None
        return next((one.id for one in kept if one.id in possible and self._is_like(one.id, other)), None)

    def _is_like(self, better: int, other: int) -> bool:
        if self._day(better) != self._day(other):
            return False
        if self._row[better] == self._row[other] >= 0:  # the model read the same of both
            return True
        one, two = self._texts[better], self._texts[other]
        return one.is_roughly(two) and is_near(one.fingerprint, two.fingerprint)

    def _day(self, chunk: int) -> date | None:
        """Return the day that its source tells of, None where it is of no day."""
        source = self._view.snapshot.sources[self._source[chunk]]
        return source.day if source.dated else None

    @cached_property
    def _texts(self) -> dict[int, _Text]:
        ids = self._possible.keys() | {better for many in self._possible.values() for better in many}
        return {number: _Text(chunk) for number, chunk in self._view.chunks(sorted(ids)).items()}


class _Text:
    """A chunk's text, and what was made of it."""

    def __init__(self, chunk: StoredChunk) -> None:
        self._text = f"{chunk.heading}\n{chunk.text}"

    @cached_property
    def words(self) -> frozenset[str]:
        """The words as they stand there, with signs and all."""
        return frozenset(self._text.split())

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What is compared of it."""
        return fingerprint(self._text)

    def is_roughly(self, other: _Text) -> bool:
        """Tell, at a tenth of the cost, whether a comparison is worth it."""
        shared, fewer = len(self.words & other.words), min(len(self.words), len(other.words))
        return fewer < ROUGHLY_FROM or shared >= ROUGHLY * (len(self.words) + len(other.words) - shared)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of a text."""

    shingles: frozenset[tuple[str, ...]]  # empty where there is no word
    numbers: frozenset[str]  # words with a digit


def fingerprint(text: str) -> Fingerprint:
    """Return what is compared of a text; in spaceless scripts a pair of characters is a word."""
    pieces = analysis.pieces(analysis.fold(text))
    words = [
        word
        for piece in pieces
        for word in ((analysis.pairs(piece) or [piece]) if analysis.is_spaceless(piece) else [piece])
    ]
    last = max(len(words) - SHINGLE, 0)
    shingles = frozenset(tuple(words[start : start + SHINGLE]) for start in range(last + 1) if words)
    return Fingerprint(shingles, frozenset(word for word in pieces if any(map(str.isdigit, word))))


def is_near(one: Fingerprint, other: Fingerprint) -> bool:
    """Tell whether two texts are nearly the same."""
    if one.numbers != other.numbers or not one.shingles:
        return False
    shared = len(one.shingles & other.shingles)
    return shared >= MIN_JACCARD * (len(one.shingles) + len(other.shingles) - shared)


def _near(
    matrix: Any, rows: int, dim: int, columns: Columns, ids: Sequence[int], *, cosine: float, share: float
) -> list[tuple[int, int]]:
    """Return pairs of places in *ids*, the lower first, of chunks of two sources that may be alike.

    Those that have the same row; and those of which the shorter has at least *share* of the longer's length
    and, where both have a row, these have at least that *cosine*.
    """
    at = np.asarray(ids, np.int64)
    source, row, length = columns.source[at], columns.row[at], columns.length[at]
    alike = np.minimum(length[:, None], length) >= share * np.maximum(length[:, None], length)
    known = np.flatnonzero(row >= 0)
    vectors = np.frombuffer(matrix, np.float32, rows * dim).reshape(rows, dim)[row[known]]
    alike[np.ix_(known, known)] &= vectors @ vectors.T >= np.float32(cosine)
    alike |= (row[:, None] == row) & (row >= 0)
    alike &= source[:, None] != source
    return [(first, second) for first, second in np.argwhere(np.triu(alike, 1)).tolist()]
