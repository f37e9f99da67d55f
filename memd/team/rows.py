"""The rows of a team's two collections: made of a source, and checked when they come back.

memd's score of a chunk is two inner products, which Milvus computes. With q the vector of the query, v that
of a chunk and m the mean over some chunks of its source:

* vector score = max(0, .75 q·v + .25 q·m) = max(0, q·u), u = .75 v + .25 m;
* keyword score = tanh(2 / Σidf · Σ idf_t · w_t), w_t = .5 sat_chunk + .2 sat_first + .3 sat_file, where sat
  is BM25's saturated count. w has the words of the chunk and of its source's first chunk; other words of the
  source are left out: with them it would be five times as long.

The index has no secret in what it shows to agents, which alone is read here. All that comes back is checked
here: whatever does not fit is a StoreError. Pure.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct, structs
from numpy.typing import NDArray

from memd.entries.secrets import mask
from memd.errors import StoreError, StoreRefusedError
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.index.source_rows import NO_FRONT, fields_of, read_by_model, searchable
from memd.records import Source
from memd.search.keyword import K1, B
from memd.search.source_scores import PLACES, SOURCE_SHARE, places, shares_of
from memd.text import caseless, normalized, paired

MAX_ROW_BYTES: Final = 65_000  # of what an answer shows of a chunk; a VARCHAR of Milvus has 65,535
MAX_MARKS: Final = 1_024  # of a source, for filters
# Revisions begin with the time in microseconds; one of the year 2200 is a lie that would outgrow an integer.
MAX_REVISION: Final = 230 * 365 * 24 * 3600 * 1_000_000
MAX_COUNT: Final = 1 << 40  # of chunks or lines; arbitrary, far beyond any team
NUMBER_BITS: Final = 63
MAX_NUMBER: Final = (1 << NUMBER_BITS) - 1
NOTHING: Final = 0  # a dimension that no term has: a sparse vector must not be empty
T = TypeVar("T")
S = TypeVar("S", bound=Struct)

Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Day = Annotated[int, Meta(ge=0, le=date.max.toordinal())]  # 0: none
Name = Annotated[str, Meta(max_length=1_000)]


class Shown(Struct, frozen=True, array_like=True):
    """What an answer shows of a chunk; one text in its row."""

    source: Source
    fields: tuple[tuple[str, str], ...]  # of the front matter: folded key, value
    superseded_by: tuple[str, ...]
    chunk: StoredChunk


class HitRow(Struct, frozen=True):
    """What a list has of a chunk."""

    source: Number
    decays: Day  # its day, if its score decays
    expires: Day  # its last day, unless another source replaces it: that is another rule


class First(Struct, frozen=True):
    """What a list of the newest sources has of their first chunks."""

    key: Number
    source: Number
    day: Day


class Listed(Struct, frozen=True):
    """What a comparison reads of a chunk."""

    key: Number
    source: Number
    revision: Annotated[int, Meta(ge=0, le=MAX_REVISION)]


class Whole(Struct, frozen=True):
    """A chunk as it is read for an answer."""

    key: Number
    ws: Name
    shown: Shown  # under numbers of this chunk and its source

    def __post_init__(self) -> None:
        """Refuse what no chunk can be."""
        source, chunk = self.shown.source, self.shown.chunk
        has_lines = 0 <= chunk.start_line <= chunk.end_line < MAX_COUNT and 0 <= chunk.start_byte < MAX_COUNT
        if not (has_lines and source.path and chunk.text.strip()):
            raise ValueError("a chunk that cannot be")
        source = source._replace(id=number(self.ws, source.path))
        chunk = chunk._replace(id=self.key, source=source.id)
        structs.force_setattr(self, "shown", structs.replace(self.shown, source=source, chunk=chunk))


class WorkspaceRow(Struct, frozen=True):
    """A workspace that somebody publishes."""

    ws: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
    name: Name
    machine: Name
    owner: Name
    model: Name  # of its vectors; "": it has none
    chunks: Annotated[int, Meta(ge=0, le=MAX_COUNT)]


def checked(work: Callable[[], T]) -> T:
    """Run *work* on what a store has sent. Raises StoreError: something in it does not fit."""
    try:
        return work()
    except (
        msgspec.MsgspecError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        AttributeError,
    ) as error:
        reason = " ".join(str(error).split())[:120]
        raise StoreError(f"the team's store answered with what memd never wrote: {reason}") from error


def as_struct(raw: Mapping[str, Any], of: type[S]) -> S:
    """Return a row as a record. Raises StoreError: a value does not fit."""

    def read() -> S:
        row = dict(raw)
        if "shown" in row:
            if len(row["shown"]) > MAX_ROW_BYTES:
                raise ValueError("a text that is too long")
            row["shown"] = msgspec.json.decode(row["shown"], type=Shown)
        return msgspec.convert(row, of)

    return checked(read)


def number(*parts: str | int) -> int:
    """Return the number by which a workspace's source, a chunk or a mark is known."""
    raw = "\0".join(map(str, parts)).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest()) >> (64 - NUMBER_BITS)


@lru_cache(200_000)
def dimension(term: str) -> int:
    """Return the dimension of a term in sparse vectors; Milvus has 2³² of them, all but the last."""
    return 1 + int.from_bytes(hashlib.blake2b(term.encode(errors="replace"), digest_size=8).digest()) % (
        2**32 - 2
    )


