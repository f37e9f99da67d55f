"""Identifiers in a query: words that the model cannot read, and the chunks that they name.

A word that is one piece means something to the model. A ticket number, a hash or a name in code falls into
many, few of them words, and its vector is noise: for that part of a query the words answer. Where such a word
is most of what the notes know of the query and stands in a few chunks only, these come first. What a word
is, the model's tokenizer says; there is no list of patterns. Measured by `benchmarks/identifiers.py`.

Only words in ASCII are judged: identifiers are, and the shipped tokenizer, which stands in for that of a
model on a server, knows no other alphabet well.
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memd.index.columns import take
from memd.index.snapshot import View
from memd.records import Tokenizer
from memd.search.explanation import MANY_PIECES, READ_FROM, Term, Word
from memd.search.keyword import KeywordArm, phrase_expression
from memd.search.query import STOP_WORDS
from memd.search.vector import VectorArm
from memd.text import prepare

# A tokenizer gives up on a word of a hundred characters and more, and calls all of it one unknown piece. The
# longest piece of BERT's vocabulary has 18.
LONGEST_PIECE = 32
# Chunks that a word may stand in to name them: a note repeats its subject, and the overlap of chunks doubles
# that. Up to 5 it makes no difference to nDCG@10.
FEW = 3
# Of the idf of what the notes know of a query: so much must the words be to name a chunk. Rare long words of
# a language fall into pieces, too; without a limit they cost .01 of nDCG@10 on abstracts.
NAMING_SHARE = 0.5
NAMING_SHARE_UNREAD = 0.25  # of a name, or a word that the model cannot read; with 0 that costs .003
# Cosine of the nearest chunk from which a word of two or three syllables is taken to be read, and names none:
# "where do we practise singing" is no question for the note with "practise".
MEANT = 0.4
SYLLABLES = 3
# Of one query that are looked up: a pasted log has hundreds, and each is a query of the index.
MAX_WORDS = 32
# That are looked at for a word with signs inside as it was typed: of those with "a query; SQL" few have
# "query.sql". About 20 µs each.
MAX_LITERAL_CHUNKS = 100
# Chunks that the rarest term of a word may stand in. FTS5 reads the places of all of them, 0.1 µs each.
MAX_CHUNKS = 20_000

Reading = Literal["whole", "pieces", "nothing"]


@dataclass(frozen=True, slots=True)
class Named:
    """What a query's words name."""

    read: float  # how much of the query the model reads, by idf, in [0, 1]
    words: Mapping[int, tuple[str, ...]]  # id of a named chunk → the words that name it
    scores: Mapping[int, float]  # id of a named chunk → its score, had only words that name one been asked


NOTHING = Named(1.0, {}, {})


def spelled(text: str, tokenizer: Tokenizer) -> tuple[Word, ...]:
    """Return the words of a query's *text* that *tokenizer* cuts into pieces, each once, in their order."""
    spans = tokenizer.spans(text)
    found: dict[str, Word] = {}
    at = place = 0
    for typed in text.split():
        at = text.index(typed, at)
        word = typed.strip(string.punctuation)
        first = at + typed.find(word)
        end = first + len(word)
        at += len(typed)
        while place < len(spans) and spans[place][0] < first:
            place += 1
        pieces = 0
        given_up = False
        while place < len(spans) and spans[place][0] < end:
            given_up = given_up or spans[place][1] - spans[place][0] > LONGEST_PIECE
            pieces += 1
            place += 1
        is_split = pieces > 1 or given_up
        if is_split and word.isascii() and word.casefold() not in STOP_WORDS:
            found[word] = Word(
                word,
                pieces,
                is_read=not given_up and (pieces < MANY_PIECES or len(word) >= READ_FROM * pieces),
            )
    return tuple(found.values())


