"""Support for tests of the file of codes: making its file, and the scan of all vectors to compare with."""

from dataclasses import replace

from memd.index.codes import UNUSABLE, can_code
from memd.search.search import search


def made(notes, slices: int | None = None) -> bool:
    """Make the file anew, or do only so many pieces of it; tell whether it counts now."""
    building = notes.index.codes.begin()
    while not building.step(0.0 if slices is not None else 60.0):
        if slices is not None:
            slices -= 1
            if slices <= 0:
                return False
    return notes.index.codes.adopt(building)


def loaded(notes) -> bool:
    """Read the file that is there, as a daemon does after its start; tell whether codes are used then."""
    keeper = notes.index.codes
    found = keeper.current
    if found is not None and can_code(found.dim):
        try:
            keeper.use(found, found.read())
        except UNUSABLE:
            keeper.drop()
    return notes.index.snapshot.codes is not None


def the_file(notes):
    [path] = notes.state.glob("codes.*.faiss")
    return path


def answers(
    notes, text: str, *, exact: bool = False, limit: int = 200, **settings: object
) -> list[tuple[int, float]]:
    """Return (chunk, cosine) of the hits of a search by meaning; *exact*: without codes."""
    request = notes.request(text, mode="vector", limit=limit, min_score=0.0, **settings)
    with notes.index.view() as view:
        without = replace(view, snapshot=replace(view.snapshot, codes=None))
        hits = search(without if exact else view, request).hits
    return [(hit.chunk.id, round(hit.candidate.vector_score, 5)) for hit in hits]
