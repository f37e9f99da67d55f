"""The keyword arm: exact BM25 over the postings of FTS5, in tiers from words to substrings.

FTS5 supplies the postings of each term; the score is BM25 over all terms of the query, summed in one pass
over an array per term. So the score is exact, masks apply before the cut, and the idf is never negative. The
tiers:

* ``fts``: words, joined by OR (``unicode61``).
* ``trigram``: the chunk contains every run and word of a query with Chinese, Japanese or Korean text whole.
* ``ngram``: the chunk contains some character pairs of such a query.
* ``like``: the other tiers found nothing; the pieces are searched as substrings of the text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from memd.grouped_numbers import numbers_in
from memd.index.columns import (
    Columns,
    Ids,
    Mask,
    Scores,
    best,
    best_of,
    lower_bound,
    mask_size,
    spread,
    stretches,
)
from memd.index.postings import Part, PostingIds, Postings, counted, known
from memd.index.reader import Reader
from memd.index.snapshot import Snapshot, View
from memd.records import PER_SOURCE
from memd.search.explanation import Term
from memd.search.query import FORMS_SHARE, Query, content_words
from memd.search.source_scores import Grouped, grouped, keyword_scores, shares_by
from memd.search.word_forms import postings_of_forms
from memd.text import HYPHENATED, humps_of, is_spaceless, pairs_of, pieces_of, script_of_letter, searched_text

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view
if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids64 = NDArray[np.int64]


# Robertson & Zaragoza 2009, Lucene's defaults: saturation of the term frequency, weight of the length.
K1 = 1.2
B = 0.75
_NUMBERED = re.compile(r"(?<![\w./:@+-])([A-Za-z]{2,})[ -]?(\d+)(?![\w/:@+-]|[.,]\d)")
# Candidates of each arm, whatever the limit: answers for N are prefixes of those for N + k. With 300 the
# first ten are the same on every set, and a query takes 2 ms longer.
POOL = 150
# A query of one run is a word: its whole occurrence counts as two more terms, so that chunks with it rank
# first (in 179 of 180 made queries, without this in 160). Not for the runs of questions, where it costs .03
# of nDCG@10.
WHOLE_TIMES = 2
# Factor of the weight of a corrected term, so that it ranks below a term that was typed exactly.
CORRECTED_SHARE = 0.7
# Share of the idf of a Han character in a pair that no chunk has: a short note often says the same by another
# word with that character (.03 of nDCG@10 in Chinese questions to memories, .002 in documents).
CHARACTER_SHARE = 0.2
# If forms and their word occur in more than this number of times as many chunks as the word alone, the forms
# count half: most of these chunks are about something else. With full weight, one question in 300 of SciFact
# loses its note from the first ten; see "Frequent forms" in docs/evaluation.md for other numbers and weights.
FORMS_TIMES, FREQUENT_SHARE = 12, 0.5
# See `Matched.is_chance`. Chosen on the even questions of nine sets asked by words alone; of the odd ones
# with the right note among ten .0015 are called none, and of foreign questions .57 instead of .53.
CHANCE = 1.75
PAIR = 2  # characters of a term of a script without spaces
MIN_SUBSTRING = 3  # shorter pieces of other scripts than CJK would match almost everything
MAX_SUBSTRING_CHUNKS = 5_000  # read to count one piece; a piece in more chunks is part of every word
# Chunks searched for an excluded word with its minus sign, newest first: all would take 50 ms per word.
MAX_LITERAL_CHUNKS = 2_000
LITERAL_CHUNKS = 64  # read at once: one of the first chunks mostly decides; arbitrary

# Chunks or postings scored at once: the arrays of each step fit into a core's second-level cache (1 MB).
BLOCK = 1 << 16
# Below this share, chunks are gathered rather than scanned: 20 ns per chunk and term, instead of 1 ns.
FEW = 1 / 64
ROUNDING = 1e-4  # upper bound of the relative error of float32 sums, with a wide margin


@dataclass(frozen=True, slots=True)
class KeywordArm:
    """The keyword arm's judgement of every chunk."""

    pool: Ids  # the chunks with the best BM25 of their own, best first
    terms: tuple[Term, ...]  # of the query's words, followed by the forms of some
    tier: str
    whole: frozenset[int]  # ids of chunks that contain all of a CJK query whole
    postings: tuple[Postings, ...]  # of each term
    mask: Mask  # which chunks may answer
    _scores: ChunkScores
    _snapshot: Snapshot

    @property
    def words(self) -> tuple[Term, ...]:
        """The terms that are the query's own words."""
        return tuple(term for term in self.terms if not (term.forms or term.is_beside))

    def scores_of(self, ids: Sequence[int] | Ids) -> list[float]:
        """Return each chunk's score in [0, 1), from its own words and the words of its source."""
        found: list[float] = self.evidence_of(grouped(self._snapshot, ids)).tolist()
        return found

    def evidence_of(self, chunks: Grouped) -> NDArray[np.float64]:
        """Return the scores of `scores_of` for grouped chunks."""
        columns = self._snapshot.columns
        firsts, _ = stretches(columns, chunks.one_each)
        return keyword_scores(
            self._scores.at(chunks.ids),
            chunks.group,
            shares_by(chunks.dated),
            self._scores.at(firsts),
            bm25_of_sources(
                _weighted(self.terms, self.postings), columns, chunks.one_each, K1, B, instead=self.instead()
            ),
            reachable=reachable(self.terms),
        )

    def matched(self, ids: Ids) -> Matched:
        """Count the query's words in some chunks, which must be sorted."""
        words = self.words_in(ids)
        idf = {t.text: t.idf for t in sorted(self.terms, key=lambda t: t.idf) if not t.is_beside}
        return Matched(ids, words, idf, math.log(max(self._snapshot.columns.count, 1)) - CHANCE)

    def words_in(self, ids: Ids) -> dict[str, NDArray[np.bool_]]:
        """Return word → whether each chunk has it or a form of it."""
        each: dict[str, NDArray[np.bool_]] = {}
        for term, postings in zip(self.terms, self.postings, strict=True):
            is_run = is_spaceless(term.text) and len(term.text) > PAIR  # whole, beside its pairs
            if not (is_run or term.is_beside):
                has = reduce(np.logical_or, [counts_at(part, ids) > 0 for part in postings.parts])
                each[term.text] = each[term.text] | has if term.text in each else has
        return each

    def only(self, texts: Collection[str]) -> KeywordArm:
        """Return the judgement by only the words *texts*, given in lower case, without forms."""
        kept = [
            (term, postings)
            for term, postings in zip(self.terms, self.postings, strict=True)
            if term.text.casefold() in texts and not term.forms
        ]
        named, postings = tuple(term for term, _ in kept), tuple(some for _, some in kept)
        scores = ChunkScores(_weighted(named, postings), self._snapshot.columns, K1, B)
        return replace(self, terms=named, postings=postings, _scores=scores)

    def every(self) -> Scores:
        """Return each chunk's score by its own words."""
        return self._scores.every()

    def tier_of(self, chunk_id: int) -> str:
        """Return which tier found a chunk."""
        return "trigram" if chunk_id in self.whole else self.tier

    def instead(self) -> dict[int, int]:
        """Return, among the terms, the index of each entry of forms → the index of their word."""
        words = {term.text: place for place, term in enumerate(self.terms) if not term.forms}
        return {place: words[term.text] for place, term in enumerate(self.terms) if term.forms}