def reading(text: str, words: Sequence[Word]) -> Reading:
    """Return how well the model reads the best word of a query's *text*, of which it spells those *words*."""
    if not words:
        return "whole"
    typed = {one.strip(string.punctuation) for one in text.split()}
    saying = {one for one in typed if one.casefold() not in STOP_WORDS}
    spelled_out = {word.text for word in words}
    if saying - spelled_out:
        return "whole"
    return "pieces" if any(word.says_something for word in words) else "nothing"


def named(view: View, words: Sequence[Word], keyword: KeywordArm, vector: VectorArm) -> Named:
    """
    Return how much of a query the model reads, and which chunks the query names.

    Args:
        view: one moment of the index.
        words: of the query, as `spelled` returns them.
        keyword: the judgement of the query's words.
        vector: that of its meaning.
    """
    known = {term.text.casefold(): term for term in keyword.words if term.document_frequency}
    parts = {word: _parts(view, word) for word in words[:MAX_WORDS]}
    is_meant = max(vector.scores_of(vector.pool[:1]), default=0.0) >= MEANT
    having: dict[int, list[Word]] = {}  # chunk → words that only a few chunks have
    for word, its in parts.items():
        if is_meant and word.is_read and not word.is_name and word.pieces <= SYLLABLES and len(its) == 1:
            continue
        frequencies = [known[part].document_frequency for part in its if part in known]
        for number in _few(view, word, min(frequencies, default=0), is_alone=len(its) == 1):
            if vector.mask[number]:
                having.setdefault(number, []).append(word)
    enough = _mass(known.values())

    def share(some: Iterable[Word]) -> float:
        return (
            _mass(known[part] for part in set().union(*(parts[word] for word in some)) & known.keys())
            / enough
        )

    chunks = {
        number: tuple(word.text for word in some)
        for number, some in sorted(having.items())
        if share(some) >= NAMING_SHARE
        or share(word for word in some if word.is_name or not word.is_read) >= NAMING_SHARE_UNREAD
    }
    naming = set().union(*(parts[word] for number in chunks for word in having[number]))
    scores = keyword.only(naming).scores_of(list(chunks)) if chunks else []
    unread = set().union(*(its for word, its in parts.items() if not word.is_read))
    return Named(_read(keyword, unread), chunks, dict(zip(chunks, scores, strict=True)))


def _parts(view: View, word: Word) -> frozenset[str]:
    """Return the terms that a word is made of."""
    return frozenset(part.casefold() for part in view.reader.terms(prepare(word.text)))


def _few(view: View, word: Word, rarest: int, *, is_alone: bool) -> Sequence[int]:
    """Return the chunks that have a word, its terms side by side; none where they are not few.

    Where some have it with the signs that were typed, these alone.

    Args:
        view: one moment of the index.
        word: of the query.
        rarest: chunks that have the rarest of its terms.
        is_alone: whether it is one term, which has no place to be looked at.
    """
    if not 0 < rarest <= (FEW if is_alone else MAX_CHUNKS):
        return ()
    ids = view.matching("words", phrase_expression(word.text))
    if not is_alone and len(ids) <= MAX_LITERAL_CHUNKS:
        typed = re.compile(rf"(?<!\w){re.escape(word.text)}(?!\w)", re.IGNORECASE)
        ids = [number for number, one in view.reader.chunks(ids).items() if typed.search(one.text)] or ids
    is_in_one = len(ids) <= MAX_LITERAL_CHUNKS and len(set(take(view.snapshot.columns.source, ids))) == 1
    return ids if len(ids) <= FEW or is_in_one else ()


def _read(keyword: KeywordArm, unread: set[str]) -> float:
    """Return how much of the query the model reads.

    What it cannot read and no note has is left out: nobody can judge that. Where that is all, the model's
    guess is better than nothing.
    """
    dark = _mass(t for t in keyword.words if t.text.casefold() in unread and t.document_frequency)
    if not dark:
        return 1.0
    light = _mass(t for t in keyword.words if t.text.casefold() not in unread)
    return light / (light + dark)


def _mass(found: Iterable[Term]) -> float:
    return sum(term.idf * term.times for term in found)
