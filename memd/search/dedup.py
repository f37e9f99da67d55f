"""Fold near-duplicates of better candidates and join neighbouring chunks: neither fills places of an answer.

A candidate with nearly the same text as a better candidate is folded: the better one names it. The chunks
directly before and after a better candidate are joined to it: the better one shows their lines, too.

Near-duplicates are decided on headings and text: shared word triples and the same numbers, since two texts
that differ in a number state different facts; so do equal logs of two days. Text is loaded only if lengths,
vectors and signatures leave the decision open, and is compared only with texts that are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

from memd.index.columns import bits_set
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.index.source_rows import BITS, MIN_JACCARD, MOST_DIFFERING, SHINGLE, compared_words
from memd.search.ranking import Candidate

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np

    # As `memd.index.source_rows.FORM` packs it.
    SIGNATURE = np.dtype(
        [("text", "<u8"), ("numbers", "<u4"), ("triples", "<u4"), ("bitmap", "<u8", BITS // 64)]
    )
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memd.index.columns import Ids

Verdict = Literal["alike", "open"]  # what is known of two texts before they are read

WINDOW = 100  # best candidates that are compared with each hit, whatever the limit
MIN_COSINE = 0.95  # 94 of 100 pairs of near-duplicate manual pages reach it; others differ in title
MIN_LENGTH_SHARE = 0.8  # a shorter text can't reach MIN_JACCARD
MIN_TERMS = 8  # a shorter text says little beyond the name of its file; arbitrary
BLOCK = 32  # places whose lengths are compared at once: an answer shows about as many; arbitrary
ROUGHLY = 0.5  # share of unnormalised words in common below which triples need no counting
ROUGHLY_FROM = 10  # words; spaceless text has too few


@dataclass(slots=True)
class Dedup:
    """The outcome for each candidate that was examined."""

    kept: list[Candidate] = field(default_factory=list)  # best first
    folded: dict[int, list[int]] = field(default_factory=dict)  # kept chunk → the chunks folded into it
    shown: dict[int, int] = field(default_factory=dict)  # kept chunk → itself, joined chunk → the kept chunk
    ranks: dict[int, int] = field(default_factory=dict)  # kept or joined chunk → rank as a candidate, from 0
    crowded: set[int] = field(default_factory=set)  # chunks whose source had used up its places

    @property
    def into(self) -> dict[int, int]:
        """Folded chunk → the kept chunk that represents it."""
        return {place: kept for kept, folded in self.folded.items() for place in folded}

    def beside(self, kept: int) -> list[int]:
        """Return the chunks before and after a kept chunk that are joined to it."""
        return [place for place in (kept - 1, kept + 1) if self.shown.get(place) == kept]


class Comparison(Protocol):
    """Finds near-duplicates among candidates, which are named by their places."""

    def __init__(self, view: View, ids: Sequence[int], sources: Sequence[int]) -> None:
        """Take the candidates' *ids*, best first, and the *sources* of each."""

    def keep(self, place: int) -> None:
        """Note that a candidate is shown, and which lower candidates may be near-duplicates of it."""

    def first_like(self, other: int) -> int | None:
        """Return the best shown candidate that a candidate is a near-duplicate of, if any."""


def fold(
    view: View,
    candidates: Sequence[Candidate],
    limit: int,
    per_source: int,
    alive: Callable[[str], bool],
    *,
    compared: Callable[[View, Sequence[int], Sequence[int]], Comparison],
) -> Dedup:
    """Keep the first *limit* candidates that are neither near-duplicates nor neighbours of a better one.

    At most *per_source* candidates of a source are kept. The chunks before and after a kept chunk are joined
    to it, whatever their rank. The outcome of a candidate depends only on better candidates, so a higher
    *limit* only adds hits. *alive* returns whether a source is still on the disk: deleted ones are in no
    answer. It is called only for sources that may be in the answer. *compared* finds near-duplicates.
    """
    found, window = Dedup(), max(WINDOW, limit)
    ids = [candidate.id for candidate in candidates]
    sources = [candidate.source for candidate in candidates]
    places = {number: place for place, number in enumerate(ids)}
    taken: Counter[int] = Counter()  # places of the answer that each source has taken
    likeness = compared(view, ids[:window], sources)
    passed: list[int] = []  # places that were passed to `keep`

    def first_like(place: int) -> int | None:
        """Return the best kept chunk that shows nearly the text of a candidate, if any."""
        like = likeness.first_like(place)
        return None if like is None else found.shown[ids[like]]

    def show(place: int, hit: int) -> None:
        """Show a candidate, as a hit or joined to one."""
        found.shown[ids[place]] = ids[hit]
        found.ranks[ids[place]] = place
        if place < WINDOW or place == hit:
            passed.append(place)
            likeness.keep(place)

    for place, (number, source) in enumerate(zip(ids, sources, strict=True)):
        is_full = len(found.kept) == limit
        if place == window:
            if is_full:
                break
            likeness = compared(view, ids, sources)
            for one in passed:
                likeness.keep(one)
        if number in found.shown:
            continue
        like = first_like(place)
        if (like is None and is_full) or not alive(candidates[place].path):
            continue
        if like is not None:
            found.folded.setdefault(like, []).append(number)
            continue
        if taken[source] == per_source:
            found.crowded.add(number)
            continue
        taken[source] += 1
        found.kept.append(candidates[place])
        show(place, place)

        # Join worse neighbours of its source, unless they are shown or duplicates. Beyond the window they
        # are joined without a comparison: another limit would not compare them either.
        for beside in (places.get(number - 1, place), places.get(number + 1, place)):
            is_worse = beside > place and sources[beside] == source and ids[beside] not in found.shown
            if is_worse and (beside >= WINDOW or first_like(beside) is None):
                show(beside, place)
    return found


