"""Near-duplicates: a candidate that says nearly the same as a better one is named by it and takes no place.

Decided on headings and text: shared word triples, and the same numbers, since two texts that differ in a
number state different facts; so do equal logs of two days. Text is loaded only where lengths,
vectors and signatures leave it open whether two are alike, and compared only with what is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memd.index.columns import HAS_NUMPY, Columns
from memd.index.reader import StoredChunk
from memd.index.signature import BITS, MIN_JACCARD, SHINGLE, most_differing, words
from memd.index.snapshot import View
from memd.search.ranking import PER_SOURCE, Candidate, Candidates

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np

    # As `memd.index.signature.FORM` packs it.
    SIGNATURE = np.dtype(
        [("text", "<u8"), ("numbers", "<u4"), ("triples", "<u4"), ("bitmap", "<u8", BITS // 64)]
    )
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memd.index.columns import Ids, Mask

WINDOW = 100  # first candidates that are looked at for what a hit stands for, whatever the limit
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
    """Tells which candidates are nearly the same; reads the texts that are needed for that, once."""

    def __init__(self, view: View, ids: Sequence[int], sources: Sequence[int]) -> None:
        # Chunk → the better ones that it may be like → whether it is; None: their texts will tell.
        self._pairs: dict[int, dict[int, bool | None]] = {}
        if not HAS_NUMPY:
            return
        self._view = view
        day_of = _days(view, dict(zip(ids, sources, strict=False)))
        for better, other, verdict in _pairs(view, ids):
            if day_of(better) == day_of(other):
                self._pairs.setdefault(other, {})[better] = verdict

    def first_like(self, kept: Sequence[Candidate], other: int) -> int | None:
        """Return the first of those that are *kept* that *other* is nearly the same as."""
        pairs = self._pairs.get(other)
        return next((one.id for one in kept if self._is_like(one.id, other, pairs)), None) if pairs else None

    def _is_like(self, better: int, other: int, pairs: dict[int, bool | None]) -> bool:
        verdict = pairs.get(better, False)
        if verdict is not None:
            return verdict
        one, two = self._texts[better], self._texts[other]
        return one.is_roughly(two) and is_near(one.fingerprint, two.fingerprint)

    @cached_property
    def _texts(self) -> dict[int, _Text]:
        unsure = {
            number
            for other, pairs in self._pairs.items()
            for better, verdict in pairs.items()
            if verdict is None
            for number in (better, other)
        }
        return {number: _Text(chunk) for number, chunk in self._view.chunks(sorted(unsure)).items()}


def _days(view: View, owners: Mapping[int, int]) -> Callable[[int], date | None]:
    """Return what tells the day that a chunk's source is of, None where it is of no day."""

    def day_of(chunk: int) -> date | None:
        source = view.snapshot.sources[owners[chunk]]
        return source.day if source.dated else None

    return day_of


def _pairs(view: View, ids: Sequence[int]) -> Iterator[tuple[int, int, bool | None]]:
    """Yield pairs of chunks that may be alike, the better first, and whether they are; None: not known."""
    columns, rows = view.snapshot.columns, view.snapshot.rows
    at = np.asarray(ids, np.int64)
    at = at[columns.length[at] >= MIN_TERMS]
    pairs = _near(rows.buffer, rows.count, rows.dim, columns, at, cosine=MIN_COSINE, share=MIN_LENGTH_SHARE)
    row = columns.row[at]
    same_row = (row[pairs[:, 0]] == row[pairs[:, 1]]) & (row[pairs[:, 0]] >= 0)  # the model reads the same
    open_pairs = pairs[~same_row]
    equal, possible = _compared(view, at, open_pairs)
    for better, other in at[np.concatenate([pairs[same_row], open_pairs[equal]])].tolist():
        yield better, other, True
    for better, other in at[open_pairs[possible & ~equal]].tolist():
        yield better, other, None


def _compared(view: View, at: Ids, pairs: Ids) -> tuple[Mask, Mask]:
    """Return of which *pairs* of places in *at* the signatures say that they are alike, and may be."""
    different, places = np.unique(pairs, return_inverse=True)
    stored = view.signatures(at[different].tolist()) if len(different) else {}
    table = np.frombuffer(b"".join([stored[number] for number in at[different].tolist()]), SIGNATURE)
    one, other = table[places.reshape(pairs.shape)].T
    numbers = (one["numbers"] == other["numbers"]) & (one["triples"] > 0)
    differing = _set_bits(one["bitmap"] ^ other["bitmap"])
    most = most_differing(one["triples"].astype(np.int64), other["triples"].astype(np.int64))
    return numbers & (one["text"] == other["text"]), numbers & (differing <= most)


def _set_bits(words: NDArray[np.uint64]) -> Ids:
    """Return how many bits are set in each row."""
    is_counted = hasattr(np, "bitwise_count")  # since numpy 2
    bits = np.bitwise_count(words) if is_counted else np.unpackbits(words.view(np.uint8), axis=1)
    counts: Ids = bits.sum(axis=1, dtype=np.int64)
    return counts


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
    """Return what is compared of a text."""
    found, numbers = words(text)
    last = max(len(found) - SHINGLE, 0)
    return Fingerprint(
        frozenset(tuple(found[start : start + SHINGLE]) for start in range(last + 1) if found), numbers
    )


def is_near(one: Fingerprint, other: Fingerprint) -> bool:
    """Tell whether two texts are nearly the same."""
    if one.numbers != other.numbers or not one.shingles:
        return False
    shared = len(one.shingles & other.shingles)
    return shared >= MIN_JACCARD * (len(one.shingles) + len(other.shingles) - shared)


def _near(matrix: Any, rows: int, dim: int, columns: Columns, at: Ids, *, cosine: float, share: float) -> Ids:
    """Return pairs of places in *at*, the lower first, of chunks of two sources that may be alike.

    Those that have the same row; and those of which the shorter has at least *share* of the longer's length
    and, where both have a row, these have at least that *cosine*.
    """
    source, row, length = columns.source[at], columns.row[at], columns.length[at]
    alike = np.minimum(length[:, None], length) >= share * np.maximum(length[:, None], length)
    known = np.flatnonzero(row >= 0)
    if len(known):
        vectors = np.frombuffer(matrix, np.float32, rows * dim).reshape(rows, dim)[row[known]]
        alike[np.ix_(known, known)] &= vectors @ vectors.T >= np.float32(cosine)
    alike |= (row[:, None] == row) & (row >= 0)
    alike &= source[:, None] != source
    return np.argwhere(np.triu(alike, 1))