class Matched:
    """How many distinct words of the query some chunks have.

    A form counts as its word, a pair of characters of a script without spaces as half of one.
    """

    def __init__(
        self, ids: Ids, words: Mapping[str, NDArray[np.bool_]], idf: Mapping[str, float], chance: float
    ) -> None:
        worth = np.array([0.5 if is_spaceless(text) else 1.0 for text in words])
        has = np.array(list(words.values())).reshape(len(words), len(ids))
        self._ids, self._has = ids, dict(zip(words, has, strict=True))
        self._each = worth @ has
        self.every = float(worth.sum())  # words of the query
        self.most = float(self._each.max(initial=0.0))  # of them in the best-matching chunk
        mass = np.array([idf[text] for text in words]) @ has
        # Whether no chunk has more of the query than chance gives one of so many: none has half of its words,
        # and the idf of those that the best one has is below that of a word in e^`CHANCE` chunks. Where words
        # alone judge, this tells a question to other notes.
        self.is_chance = bool(self.most < self.every / 2 and mass.max(initial=0.0) < chance)

    def at(self, ids: Ids) -> NDArray[np.float64]:
        """Return the number of words in each of some of the chunks."""
        found: NDArray[np.float64] = self._each[np.searchsorted(self._ids, ids)]
        return found

    def neighbours(self, ids: Ids, pieces: Sequence[str], count: int) -> Mask:
        """Return whether each of some chunks has *count* words that follow each other in *pieces*.

        A word that was not looked for, as a stop word, may be in each of them.
        """
        at, unknown = np.searchsorted(self._ids, ids), np.ones(len(self._ids), np.bool_)
        there = np.array([self._has.get(piece, unknown)[at] for piece in pieces])
        found: Mask = np.any(sliding_window_view(there, count, axis=0).all(axis=-1), axis=0)
        return found


