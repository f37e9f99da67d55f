"""A crash while the index becomes another one costs time, and nothing that was there."""

import pytest
from tests_support import LONG

from faults import migration

KILLS = 3 if LONG else 2


@pytest.mark.parametrize("change", [migration.models, migration.tables])
def test_a_change_that_is_killed_again_and_again_comes_to_its_end(tmp_path, change):
    """Meanwhile the old index answers or a new one grows; in the end all is right, and no note changed."""
    report = change(tmp_path, kills=KILLS, seed=1, notes=30)
    assert report.flaws == []
    assert report.kills == KILLS
