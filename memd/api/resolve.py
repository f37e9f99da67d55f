"""Resolution of what a request names: the path of a source, the id of a chunk."""

import os
from pathlib import Path

from memd.errors import NotFoundError
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import Source


def chunk_of(view: View, chunk_id: int) -> StoredChunk:
    """Return a chunk of a live source by its id.

    Raises:
        NotFoundError: there is none (any more).
    """
    chunk = view.reader.chunks([chunk_id]).get(chunk_id)
    if chunk is None or chunk.source not in view.snapshot.sources:
        raise NotFoundError(f"there is no chunk {chunk_id} (any more): search again")
    return chunk


def source_of(view: View, root: Path, path: str) -> Source:
    """Return a live source by its path, as `below` takes it.

    Raises:
        NotFoundError: there is none.
    """
    wanted = below(root, path)
    source = view.snapshot.source_at(wanted)
    if source is None:
        raise unknown(path, root)
    return view.source(source.id)


def unknown(path: str, root: Path) -> NotFoundError:
    """Return the error of a path that is no source, or none that may be seen: it tells nothing of which."""
    return NotFoundError(
        f"{path} is not an indexed source of {root}; memctl why says which rule or state it is"
    )


def below(root: Path, path: str) -> str | None:
    """Return a path relative to *root*, whichever way it was given; None where it is outside."""
    if "\0" in path:
        return path  # no file has such a name
    full = Path(os.path.normpath(root / path))
    for place in (full, Path(os.path.realpath(full.parent)) / full.name):
        if place != root and place.is_relative_to(root):
            return str(place.relative_to(root))
    return None