class Likeness:
    """`Comparison` by texts and vectors."""

    def __init__(self, view: View, ids: Sequence[int], sources: Sequence[int]) -> None:
        self._view = view
        self._ids = ids
        self._sources = sources
        self._better: dict[int, list[tuple[int, Verdict]]] = {}  # place → kept places it may duplicate
        self._signatures: dict[int, bytes] = {}  # by place
        self._texts: dict[int, _Text] = {}  # by place
        self._min_cosine = view.snapshot.cosines.cosine(MIN_COSINE)
        self._facts = _Facts.of(view, np.asarray(ids, np.int64))

    def keep(self, place: int) -> None:
        """Note that a candidate is shown, and which lower candidates may be near-duplicates of it."""
        others = self._facts.comparable(place, cosine=self._min_cosine)
        if not len(others):
            return
        day = self._day(place)
        for other, verdict in self._compared(place, others):
            if self._day(other) == day:
                self._better.setdefault(other, []).append((place, verdict))

    def first_like(self, other: int) -> int | None:
        """Return the best shown candidate that a candidate is a near-duplicate of, if any."""
        better = self._better.get(other, ())
        return next((place for place, verdict in better if self._is_like(place, other, verdict)), None)

    def _compared(self, place: int, others: Ids) -> Iterator[tuple[int, Verdict]]:
        """Yield the *others* whose signatures do not rule out that they duplicate the chunk at *place*."""
        has_row = self._facts.row[others] >= 0
        same_row = (self._facts.row[others] == self._facts.row[place]) & has_row
        different = others[~same_row].tolist()
        yield from ((other, "alike") for other in others[same_row].tolist())  # the model read the same text
        if not different:
            return
        unread = {self._ids[one]: one for one in [place, *different] if one not in self._signatures}
        if unread:
            stored = self._view.signatures(list(unread))
            self._signatures.update((one, stored[number]) for number, one in unread.items())
        table = np.frombuffer(b"".join([self._signatures[one] for one in [place, *different]]), SIGNATURE)
        one, rest = table[0], table[1:]
        possible = (rest["numbers"] == one["numbers"]) & (rest["triples"] > 0)
        triples = rest["triples"].astype(np.float64) + one["triples"]
        possible &= bits_set(rest["bitmap"] ^ one["bitmap"]) <= MOST_DIFFERING * triples
        equal = (rest["text"] == one["text"])[possible].tolist()
        for at, is_equal in zip(np.flatnonzero(possible).tolist(), equal, strict=True):
            yield different[at], "alike" if is_equal else "open"

    def _is_like(self, better: int, other: int, verdict: Verdict) -> bool:
        if verdict == "alike":
            return True
        if better not in self._texts or other not in self._texts:
            # Load all other texts that may duplicate this one, too: most of them will be compared.
            open_to = [one for one, known in self._better.items() if (better, "open") in known]
            by_id = {self._ids[place]: place for place in (better, *open_to) if place not in self._texts}
            stored = self._view.chunks(list(by_id))
            self._texts.update((place, _Text(stored[number])) for number, place in by_id.items())
        one, two = self._texts[better], self._texts[other]
        return one.is_roughly(two) and is_near(one.fingerprint, two.fingerprint)

    def _day(self, place: int) -> date | None:
        """Return the day of a candidate's source, None if the source is not dated."""
        source = self._view.snapshot.sources[self._sources[place]]
        return source.day if source.dated else None


