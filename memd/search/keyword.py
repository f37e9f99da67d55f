"""Which chunks have the query's words? Three tiers over FTS5, one score.

FTS5 says where each term stands; the score is BM25 over all terms of the query, summed up from their
postings, so it is exact, takes masks before the cut and has an idf that is never negative. The tiers:

* ``fts``: words, joined by OR (``unicode61``).
* ``trigram``: every run and word of a query with Chinese, Japanese or Korean stands whole in the chunk.
* ``ngram``: some pairs of characters of such a query do.
* ``like``: nothing was found; the pieces are looked for anywhere inside the text.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memd import terms
from memd.index.view import View
from memd.kernels import kernel
from memd.search.query import Query, content_words

# Robertson & Zaragoza 2009, Lucene's defaults: how fast repetition saturates, how much length counts.
K1 = 1.2
B = 0.75
POOL = 300  # candidates of each arm, whatever the limit: answers for N are prefixes of those for N + k
MIN_SUBSTRING = 3  # shorter pieces of other scripts than CJK would match almost everything
MAX_SUBSTRING_CHUNKS = 5_000  # of one piece that are read to count it; more are a piece of every word


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a query."""

    text: str
    prefix: bool  # a character of a spaceless script: every term that begins with it
    times: int  # in the query
    document_frequency: int  # chunks that it stands in
    idf: float


@dataclass(frozen=True, slots=True)
class KeywordArm:
    """The keyword arm's judgement of every chunk."""

    pool: list[int]  # ids, best first
    terms: tuple[Term, ...]
    tier: str
    whole: frozenset[int]  # ids in which all of a CJK query stands whole
    _scores: kernel.Scores | dict[int, float]
    _mask: kernel.Mask

    def scores_of(self, ids: Sequence[int]) -> list[float]:
        """Return each chunk's score in [0, 1), with the same meaning in a workspace of any size.

        BM25 divided by the sum of the query's idf keeps the arm's judgement where r / (1 + r) throws it
        away; tanh(2 x) spreads the usual values of 0.1 to 0.4 over the range of a cosine.
        """
        reachable = sum(term.idf * term.times for term in self.terms)  # by a chunk full of every term
        if not reachable:
            return [0.0] * len(ids)
        if isinstance(self._scores, dict):
            found = [self._scores.get(number, 0.0) for number in ids]
        else:
            found = kernel.take(self._scores, ids)
        return [math.tanh(2 * score / reachable) for score in found]

    def place(self, chunk_id: int) -> tuple[int, float]:
        """Return a chunk's rank among all that may answer, from 1, and its score."""
        [score] = self.scores_of([chunk_id])
        if isinstance(self._scores, dict):
            own = self._scores.get(chunk_id, 0.0)
            return 1 + sum(other > own for other in self._scores.values()), score
        [own] = kernel.take(self._scores, [chunk_id])
        return 1 + kernel.count_above(self._scores, self._mask, own), score

    def tier_of(self, chunk_id: int) -> str:
        """Return which tier found a chunk."""
        return "trigram" if chunk_id in self.whole else self.tier


def keyword_arm(view: View, query: Query, mask: kernel.Mask) -> KeywordArm:
    """Score every chunk under *mask* by the query's words."""
    found, whole = _terms(view, query)
    scores = kernel.bm25(
        [(term.idf * term.times, postings) for term, postings in found], view.snapshot.columns, K1, B
    )
    pool = kernel.best(scores, mask, POOL)
    if not pool:
        return _substring_arm(view, query, mask)
    named = tuple(term for term, _ in found)
    tier = "ngram" if any(terms.is_spaceless(piece) for piece in query.pieces) else "fts"
    return KeywordArm(pool, named, tier, whole, scores, mask)


