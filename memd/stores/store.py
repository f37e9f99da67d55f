"""The interface of a store: what search asks of a body of notes, and what publishing writes into it.

A store holds the notes of many workspaces. Search takes from it a few hundred candidates, the evidence of
their sources, and the statistics of the query's terms, and ranks them with memd's own code in a `MiniView`.
So a store needs no ranking of its own beyond two lists of candidates, and its scores are never shown.

Implementations: `local` (one index of this machine), `milvus`, and in the tests a reference server. All
values are msgspec structs that are encoded as MessagePack arrays, so that a store may run in another process.
Methods block; they are called in threads.

A phrase is text: terms in order, joined by blanks, as in `PublishedChunk.words`; if it ends with "*", its
last term may be the beginning of a term. A part of a query is a term, a beginning, the forms of a word, or
the whole phrase: `parts_of(wanted)` names them in the order in which all counts come.
"""

from typing import Final, Protocol

from msgspec import Struct

# Chunks that may be compared with a name as it is typed; `memd.search.identifiers` looks at no more.
MOST_HOLDERS: Final = 100


class SourceKey(Struct, frozen=True, array_like=True, order=True):
    """The identity of a published source."""

    workspace: str  # id of the workspace, which no two machines share
    path: str


class ChunkKey(Struct, frozen=True, array_like=True, order=True):
    """The identity of a published chunk."""

    workspace: str
    path: str
    ordinal: int  # in its source, from 0


class PublishedChunk(Struct, frozen=True, array_like=True):
    """A chunk as it is published: secrets are masked in every text."""

    ordinal: int
    start_line: int
    end_line: int
    start_byte: int
    heading: str
    text: str
    context: str
    words: str  # its terms in order, joined by blanks, as the words table of an index has them
    length: int  # in terms
    hash: bytes  # of what the model reads
    signature: bytes  # memd.index.source_rows
    entry: str
    origin: str
    vector: bytes | None  # float32, little-endian; None: it has none


class PublishedSource(Struct, frozen=True, array_like=True):
    """A source with all of its chunks; the fields are those of the index, as memd.records.Source has them."""

    key: SourceKey
    revision: int  # of this state; a higher one replaces a lower one
    hash: bytes  # of the file's bytes
    title: str
    tags: tuple[str, ...]
    day: str  # ISO date
    day_of: str
    origin: str
    front_matter: str  # JSON object, masked
    valid_until: str  # ISO date or ""
    evergreen: bool
    external: bool
    mtime_ns: int
    names: tuple[tuple[str, str], ...]  # (kind, name) by which links refer to it
    links: tuple[tuple[str, str, str, int | None], ...]  # (kind, target, name, line)
    fields: tuple[tuple[str, str], ...]  # (key, value) of the front matter
    chunks: tuple[PublishedChunk, ...]


class PublishedWorkspace(Struct, frozen=True, array_like=True):
    """A workspace that is shared, and where it lives."""

    id: str
    name: str
    machine: str
    owner: str
    model_id: str  # of its vectors; "": only words are published


class Filter(Struct, frozen=True, array_like=True):
    """A condition that a source must meet, see memd.search.filters; dates in ISO format.

    Two names are conditions on chunks: a chunk must have one of the phrases of "phrase", and none of those of
    "excluded".
    """

    name: str
    values: tuple[str, ...]  # one match is enough


class Forms(Struct, frozen=True, array_like=True):
    """Other forms of a word, which count as one term in chunks that lack the word.

    They do not count in chunks that are recognisably in one of some other languages: those that have more of
    the function words of another language than of this one, and at least two (`memd.languages`).
    """

    word: str
    forms: tuple[str, ...]
    language: str
    others: tuple[str, ...]  # the other languages that are frequent in the store


class Wanted(Struct, frozen=True, array_like=True):
    """What a search looks for."""

    terms: tuple[str, ...]  # of the query's words, their forms and their corrections
    prefixes: tuple[str, ...]  # terms that may be unfinished words
    vector: bytes | None  # float32
    workspaces: tuple[str, ...] | None  # only these; None: all
    filters: tuple[Filter, ...]  # all must be met
    pool: int  # candidates of each list
    weights: tuple[float, ...] = ()  # of each part, a factor of its idf; (): all 1
    forms: tuple[Forms, ...] = ()
    whole: str = ""  # a phrase that counts like a term: a query of one run of a script without spaces
    named: tuple[str, ...] = ()  # phrases whose holders are wanted: what may name single chunks
    corrected: bytes | None = None  # vector of the text with corrected words; the higher cosine counts


def parts_of(wanted: Wanted) -> tuple[str, ...]:
    """Return a name for each part: a term, "beginning*", "=word" of the word's forms, the quoted phrase."""
    forms = tuple(f"={one.word}" for one in wanted.forms)
    whole = (f'"{wanted.whole}"',) if wanted.whole else ()
    return (*wanted.terms, *(f"{one}*" for one in wanted.prefixes), *forms, *whole)


class Holders(Struct, frozen=True, array_like=True):
    """The chunks that have a phrase, whatever the filters; none if they are more than MOST_HOLDERS."""

    chunks: tuple[ChunkKey, ...]
    meets: tuple[bool, ...]  # whether each of them meets the filters
    is_complete: bool = True  # False: they are too many, or the store cannot look for phrases


