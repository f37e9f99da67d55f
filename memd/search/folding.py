"""Which candidates are nearly the same text as a better one? That one names them; they take no place.

Decided on headings and text: shared word triples, and the same numbers, since two texts that differ in a
number state different facts. They are loaded only for pairs that length and vectors say may be alike; of
two chunks without a vector only equal ones are known.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from memd import terms
from memd.index.view import View
from memd.kernels import kernel
from memd.search.ranking import PER_SOURCE, Candidate

WINDOW = 100  # first candidates that are looked at for what a hit stands for, whatever the limit
SHINGLE = 3  # words; as usual for near-duplicate detection (Broder 1997 uses 4 to 10 on whole pages)
MIN_JACCARD = 0.8  # of the triples; of 200 words, seven may differ
MIN_COSINE = (
    0.95  # of manual pages, 94 of 100 pairs that are nearly the same have it; the rest differ in title
)
MIN_LENGTH_SHARE = 0.8  # a shorter text can't reach MIN_JACCARD


@dataclass(slots=True)
class Folding:
    """What became of the candidates, as far as they were looked at."""

    kept: list[Candidate] = field(default_factory=list)  # best first
    folded: dict[int, list[Candidate]] = field(default_factory=dict)  # kept chunk → what it stands for
    crowded: set[int] = field(default_factory=set)  # chunks whose source had its places already

    @property
    def into(self) -> dict[int, int]:
        """Folded chunk → the kept one that stands for it."""
        return {one.id: kept for kept, folded in self.folded.items() for one in folded}


def fold(view: View, candidates: Sequence[Candidate], limit: int, alive: Callable[[str], bool]) -> Folding:
    """Keep the first *limit* that are not nearly the same as a better one, at most PER_SOURCE of a source.

    What becomes of a candidate depends on better ones alone, so a higher *limit* only adds.

    Args:
        view: that they are from.
        candidates: best first.
        limit: of the answer.
        alive: whether a source is still on the disk; what is not is in no answer.
    """
    found = Folding()
    taken: Counter[int] = Counter()
    for candidate, alike in _each_with_alike(view, candidates, limit, found):
        if not alive(candidate.path):
            continue
        kept = next((better for better in found.kept if better.id in alike), None)
        if kept is not None:
            found.folded.setdefault(kept.id, []).append(candidate)
        elif len(found.kept) == limit:
            continue
        elif taken[candidate.source] == PER_SOURCE:
            found.crowded.add(candidate.id)
        else:
            taken[candidate.source] += 1
            found.kept.append(candidate)
    return found


def _each_with_alike(
    view: View, candidates: Sequence[Candidate], limit: int, found: Folding
) -> Iterator[tuple[Candidate, frozenset[int]]]:
    """Yield each candidate with the ids of better ones that it is nearly the same as.

    More than the window are looked at only where that did not fill the answer.
    """
    start = 0
    for stop in (max(WINDOW, limit), len(candidates)):
        alike = _alike(view, [one.id for one in candidates[:stop]])
        for candidate in candidates[start:stop]:
            yield candidate, alike.get(candidate.id, frozenset())
        if len(found.kept) == limit or stop >= len(candidates):
            return
        start = stop


def _alike(view: View, ids: list[int]) -> dict[int, frozenset[int]]:
    """Return chunk → earlier ones of *ids* that are nearly the same."""
    columns, rows = view.snapshot.columns, view.snapshot.rows
    row = dict(zip(ids, kernel.take(columns.row, ids), strict=True))
    alike = _same(view, [number for number in ids if row[number] < 0])
    places = kernel.near(
        rows.buffer, rows.count, rows.dim, columns, ids, cosine=MIN_COSINE, share=MIN_LENGTH_SHARE
    )
    pairs = [(ids[first], ids[second]) for first, second in places]
    unsure = {number for first, second in pairs if row[first] != row[second] for number in (first, second)}
    prints = {
        number: fingerprint(f"{chunk.heading}\n{chunk.text}")
        for number, chunk in view.chunks(sorted(unsure)).items()
    }
    for first, second in pairs:
        if row[first] == row[second] or is_near(prints[first], prints[second]):
            alike.setdefault(second, set()).add(first)
    return {number: frozenset(others) for number, others in alike.items()}


def _same(view: View, ids: list[int]) -> dict[int, set[int]]:
    """Return chunk → earlier ones of *ids*, without vectors, of which the model will read just the same."""
    sources = dict(zip(ids, kernel.take(view.snapshot.columns.source, ids), strict=True))
    hashes = view.reader.hashes(ids) if ids else {}
    found: dict[int, set[int]] = {}
    first: dict[bytes, int] = {}
    for number in ids:
        one = first.setdefault(hashes[number], number)
        if sources[one] != sources[number]:
            found[number] = {one}
    return found


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of a text."""

    shingles: frozenset[tuple[str, ...]]
    numbers: frozenset[str]  # words with a digit


def fingerprint(text: str) -> Fingerprint:
    """Return what is compared of a text; in spaceless scripts a pair of characters is a word."""
    pieces = terms.pieces(terms.fold(text))
    words = [
        word
        for piece in pieces
        for word in ((terms.pairs(piece) or [piece]) if terms.is_spaceless(piece) else [piece])
    ]
    shingles = zip(*(words[start:] for start in range(SHINGLE)), strict=False)
    numbers = frozenset(word for word in pieces if any(map(str.isdigit, word)))
    return Fingerprint(frozenset(shingles) or frozenset([tuple(words)]), numbers)


def is_near(one: Fingerprint, other: Fingerprint) -> bool:
    """Tell whether two texts are nearly the same."""
    if one.numbers != other.numbers:
        return False
    shared = len(one.shingles & other.shingles)
    return shared >= MIN_JACCARD * (len(one.shingles) + len(other.shingles) - shared)
