"""The stored columns are what chunks and vectors say, after every kind of change and of damage."""

import random

import pytest
from tests_support import Notes, OtherHashEmbedder

from memd.errors import IndexDamagedError
from memd.index.columns import SLICE_IDS


def many(first: int, count: int) -> dict[str, str]:
    return {f"n{number}.md": f"heron{number} weir{number % 7}\n" for number in range(first, first + count)}


def test_every_change_reaches_the_stored_columns(notes):
    chance = random.Random(5)
    notes.save(many(0, 2 * SLICE_IDS), embed=False)
    for turn in range(30):
        path = f"n{chance.randrange(2 * SLICE_IDS)}.md"
        if turn % 5 == 0:
            notes.save({path: f"heron edited{turn}\n\n# Two\n\nmore of it\n"}, embed=turn % 2 == 0)
        elif (notes.root / path).exists():
            text = (notes.root / path).read_text()
            notes.remove(path, at_s=5)
            if turn % 3 == 0:
                notes.save({path: text}, embed=False)
        if turn % 11 == 10:
            notes.index.purge(None, 100)
        if turn % 10 == 9:
            assert notes.findings() == []
    notes.embed()
    before = notes.index.snapshot.columns
    notes.reopen()
    after = notes.index.snapshot.columns
    assert (after.count, after.total_length) == (before.count, before.total_length)
    assert after.source[: len(before.source)].tolist() == before.source.tolist()
    assert notes.findings() == []


def test_the_rows_are_those_of_the_matrix_that_answers(notes):
    notes.save(many(0, 40))
    notes.switch(OtherHashEmbedder())
    notes.embed_some(notes.index.pending(7))
    notes.save({"late.md": "a late heron\n"}, embed=False)
    assert notes.findings() == []
    notes.embed()
    assert notes.index.finish_building(frozenset())
    assert notes.findings() == []


def test_a_row_that_is_forgotten_leaves_the_columns(notes):
    notes.save({"a.md": "heron\n", "b.md": "weir\n", "c.md": "same heron\n", "d.md": "same heron\n"})
    active = notes.index.matrices.active
    notes.index.forget_rows(active.number, [0, active.count - 1])
    assert notes.findings() == []
    notes.reopen()
    assert notes.index.unembedded_count() > 0
    assert notes.findings() == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE columns SET crc = crc + 1",
        "UPDATE columns SET stored = zeroblob(12)",
        "UPDATE columns SET slice = 77 WHERE slice = 0",
    ],
)
def test_a_damaged_slice_is_made_anew_at_a_start(notes, damage):
    notes.save(many(0, SLICE_IDS + 20))
    notes.damage(damage)
    assert notes.findings() == []
    assert notes.index.unembedded_count() == 0
    assert notes.found("heron9") == ["n9.md"]


def test_a_slice_that_is_damaged_under_an_open_index_is_made_anew_by_the_next_save(notes):
    notes.save(many(0, 30))
    notes.index.writer.run("UPDATE columns SET crc = crc + 1")
    notes.save({"new.md": "a new heron\n"})
    assert notes.findings() == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE chunks SET length = -1 WHERE id = 2",
        "UPDATE chunks SET source = 77 WHERE id = 2",
        f"UPDATE chunks SET id = {1 << 40} WHERE id = 2",
        f"UPDATE chunks SET length = {1 << 33} WHERE id = 2",
    ],
)
def test_a_damaged_slice_is_not_made_from_values_that_cannot_be(tmp_path, change):
    """Where what it is made from is damaged, too, only a new index helps."""
    notes = Notes(tmp_path)
    notes.save(many(0, 5))
    with pytest.raises(IndexDamagedError):
        notes.damage(change, "UPDATE columns SET crc = crc + 1")
