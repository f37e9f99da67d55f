"""Staging: a large source comes into the index in slices, and is seen whole or not at all."""

import pytest
from postings_support import keys, made, untruths

from memd.index import postings_table

STAGED_CHUNKS = 100  # memd stages 1,000, and stores 100 at once
CHUNKS_AT_ONCE = 10
CHUNKS = STAGED_CHUNKS + 20


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """A note of 120 chunks is large here, and a term of 20 documents has its row of postings."""
    monkeypatch.setattr("memd.index.indexer.STAGED_CHUNKS", STAGED_CHUNKS)
    monkeypatch.setattr("memd.index.transaction.STAGED_CHUNKS", STAGED_CHUNKS)
    monkeypatch.setattr("memd.index.transaction.CHUNKS_AT_ONCE", CHUNKS_AT_ONCE)
    monkeypatch.setattr("memd.index.index.WASTE_CHUNKS", STAGED_CHUNKS)
    monkeypatch.setattr(postings_table, "MIN_DOCUMENTS", 20)


def large(word: str) -> str:
    """A note of CHUNKS chunks, all of which have *word*."""
    return "".join(f"# part{number}\n\n{word} {'filler ' * 60}\n\n" for number in range(CHUNKS))


def begun(notes, path: str, slices: int = 3):
    """Stage a large note for so many of the smallest slices."""
    readings = notes.indexer.read([path])
    notes.indexer.sift(readings)
    notes.indexer.prepare(readings)
    for _ in range(slices):
        assert not notes.indexer.stage(readings, budget_s=0)
    return readings


def ended(notes, readings) -> None:
    """Stage the rest, with a note saved after each slice; commit."""
    number = 0
    while not notes.indexer.stage(readings, budget_s=0):
        notes.save({f"between{number}.md": f"kingfisher{number} wren"}, embed=False)
        assert notes.found(f"kingfisher{number}") == [f"between{number}.md"]
        number += 1
    assert number > 3
    notes.indexer.commit(readings)


def counts(notes) -> tuple[int, int]:
    """Sources and chunks in the database, seen or not."""
    writer = notes.index.writer
    return writer.run("SELECT count(*) FROM sources")[0][0], writer.run("SELECT count(*) FROM chunks")[0][0]


def test_words_that_were_asked_for_between_two_slices_are_found_in_all_chunks(notes):
    """What a query read of a term beside a staged note does not hide that note's chunks afterwards."""
    notes.save({"small.md": "heron wren"})
    notes.write("big.md", large("heron"))
    readings = begun(notes, "big.md", slices=1)
    notes.save({"later.md": "a later heron"})
    assert sorted(notes.found("heron")) == ["later.md", "small.md"]
    ended(notes, readings)
    with notes.index.view() as view:
        assert untruths(view) == []
        assert view.postings("heron", prefix=False).document_frequency == CHUNKS + 2


@pytest.mark.parametrize("stored_first", [True, False])
def test_rows_of_postings_made_between_two_slices_hide_no_chunk(notes, stored_first):
    """They end before the first chunk of the note, whose other chunks are stored under reserved ids later."""
    notes.save({f"note{number}.md": f"heron {number}" for number in range(30)})
    notes.write("big.md", large("heron"))
    readings = begun(notes, "big.md", slices=1)
    notes.save({"later.md": "a later heron"})
    if stored_first:
        assert made(notes)
        ended(notes, readings)
    else:
        building = notes.index.postings.begin()
        rows = building.step(60.0)
        ended(notes, readings)
        assert notes.index.postings.put(building, rows)
    assert keys(notes)["heron"] == 30
    with notes.index.view() as view:
        assert untruths(view) == []
        assert view.postings("heron", prefix=False).document_frequency >= CHUNKS + 31
    notes.reopen()
    with notes.index.view() as view:
        assert untruths(view) == []


def test_purging_leaves_what_is_staged(notes):
    notes.save({"big.md": large("heron")}, embed=False)
    notes.save({"big.md": "a stork"})
    notes.remove("big.md")
    notes.write("next.md", large("wren"))
    readings = begun(notes, "next.md")
    assert counts(notes)[0] == 2, "nothing of what was replaced is left"
    assert notes.index.purge(None, 64, "big.md") == 1
    assert notes.index.purge(None, 64) == 0
    ended(notes, readings)
    assert notes.found("part7 wren")[0] == "next.md"


def test_a_table_of_words_that_is_made_anew_meanwhile_lacks_nothing(notes):
    """A repair that passed the ids of a staged note before they were filled fills them in the end."""
    notes.save({"small.md": "heron wren"})
    notes.write("big.md", large("heron"))
    readings = begun(notes, "big.md", slices=1)
    notes.save({"later.md": "a later heron"})
    writer = notes.index.writer
    with writer.transaction():
        writer.begin_refill("words")
        for chunk_id, *_ in writer.chunks_to_refill("words", 10_000):
            writer.refill("words", chunk_id, "nothing")
    assert not notes.indexer.stage(readings, budget_s=0)
    with writer.transaction():
        left = writer.chunks_to_refill("words", 10_000)
        assert len(left) == CHUNKS_AT_ONCE
        writer.run("DROP TABLE words_anew")
    ended(notes, readings)