def keyword_arm(view: View, query: Query, mask: Mask, per_source: int = PER_SOURCE) -> KeywordArm:
    """Score every chunk under *mask* by the query's words; *per_source*: hits of one source, at most."""
    found, whole = terms_of(view, query)
    if whole and len(query.pieces) == 1:
        postings = counted(dict.fromkeys(whole, 1))
        found.append((_term(view, query.pieces[0], postings, times=WHOLE_TIMES), postings))
    found += _characters(view, query, mask, found)
    tier = "ngram" if any(is_spaceless(piece) for piece in query.pieces) else "fts"
    arm = _arm(view, mask, found, tier, whole, per_source)
    if len(arm.pool):
        return arm
    # Each piece as a substring of the text, scored like a term.
    found = []
    for piece in dict.fromkeys(content_words(query.pieces)):
        # Any part of a spaceless run was found by its pairs already.
        if len(piece) >= MIN_SUBSTRING and not is_spaceless(piece):
            postings = counted(view.inside(piece, MAX_SUBSTRING_CHUNKS, mask.__getitem__))
            found.append((_term(view, piece, postings), postings))
    return _arm(view, mask, found, "like", frozenset(), per_source)


def knows_a_word(view: View, query: Query) -> bool:
    """Return whether some chunk contains a word of the query."""
    return any(term.document_frequency for term, _ in terms_of(view, query)[0])


def occurs_literally(view: View, typed: str) -> bool:
    """Return whether some chunk contains *typed*, a word with a minus, literally: ``find -name``."""
    written = re.compile(rf"(?<![^\s(\[{{`'\"]){re.escape(searched_text(typed))}(?!\w)")
    ids = sorted(view.matching("words", phrase_expression(typed)), reverse=True)[:MAX_LITERAL_CHUNKS]
    some = (ids[start : start + LITERAL_CHUNKS] for start in range(0, len(ids), LITERAL_CHUNKS))
    return any(written.search(text) for few in some for text in view.reader.searched(few).values())


