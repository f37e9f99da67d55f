"""Resolution of what a request names: the path of a source, the id of a chunk.

An agent must not learn whether a note is kept from it or not there. So whatever it names and may not know of
is one error, made of the path alone.
"""

import os
import time
from pathlib import Path

from memd.errors import NotFoundError
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.records import Source, SourceText
from memd.sources.refusal import look
from memd.sources.scan import Rules
from memd.workspace.open import OpenWorkspace


def chunk_of(view: View, chunk_id: int) -> StoredChunk:
    """Return a chunk of a live source by its id.

    Raises:
        NotFoundError: there is none (any more).
    """
    chunk = view.reader.chunks([chunk_id]).get(chunk_id)
    if chunk is None or chunk.source not in view.snapshot.sources:
        raise unknown_chunk(chunk_id)
    return chunk


def unknown_chunk(chunk_id: int) -> NotFoundError:
    """Return the error of an id that no chunk has, or none that may be seen."""
    return NotFoundError(f"there is no chunk {chunk_id} (any more): search again")


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


def titled(view: View, title: str) -> Source | None:
    """Return the live source that alone has a title, as it is shown and in any case."""
    wanted = title.casefold()
    found = [one.id for one in view.snapshot.sources.values() if one.title.casefold() == wanted]
    shown = view.source(found[0]) if len(found) == 1 else None
    # A secret in a title is masked: it must not be confirmed by the note that it names.
    return shown if shown is not None and shown.title.casefold() == wanted else None


def unknown(path: str, root: Path) -> NotFoundError:
    """Return the error of a path that is no source, or none that may be seen: it tells nothing of which."""
    named = below(root, path) or path
    return NotFoundError(
        f"{named} is not an indexed source of {root}; memctl why says which rule or state it is"
    )


def on_disk(opened: OpenWorkspace, path: str, *, agent: bool) -> SourceText | None:
    """Return the source at *path*, relative to the root, as it is now; None where none is that may be seen.

    The index may lag behind what was written a moment ago.
    """
    rules = Rules.load(opened.workspace.root, opened.config.sources, opened.config.ignore)
    found = look(opened.workspace.root, path, rules, now_ns=time.time_ns())
    if not isinstance(found, SourceText) or (agent and opened.visible_to_agents.keeps(path, found.text)):
        return None
    return found


def is_known(opened: OpenWorkspace, path: str) -> bool:
    """Tell whether an agent may know of a path: on the disk or, where nothing has that name, in the index."""
    if os.path.lexists(opened.workspace.root / path):
        return on_disk(opened, path, agent=True) is not None
    with opened.view(lambda: False, agent=True) as view:
        return view.snapshot.source_at(path) is not None


def below(root: Path, path: str) -> str | None:
    """Return a path relative to *root*, whichever way it was given; None where it is outside."""
    if "\0" in path:
        return path  # no file has such a name
    full = Path(os.path.normpath(root / path))
    for place in (full, Path(os.path.realpath(full.parent)) / full.name):
        if place != root and place.is_relative_to(root):
            return str(place.relative_to(root))
    return None
