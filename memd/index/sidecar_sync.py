"""Vectors travel with the notes: export into sidecars, adoption from those of another machine.

For the writing thread, in slices of its time. A sidecar is believed as far as the notes beside it are: who
writes the one can write the other, and what a wrong vector can do is to rank a note of the same folder.
"""

import time
import zlib
from itertools import groupby
from operator import itemgetter

from memd.errors import StorageError
from memd.index import sidecar
from memd.index.index import Index
from memd.index.matrices import Held
from memd.index.sidecar import SidecarError
from memd.index.sidecars import SidecarFolder

# Chunks that wait are looked at in fours for each source that may be taken at once: a note has a few.
LOOK_AHEAD = 4
MAX_CHUNKS = 4096  # in one commit, one source aside: 6 MiB of the shipped model
SLICE_S = 0.05  # of looking at sources; what was saved meanwhile waits so long


def adopt(
    index: Index, folder: SidecarFolder, *, model_id: str, dim: int, tried: set[str], limit: int
) -> int:
    """Give sources that wait the vectors of their sidecars, in one commit.

    Only the sources of the next chunks to be embedded are looked at, so that it is cheap before each batch.

    Args:
        index: whose new vectors are those of *model_id*.
        folder: where sidecars are.
        model_id: other models' sidecars are passed over.
        dim: of its vectors.
        tried: names of files that were read, so that none is read twice; grows.
        limit: sources taken at most.

    Returns:
        How many sources have their vectors now; 0 when what comes next has no sidecar.

    Raises what `Transaction.embed` raises.
    """
    folder.refresh()
    taken: dict[bytes, bytes] = {}
    sources = 0
    target = index.matrices.target
    waiting = index.matrices.ledger.waiting_sources(limit * LOOK_AHEAD, target.number if target else None)
    for chunks in waiting.values():
        hashes = [digest for digest, _ in chunks]
        names = folder.names(sidecar.key(model_id, dim, hashes))
        if tried.issuperset(names):
            continue
        tried.update(names)
        rows = folder.find(model_id, dim, hashes)
        if rows is None:
            continue
        taken.update((digest, row) for (digest, waits), row in zip(chunks, rows, strict=True) if waits)
        sources += 1
        if sources == limit or len(taken) >= MAX_CHUNKS:
            break
    if sources:
        with index.changes() as changes:
            changes.embed(taken, model_id=model_id)
    return sources


def export(
    index: Index, folder: SidecarFolder, *, model_id: str, dim: int, done: set[str], limit: int
) -> int:
    """Leave sidecars for sources that are wholly embedded and have none.

    Args:
        index: nothing is left of vectors that do not answer yet.
        folder: where sidecars go.
        model_id: whose vectors are left.
        dim: of its vectors.
        done: what needs no look any more; grows.
        limit: sidecars written at most.

    Returns:
        How many sources were settled, by writing or because theirs is there; 0 when there are none left, or
        when nothing can be written now.
    """
    active = index.matrices.active
    if active is None or (active.model_id, active.file.dim) != (model_id, dim):
        return 0
    settled = 0
    most = folder.written + limit
    stop = time.monotonic() + SLICE_S
    for source, digest in index.matrices.ledger.source_hashes():
        # The same bytes are cut into the same chunks, whatever the file is called.
        if digest.hex() in done:
            continue
        vectors = _vectors(index, active, source)
        if vectors is None:
            continue
        try:
            _leave(folder, model_id, dim, vectors)
        except StorageError:
            folder.ignored["unwritable"] += 1
            return 0
        done.add(digest.hex())
        settled += 1
        if folder.written == most or time.monotonic() > stop:
            break
    return settled


def prune(index: Index, folder: SidecarFolder, *, model_id: str, dim: int, now_s: float) -> int:
    """Remove sidecars of this model that no source needs and that are a day old; return how many.

    With *now_s* = inf they go however new they are: after a purge that somebody asked for. Sources that are
    gone and kept for a while still need theirs. Nothing is removed before all of the folder has been indexed
    once: what is not known yet would look as if nobody needed it.
    """
    if not index.writer.get("complete"):
        return 0
    target = index.matrices.target
    chunks = index.matrices.ledger.chunk_hashes(target.number if target else None)
    needed = {
        sidecar.key(model_id, dim, [digest for _, digest in of_one])
        for _, of_one in groupby(chunks, key=itemgetter(0))
    }
    return folder.prune(needed, model_id=model_id, dim=dim, now_s=now_s)


def _vectors(index: Index, active: Held, source: int) -> list[tuple[bytes, bytes]] | None:
    """Return (chunk hash, row bytes) of what the model reads of a source; None unless every row is sound."""
    rows = active.file.rows
    size = rows.dim * sidecar.FLOAT_BYTES
    found = []
    for digest, row, crc in index.matrices.ledger.source_rows(source, active.number):
        vector = bytes(rows.buffer[row * size : (row + 1) * size]) if row >= 0 else b""
        # What the disk has damaged since the start must not travel, with a checksum that calls it right.
        if row < 0 or zlib.crc32(vector) != crc:
            return None
        found.append((digest, vector))
    return found


def _leave(folder: SidecarFolder, model_id: str, dim: int, vectors: list[tuple[bytes, bytes]]) -> None:
    """Write a sidecar unless there is one, or nothing to write. Raises StorageError."""
    if not vectors:
        return
    try:
        folder.write(model_id, dim, [digest for digest, _ in vectors], [row for _, row in vectors])
    except SidecarError as error:
        folder.ignored[error.reason] += 1