def _arm(  # noqa: PLR0917 - what was decided before, each once
    view: View,
    mask: Mask,
    found: list[tuple[Term, Postings]],
    tier: str,
    whole: frozenset[int],
    per_source: int,
) -> KeywordArm:
    named = tuple(term for term, _ in found)
    postings = tuple(some for _, some in found)
    scores = ChunkScores(_weighted(named, postings), view.snapshot.columns, K1, B)
    columns = view.snapshot.columns
    pool = spread(lambda under: scores.best(under, POOL), scores.at, mask, columns, POOL, per_source)
    return KeywordArm(pool, named, tier, whole, postings, mask, scores, view.snapshot)


def _weighted(named: Sequence[Term], postings: Sequence[Postings]) -> list[tuple[float, Postings]]:
    return [(term.weight, found) for term, found in zip(named, postings, strict=True)]


def phrase_expression(phrase: str) -> str:
    """Return the FTS5 expression for a phrase, quoted so that it contains no operators."""
    pieces = pieces_of(phrase)
    tokens: list[str] = []
    prefix = ""
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        if not is_spaceless(piece):
            tokens.append(piece)
            continue
        tokens += pairs_of(piece)
        if not last:
            tokens.append(piece[-1])  # the token with which `prepare` ends a run
        elif len(piece) == 1:  # each character starts exactly one term
            tokens.append(piece)
            prefix = " *"
    return f'"{" ".join(tokens)}"{prefix}'


def with_held_phrases(view: View, query: Query) -> Query:
    """Return *query* without the phrases that no note holds: their words are searched, and it says so."""
    held = tuple(one for one in query.phrases if len(view.matching("words", phrase_expression(one))))
    loose = tuple(f'"{one}"' for one in query.phrases if one not in held)
    return replace(query, phrases=held, as_words=(*query.as_words, *loose)) if loose else query


def with_words_as_written(view: View, query: Query) -> Query:
    """Return *query* with its numbers, hyphens and names as in code as notes have them, if any do.

    A number in groups is in one piece, in the first form that a note has. If no note has a word with a number
    at its end as typed, the number stands apart or is joined: "rfc2119" finds "RFC 2119". "e-mail" is in one
    piece if some note writes "email": notes with the hyphen are found by it, too. A name as in code that no
    note has stands for its words: `maxRetries` finds `max_retries`.
    """

    def has(word: str) -> int:
        return view.postings(word.casefold(), prefix=False).document_frequency

    def has_in_a_row(words: str) -> int:
        return len(view.matching("words", phrase_expression(words)))

    def unhyphenated(found: re.Match[str]) -> str:
        joined = found[0].replace("-", "")
        return joined if has(joined) > has_in_a_row(found[0]) else found[0]

    def as_written(found: re.Match[str]) -> str:
        joined, apart = found[1] + found[2], f"{found[1]} {found[2]}"
        if found[0] != joined:
            return joined if has(joined) and not has_in_a_row(apart) else found[0]
        return apart if not has(joined) and has_in_a_row(apart) else joined

    text = query.text
    for written, forms in numbers_in(text):
        text = text.replace(written, next(filter(has, forms), written))
    for name, words in humps_of(text):
        text = text if has(name) else text.replace(name, words)
    text = HYPHENATED.sub(unhyphenated, _NUMBERED.sub(as_written, text))
    return query if text == query.text else replace(query, text=text, pieces=tuple(pieces_of(text)))


def terms_of(view: View, query: Query) -> tuple[list[tuple[Term, Postings]], frozenset[int]]:
    """Return the terms with their postings, and the chunks that contain all runs whole."""
    taken = set(query.corrected.values())
    found = []
    for (text, prefix), times in sorted(query_terms(view.reader, query).items()):
        postings = view.postings(text, prefix=prefix)
        share = CORRECTED_SHARE if text in taken else 1.0
        found.append((_term(view, text, postings, prefix=prefix, times=times, share=share), postings))
    for word in [term for term, _ in found if term.text in query.forms and not term.prefix]:
        assert query.language is not None
        forms = query.forms[word.text]
        postings = postings_of_forms(view, word.text, forms, query.language)
        count = view.snapshot.columns.count
        found.append((term_of_forms(word, forms, postings.document_frequency, count), postings))
    runs = [piece for piece in query.pieces if is_spaceless(piece)]
    return found, _whole_runs(view, runs, _content_words(query))


