"""The records of an explanation: the parts of each hit's score, and how many chunks each stage dropped.

They are encoded without conversion. `explain` fills them. This module imports no search code, so that the
build of memd can read the protocol's result types. Pure and thread-safe.
"""

import re
from dataclasses import dataclass
from typing import Literal

from memd.config import Weights
from memd.diaries import Fading

# Average characters per piece; below this, the model spells a word rather than reads it. A UUID has 1.2, a
# version 1.2, a ticket number 1.8; "tardigrades" has 2.8, "parse_front_matter" 3.
READ_FROM = 2.0
# Minimum pieces of a word that is not read; "git" and "QA" have two.
MANY_PIECES = 3
_NAME = re.compile(r"[^\W_][_.:@/]+[^\W_]|[a-z][A-Z]")

# Why an arm did not score a chunk; the service knows why an arm did not run at all.
Unseen = Literal["vector-arm-did-not-run", "keyword-arm-did-not-run", "no-vector-yet", "script", "long"]


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that a chunk or its source must meet."""

    filter: str  # the name of one of `FILTER_KEYS`, or one of `OF_WORDS`
    value: str


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a query."""

    text: str
    prefix: bool  # a character of a spaceless script: every term that begins with it
    times: int  # in the query
    document_frequency: int  # chunks that contain it
    idf: float
    # Factor of its weight; below 1 if a word of the query was corrected to it, or if it is a character beside
    # the pairs of its run.
    share: float = 1.0
    # Other forms of the word `text`, which count as one term in chunks that lack the word itself; the term
    # then has the postings of the forms.
    forms: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """The most that it can add to the score of a chunk."""
        return self.idf * self.times * self.share

    @property
    def is_beside(self) -> bool:
        """Whether it is a character of a run whose pairs are terms, too: evidence, but no word."""
        return self.prefix and self.share < 1


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query that the model's tokenizer cuts into several pieces."""

    text: str  # as typed, without surrounding punctuation
    pieces: int
    is_read: bool  # the pieces are long enough to mean something

    @property
    def says_something(self) -> bool:
        """Whether the model reads it better than random letters, which have two characters per piece."""
        return self.is_read and (self.pieces < MANY_PIECES or len(self.text) > READ_FROM * self.pieces)

    @property
    def is_name(self) -> bool:
        """Whether it is written as a name in code: `start_at`, `query.sql`, `EventTypes`."""
        return _NAME.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class Shares:
    """The weights of the three counts of words in a chunk's score; they sum to 1."""

    chunk: float
    first: float  # the first chunk of its source
    file: float  # its source, as one long chunk


@dataclass(frozen=True, slots=True)
class TermPart:
    """The contribution of one query term to a chunk's score."""

    term: str
    forms: tuple[str, ...]  # of that word, counted as one term in chunks without it; (): the word itself
    prefix: bool  # counts every term that begins with it
    times: int  # in the query
    document_frequency: int  # chunks that contain it
    idf: float
    share: float  # factor of the parts; below 1 for a corrected word, or a character beside its pairs
    count: int  # in the chunk
    first_count: int  # in the first chunk of its source
    file_count: int  # in all of them
    part: float  # of `bm25`
    first_part: float  # of `first_bm25`
    file_part: float  # of `file_bm25`


@dataclass(frozen=True, slots=True)
class Length:
    """A length and its norm in BM25."""

    terms: int
    norm: float  # K1 (1 - B + B · terms / average): the count at which a term reaches half of its idf


@dataclass(frozen=True, slots=True)
class VectorPart:
    """The vector arm's score of a chunk."""

    rank: int  # among the arm's candidates; for other chunks, by their own cosine among all
    in_pool: bool
    cosine: float  # of the chunk
    source_cosine: float  # mean of some chunks of its source
    source_share: float
    score: float  # (1 - share) · cosine + share · source_cosine, not below 0
    weight: float
    part: float  # weight · score


@dataclass(frozen=True, slots=True)
class KeywordPart:
    """The keyword arm's score of a chunk."""

    rank: int  # among the arm's candidates; for other chunks, by their own words among all
    in_pool: bool
    tier: str
    terms: tuple[TermPart, ...]  # the query's terms that occur in its source
    lacking: tuple[str, ...]  # the other terms, without a form that occurs there
    length: Length
    first_length: Length
    file_length: Length
    bm25: float  # the sum of the terms' parts
    first_bm25: float  # of their first parts
    file_bm25: float  # of their file parts
    shares: Shares  # how much each of the three counts
    evidence: float  # Σ share · bm25 over the three
    reachable: float  # Σ idf · times over the words; the idf of its forms for a word in no chunk
    score: float  # tanh(2 · evidence / reachable)
    weight: float
    part: float  # weight · score


