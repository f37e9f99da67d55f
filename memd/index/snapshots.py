"""How is a snapshot made? From the database when it is opened, then from what each commit changed."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain

from memd.errors import IndexDamagedError
from memd.index.changes import Changes
from memd.index.columns import HAS_NUMPY, Columns, live_up_to
from memd.index.first_pass import FirstPass
from memd.index.inverted import Inverted
from memd.index.matrices import Matrices
from memd.index.postings import TermPostings
from memd.index.view import Snapshot
from memd.index.writer import Writer

# The columns have a place for each id that was ever given. So many mean 800 MB: it is a flipped bit, or time
# to begin anew with low ones.
MAX_CHUNK_ID = 1 << 26
MAX_LENGTH = 1 << 24  # in terms: a source has at most 4 MiB


def load(writer: Writer, matrices: Matrices, file: Inverted | None, first_pass: FirstPass | None) -> Snapshot:
    """Return the snapshot of what is committed; *file* knows the postings of its older chunks.

    Raises:
        IndexDamagedError: the values can't be those that were stored.
    """
    sources = writer.sources()
    active = matrices.active
    newest = matrices.ledger.newest_chunk()
    columns = Columns.empty()
    for chunks in matrices.ledger.live_chunks(active.number if active else None):
        _expect_sound(chunks, sources.keys(), newest, matrices.rows.count)
        columns = columns.changed(removed=[], added=chunks, embedded=[])
    if HAS_NUMPY and live_up_to(columns, newest) != columns.count:
        raise IndexDamagedError("chunks are there twice: memctl index --rebuild")
    return Snapshot(
        writer.number("generation") or 0,
        sources,
        columns,
        matrices.rows,
        active.model_id if active else "",
        TermPostings(columns, newest, file),
        first_pass,
    )


def changed(old: Snapshot, changes: Changes, writer: Writer, matrices: Matrices) -> Snapshot:
    """Return the snapshot after *changes* were committed."""
    sources = dict(old.sources)
    for source_id in changes.sources_removed:
        sources.pop(source_id, None)
    sources.update(changes.sources_put)
    columns = old.columns.changed(
        removed=sorted(changes.removed),
        added=list(changes.added.values()),
        embedded=[pair for pair in changes.embedded.items() if pair[0] not in changes.removed],
    )
    return replace(
        old,
        generation=writer.number("generation") or 0,
        sources=sources,
        columns=columns,
        rows=matrices.rows,
        postings=old.postings.after(columns, max(old.postings.newest, *changes.added, 0)),
    )


def beside(old: Snapshot, file: Inverted | None) -> Snapshot:
    """Return the same moment with another file of postings."""
    return replace(old, postings=old.postings.beside(file))


def _expect_sound(
    chunks: list[tuple[int, int, int, int]], sources: AbstractSet[int], newest: int, rows: int
) -> None:
    if not chunks:
        return
    if set(map(type, chain.from_iterable(chunks))) != {int} or type(newest) is not int:
        raise IndexDamagedError("chunks have values of wrong types: memctl index --rebuild")
    ids, owners, places, lengths = zip(*chunks, strict=True)
    is_sound = (
        min(ids) > 0
        and max(ids) <= newest <= MAX_CHUNK_ID
        and len(set(ids)) == len(ids)
        and set(owners) <= sources
        and min(places) >= -1
        and max(places) < rows
        and min(lengths) >= 0
        and max(lengths) <= MAX_LENGTH
    )
    if not is_sound:
        raise IndexDamagedError("chunks have impossible values: memctl index --rebuild")
