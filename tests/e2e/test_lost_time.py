"""A daemon whose machine slept, or whose clock was set."""

import subprocess
import sys

import pytest
from daemon_process import Daemon, until

YEAR_S = 365 * 24 * 3600.0

# Its clocks are read five times a second; once, after the third reading, they say that a year went by.
JUMPING = """
import sys, time
from memd import daemon, logs

readings = 0

def read():
    global readings
    readings += 1
    wall, awake, since_boot = time.time(), time.monotonic(), time.monotonic()
    jump_s = {jump_s} if readings > 3 else 0
    return (wall + jump_s, awake, since_boot) if {was_set} else (wall + jump_s, awake, since_boot + jump_s)

daemon.LOOK_S = 0.2
daemon.Clocks.__init__.__defaults__ = (read,)
logs.configure(sys.stderr, terminal=False)
sys.exit(daemon.run(daemon.starter(None)))
"""


@pytest.mark.parametrize(("jump_s", "was_set"), [(YEAR_S, True), (-YEAR_S, True), (YEAR_S, False)])
def test_time_that_was_lost_means_one_look_and_no_timeout(tmp_path, jump_s, was_set):
    home, root = tmp_path / "home", tmp_path / "notes"
    home.mkdir()
    root.mkdir()
    (root / "heron.md").write_text("A grey bird.\n")
    daemon = Daemon(home)
    script = JUMPING.format(jump_s=jump_s, was_set=was_set)
    try:
        with daemon.log_path.open("ab") as log:
            daemon.process = subprocess.Popen(
                [sys.executable, "-c", script], env=daemon.environment, stderr=log
            )
        until(daemon.listens)
        workspace = daemon.add(root)
        until(lambda: '"clock_jumped"' in daemon.log())
        for _ in range(20):
            assert daemon.found("bird", workspace=workspace, sync=True) == ["heron.md"]
        assert daemon.stop() == 0
        assert daemon.log().count('"clock_jumped"') == 1
    finally:
        daemon.close()
