"""The life of a program that memctl starts beside the daemon."""

import json
import signal
import subprocess
import sys

import pytest
from patience import PATIENCE

WORKS = """
import os, signal, sys
from memd import process
with process.running() as send:
    send({"report": {}})
    if "inside" in sys.argv:
        os.kill(os.getpid(), signal.SIGTERM)
if "after" in sys.argv:
    os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize(("when", "status"), [("inside", 128 + signal.SIGTERM), ("after", 0)])
def test_a_signal_ends_the_work_and_not_the_end_of_the_process(when, status):
    """As soon as it has the report memctl closes stdin, which must not interrupt Python's own end."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKS, when],
        stdin=subprocess.PIPE,  # open: somebody waits
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert json.loads(process.stdout.read()) == {"report": {}}
        assert (process.wait(), process.stderr.read()) == (status, b"")


LOSES = """
import signal, time
from memd import process
class Lost:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
process.LEAVE_S = 1.0
with process.running() as send:
    lost = Lost()
    del lost
    send({"report": {}})
    while True:
        time.sleep(60)
"""


def test_a_signal_that_python_loses_does_not_keep_it_alive():
    """What is raised in a finalizer is printed and forgotten; without its parent the process ends even so."""
    with subprocess.Popen(
        [sys.executable, "-c", LOSES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert json.loads(process.stdout.readline()) == {"report": {}}
        process.stdin.close()
        assert process.wait(timeout=60 * PATIENCE) == 128 + signal.SIGTERM
