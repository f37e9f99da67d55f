"""A folder on a disk that goes and comes, or that other machines change too."""

import time

import pytest
from daemon_process import until

from live.game import game
from live.mounting import can_mount, plugged_in
from live.planted import launched

STAYS_AWAY_S = 3.0  # longer than all that looks after the root


@pytest.mark.skipif(not can_mount(), reason="needs a namespace to mount in")
def test_a_disk_that_is_unmounted_is_missing_and_not_empty():
    """Answers go on, nothing is given up; after its return changes are seen, also those of meanwhile."""
    with plugged_in() as (played, disk):
        assert (played.found("q1z"), played.status()["watching"]) == (["a.md"], "events")
        for round_ in range(2):
            disk.pull_out()
            until(lambda: played.status()["state"] == "missing")
            (disk.notes / "meanwhile.md").write_text(f"The q{round_}2z stands there.\n")
            time.sleep(STAYS_AWAY_S)
            assert played.found("q1z") == ["a.md"]
            facts = played.status()
            assert (facts["state"], facts["gone"]) == ("missing", 0)
            disk.plug_in()
            (disk.notes / "after.md").write_text(f"The q{round_}3z stands there.\n")
            until(lambda round_=round_: played.found(f"q{round_}3z") == ["after.md"])
            until(lambda round_=round_: played.found(f"q{round_}2z") == ["meanwhile.md"])
        assert played.status()["gone"] == 0


def test_where_no_events_come_it_looks_itself():
    """It says so, finds what was saved soon, and at once if somebody waits for it."""
    with game(under=launched("eventless")) as played:
        until(lambda: played.status()["watching"] == "polling")
        facts = played.status()
        assert "watch-limited" in facts["degraded"]
        assert "nfs4" in " ".join(facts["errors"])
        (played.root / "deep").mkdir()
        (played.root / "deep" / "a.md").write_text("The q1z stands there.\n")
        until(lambda: played.found("q1z") == ["deep/a.md"], 30)
        (played.root / "deep" / "a.md").write_text("The q2z stands there.\n")
        assert played.answer("q2z", sync=True) == (["deep/a.md"], True)
        (played.root / "deep" / "a.md").unlink()
        played.check()
