"""`status --watch` shows what is, in place, for as long as somebody looks."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from patience import PATIENCE
from sample_answers import known, status
from scripted_peer import AS_IN_A_TERMINAL, Peer, refuse

from memctl import __version__, exits


def drawn_on(written, rows, columns=80):
    """Return the lines of a terminal after all that was *written*: the few sequences that we use."""
    lines, row, column = [[" "] * columns for _ in range(rows)], 0, 0
    for sequence, sign in re.findall("(\x1b\\[[0-9;?]*[A-Za-z])|(.)", written, re.DOTALL):
        match sequence[-1:]:
            case "H":
                row, column = 0, 0
            case "K":
                lines[row][column:] = [" "] * (columns - column)
            case "J":
                lines[row:] = [[" "] * columns for _ in lines[row:]]
        if sign == "\r":
            column = 0
        elif sign == "\n" and row == rows - 1:
            lines = [*lines[1:], [" "] * columns]
        elif sign == "\n":
            row += 1
        elif sign:
            lines[row][column] = sign
            column += 1
    return ["".join(line).rstrip() for line in lines]


class Terminal:
    """memctl status --watch on a terminal of our own."""

    def __init__(self, *argv, rows=24, **environment):
        self.rows = rows
        self.controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
        self.process = subprocess.Popen(
            [*AS_IN_A_TERMINAL, "status", "--watch", *argv],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=os.environ | {"TERM": "xterm", "PYTHONUTF8": "1"} | environment,
        )
        os.close(terminal)
        self.written = ""

    def until(self, *words):
        """Read on until the screen shows all of *words*; return its lines."""
        stop = time.monotonic() + 20 * PATIENCE
        while not all(word in "\n".join(lines := drawn_on(self.written, self.rows)) for word in words):
            assert select.select([self.controller], [], [], max(0, stop - time.monotonic()))[0], lines
            self.written += os.read(self.controller, 65536).decode()
        return lines

    def after_looks(self, count):
        """Read on until so many pages were drawn; return the screen's lines."""
        stop = time.monotonic() + 20 * PATIENCE
        while self.written.count("until Ctrl-C") <= count:
            assert select.select([self.controller], [], [], max(0, stop - time.monotonic()))[0]
            self.written += os.read(self.controller, 65536).decode()
        whole = self.written.rindex("\x1b[H")  # where a page begins, which may not be there to its end
        return drawn_on(self.written[:whole], self.rows)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(10 * PATIENCE)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.controller)