def phrase_expression(phrase: str) -> str:
    """Return the FTS5 expression for a phrase; nothing in it can be an operator."""
    pieces = terms.pieces(phrase)
    tokens: list[str] = []
    prefix = ""
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        if not terms.is_spaceless(piece):
            tokens.append(piece)
            continue
        tokens += terms.pairs(piece)
        if not last:
            tokens.append(piece[-1])  # as `prepare` ends a run
        elif len(piece) == 1:  # each character starts exactly one term
            tokens.append(piece)
            prefix = " *"
    return f'"{" ".join(tokens)}"{prefix}'


def _terms(view: View, query: Query) -> tuple[list[tuple[Term, kernel.Postings]], frozenset[int]]:
    """Return each term with its postings, and the chunks with all runs whole."""
    runs = [piece for piece in query.pieces if terms.is_spaceless(piece)]
    words = content_words(tuple(piece for piece in query.pieces if not terms.is_spaceless(piece)))
    exact = view.reader.terms(" ".join([*words, *(pair for run in runs for pair in terms.pairs(run))]))
    single = view.reader.terms(" ".join(run for run in runs if len(run) == 1))
    counted = Counter([(term, False) for term in exact] + [(term, True) for term in single])
    total = view.snapshot.columns.count
    found = []
    for (text, prefix), times in sorted(counted.items()):
        postings = view.postings(text, prefix=prefix)
        frequency = postings.document_frequency
        found.append((Term(text, prefix, times, frequency, idf(total, frequency)), postings))
    return found, _whole_runs(view, runs, words)


def idf(chunks: int, document_frequency: int) -> float:
    """Return how much a term says: Lucene's form, never 0 or negative, also in a workspace of one note."""
    return math.log(1 + (chunks - document_frequency + 0.5) / (document_frequency + 0.5))


def _whole_runs(view: View, runs: Sequence[str], words: Sequence[str]) -> frozenset[int]:
    """Return the chunks in which every run and word stands whole; none where no run is a trigram long."""
    if not any(len(run) >= MIN_SUBSTRING for run in runs):
        return frozenset()
    found: set[int] | None = None
    for piece in dict.fromkeys([*runs, *words]):
        long_enough = len(piece) >= MIN_SUBSTRING
        table = "trigrams" if long_enough else "words"
        expression = f'"{piece}"' if long_enough else phrase_expression(piece)
        matching = set(view.matching(table, expression))
        found = matching if found is None else found & matching
        if not found:
            break
    return frozenset(found or ())


def _substring_arm(view: View, query: Query, mask: kernel.Mask) -> KeywordArm:
    """Look for each piece inside the text; a substring is scored as a term by the same BM25."""
    counts: dict[str, dict[int, int]] = {}
    for piece in dict.fromkeys(content_words(query.pieces)):
        if len(piece) >= MIN_SUBSTRING:
            ids = view.matching("trigrams", f'"{piece}"')
        elif terms.is_spaceless(piece):
            ids = view.containing(piece)
        else:
            continue
        counts[piece] = _counted(view, piece, [i for i in ids if mask[i]][:MAX_SUBSTRING_CHUNKS])
    total = view.snapshot.columns.count
    named = tuple(
        Term(piece, prefix=False, times=1, document_frequency=len(found), idf=idf(total, len(found)))
        for piece, found in counts.items()
    )
    columns = view.snapshot.columns
    average = max(columns.total_length / max(columns.count, 1), 1)
    scores: dict[int, float] = {}
    for term in named:
        for chunk_id, count in counts[term.text].items():
            norm = K1 * (1 - B + B * int(columns.length[chunk_id]) / average)
            scores[chunk_id] = scores.get(chunk_id, 0.0) + term.idf * count / (count + norm)
    pool = sorted(scores, key=lambda number: (-scores[number], number))[:POOL]
    return KeywordArm(pool, named, "like", frozenset(), scores, mask)


def _counted(view: View, piece: str, ids: list[int]) -> dict[int, int]:
    folded = terms.fold(piece)
    chunks = view.chunks(ids)
    counts = {number: terms.fold(chunk.text).count(folded) for number, chunk in chunks.items()}
    return {number: max(count, 1) for number, count in counts.items()}