@dataclass(frozen=True, slots=True)
class NamedPart:
    """The words by which the query names the chunk; it ranks before chunks with fewer of them."""

    words: tuple[str, ...]  # of the query, cut into pieces by the tokenizer, that occur in only a few chunks
    score: float  # the keyword arm's, by only the words that name a chunk


@dataclass(frozen=True, slots=True)
class Run:
    """The most words of the query that follow each other in the chunk without a gap."""

    words: int
    asked: int  # words of the query, stop words included
    added: float  # to `order`; the score is unchanged


@dataclass(frozen=True, slots=True)
class Called:
    """The name by which the query calls the chunk's note or section."""

    name: str
    # The whole query, a word and number or part of it, or a word with its signs as typed.
    how: Literal["whole", "heading", "number", "part", "typed"]
    added: float  # to `order`; the score is unchanged


@dataclass(frozen=True, slots=True)
class DayNamed:
    """A time that the query names, for a note of then or of the week after it."""

    day: str  # of the note, YYYY-MM-DD
    first: str  # of the time
    last: str
    added: float  # to `order`; the score is unchanged


@dataclass(frozen=True, slots=True)
class Said:
    """Who said what a chunk of a conversation holds."""

    assistant: float  # share of its lines that an assistant said
    added: float  # to `order`, below 0; the score is unchanged


@dataclass(frozen=True, slots=True)
class Decay:
    """The decay of a score by age."""

    factor: float
    dated: bool  # its day is that of its name, and it is not evergreen
    fades: Fading | None  # its name is that day, its folder, or a pattern of `decay`; null: it does not decay
    age_days: int
    half_life_days: float
    floor: float  # share of the score that age cannot remove


@dataclass(frozen=True, slots=True)
class Explained:
    """Why one chunk has its score."""

    vector: VectorPart | None  # None: see `unseen`
    keyword: KeywordPart | None
    unseen: tuple[Unseen, ...]  # why the weights differ from the requested ones
    named: NamedPart | None  # None: the query does not name it
    run: Run | None  # None: fewer than four words in a row or half of the query, or not among the best fifty
    called: Called | None  # None: neither its note nor its section is called like the query
    day_named: DayNamed | None  # None: the query names no day, or none of its note's time
    said: Said | None  # None: no assistant said a line of it
    merged: float  # the larger of the sum of the parts and the score of the words that name it
    decay: Decay
    score: float  # merged · decay
    superseded_by: tuple[str, ...]  # paths of the sources that replace it, which rank before it if both match
    ahead_of: str | None  # path of the superseded source whose better place and order it took; None: its own
    newest: str | None  # path of the older note whose place and order it took, as the query asks for now
    expired: str | None  # the last day on which its source held, if that is past: then `order` is halved
    # The sort key: the score, or with rrf Σ 1 / (60 + rank) · decay, plus 1 for each word that names it
    # and what `run`, `called`, `day_named` and `said` add. None outside both pools.
    order: float | None


@dataclass(frozen=True, slots=True)
class Stages:
    """The number of chunks, the number that each stage dropped, and the number of hits that are left."""

    chunks: int
    filtered: int
    outside_pools: int  # in neither arm's pool
    below_floor: int
    gone: int  # its source left the disk a moment ago
    folded: int  # near-duplicates of a better chunk
    joined: int  # next to a better chunk of the same source, and shown with it
    per_source: int  # its source had used up its places
    limit: int
    hits: int


@dataclass(frozen=True, slots=True)
class AnswerExplanation:
    """The settings and steps that produced an answer."""

    terms: tuple[Term, ...]  # that the keyword arm looks for; forms of words come last
    left_out: tuple[str, ...]  # function words that it ignores
    spelled: tuple[Word, ...]  # words that the tokenizer cuts into several pieces
    unread: tuple[str, ...]  # words in scripts that the model does not read
    read: float  # share of the query that the model reads; the vector arm keeps that share of its weight
    filters: tuple[Filter, ...]
    tier: str | None  # of the keyword arm; None if it did not run
    average_length: float  # of a chunk, in terms
    fusion: str
    weights: Weights  # named, or by the matched words; scripts and missing arms change them for each hit
    matched: float | None  # distinct query words in the best-matching candidate; null where weights are named
    half_life_days: float
    decay_floor: float  # share of a score that age cannot remove
    floor: float  # min_score
    limit: int
    per_source: int
    pool: int  # candidates of each arm, at most
    vector_pool: int | None  # actual candidates; None if the arm did not run
    keyword_pool: int | None
    stages: Stages
    model_id: str | None  # of the query's vector
    vector_arm: str | None  # why it did not run or was not used; null if it was used
