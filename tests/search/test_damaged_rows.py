"""Vectors that are overwritten while they are in use: no answer rests on them."""

import struct
from collections.abc import Callable

import pytest
from tests_support import Notes, WordHashEmbedder

from memd.index.reader import CHECKSUMS
from memd.index.vectors import FLOAT_BYTES
from memd.search.query import Query
from memd.search.search import VECTORS_CORRUPT
from memd.search.similar import similar
from memd.search.why import why

TEXTS = {
    "heron.md": "the heron nests by the weir\n",
    "egret.md": "a heron, small and white, nests by the weir\n",
    "basil.md": "basil, pine nuts, garlic, oil\n",
    "rye.md": "rye bread wants a long night\n",
}
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "the query's own vector": lambda row: WordHashEmbedder().embed_query("heron weir")[: len(row)],
    "zeros": lambda row: bytes(len(row)),
    "no numbers": lambda row: struct.pack("f", float("nan")) * (len(row) // FLOAT_BYTES),
    "one bit": lambda row: bytes([row[0] ^ 1]) + row[1:],
}


def overwrite(notes: Notes, change: Callable[[bytes], bytes], *, only: int | None = None) -> None:
    """Change each row, or the row with a number, through another handle, as a stray program would."""
    path = notes.index.matrices.active.path
    rows = notes.index.snapshot.rows
    size = rows.dim * FLOAT_BYTES
    with path.open("r+b") as file:
        for row in range(rows.count) if only is None else [only]:
            file.seek(row * size)
            before = file.read(size)
            file.seek(row * size)
            file.write(change(before))


def repair(notes: Notes) -> None:
    notes.scrub()
    notes.embed()


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_words_answer_where_the_matrix_was_overwritten(notes, damage, mode):
    """Whatever it was overwritten with: no unrelated note, the answer says so, after a repair it is whole."""
    notes.save(TEXTS)
    whole = notes.search("heron weir", mode=mode)
    overwrite(notes, DAMAGE[damage])
    answer = notes.search("heron weir", mode=mode)
    assert (answer.mode, answer.degraded) == ("keyword", (VECTORS_CORRUPT,))
    assert {hit.source.path for hit in answer.hits} == {"heron.md", "egret.md"}
    repair(notes)
    healed = notes.search("heron weir", mode=mode)
    assert (healed.mode, healed.degraded) == (mode, ())
    assert [hit.candidate.score for hit in healed.hits] == [hit.candidate.score for hit in whole.hits]


def test_one_row_that_a_keyword_hit_has_is_enough(notes):
    notes.save(TEXTS | {f"{number}.md": f"heron {number} weir\n" for number in range(200)})
    notes.save({"zeros.md": "oystercatcher\n"})
    overwrite(notes, lambda row: bytes(len(row)), only=notes.index.snapshot.rows.count - 1)
    assert notes.search("oystercatcher", mode="hybrid").degraded == (VECTORS_CORRUPT,)
    repair(notes)
    assert notes.search("oystercatcher", mode="hybrid").degraded == ()


def test_an_answer_without_meaning_is_said_each_time(notes):
    notes.save(TEXTS)
    overwrite(notes, lambda row: bytes(len(row)))
    assert [notes.search("heron weir", mode="hybrid").degraded for _ in range(3)] == [(VECTORS_CORRUPT,)] * 3
    repair(notes)
    assert notes.search("heron weir", mode="hybrid").degraded == ()


def test_likeness_by_a_damaged_vector_is_likeness_by_words(notes):
    notes.save(TEXTS)
    rows = notes.index.snapshot.rows
    basil = rows.buffer[2 * rows.dim * FLOAT_BYTES : 3 * rows.dim * FLOAT_BYTES]
    with notes.index.view() as view:
        source = view.snapshot.source_at("heron.md")
        [chunk] = view.reader.chunks_of(source.id)
        overwrite(notes, lambda _: basil, only=view.snapshot.columns.row[chunk.id])
        answer = similar(view, chunk, notes.request("", query=Query("")))
    assert (answer.mode, answer.degraded) == ("keyword", (VECTORS_CORRUPT,))
    assert [hit.source.path for hit in answer.hits] == ["egret.md"]
    repair(notes)


