"""What was acknowledged survives a power cut, and a sync that is left out is noticed."""

import pytest

from faults import power


def test_nothing_that_was_acknowledged_is_lost_when_the_power_goes(tmp_path):
    """Whatever part of the writes that were not synced is lost, database and vectors fit and are complete."""
    report = power.loop(tmp_path, cuts=60, seed=1)
    assert report.flaws == []
    assert report.rounds == 60


@pytest.mark.parametrize("bug", ["no sync", "no folder sync", "committed first", "overwritten"])
def test_the_replays_find_vectors_that_are_not_durable_when_they_are_named(tmp_path, bug):
    """With the mistake planted, SQLite names a vector that did not survive, or whose row is another's now."""
    report = power.loop(tmp_path, cuts=400, seed=1, bug=bug)
    found = (
        "vectors that SQLite names were not on the disk", "the columns say otherwise than chunks",
        "vectors.1.f32 is damaged", "vectors.2.f32 is damaged",
    )  # fmt: skip
    assert any(flaw in report.flaws[0] for flaw in found), report.flaws


def test_the_replays_find_a_commit_that_is_acknowledged_too_early(tmp_path):
    """Where SQLite does not sync its log with each commit, something acknowledged is lost."""
    assert power.loop(tmp_path, cuts=400, seed=1, bug="lazy log").flaws != []