def query_terms(reader: Reader, query: Query) -> Counter[tuple[str, bool]]:
    """Return how often a query has each term; True: a character, which stands for all terms that begin so."""
    runs = [piece for piece in query.pieces if is_spaceless(piece)]
    words = _content_words(query)
    exact = reader.terms(" ".join([*words, *(pair for run in runs for pair in pairs_of(run))]))
    single = reader.terms(" ".join(run for run in runs if len(run) == 1))
    return Counter([(term, False) for term in exact] + [(term, True) for term in single])


def _characters(
    view: View, query: Query, mask: Mask, found: Sequence[tuple[Term, Postings]]
) -> list[tuple[Term, Postings]]:
    """Return the Han characters of pairs that no chunk has, if one under *mask* has another word.

    For all characters it takes twice as long, and finds no more.
    """
    had = {term.text for term, _ in found if term.document_frequency}
    runs = [piece for piece in query.pieces if len(piece) >= PAIR and is_spaceless(piece)]
    lacking = {one for run in runs for pair in pairs_of(run) if pair not in had for one in pair}
    counts = Counter(one for one in "".join(runs) if one in lacking and script_of_letter(one) == "Han")
    parts = (part for _, postings in found for part in postings.parts)
    if not counts or not any(mask[known(part, view.snapshot.columns)[0]].any() for part in parts):
        return []
    each = [(one, times, view.postings(one, prefix=True)) for one, times in sorted(counts.items())]
    return [
        (_term(view, one, postings, prefix=True, times=times, share=CHARACTER_SHARE), postings)
        for one, times, postings in each
        if postings.document_frequency
    ]


def _content_words(query: Query) -> tuple[str, ...]:
    return content_words(tuple(piece for piece in query.pieces if not is_spaceless(piece)))


def term_of_forms(word: Term, forms: tuple[str, ...], document_frequency: int, chunks: int) -> Term:
    """Return the forms of a word as one term; *document_frequency*: chunks with one, and not the word."""
    # The two sets of chunks are disjoint. A rare form of a frequent word must not weigh more than the word.
    frequency = word.document_frequency + document_frequency
    share = FORMS_SHARE * word.share
    if frequency > FORMS_TIMES * (word.document_frequency or frequency):
        share *= FREQUENT_SHARE
    return Term(word.text, False, word.times, frequency, idf(chunks, frequency), share, forms)  # noqa: FBT003


def reachable(terms: Sequence[Term]) -> float:
    """Return the BM25 of a chunk full of every word; a word that only its forms represent has their idf."""
    represented = {term.text: term.idf for term in terms if term.forms}
    return sum(
        (term.idf if term.document_frequency else represented.get(term.text, term.idf)) * term.times
        for term in terms
        if not (term.forms or term.is_beside)
    )


def _term(
    view: View, text: str, postings: Postings, *, prefix: bool = False, times: int = 1, share: float = 1.0
) -> Term:
    frequency = postings.document_frequency
    return Term(text, prefix, times, frequency, idf(view.snapshot.columns.count, frequency), share)


def idf(chunks: int, document_frequency: int) -> float:
    """Return a term's idf in Lucene's form: always above 0, also in a workspace of one note."""
    return math.log(1 + (chunks - document_frequency + 0.5) / (document_frequency + 0.5))