@dataclass(slots=True)
class _Facts:
    """The facts in memory that tell whether candidates may be near-duplicates."""

    source: NDArray[np.int32]
    row: NDArray[np.int32]
    length: NDArray[np.int32]
    vectors: NDArray[np.float32]  # arbitrary for chunks without a row
    # Number of a block of BLOCK places → which places the lengths, rows and sources allow for each of them.
    tables: dict[int, NDArray[np.bool_]] = field(default_factory=dict)

    @staticmethod
    def of(view: View, ids: Ids) -> _Facts:
        """Collect the facts of the chunks *ids*."""
        columns, rows = view.snapshot.columns, view.snapshot.rows
        table = np.frombuffer(rows.buffer, np.float32, rows.count * rows.dim).reshape(rows.count, rows.dim)
        row = columns.row[ids]
        vectors = table[np.maximum(row, 0)] if rows.count else np.zeros((len(ids), 0), np.float32)
        return _Facts(columns.source[ids], row, columns.length[ids], vectors)

    def comparable(self, place: int, *, cosine: float) -> Ids:
        """Return the places after *place*, of other sources, that may be near-duplicates of the chunk there.

        These are chunks with the same row, and chunks where the shorter text has at least MIN_LENGTH_SHARE of
        the longer one's length and, if both have a row, the cosine of the rows is at least *cosine*. A chunk
        below MIN_TERMS has no near-duplicates.
        """
        number, at = divmod(place, BLOCK)
        if number not in self.tables:
            self.tables[number] = self._table(slice(number * BLOCK, (number + 1) * BLOCK))
        others: Ids = np.flatnonzero(self.tables[number][at, place + 1 :]) + place + 1
        row = self.row[place]
        if row < 0 or not len(others):
            return others
        rows = self.row[others]
        # Each row by itself: the last digit of a product of matrices depends on a row's position in them.
        dot = getattr(np, "vecdot", None)  # since numpy 2, in a third of the time
        one = self.vectors[place]
        cosines = dot(self.vectors[others], one) if dot else np.einsum("ij,j->i", self.vectors[others], one)
        near: Ids = others[(rows < 0) | (rows == row) | (cosines >= np.float32(cosine))]
        return near

    def _table(self, block: slice) -> NDArray[np.bool_]:
        """Return, for each place of a block, which places may be near-duplicates, whatever their cosines."""
        length, row = self.length, self.row
        least = np.where(length >= MIN_TERMS, MIN_LENGTH_SHARE * length, np.inf)
        alike = (length >= least[block, None]) & (least <= length[block, None])
        same = (row == row[block, None]) & (row >= 0) & (length >= MIN_TERMS)
        alike |= same & (length[block, None] >= MIN_TERMS)
        alike &= self.source != self.source[block, None]
        table: NDArray[np.bool_] = alike
        return table


class _Text:
    """A chunk's text, with its word set and fingerprint computed once."""

    def __init__(self, chunk: StoredChunk) -> None:
        self._text = f"{chunk.heading}\n{chunk.text}"

    @cached_property
    def words(self) -> frozenset[str]:
        """The words as written, punctuation included."""
        return frozenset(self._text.split())

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of heading and text."""
        return fingerprint(self._text)

    def is_roughly(self, other: _Text) -> bool:
        """Return whether the full comparison is worth it, at a tenth of its cost."""
        shared, fewer = len(self.words & other.words), min(len(self.words), len(other.words))
        return fewer < ROUGHLY_FROM or shared >= ROUGHLY * (len(self.words) + len(other.words) - shared)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The features by which texts are compared."""

    shingles: frozenset[tuple[str, ...]]  # empty for a text without words
    numbers: frozenset[str]  # words with a digit


def fingerprint(text: str) -> Fingerprint:
    """Return the features by which a text is compared."""
    found, numbers = compared_words(text)
    last = max(len(found) - SHINGLE, 0)
    return Fingerprint(
        frozenset(tuple(found[start : start + SHINGLE]) for start in range(last + 1) if found), numbers
    )


def is_in(one: Fingerprint, other: Fingerprint) -> bool:
    """Return whether *other*, which may be longer, contains nearly all of *one*."""
    if not one.numbers <= other.numbers or len(one.shingles) < MIN_TERMS - SHINGLE + 1:
        return False
    return len(one.shingles & other.shingles) >= MIN_JACCARD * len(one.shingles)


def is_near(one: Fingerprint, other: Fingerprint) -> bool:
    """Return whether two texts are near-duplicates."""
    if one.numbers != other.numbers or not one.shingles:
        return False
    shared = len(one.shingles & other.shingles)
    return shared >= MIN_JACCARD * (len(one.shingles) + len(other.shingles) - shared)
