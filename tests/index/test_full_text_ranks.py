"""Damage that FTS5's own check does not see is seen and mended."""

import apsw
import pytest
from tests_support import Notes

from memd.errors import IndexDamagedError
from memd.index.check import rank_all, repair

# What FTS5 keeps beside a table's terms: the sums and each row's length, which only its ranking reads.
DAMAGE = [
    f"{statement.format(table=table)}"
    for table in ("words", "trigrams")
    for statement in (
        "UPDATE {table}_data SET block = zeroblob(3) WHERE id = 1",
        "DELETE FROM {table}_docsize WHERE id < 20",
    )
]


@pytest.fixture
def damaged(tmp_path):
    """Return a function that damages an index under its open connections, after a query of each."""
    notes = Notes(tmp_path)
    notes.save({f"n{number}.md": f"heron{number} weir\n" for number in range(40)})
    notes.found("weir")

    def damage(statement):
        database = apsw.Connection(str(notes.state / "index.db"))
        database.execute(statement)
        for table in ("words", "trigrams"):
            database.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        assert database.pragma("integrity_check") == "ok"
        database.close()
        return notes

    yield damage
    notes.index.close()


@pytest.mark.parametrize("statement", DAMAGE)
def test_a_table_that_ranks_no_more_is_noticed_where_fts5_says_ok(damaged, statement):
    """On the connections that were open before, and where FTS5's check of rank 1 finds nothing."""
    notes = damaged(statement)
    with notes.index.view() as view, pytest.raises(IndexDamagedError):
        rank_all(view)
    assert any(finding.startswith(("words: ", "trigrams: ")) for finding in notes.findings())


@pytest.mark.parametrize("statement", DAMAGE)
def test_a_table_that_ranks_no_more_is_filled_again(damaged, statement):
    notes = damaged(statement)
    from memd.index.check import findings

    repair(notes.index, list(findings(notes.index)))
    assert notes.findings() == []
    assert notes.index.unembedded_count() == 0
    assert notes.found("heron7") == ["n7.md"]
    assert notes.found("eron7") == ["n7.md"]
    with notes.index.view() as view:
        rank_all(view)


def test_one_length_that_is_lost_is_found_by_the_check(damaged):
    """A chunk that no probe happens to rank."""
    notes = damaged("DELETE FROM words_docsize WHERE id = 33")
    assert notes.findings() == ["words: the table words does not know the length of 1 chunks"]


def test_an_empty_index_ranks(notes):
    with notes.index.view() as view:
        rank_all(view)


def test_notes_that_change_often_leave_full_text_search_sound(notes):
    """A chunk is never replaced under its number: after many edits no old word is found, and all ranks."""
    for turn in range(30):
        notes.save({"a.md": f"heron turn{turn}\n", "b.md": f"weir turn{turn}\n"}, embed=False)
        if turn % 7 == 3:
            notes.remove("b.md")
    assert notes.found("heron") == ["a.md"]
    assert notes.found("turn29") == ["a.md", "b.md"]
    assert notes.found('"turn28"') == []
    with notes.index.view() as view:
        rank_all(view)
