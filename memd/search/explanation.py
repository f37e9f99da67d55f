"""The records of an explanation: what made the score of each hit, and how many chunks each stage dropped.

They travel as they are. `explain` fills them; here they need nothing that searches, so that the protocol's
answers can be read where memd is built. Pure, for any thread.
"""

import re
from dataclasses import dataclass
from typing import Literal

from memd.config import Weights

# Characters a piece, on average; below, a word is spelled and not read. A UUID has 1.2, a version 1.2, a
# ticket number 1.8; "tardigrades" 2.8, "parse_front_matter" 3.
READ_FROM = 2.0
# Pieces of a word that is not read, at least; "git" and "QA" have two.
MANY_PIECES = 3
_NAME = re.compile(r"[^\W_][_.:@/]+[^\W_]|[a-z][A-Z]")

# Why an arm had no say of a chunk; the service knows why an arm did not run at all.
Unseen = Literal["vector-arm-did-not-run", "keyword-arm-did-not-run", "no-vector-yet", "script", "long"]


@dataclass(frozen=True, slots=True)
class Filter:
    """What a chunk or its source must have, or must not."""

    filter: str  # the name of one of `FILTER_KEYS`, or one of `OF_WORDS`
    value: str


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a query."""

    text: str
    prefix: bool  # a character of a spaceless script: every term that begins with it
    times: int  # in the query
    document_frequency: int  # chunks that it stands in
    idf: float
    share: float = 1.0  # of that in a chunk's score; below 1 where a word was taken for it
    # That count as one term in chunks that lack the word itself; its postings are theirs. Then `text` is that
    # of the word.
    forms: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """What it adds to the score of a chunk that is full of it."""
        return self.idf * self.times * self.share


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query that is several pieces to the model."""

    text: str  # as it was typed, without signs around it
    pieces: int
    is_read: bool  # the pieces are long enough to mean something

    @property
    def says_something(self) -> bool:
        """Whether the model reads it better than most random letters, which have two characters a piece."""
        return self.is_read and (self.pieces < MANY_PIECES or len(self.text) > READ_FROM * self.pieces)

    @property
    def is_name(self) -> bool:
        """Whether it is written as no word of a language is: `start_at`, `query.sql`, `EventTypes`."""
        return _NAME.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class Shares:
    """How much the words of each count for a chunk; they sum up to 1."""

    chunk: float
    first: float  # the first chunk of its source
    file: float  # its source, as one long chunk


@dataclass(frozen=True, slots=True)
class TermPart:
    """What one term of the query says of a chunk."""

    term: str
    forms: tuple[str, ...]  # of that word, which count as one term where it does not stand; (): the word
    prefix: bool  # every term that begins with it
    times: int  # in the query
    document_frequency: int  # chunks that it stands in
    idf: float
    share: float  # of that in the parts; below 1 where a word of the query was taken for it
    count: int  # in the chunk
    first_count: int  # in the first chunk of its source
    file_count: int  # in all of them
    part: float  # of `bm25`
    first_part: float  # of `first_bm25`
    file_part: float  # of `file_bm25`


@dataclass(frozen=True, slots=True)
class Length:
    """How a length counts in BM25."""

    terms: int
    norm: float  # K1 (1 - B + B · terms / average): as often must a term stand there to say half of its idf


@dataclass(frozen=True, slots=True)
class VectorPart:
    """What the vector arm says of a chunk."""

    rank: int  # among the candidates of the arm; by its own cosine among all where it is none of them
    in_pool: bool
    cosine: float  # of the chunk
    source_cosine: float  # mean of some chunks of its source
    source_share: float
    score: float  # (1 - share) · cosine + share · source_cosine, not below 0
    weight: float
    part: float  # weight · score


@dataclass(frozen=True, slots=True)
class KeywordPart:
    """What the keyword arm says of a chunk."""

    rank: int  # among the candidates of the arm; by its own words among all where it is none of them
    in_pool: bool
    tier: str
    terms: tuple[TermPart, ...]  # those of the query that stand in its source
    lacking: tuple[str, ...]  # the others, of which no form does either
    length: Length
    first_length: Length
    file_length: Length
    bm25: float  # the sum of the terms' parts
    first_bm25: float  # of their first parts
    file_bm25: float  # of their file parts
    shares: Shares  # how much each of the three counts
    evidence: float  # Σ share · bm25 over the three
    reachable: float  # Σ idf · times over the words
    score: float  # tanh(2 · evidence / reachable)
    weight: float
    part: float  # weight · score


@dataclass(frozen=True, slots=True)
class NamedPart:
    """That the query names the chunk: it comes before all that have fewer of the words."""

    words: tuple[str, ...]  # of the query, in pieces to the model, that stand in a few chunks only
    score: float  # of the keyword arm by the words that name a chunk alone


@dataclass(frozen=True, slots=True)
class Decay:
    """What age leaves of a score."""

    factor: float
    dated: bool  # its name starts with a day; what is not dated does not decay
    age_days: int
    half_life_days: float
    floor: float  # share that age leaves


@dataclass(frozen=True, slots=True)
class Explained:
    """Why one chunk has its score."""

    vector: VectorPart | None  # None: see `unseen`
    keyword: KeywordPart | None
    unseen: tuple[Unseen, ...]  # why the weights are not those that were asked for
    named: NamedPart | None  # None: the query does not name it
    merged: float  # the sum of the parts, or the score of the words that name it where that is more
    decay: Decay
    score: float  # merged · decay
    superseded_by: tuple[str, ...]  # paths of what holds in its place, and comes before it where both match
    ahead_of: str | None  # path of what it supersedes, whose better place and order it has; None: its own
    # What it is sorted by: the score, or under rrf Σ 1 / (60 + rank) · decay; 1 more for each word that names
    # it. None where no pool has it.
    order: float | None


@dataclass(frozen=True, slots=True)
class Stages:
    """How many chunks there are, and how many each stage dropped; the last number is what is left."""

    chunks: int
    filtered: int
    outside_pools: int  # neither arm has it among its best
    below_floor: int
    gone: int  # its source left the disk a moment ago
    folded: int  # nearly the same as a better one
    joined: int  # next to a better one of its source, and shown with it
    per_source: int  # its source had its places already
    limit: int
    hits: int


@dataclass(frozen=True, slots=True)
class AnswerExplanation:
    """How an answer was made, and which arm had no say."""

    terms: tuple[Term, ...]  # that the keyword arm looks for; forms of words behind all of these
    left_out: tuple[str, ...]  # function words that it does not
    spelled: tuple[Word, ...]  # words that are several pieces to the model
    read: float  # how much of the query the model reads; that share of the vector arm's weight is left
    filters: tuple[Filter, ...]
    tier: str | None  # of the keyword arm; None where that did not run
    average_length: float  # of a chunk, in terms
    fusion: str
    weights: Weights  # that were asked for
    half_life_days: float
    decay_floor: float  # share of a score that age leaves
    floor: float  # min_score
    limit: int
    per_source: int
    pool: int  # candidates of each arm at most
    vector_pool: int | None  # those there were; None where the arm did not run
    keyword_pool: int | None
    stages: Stages
    model_id: str | None  # of the query's vector
    vector_arm: str | None  # why it had no say; null where it had
