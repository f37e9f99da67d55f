"""The interface of a store: what search asks of a body of notes, and what publishing writes into it.

A store holds the notes of many workspaces. Search takes from it a few hundred candidates, the evidence of
their sources, and the statistics of the query's terms, and ranks them with memd's own code in a `MiniView`.
So a store needs no ranking of its own beyond two lists of candidates, and its scores are never shown.

Implementations: `local` (one index of this machine), `milvus`, and in the tests a reference server. All
values are msgspec structs that are encoded as MessagePack arrays, so that a store may run in another process.
Methods block; they are called in threads.
"""

from typing import Protocol

from msgspec import Struct


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
    """A condition that a source must meet, see memd.search.filters; dates in ISO format."""

    name: str
    values: tuple[str, ...]  # one match is enough


class Wanted(Struct, frozen=True, array_like=True):
    """What a search looks for."""

    terms: tuple[str, ...]  # of the query's words, their forms and their corrections
    prefixes: tuple[str, ...]  # terms that may be unfinished words
    vector: bytes | None  # float32
    workspaces: tuple[str, ...] | None  # only these; None: all
    filters: tuple[Filter, ...]  # all must be met
    pool: int  # candidates of each list


class Found(Struct, frozen=True, array_like=True):
    """The candidates of both lists, best first."""

    by_words: tuple[ChunkKey, ...]
    by_vector: tuple[ChunkKey, ...]


class Statistics(Struct, frozen=True, array_like=True):
    """Counts over all chunks of the wanted workspaces."""

    chunks: int
    total_length: int  # in terms
    frequencies: dict[str, int]  # term → chunks that have it; of a prefix: "term*"


class Near(Struct, frozen=True, array_like=True):
    """Words of the store near a word, with their document frequencies."""

    forms: dict[str, int]  # that begin like its stem
    spellings: dict[str, int]  # of about its length


class Listed(Struct, frozen=True, array_like=True):
    """A source in the listing that `memctl team check` compares."""

    key: SourceKey
    revision: int
    hash: bytes
    chunks: int


class Store(Protocol):
    """A body of notes. Each method raises StoreError if the store does not answer before *deadline_s*."""

    def candidates(self, wanted: Wanted, deadline_s: float) -> Found:
        """Return the best candidates by words and by vector among the sources that meet the filters."""

    def evidence(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return these sources whole, the highest revision of each; gone ones are left out."""

    def statistics(self, wanted: Wanted, deadline_s: float) -> Statistics:
        """Return the statistics of the wanted terms over the wanted workspaces, whatever the filters."""

    def vocabulary(self, word: str, deadline_s: float) -> Near:
        """Return the words near *word*."""

    def replace(self, sources: tuple[PublishedSource, ...], deadline_s: float) -> None:
        """Store sources; each replaces all lower revisions of itself. Repeating it changes nothing."""

    def remove(self, sources: tuple[tuple[SourceKey, int], ...], deadline_s: float) -> None:
        """Remove sources up to a revision. Repeating it changes nothing."""

    def sources(self, workspace: str, after: str, limit: int, deadline_s: float) -> tuple[Listed, ...]:
        """Return the sources of a workspace whose paths sort after *after*, in order of paths."""

    def workspaces(self, deadline_s: float) -> tuple[PublishedWorkspace, ...]:
        """Return all published workspaces that the caller may read."""

    def publish(self, workspace: PublishedWorkspace, deadline_s: float) -> None:
        """Announce a workspace, or change what is known about it."""

    def unpublish(self, workspace: str, deadline_s: float) -> None:
        """Remove a workspace with all of its sources."""