def _whole_runs(view: View, runs: Sequence[str], words: Sequence[str]) -> frozenset[int]:
    """Return the chunks that contain every run and word whole; none if no run has three characters."""
    if not any(len(run) >= MIN_SUBSTRING for run in runs):
        return frozenset()
    found: set[int] | None = None
    inside = [word for word in words if len(word) >= MIN_SUBSTRING]
    for piece in dict.fromkeys([*runs, *(word for word in words if word not in inside)]):
        matching = set(view.matching("words", phrase_expression(piece)))
        found = matching if found is None else found & matching
    for word in dict.fromkeys(inside):
        found = set(view.inside(word, MAX_SUBSTRING_CHUNKS, (found or set()).__contains__))
    return frozenset(found or ())


class ChunkScores:
    """BM25 of the chunks: Σ weight · tf / (tf + k1 (1 - b + b · length / average length)). For one thread.

    Rare terms have the highest weight and the lowest cost, so they are added first. Frequent terms can add at
    most their weights (MaxScore, Turtle & Flood 1995): chunks that cannot reach the best that way are
    skipped. Each chunk's sum adds the same float32 numbers in the same order, the rarest term's first,
    regardless of the storage of the postings and of the chunks asked for.
    """

    def __init__(
        self, terms: Sequence[tuple[float, Postings]], columns: Columns, k1: float, b: float
    ) -> None:
        """Add the terms whose postings are held as ids; the other terms are added on demand."""
        self._norms = columns.norms(k1, b)
        self._sums = np.zeros(len(self._norms), np.float32)  # over the terms added so far
        self._rest = sorted(terms, key=lambda term: -term[1].document_frequency)  # the next is last
        self._columns = columns
        while self._rest and all(part.ids is not None for part in self._rest[-1][1].parts):
            self._add_next()

    def best(self, mask: Mask, limit: int) -> NDArray[np.int64]:
        """Return the ids of the *limit* highest scores above 0 under *mask*, best first, ties by id."""
        is_open = mask_size(mask) == self._columns.count  # every chunk with a score may be returned
        while self._rest:
            least = float(lower_bound(self._sums if is_open else np.where(mask, self._sums, 0), limit))
            least -= ROUNDING * least + sum(weight for weight, _ in self._rest)
            if least > 0:
                ids = np.flatnonzero(self._sums >= least)
                if len(ids) < FEW * len(self._sums):
                    return best_of(ids[mask[ids]], self.at(ids[mask[ids]]), limit)
            self._add_next()
        return best(self._sums, mask, limit)

    def at(self, ids: NDArray[np.int64]) -> Scores:
        """Return the scores of some chunks."""
        found: Scores = self._sums[ids]
        norms = self._norms[ids]
        for weight, term in reversed(self._rest):
            counts = sum((counts_at(part, ids) for part in term.parts), start=np.zeros(len(ids), np.float32))
            found += counts / (norms + counts) * np.float32(weight)
        return found

    def every(self) -> Scores:
        """Return each chunk's score."""
        while self._rest:
            self._add_next()
        return self._sums

    def _add_next(self) -> None:
        weight, term = self._rest.pop()
        for part in term.parts:
            if part.ids is None:
                _add_dense(self._sums, self._norms, np.float32(weight), part)
            else:
                _add_sparse(self._sums, self._norms, np.float32(weight), *known(part, self._columns))


def bm25_of_sources(
    terms: Sequence[tuple[float, Postings]],
    columns: Columns,
    ids: NDArray[np.int64],
    k1: float,
    b: float,
    *,
    instead: Mapping[int, int] = MappingProxyType({}),
) -> NDArray[np.float64]:
    """Return the BM25 of each id's source, treated as one long chunk.

    Counts and lengths are sums over the source's chunks; the average length is the chunks' average, as in
    `ChunkScores`. Text in two chunks is counted twice, in the counts and in the length. A source of one chunk
    scores the same as the chunk.

    *instead*: index of an entry of forms among the terms → index of their word. If another chunk of the
    source has the word, the forms count as the word: as a separate term they would count twice, and leaving
    them out costs .01 of nDCG@10 on manual pages.
    """
    first, end = stretches(columns, ids)
    average = max(columns.total_length / max(columns.count, 1), 1)
    stretch = Stretches(first, end)
    norm = k1 * (1 - b + b * stretch.sums(columns.length) / average)
    each = [sum(map(stretch.counts, term.parts), start=np.zeros(len(first))) for _, term in terms]
    for place, word in instead.items():
        has_word = each[word] > 0
        each[word] += np.where(has_word, each[place], 0)
        each[place][has_word] = 0
    scores = np.zeros(len(first))
    for (weight, _), counts in zip(terms, each, strict=True):
        scores += weight * counts / (counts + norm)
    return scores