class Found(Struct, frozen=True, array_like=True):
    """The candidates of both lists, best first.

    If nothing but filters is wanted, `by_words` has the first chunks of the newest sources, by day, then by
    time of change.
    """

    by_words: tuple[ChunkKey, ...]
    by_vector: tuple[ChunkKey, ...]
    named: tuple[Holders, ...] = ()  # of each phrase of `Wanted.named`; (): the store cannot look for phrases
    allowed: int | None = None  # number of chunks that meet the filters; None: not counted


class Statistics(Struct, frozen=True, array_like=True):
    """Counts over all chunks of the wanted workspaces."""

    chunks: int
    total_length: int  # in terms
    frequencies: dict[str, int]  # name of a part (`parts_of`) → chunks that have it
    # Language → sum of the frequencies of its function words; {}: unknown, then no chunk is in another one.
    languages: dict[str, int] = {}


class Near(Struct, frozen=True, array_like=True):
    """Words of the store near a word, with their document frequencies."""

    forms: dict[str, int]  # that have its stem in the language; {} if the word is in many chunks
    spellings: dict[str, int]  # within two edits; {} if some chunk has the word
    endings: dict[str, int] = {}  # the most frequent ones that begin with it; {} if some chunk has the word


class SourceFacts(Struct, frozen=True, array_like=True):
    """What ranking needs of a source beside its chunks."""

    key: SourceKey
    title: str
    tags: tuple[str, ...]
    day: str
    day_of: str
    origin: str
    valid_until: str
    evergreen: bool
    external: bool
    mtime_ns: int


class ChunkFacts(Struct, frozen=True, array_like=True):
    """What an answer needs of a chunk, the fields of PublishedChunk without words, length and vector."""

    start_line: int
    end_line: int
    start_byte: int
    heading: str
    text: str
    context: str
    hash: bytes
    signature: bytes
    entry: str
    origin: str
    left_out: str = ""  # why it gets no vector, see `memd.index.reader.LeftOut`; "": it has or awaits one


class Evidence(Struct, frozen=True, array_like=True):
    """What ranking needs of some chunks and of their whole sources, without the text of the other chunks.

    Numbers are int32, vectors float32, both little-endian, row by row.
    """

    sources: tuple[SourceFacts, ...]
    sizes: bytes  # of each source: number of chunks, length of all, length of the first
    counts: bytes  # of each source: of each part in all chunks, then of each part in the first
    chunks: tuple[ChunkFacts, ...]
    at: bytes  # of each chunk: index of its source, ordinal, length, row of its vector or -1
    chunk_counts: bytes  # of each chunk: of each part
    places: bytes  # of evenly spaced chunks of each source: index of the source, ordinal, row of its vector
    vectors: bytes  # the rows, one for equal texts


class Listed(Struct, frozen=True, array_like=True):
    """A source in the listing that `memctl team check` compares."""

    key: SourceKey
    revision: int
    hash: bytes
    chunks: int


class ReadableStore(Protocol):
    """What a search reads. Each method raises StoreError if there is no answer within *deadline_s*."""

    def candidates(self, wanted: Wanted, deadline_s: float) -> Found:
        """Return the best candidates by words and by vector among the sources that meet the filters."""

    def evidence(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return these sources whole, the highest revision of each; gone ones are left out."""

    def lean(self, chunks: tuple[ChunkKey, ...], wanted: Wanted, deadline_s: float) -> Evidence:
        """Return what ranking needs of these chunks; gone ones are left out.

        `memd.stores.lean.lean_of` makes it of whole sources, for a store that cannot.
        """

    def related(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return what decides which sources replace these ones, without chunks.

        These are the sources that name the same conversation as an archived one among these. And, over any
        number of steps and in the same workspace, the sources whose link of the kind "supersedes" has a name
        of another one of them, and those that have the name of such a link, these ones included.
        `memd.stores.relations.related` finds them by look-ups of names.
        """

    def statistics(self, wanted: Wanted, deadline_s: float) -> Statistics:
        """Return the statistics of the wanted terms over the wanted workspaces, whatever the filters."""

    def vocabulary(self, word: str, deadline_s: float, language: str = "") -> Near:
        """Return the words near *word*; its forms if *language* is given."""

    def sources(self, workspace: str, after: str, limit: int, deadline_s: float) -> tuple[Listed, ...]:
        """Return the sources of a workspace whose paths sort after *after*, in order of paths."""

    def workspaces(self, deadline_s: float) -> tuple[PublishedWorkspace, ...]:
        """Return all published workspaces that the caller may read."""


class Store(ReadableStore, Protocol):
    """A body of notes that can be written, too; each method raises StoreError likewise."""

    def replace(self, sources: tuple[PublishedSource, ...], deadline_s: float) -> None:
        """Store sources; each replaces all lower revisions of itself. Repeating it changes nothing."""

    def remove(self, sources: tuple[tuple[SourceKey, int], ...], deadline_s: float) -> None:
        """Remove sources up to a revision. Repeating it changes nothing."""

    def publish(self, workspace: PublishedWorkspace, deadline_s: float) -> None:
        """Announce a workspace, or change what is known about it."""

    def unpublish(self, workspace: str, deadline_s: float) -> None:
        """Remove a workspace with all of its sources."""