def words_of(view: View, source: Source) -> tuple[list[StoredChunk], list[list[str]], str]:
    """Return a source of an agent's *view*, which has no secrets: its chunks, their words, its front matter.

    Raises:
        StoreRefusedError: its path has a secret.
    """
    if mask(source.path) != source.path:
        raise StoreRefusedError("its path has a secret")
    front = dict(view.reader.front_matters([source.id])).get(source.id, NO_FRONT)
    chunks = view.reader.chunks_of(source.id)
    words = []
    for place, chunk in enumerate(chunks):
        text = paired(
            searchable(read_by_model(chunk.context, chunk.text), source.path, None if place else front)
        )
        words.append(view.reader.indexed_terms(text))
    return chunks, words, front


def chunk_rows(
    view: View, source: Source, workspace: str, revision: int, *, average: float, has_vectors: bool,
    dimensions: int, fades: bool,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the rows of a source's chunks.

    *average*: length of a chunk in terms, the same in all rows of the workspace; *fades*: the score decays
    with age.

    Raises:
        StoreRefusedError: its path has a secret, or a chunk is too long for a row.
    """
    chunks, words_in, front = words_of(view, source)
    fields = tuple(sorted(fields_of(json.loads(front))))  # as filters compare them
    vectors: list[NDArray[np.float32] | None] = [None] * len(chunks)  # u of each chunk
    rows, columns = view.snapshot.rows, view.snapshot.columns
    if has_vectors and chunks and rows.count:
        table = np.frombuffer(rows.buffer, np.float32, rows.count * rows.dim).reshape(rows.count, rows.dim)
        spread = columns.row[places(columns, np.asarray([chunks[0].id], np.int64), PLACES)]
        some = table[spread[spread >= 0]]
        for place, row in enumerate(columns.row[[chunk.id for chunk in chunks]].tolist()):
            if row >= 0:
                mean = some.mean(axis=0) if len(some) else table[row]
                vectors[place] = (1 - SOURCE_SHARE) * table[row] + SOURCE_SHARE * mean
    shares, superseded_by = shares_of(dated=source.dated), view.snapshot.superseded_by(source.id)

    def part(share: float, words: Iterable[str], length: int) -> tuple[float, Counter[str], float]:
        """Return a share of w, its counts, and the count at which a term has half of its weight."""
        return share, Counter(words), K1 * (1 - B + B * length / max(average, 1.0))

    first = next(iter(words_in), [])
    of_first = part(shares.first, first, len(first))
    of_file = part(shares.file, chain(*words_in), sum(map(len, words_in)))
    found = []
    for ordinal, (chunk, words, vector) in enumerate(zip(chunks, words_in, vectors, strict=True)):
        alone = chunk._replace(id=0, source=0, context="")
        try:
            raw = msgspec.json.encode(Shown(source._replace(id=0), fields, superseded_by, alone))
        except UnicodeEncodeError:
            raise StoreRefusedError("it is no Unicode") from None
        if len(raw) > MAX_ROW_BYTES:
            raise StoreRefusedError(f"a chunk takes {len(raw):,} bytes, and Milvus at most {MAX_ROW_BYTES:,}")
        parts = part(shares.chunk, words, len(words)), of_first, of_file
        weights = {
            dimension(term): weight
            for term in {*words, *first}
            if (weight := sum(share * has[term] / (has[term] + norm) for share, has, norm in parts)) > 0
        }
        found.append({
            "key": number(workspace, source.path, ordinal), "ws": workspace,
            "source": number(workspace, source.path), "revision": revision, "ordinal": ordinal,
            "day": source.day.toordinal(), "decays": source.day.toordinal() if fades else 0,
            "expires": 0 if superseded_by or not source.valid_until else source.valid_until.toordinal(),
            "marks": list(marks(source.path, source.tags, fields))[:MAX_MARKS],
            "shown": raw.decode(), "has_u": vector is not None,
            "u": [0.0] * dimensions if vector is None else vector.tolist(),
            "w": weights or {NOTHING: 1.0},
        })  # fmt: skip
    return found


def marks(path: str, tags: Iterable[str], fields: Iterable[tuple[str, str]]) -> dict[int, None]:
    """Return the numbers by which filters find a source: its folders, tags and front matter."""
    found: dict[int, None] = {}
    folders = normalized("NFC", path).split("/")
    for end in range(1, len(folders) + 1):
        found[path_mark("/".join(folders[:end]))] = None
    for tag in tags:
        parts = caseless(tag).split("/")
        for end in range(1, len(parts) + 1):
            found[tag_mark("/".join(parts[:end]))] = None
    for key, value in fields:
        found[number("key", key)] = None
        found[field_mark(key, value)] = None
    return found


def path_mark(path: str) -> int:
    """Return the mark of a source at a path or inside of it."""
    return number("path", normalized("NFC", path).strip("/"))


def tag_mark(tag: str) -> int:
    """Return the mark of a tag, which nested ones have, too."""
    return number("tag", caseless(tag).removeprefix("#").strip("/"))


def field_mark(key: str, value: str) -> int:
    """Return the mark of a value in front matter."""
    return number("field", key, caseless(value))


def frequencies(view: View, sources: Iterable[Source], times: float = 1.0) -> dict[int, float]:
    """Return the document frequencies of terms: dimension → chunks."""
    counts: Counter[int] = Counter()
    for source in sources:
        with suppress(StoreRefusedError):
            for words in words_of(view, source)[1]:
                counts.update(map(dimension, set(words)))
    return {place: float(count * times) for place, count in counts.items()} or {NOTHING: 1.0}