@pytest.fixture
def terminal():
    """Make terminals, and close them."""
    made = []

    def make(*argv, **options):
        made.append(Terminal(*argv, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def piped(monkeypatch):
    """Start memctl with pipes, and end it where the test did not."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # which would do for us what the watch must do
    made = []

    def start(*argv):
        made.append(
            subprocess.Popen([*AS_IN_A_TERMINAL, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
        return made[-1]

    yield start
    for one in made:
        one.kill()
        one.communicate()


def counting(amount=1000):
    """Return an answer of `status` that has one pending file less each time."""
    left = iter(range(amount, 0, -1))
    return lambda _: status(known(pending=(now := next(left)), pending_files=now))


def test_each_look_is_drawn_over_the_one_before(peer, terminal):
    peer(status=counting())
    watching = terminal("0.05")
    lines = watching.until("995 files")
    assert lines[0].endswith("every 0.05 s until Ctrl-C")
    assert [line for line in lines if f"memd {__version__}" in line] == [lines[2]]
    assert "1,000 files" not in "\n".join(lines)
    assert "\x1b[2J" not in watching.written
    assert "\x1b[?1049h" not in watching.written


def test_ctrl_c_leaves_the_page_and_a_free_line(peer, terminal):
    peer(status=counting())
    watching = terminal("0.05")
    watching.until("998 files")
    assert watching.interrupt() == exits.INTERRUPTED
    rest = os.read(watching.controller, 65536).decode()
    assert rest.endswith("\r\n")
    assert "Traceback" not in rest


def test_a_page_that_is_too_high_is_cut_and_says_so(peer, terminal):
    """Else each look would scroll the screen."""
    peer(status=status(*[known(root=f"/home/ada/{name}") for name in range(30)]))
    watching = terminal("0.05", rows=12)
    lines = watching.after_looks(4)
    assert lines[0].endswith("until Ctrl-C")
    assert re.match(r"\d+ more lines: enlarge the window, or run memctl status", lines[10])
    assert lines[11] == ""


def test_a_dumb_terminal_gets_blocks(peer, terminal):
    peer(status=counting())
    watching = terminal("0.05", rows=100, TERM="dumb")
    watching.until("1,000 files", "999 files")
    assert "\x1b" not in watching.written


def test_a_daemon_that_goes_and_comes_back_is_shown(root, terminal):
    first = Peer(root / "s", {"status": lambda _: status(known())})
    watching = terminal("0.05")
    watching.until("/home/ada/work")
    first.close()
    lines = watching.until("memd is not running")
    assert "/home/ada/work" not in "\n".join(lines)
    (root / "s").unlink()
    second = Peer(root / "s", {"status": lambda _: status(known()) | {"server": {"instance_id": "j"}}})
    try:
        watching.until("/home/ada/work")
        assert watching.interrupt() == exits.INTERRUPTED
    finally:
        second.close()


def test_json_is_an_object_a_line_as_it_happens(peer, piped):
    peer(status=counting())
    watching = piped("status", "--json", "--watch", "0.05")
    first, second = (json.loads(watching.stdout.readline()) for _ in range(2))
    assert [one["workspaces"][0]["pending"] for one in (first, second)] == [1000, 999]
    assert first["server"]["memory_mb"] == 105.4
    watching.send_signal(signal.SIGINT)
    assert watching.communicate(timeout=10 * PATIENCE)[1] == b""
    assert watching.returncode == exits.INTERRUPTED


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_pipe_has_each_look_at_once(peer, piped, form):
    """Also where the next one is an hour away: nothing waits in a buffer."""
    peer(status=counting())
    watching = piped("status", "--watch", "3600", *form)
    assert select.select([watching.stdout], [], [], 20)[0]


def test_json_says_that_nobody_is_there_and_goes_on(root, piped):
    watching = piped("status", "--json", "--watch", "0.05")
    assert json.loads(watching.stdout.readline()) == {"server": {"state": "dead"}, "workspaces": []}
    assert not (root / "s").exists()
    daemon = Peer(root / "s", {"status": lambda _: status(known())})
    try:
        lines = (json.loads(watching.stdout.readline()) for _ in range(1000))
        assert next(line for line in lines if line["workspaces"])["server"]["pid"] == 4711
    finally:
        daemon.close()


def test_without_a_terminal_each_look_is_a_block(peer, piped):
    peer(status=counting())
    watching = piped("status", "--watch", "0.05")
    lines = [watching.stdout.readline().decode().rstrip("\n") for _ in range(40)]
    stamps = [at for at, line in enumerate(lines) if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)]
    assert stamps[0] == 0
    assert len(stamps) > 1
    assert lines[1] == f"memd {__version__}"
    assert lines[stamps[1] - 1] == ""
    assert "\x1b" not in "".join(lines)


def test_a_daemon_on_its_way_down_does_not_end_the_watch(peer, piped):
    """An error is what there is to show; the next look may be better."""
    answers = iter([refuse("MEMD_STOPPING", "on its way down"), *[lambda _: status(known())] * 100])

    def answer(params):
        return next(answers)(params)

    peer(status=answer)
    watching = piped("status", "--json", "--watch", "0.05")
    assert json.loads(watching.stdout.readline())["server"] == {"state": "stopping"}
    assert json.loads(watching.stdout.readline())["server"]["pid"] == 4711


def test_a_reader_that_leaves_ends_the_watch(peer, piped):
    peer(status=counting())
    watching = piped("status", "--json", "--watch", "0.05")
    watching.stdout.readline()
    watching.stdout.close()
    assert watching.wait(10 * PATIENCE) == exits.PIPE
    assert watching.stderr.read() == b""