def count_between(term: Postings, first: int, end: int) -> int:
    """Return the count of a term in the chunks from *first* to before *end*."""
    stretch = Stretches(np.array([first]), np.array([end]))
    return int(sum(stretch.counts(part)[0] for part in term.parts))


def counts_at(part: Part, ids: NDArray[np.int64]) -> Scores:
    """Return the count of the term in each chunk of *ids*."""
    if not part.size:
        return np.zeros(len(ids), np.float32)
    if part.ids is None:
        at, is_there = np.minimum(ids, part.size - 1), ids < part.size
    else:
        at = np.minimum(np.searchsorted(part.ids, ids.astype(np.int32)), part.size - 1)
        is_there = part.ids[at] == ids
    found: Scores = np.where(is_there, part.counts[at], 0).astype(np.float32)
    return found


def _add_dense(scores: Scores, norms: Scores, weight: np.float32, part: Part) -> None:
    size = min(part.size, len(scores))
    for start in range(0, size, BLOCK):
        block = slice(start, min(start + BLOCK, size))
        counts = part.counts[block].astype(np.float32)
        added = norms[block] + counts
        np.divide(counts, added, out=added)
        added *= weight
        scores[block] += added


def _add_sparse(
    scores: Scores, norms: Scores, weight: np.float32, ids: PostingIds, counted_there: NDArray[np.uint8]
) -> None:
    for start in range(0, len(ids), BLOCK):
        # Indices of type intp and mode "clip", which never clips here, halve the time of a gather.
        at = ids[start : start + BLOCK].astype(np.intp)
        counts = counted_there[start : start + BLOCK].astype(np.float32)
        added = norms.take(at, mode="clip")
        added += counts
        np.divide(counts, added, out=added)
        added *= weight
        added += scores.take(at, mode="clip")
        scores[at] = added


class Stretches:
    """Ranges of ids: from each *first* to before its *end*."""

    def __init__(self, first: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        self._last = int(end.max(initial=0))
        self._first, self._end = first, end
        self._edges = np.concatenate([first, end]).astype(np.int32)
        self._ids = _spread(first, end)  # for counts that are indexed by id

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum over each range of *values*, which are indexed by id."""
        if len(values) < self._last:  # the ids beyond have no values
            spread = _spread(np.minimum(self._first, len(values)), np.minimum(self._end, len(values)))
        else:
            spread = self._ids
        return _summed(values, spread, len(self._first))

    def counts(self, part: Part) -> NDArray[np.float64]:
        """Return the count of a term in each range."""
        if part.ids is None:
            return self.sums(part.counts)
        low, high = np.searchsorted(part.ids, self._edges).reshape(2, -1)
        return _summed(part.counts, _spread(low, high), len(low))


def _spread(first: Ids64, end: Ids64) -> tuple[Ids64, Ids64]:
    """Return, for each index in some ranges, the number of its range, and the index."""
    sizes = end - first
    which = np.repeat(np.arange(len(first)), sizes)
    return which, np.arange(len(which)) + (first - (np.cumsum(sizes) - sizes))[which]


def _summed(values: NDArray[Any], spread: tuple[Ids64, Ids64], count: int) -> NDArray[np.float64]:
    which, places = spread
    sums: NDArray[np.float64] = np.bincount(which, values[places], count).astype(np.float64, copy=False)
    return sums
