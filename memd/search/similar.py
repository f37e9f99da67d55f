"""Similar chunks of other sources: nearest by the stored vector, or by words if there is no vector."""

import math
from dataclasses import replace

from memd.index.columns import require_numpy, take
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.index.vectors import FLOAT_BYTES
from memd.search.query import Query, content_words
from memd.search.score import PreparedQuery
from memd.search.search import Answer, search
from memd.text import pieces_of

# Words of a chunk that are searched, the longest: a chunk has two hundred, and short words say little.
WORDS = 40


def similar(view: View, chunk: StoredChunk, request: PreparedQuery) -> Answer:
    """Return the chunks nearest to *chunk*, best first, without those of its own source, which is live.

    *request* supplies the filters and limits; its words, vector and decay are not used.

    Raises:
        DeadlineError: the caller's deadline passed.
        NumpyMissingError: numpy is not installed.
    """
    require_numpy("a search for what is similar")
    [row] = take(view.snapshot.columns.row, [chunk.id])
    rows = view.snapshot.rows
    size = rows.dim * FLOAT_BYTES
    has_vector = row >= 0 and not view.has_damaged([chunk.id])
    vector = bytes(rows.buffer[row * size : (row + 1) * size]) if has_vector else None
    return similar_to_text(view, chunk.text, replace(request, query_vec=vector), chunk.source)


def similar_to_text(view: View, text: str, request: PreparedQuery, source: int | None) -> Answer:
    """Return the chunks nearest to *text*, whose vector the request has, without those of *source*."""
    require_numpy("a search for what is similar")
    pieces = _telling(text)
    return search(
        view,
        replace(
            request,
            query=Query(" ".join(pieces), pieces, filters=request.query.filters),
            model_id=view.snapshot.model_id,
            mode="keyword" if request.query_vec is None else "vector",
            half_life_days=math.inf,  # likeness does not age
            without=() if source is None else tuple(one.id for one in view.reader.chunks_of(source)),
        ),
    )


def shared_words(one: str, other: str) -> tuple[str, ...]:
    """Return the most telling words of text *one* that also occur in *other*, each once."""
    there = {piece.casefold() for piece in pieces_of(other)}
    shared = {word.casefold(): word for word in reversed(_telling(one)) if word.casefold() in there}
    return tuple(reversed(shared.values()))


def telling_count(one: str, other: str) -> int:
    """Return the smaller number of most telling words of the two texts."""
    return min(len(_telling(one)), len(_telling(other)))


def _telling(text: str) -> tuple[str, ...]:
    """Return the most telling words of a text, its longest content words, each once, in their order."""
    words = dict.fromkeys(content_words(tuple(pieces_of(text))))
    longest = set(sorted(words, key=len, reverse=True)[:WORDS])
    return tuple(word for word in words if word in longest)
