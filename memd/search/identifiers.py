"""Identifiers in a query: words that the model cannot read, and the chunks that they name.

A word of one piece means something to the model. A ticket number, a hash or a name in code is cut into many
pieces, few of them words, and its vector is noise: that share of the vector arm's weight goes to the keyword
arm. If such a word has most of the query's idf in the notes and occurs in few chunks, these chunks rank
first. The model's tokenizer decides; there is no list of patterns. Measured by `benchmarks/identifiers.py`.

Only ASCII words are judged: identifiers are ASCII, and the shipped tokenizer, which also substitutes for the
tokenizer of a model on a server, knows no other alphabet well.
"""

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from memctl.stop_words import STOP_WORDS
from memd.index.columns import Mask, take
from memd.index.snapshot import View
from memd.records import Tokenizer
from memd.search.called import DIGITS
from memd.search.explanation import MANY_PIECES, READ_FROM, Term, Word
from memd.search.keyword import phrase_expression
from memd.text import as_a_word, prepare

# A tokenizer turns a word of a hundred or more characters into one unknown piece. The longest piece of BERT's
# vocabulary has 18 characters.
LONGEST_PIECE = 32
# A word names chunks if at most this many contain it: a note repeats its subject, and the overlap of chunks
# doubles that. Values up to 5 make no difference to nDCG@10.
FEW = 3
# Words name a chunk if they have this share of the idf of the query's words that occur in the notes. Rare
# long words of a language are cut into pieces, too; without a limit they cost .01 of nDCG@10 on abstracts.
NAMING_SHARE = 0.5
NAMING_SHARE_UNREAD = 0.25  # for names and words that the model cannot read; 0 costs .003
# If the nearest chunk has this cosine, a word of two or three pieces counts as read and names no chunk:
# "where do we practise singing" does not ask for the note with the word "practise".
MEANT = 0.4
SYLLABLES = 3
# Words of one query that are looked up: a pasted log has hundreds, and each costs a query of the index.
MAX_WORDS = 32
# Chunks that are searched for a word with its punctuation as typed: few chunks that match "a query; SQL" have
# "query.sql". About 20 µs each.
MAX_LITERAL_CHUNKS = 100
# Chunks that may contain the rarest term of a word. FTS5 reads the positions in all of them, 0.1 µs each.
MAX_CHUNKS = 20_000

_JOINED_WORDS = re.compile(r"[A-Z]?[a-z]+(?:[-'][A-Z]?[a-z]+)+")

_NAMING = re.compile(r"[A-Za-z]+")  # in front of a number, with nothing between

_VERSION = re.compile(r"(v?)(\d+\.\d\S*)", re.IGNORECASE)  # notes and queries may leave out the v

Reading = Literal["whole", "pieces", "nothing"]
Few = Callable[[Word, int, bool], Sequence[int]]  # word, chunks with its rarest term, it has one → chunks


@dataclass(frozen=True, slots=True)
class Named:
    """The chunks that a query names, and the share of the query that the model reads."""

    read: float  # share of the query's idf that the model reads, in [0, 1]
    words: Mapping[int, tuple[str, ...]]  # id of a named chunk → the words that name it
    scores: Mapping[int, float]  # id of a named chunk → its score by only the words that name a chunk


NOTHING = Named(1.0, {}, {})


def spelled(text: str, tokenizer: Tokenizer) -> tuple[Word, ...]:
    """Return the words of a query's *text* that *tokenizer* cuts into pieces, each once, in their order.

    A word and its number ("Ruby 2.7", "RFC 1071") are one, too: each alone stands in many notes.
    """
    spans = tokenizer.spans(text)
    found: dict[str, Word] = {}
    at = place = 0
    before = ""
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
        parts = _JOINED_WORDS.fullmatch(word) and re.split("[-']", word)
        # "well-known" is of words that the model knows whole, and names nothing.
        is_split = (pieces > 1 or given_up) and not (parts and pieces == 2 * len(parts) - 1)
        if is_split and word.isascii() and word.casefold() not in STOP_WORDS:
            found[word] = Word(
                word,
                pieces,
                is_read=not given_up and (pieces < MANY_PIECES or len(word) >= READ_FROM * pieces),
            )
        if DIGITS.fullmatch(word) and _NAMING.fullmatch(before) and before.casefold() not in STOP_WORDS:
            found[f"{before} {word}"] = Word(f"{before} {word}", 2, is_read=True)
        before = typed
    return tuple(found.values())