def test_why_does_not_judge_by_a_damaged_vector(notes):
    """The source that it is asked about is compared as well, in a pool or not."""
    notes.save(TEXTS)
    with notes.index.view() as view:
        source = view.snapshot.source_at("rye.md")
        [chunk] = view.reader.chunks_of(source.id)
        overwrite(notes, lambda row: bytes(len(row)), only=view.snapshot.columns.row[chunk.id])
        verdict = why(view, notes.request("heron weir", mode="hybrid"), source, None)
        assert view.damaged
    assert verdict.stage == "unmatched"
    assert verdict.explained is None or verdict.explained.vector is None
    repair(notes)


def test_the_index_tells_who_repairs_it(notes):
    """Once for each query that met such rows, and for none that did not."""
    told = []
    notes.index.tell_damaged = lambda: told.append(1)
    notes.save(TEXTS)
    notes.search("heron weir", mode="hybrid")
    assert told == []
    overwrite(notes, lambda row: bytes(len(row)))
    notes.search("heron weir", mode="keyword")
    assert told == []
    notes.search("heron weir", mode="hybrid")
    assert told == [1]
    repair(notes)


def test_another_matrix_loses_nothing(notes):
    """Damage found in a matrix that was compacted meanwhile is not attributed to rows of the next one."""
    notes.save(TEXTS)
    notes.remove("rye.md", at_s=0)
    notes.index.purge(None, 10)
    seen = notes.index.snapshot.rows
    notes.compact()
    assert notes.index.forget_damaged(seen, [0, 1, 2]) == 0
    assert notes.index.unembedded_count() == 0


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_hit_is_compared_before_any_scrub(notes, damage):
    """Overwritten while nobody had it open: the first answer after a start does not rest on it."""
    notes.save(TEXTS)
    overwrite(notes, DAMAGE[damage], only=0)
    notes.reopen()
    answer = notes.search("heron weir", mode="hybrid")
    assert (answer.mode, answer.degraded) == ("keyword", (VECTORS_CORRUPT,))
    repair(notes)
    assert notes.search("heron weir", mode="hybrid").degraded == ()


def test_checksums_are_looked_up_by_chunk(notes):
    """A pass over all vectors would take seconds for a large index."""
    notes.save(TEXTS)
    with notes.index.view() as view:
        plan = " ".join(row[3] for row in view.reader.each(f"EXPLAIN QUERY PLAN {CHECKSUMS}", ("[1]",)))
    assert "SEARCH chunks USING INTEGER PRIMARY KEY (rowid=?)" in plan
    assert "SEARCH vectors USING PRIMARY KEY (matrix=? AND hash=?)" in plan


def test_a_row_that_two_texts_name_is_lost_to_both(notes):
    """A flipped bit in the database: which of the two it belongs to is not known."""
    notes.save(TEXTS)
    notes.index.writer.run("UPDATE vectors SET row = 3 WHERE row = 2")
    notes.reopen()
    assert notes.scrub() == 2
    assert notes.index.unembedded_count() == 2
    notes.embed()
    assert notes.search("heron weir", mode="hybrid").degraded == ()


def test_checksums_are_known_after_a_scrub_and_for_new_rows(notes):
    """Rows that were there when it was opened, rows that came later, and a copy by compaction."""
    notes.save({"heron.md": TEXTS["heron.md"]})
    notes.reopen()
    assert not all(notes.index.snapshot.rows.crcs)
    assert notes.scrub() == 0
    notes.save({"rye.md": TEXTS["rye.md"], "basil.md": TEXTS["basil.md"]})
    notes.remove("basil.md", at_s=0)
    notes.index.purge(None, 10)
    for _ in range(2):
        rows = notes.index.snapshot.rows
        assert (rows.damaged(range(rows.count)), all(rows.crcs)) == ([], True)
        notes.compact()
    overwrite(notes, lambda row: bytes(len(row)))
    assert notes.search("heron", mode="hybrid").degraded == (VECTORS_CORRUPT,)
    repair(notes)


def test_without_numpy_it_is_noticed_as_well(notes, monkeypatch):
    monkeypatch.setattr("memd.search.search.HAS_NUMPY", False)
    notes.save(TEXTS)
    answers = [notes.search("heron weir", mode="hybrid")]
    overwrite(notes, lambda row: bytes(len(row)))
    answers.append(notes.search("heron weir", mode="hybrid"))
    assert [(one.mode, one.degraded) for one in answers] == [("hybrid", ()), ("keyword", (VECTORS_CORRUPT,))]
    repair(notes)
