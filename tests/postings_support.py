"""Support for tests of the table of postings: filling it, and what FTS5 says, term by term."""

from collections import defaultdict

from memd.index.postings import counted
from memd.search.keyword import ChunkScores
from memd.text import is_spaceless

K1, B = 1.2, 0.75


def made(notes, slices: int | None = None) -> bool:
    """Do the pass over the terms that is due, or so many slices of it; tell whether it is complete."""
    table = notes.index.postings
    building = table.begin()
    while not building.is_done:
        if slices == 0:
            return False
        rows = building.step(60.0 if slices is None else 0.0)
        if not table.put(building, rows):
            return False
        slices = None if slices is None else slices - 1
    return True


def keys(notes) -> dict[str, int]:
    """Return the key of each row of the table, and up to which chunk it is."""
    with notes.index.view_apart() as view:
        return dict(view.reader.each("SELECT term, upto FROM main.postings"))


def damage(notes, column: str = "counts", which: str = "term IS NOT NULL") -> None:
    """Flip a bit in a value of rows, as a disk might; queries see it when they read the rows again."""
    writer = notes.index.writer
    for term, value in writer.run(f"SELECT term, {column} FROM postings WHERE {which}"):
        with writer.transaction():
            flipped = value ^ 1 if type(value) is int else bytes([value[0] ^ 1]) + value[1:]
            writer.run(f"UPDATE postings SET {column} = ? WHERE term = ?", (flipped, term))
    notes.index.publish_again()


def truth(view) -> dict[tuple[str, bool], dict[int, int]]:
    """Return term → live chunk → count, straight out of FTS5, with what begins with each character."""
    found: dict[tuple[str, bool], dict[int, int]] = defaultdict(dict)
    live = view.snapshot.columns.source
    rows = view.reader.each("SELECT term, doc, count(*) FROM temp.word_postings GROUP BY term, doc")
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
