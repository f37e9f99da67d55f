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
signal.signal({number}, signal.{handler})
with Progress() as progress:
    progress(dict(stage="check", done=1, total=2))
    signal.raise_signal({number})
"""


def shown(number: int, handler: str = "SIG_DFL", **environment: str) -> tuple[int, bytes]:
    """Return the exit code of a process that gets a signal during a call, and what its terminal got."""
    controller, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", SHOWN.format(number=int(number), handler=handler)],
        stderr=terminal, env=os.environ | {"TERM": "xterm"} | environment, check=False,
    )  # fmt: skip
    os.close(terminal)
    return done.returncode, drawn_on(controller)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_with_the_cursor_shown(number):
    status, drawn = shown(number)
    assert status == -number
    assert drawn.rindex(b"\x1b[?25h") > drawn.rindex(b"\x1b[?25l")


def test_a_signal_that_is_ignored_is_ignored_with_a_bar_too():
    assert shown(signal.SIGHUP, "SIG_IGN")[0] == 0


@pytest.mark.parametrize("name", ["", "dumb"])
def test_a_terminal_without_control_sequences_gets_lines(name):
    assert shown(signal.SIGCONT, TERM=name) == (0, b"memctl: checking 1/2\r\n")
