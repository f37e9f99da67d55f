"""What was acknowledged survives kill -9, and a mistake in the order of a write does not."""

import pytest
from tests_support import LONG

from faults import killing


def test_nothing_that_was_acknowledged_is_lost_when_the_process_is_killed(tmp_path):
    """Killed at random moments, an index has every acknowledged step, no other one, and right vectors."""
    report = killing.loop(tmp_path, kills=15 if LONG else 8, seed=1)
    assert report.flaws == []
    assert report.steps > 50


def test_an_index_of_many_notes_survives_as_well(tmp_path):
    """Where SQLite has much to write back and a matrix much to copy, nothing is lost either."""
    report = killing.loop(tmp_path, kills=4 if LONG else 2, seed=2, notes=300)
    assert report.flaws == []


@pytest.mark.parametrize("bug", ["overwritten", "committed first"])
def test_the_loop_finds_a_write_in_the_wrong_order(tmp_path, bug):
    """With the mistake planted, SQLite soon names a vector that the disk does not hold, or another's."""
    report = killing.loop(tmp_path, kills=400, seed=1, bug=bug)  # it ends with the first flaw
    found = (
        "vectors that SQLite names were not on the disk",
        "texts wait for vectors",
        "the columns say otherwise than chunks and vectors",
    )
    assert any(flaw in report.flaws[0] for flaw in found), report.flaws
