"""One bit that flips on the disk costs a moment, and no crash loop."""

from types import SimpleNamespace

import apsw
import pytest
from tests_support import LONG, Notes

from faults import flips
from faults.household import household
from memd.errors import IndexDamagedError
from memd.index import check
from memd.index.texts import packed, unpacked

FLIPS = 2 if LONG else 1  # of each file


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with household(tmp_path_factory.mktemp("house")) as house:
        yield house


def test_a_flipped_bit_is_noticed_or_harmless(house):
    """In the matrix it costs one row; over the database the daemon starts, and is well after a check."""
    found = flips.loop(house, flips=FLIPS, seed=1)
    assert found.flaws == []
    assert found.outcomes.total() == 2 * FLIPS


def test_a_text_that_changed_silently_is_found_by_the_daily_check(house):
    """If it is packed as it should be, it is quoted, until the check compares it with its own hash."""
    house.restore()
    with apsw.Connection(str(house.index_dir / "index.db")) as database:
        for first, stored in list(database.execute("SELECT first, packed FROM texts")):
            changed = [
                SimpleNamespace(heading=heading, context=context, text=text.replace("a", "o"))
                for heading, context, text in unpacked(stored)
            ]
            database.execute("UPDATE texts SET packed = ? WHERE first = ?", (packed(changed), first))
    database.close()
    house.daemon.start()
    assert list(house.said_at_once()) != []  # so what no note says would be seen
    assert {one["kind"] for one in house.check()} >= {"chunk"}
    assert list(house.flaws()) == []


@pytest.mark.parametrize("table", ["words", "trigrams"])
def test_a_full_text_table_that_lost_its_head_is_damage(tmp_path, table):
    """What SQLite says of it sounds like a mistake in our SQL; it is the file that is wrong."""
    notes = Notes(tmp_path)
    notes.save({"a.md": "alpha zebra\n"})
    with apsw.Connection(str(notes.state / "index.db")) as database:
        database.execute(f"UPDATE {table}_config SET v = 0 WHERE k = 'version'")
    database.close()
    with notes.index.view_apart() as view, pytest.raises(IndexDamagedError):
        view.matching(table, '"zebra"')
    assert {one.kind for one in check.findings(notes.index)} & {"database", table}
    notes.index.close()
