"""The bar of a long call."""

import os
import pty
import signal
import subprocess
import sys

import pytest
from screen import drawn_on

SHOWN = """
import signal
from memctl.progress import Progress
with Progress() as progress:
    progress({"stage": "check", "done": 1, "total": 2})
    signal.raise_signal(%d)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_with_the_cursor_shown(number):
    controller, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", SHOWN % number], stderr=terminal, env=environment, check=False
    )  # fmt: skip
    os.close(terminal)
    drawn = drawn_on(controller)
    assert done.returncode == -number
    assert drawn.rindex(b"\x1b[?25h") > drawn.rindex(b"\x1b[?25l")
