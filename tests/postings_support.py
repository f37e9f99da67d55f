"""Support for tests of the file of postings: making it, and what FTS5 says, term by term."""

from collections import defaultdict

from memd.index.postings import counted
from memd.search.keyword import ChunkScores
from memd.text import is_spaceless

K1, B = 1.2, 0.75


def made(notes, slices: int | None = None) -> bool:
    """Make the file anew, or do only so many pieces of it; tell whether it counts now."""
    building = notes.index.postings.begin()
    while not building.step(0.0 if slices is not None else 60.0):
        if slices is not None:
            slices -= 1
            if slices <= 0:
                return False
    return notes.index.postings.adopt(building)


def the_file(notes):
    """Return the path of the file that counts."""
    [path] = notes.state.glob("postings.*.bin")
    return path


def truth(view) -> dict[tuple[str, bool], dict[int, int]]:
    """Return term → live chunk → count, straight out of FTS5, with what begins with each character."""
    found: dict[tuple[str, bool], dict[int, int]] = defaultdict(dict)
    live = view.snapshot.columns.source
    rows = view.reader.each("SELECT term, doc, count(*) FROM temp.postings GROUP BY term, doc")
    for term, chunk, count in rows:
        if chunk < len(live) and live[chunk]:
            found[term, False][chunk] = count
            if is_spaceless(term[:1]):
                beginning = found[term[0], True]
                beginning[chunk] = beginning.get(chunk, 0) + count
    return found


def untruths(view) -> list[str]:
    """Return which terms have other postings or scores than FTS5 says; asked twice, as a cache would be."""
    wrong = []
    columns = view.snapshot.columns
    for (text, is_beginning), counts in truth(view).items():
        for _ in range(2):
            shown = view.postings(text, prefix=is_beginning)
            if shown.document_frequency != len(counts):
                wrong.append(f"{text}: {shown.document_frequency} documents, not {len(counts)}")
            both = [ChunkScores([(1.5, one)], columns, K1, B) for one in (shown, counted(counts))]
            seen, expected = (list(scores.every()) for scores in both)
            if seen != expected:
                wrong.append(f"{text}: other scores")
    return wrong
