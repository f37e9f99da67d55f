"""An idle daemon gives the processor back."""

import sys
import time

import pytest
from daemon_process import until

SPENT_S = 2.0  # how long it is watched
MOST = 0.3  # of one core; threads that spin while they wait for the next text take most of one


@pytest.mark.skipif(sys.platform != "linux", reason="counts processor time in /proc")
def test_after_a_burst_of_embedding_it_is_idle_again(workspace):
    daemon, root = workspace
    for number in range(60):
        (root / f"burst{number}.md").write_text(
            f"# Day {number}\n\nThe heron stood by weir {number} at dawn.\n"
        )
    for number in range(40):
        daemon.call("search", query=f"what happened at dawn on day {number}", limit=1)
    until(lambda: daemon.call("status")["workspaces"][0]["state"] == "ready", 60)
    time.sleep(1.0)
    before_s = daemon.cpu_s()
    time.sleep(SPENT_S)
    assert daemon.cpu_s() - before_s < MOST * SPENT_S
