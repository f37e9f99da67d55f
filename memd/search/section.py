"""Sections: what stands around a chunk in its source, and the beginning of a source."""

from collections.abc import Sequence

from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import Source
from memd.search.passage import Line, lines_of

# Chunks in front of and behind a hit that are looked at: longer sections leave no room for anything else.
AROUND = 4
FIRST_CHUNKS = 200  # of a source of the core; no share of a budget holds more


def section(view: View, chunk: StoredChunk) -> dict[Line, str]:
    """Return the lines of the section that a chunk is of, with those below its heading, as far as AROUND.

    A daily entry is a section; what has no heading is all of the note.
    """
    ids = range(chunk.id - AROUND, chunk.id + AROUND + 1)
    # Chunks of a source have ids that follow each other, in the order of its lines. Headings are compared as
    # they stand there: those of a chunk that an agent is shown may be masked.
    near = view.reader.chunks(ids)
    beside = {number for number, one in near.items() if _is_of(one, near[chunk.id])}
    first = last = chunk.id
    while first - 1 in beside:
        first -= 1
    while last + 1 in beside:
        last += 1
    return _shown(view, range(first, last + 1))


def beginning(view: View, source: Source, most_bytes: int) -> tuple[StoredChunk | None, dict[Line, str]]:
    """Return the first chunk of a source, None where it has none, and its lines, a little more than fits."""
    ids: list[int] = []
    chunks = view.reader.chunks_of(source.id, FIRST_CHUNKS)
    for one in chunks:
        ids.append(one.id)
        most_bytes -= len(one.text.encode(errors="replace"))
        if most_bytes < 0:
            break
    return next(iter(chunks), None), _shown(view, ids)


def _is_of(one: StoredChunk, chunk: StoredChunk) -> bool:
    if (one.source, one.entry) != (chunk.source, chunk.entry):
        return False
    return one.heading == chunk.heading or one.heading.startswith(f"{chunk.heading} > ")


def _shown(view: View, ids: Sequence[int]) -> dict[Line, str]:
    chunks = view.shown(ids) if ids else {}
    return {line: text for number in ids for line, text in lines_of(chunks[number]).items()}