def reading(text: str, words: Sequence[Word]) -> Reading:
    """Return how well the model reads the best word of a query's *text*; *words*: those cut into pieces."""
    if not words:
        return "whole"
    typed = {word.strip(string.punctuation) for word in text.split()}
    saying = {word for word in typed if word.casefold() not in STOP_WORDS}
    spelled_out = {word.text for word in words}
    if saying - spelled_out:
        return "whole"
    return "pieces" if any(word.says_something for word in words) else "nothing"


def named(  # noqa: PLR0917 - what is known of the query, then how chunks are found and scored
    view: View,
    words: Sequence[Word],
    terms: Iterable[Term],
    in_other_scripts: Sequence[str],
    few: Few,
    scores: Callable[[AbstractSet[str], Sequence[int]], Sequence[float]],
    *,
    is_meant: bool,
) -> Named:
    """Return the share of a query that the model reads, and the chunks that the query names.

    Args:
        view: has the terms of its words.
        words: of the query, as `spelled` returns them.
        terms: of the query.
        in_other_scripts: words of the query that the model does not read.
        few: returns the chunks that may answer with a word, or none if there are more than a few.
        scores: of chunks by some of the terms, in lower case.
        is_meant: the nearest chunk reaches MEANT.
    """
    terms = list(terms)
    known = {term.text.casefold(): term for term in terms if term.document_frequency}
    parts = parts_of(view, words[:MAX_WORDS])
    having: dict[int, list[Word]] = {}  # chunk → words that occur in only a few chunks
    for word, its in parts.items():
        if is_meant and word.is_read and not word.is_name and word.pieces <= SYLLABLES and len(its) == 1:
            continue
        rarest = min([known[part].document_frequency for part in its if part in known], default=0)
        for number in few(word, rarest, len(its) == 1):
            having.setdefault(number, []).append(word)
    enough = _mass(known.values())

    def share(some: Iterable[Word]) -> float:
        its = set().union(*(parts[word] for word in some)) & known.keys()
        return _mass(known[part] for part in its) / enough

    naming = {
        number: some
        for number, some in sorted(having.items())
        if share(some) >= NAMING_SHARE
        or share(word for word in some if word.is_name or not word.is_read) >= NAMING_SHARE_UNREAD
    }
    only = set().union(*(parts[word] for some in naming.values() for word in some))
    by_name = scores(only, list(naming)) if naming else []
    read = share_read(view, terms, parts, in_other_scripts)
    chunks = {number: tuple(word.text for word in some) for number, some in naming.items()}
    return Named(read, chunks, dict(zip(chunks, by_name, strict=True)))


def parts_of(view: View, words: Iterable[Word]) -> dict[Word, frozenset[str]]:
    """Return the index terms of each word."""
    return {word: frozenset(map(str.casefold, view.reader.terms(prepare(word.text)))) for word in words}


def in_few(view: View, mask: Mask, word: Word, rarest: int, is_alone: bool) -> Sequence[int]:  # noqa: FBT001 - as Few
    """Return the chunks under *mask* that contain a word as adjacent terms, or none if more than a few do.

    If some chunks contain the word with its typed punctuation, only these are returned. Of a word of one term
    no positions are compared.
    """
    if not 0 < rarest <= (FEW if is_alone else MAX_CHUNKS):
        return ()
    ids = view.matching("words", phrase_expression(word.text))
    if not ids and (version := _VERSION.fullmatch(word.text)):
        ids = view.matching("words", phrase_expression(version[2] if version[1] else f"v{version[2]}"))
    if not is_alone and len(ids) <= MAX_LITERAL_CHUNKS:
        typed = as_a_word(word.text)
        ids = [number for number, chunk in view.reader.chunks(ids).items() if typed.search(chunk.text)] or ids
    is_in_one = len(ids) <= MAX_LITERAL_CHUNKS and len(set(take(view.snapshot.columns.source, ids))) == 1
    return [one for one in ids if mask[one]] if len(ids) <= FEW or is_in_one else ()


def share_read(
    view: View, words: Sequence[Term], parts: Mapping[Word, frozenset[str]], in_other_scripts: Sequence[str]
) -> float:
    """Return the share of the query, by idf, that the model reads; arguments as of `named`.

    Words that neither the model reads nor a note contains are left out: neither arm can judge them. If the
    query has no other words, the result is 1: the model's guess is better than nothing.
    """
    unread = set().union(*(terms for word, terms in parts.items() if not word.is_read))
    unread |= set(map(str.casefold, view.reader.terms(prepare(" ".join(in_other_scripts)))))
    dark = _mass(t for t in words if t.text.casefold() in unread and t.document_frequency)
    if not dark:
        return 1.0
    light = _mass(t for t in words if t.text.casefold() not in unread)
    return light / (light + dark)


def _mass(found: Iterable[Term]) -> float:
    return sum(term.idf * term.times for term in found)
