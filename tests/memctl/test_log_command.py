"""The daemon's own log is shown, wherever it is, or said that there is none."""

import json
import os
import select
import signal
import subprocess
import time

import pytest
from patience import PATIENCE
from scripted_peer import AS_IN_A_TERMINAL

from memctl import exits, systemd
from memctl.__main__ import main
from memctl.commands.log import file_lines
from memctl.output.log import from_line, line
from memctl.output.marker import Marker
from memctl.paths import state_dir

READY = {"version": "0.1.0", "pid": 7, "event": "ready", "level": "info", "timestamp": "2026-05-01T10:00:00Z"}
# Takes down what it was asked for, prints what it was given, and ends as it is told.
JOURNALCTL = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/asked"
cat "{folder}/entries"
cat "{folder}/trouble" >&2
exit $(cat "{folder}/status")
"""


def record(number, **fields):
    """Return a line as memd writes it."""
    return json.dumps(READY | {"pid": number} | fields) + "\n"


def pids(text):
    """Return which records a page shows."""
    return [int(word.removeprefix("pid=")) for word in text.split() if word.startswith("pid=")]


@pytest.fixture
def log(root, monkeypatch):
    """The log file of a daemon that memctl started; no systemd."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    state_dir().mkdir(parents=True, mode=0o700, exist_ok=True)
    path = state_dir() / "memd.log"
    path.write_text("".join(map(record, range(1, 101))))
    yield path
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def journal(root, monkeypatch):
    """A journalctl that gives what the folder it returns says, and a systemd that looks after memd."""
    for name, text in {"entries": "", "trouble": "", "status": "0"}.items():
        (root / name).write_text(text)
    program = root / "bin" / "journalctl"
    program.parent.mkdir()
    program.write_text(JOURNALCTL.format(folder=root))
    program.chmod(0o755)
    (root / "run/systemd/private").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(root / "run"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "config"))
    monkeypatch.delenv("MEMD_SOCKET")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    systemd.unit_dir().mkdir(parents=True)
    (systemd.unit_dir() / systemd.SOCKET).touch()
    assert systemd.managed()
    yield root
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def following(log, monkeypatch):
    """Return a function that starts `memctl log --follow` and gives its lines, each within a limit."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # which would do for us what following must do
    started = []

    def start(*argv):
        process = subprocess.Popen(
            [*AS_IN_A_TERMINAL, "log", "--follow", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        rest = b""

        def next_line():
            nonlocal rest
            stop = time.monotonic() + 20 * PATIENCE
            while b"\n" not in rest:
                assert select.select([process.stdout], [], [], max(0, stop - time.monotonic()))[0]
                rest += os.read(process.stdout.fileno(), 65536)
            shown, _, rest = rest.partition(b"\n")
            return shown.decode()

        return process, next_line

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_record_is_a_line_for_people(log, capsys):
    assert main(["log"]) == exits.OK
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "2026-05-01 10:00:00  info     ready  version=0.1.0 pid=100"
    assert pids(out) == list(range(51, 101))


def test_as_many_lines_as_are_wanted(log, capsys):
    for wanted, shown in (("3", [98, 99, 100]), ("0", []), ("1000", list(range(1, 101)))):
        assert main(["log", "-n", wanted]) == exits.OK
        assert pids(capsys.readouterr().out) == shown
    assert main(["log", "-n", "few"]) == exits.USAGE


def test_what_is_missing_comes_from_the_log_that_was_set_aside(log, capsys):
    """A daemon that was started a moment ago has hardly any lines of its own."""
    log.rename(log.with_suffix(".log.1"))
    log.write_text(record(101) + record(102))
    assert main(["log", "-n", "4"]) == exits.OK
    assert pids(capsys.readouterr().out) == [99, 100, 101, 102]


def test_json_is_what_memd_wrote(log, capsys):
    log.write_text("Fatal Python error: Aborted\n" + record(1))
    assert main(["log", "--json"]) == exits.OK
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"text": "Fatal Python error: Aborted"}, READY | {"pid": 1}]


def test_a_log_does_nothing_to_a_terminal(log, capsys):
    log.write_bytes(b"plain \x1b[2J\xff\n" + record(1, event="a\x1b[2J", what="b\x1b[2J").encode())
    assert main(["log"]) == exits.OK
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "plain ␛[2J\ufffd" in out
    assert "a␛[2J" in out
    assert "what=b␛[2J" in out


def test_troubles_stand_out_in_colour():
    error = from_line(record(1, level="error"))
    assert "\x1b[1;31merror" in line(error, Marker("", colour=True))
    assert "\x1b" not in line(error, Marker("", colour=False))


def test_where_there_is_no_log_the_place_is_named(log, capsys):
    log.unlink()
    assert main(["log"]) == exits.NOT_FOUND
    err = capsys.readouterr().err
    assert str(log) in err
    assert "memctl start" in err
    assert [path.name for path in state_dir().iterdir()] == ["lock"]  # of the fixture


def test_an_empty_log_is_said_to_be_empty(log, capsys):
    """Silence would look like a mistake."""
    log.write_text("")
    assert main(["log"]) == exits.NOT_FOUND
    assert "is empty" in capsys.readouterr().err


def test_follow_goes_on_with_what_is_written(log, following):
    process, next_line = following("-n", "1")
    assert pids(next_line()) == [100]
    with log.open("a") as writing:
        writing.write(record(101) + record(102)[:20])
        writing.flush()
        assert pids(next_line()) == [101]
        writing.write(record(102)[20:])
        writing.flush()
        assert pids(next_line()) == [102]
    process.send_signal(signal.SIGINT)
    assert process.wait(10 * PATIENCE) == exits.INTERRUPTED
    assert process.stderr.read() == b""


def test_follow_goes_over_into_a_new_log(log, following):
    """As memctl sets a long one aside when it starts memd; what was written last is not lost."""
    _, next_line = following("-n", "1")
    assert pids(next_line()) == [100]
    with log.open("a") as writing:
        writing.write(record(101))
        writing.flush()
        assert pids(next_line()) == [101]
        log.rename(log.with_suffix(".log.1"))
        writing.write(record(102))
        writing.flush()
        log.write_text(record(103))
    assert pids(next_line()) == [102]
    assert pids(next_line()) == [103]
    log.write_text(record(7))
    assert pids(next_line()) == [7]


def test_a_line_that_is_not_complete_yet_waits(log):
    log.write_text(record(1) + record(2)[:20])
    lines = file_lines(log, 10, follow=True)
    assert next(lines) == record(1).strip()
    with log.open("a") as writing:
        writing.write(record(2)[20:])
    assert next(lines) == record(2).strip()


def test_under_systemd_the_journal_is_asked(journal, capsys):
    """For the user's own unit; what systemd says of it stands between memd's lines."""
    started = {"MESSAGE": "Started memd.", "SYSLOG_IDENTIFIER": "systemd", "_COMM": "systemd"}
    stamp = {"__REALTIME_TIMESTAMP": "1777629600000000"}
    entries = [started | stamp, {"MESSAGE": record(1).strip()} | stamp, {"MESSAGE": list(b"caf\xe9")} | stamp]
    (journal / "entries").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert main(["log", "-n", "3"]) == exits.OK
    assert capsys.readouterr().out.splitlines() == [
        "2026-05-01 10:00:00  systemd  Started memd.",
        "2026-05-01 10:00:00  info     ready  version=0.1.0 pid=1",
        "2026-05-01 10:00:00  caf\ufffd",
    ]
    asked = (journal / "asked").read_text().split()
    assert asked[:4] == ["--user-unit", "memd.service", "--lines", "3"]
    assert "--follow" not in asked
    assert main(["log", "--follow", "--json"]) == exits.OK
    assert json.loads(capsys.readouterr().out.splitlines()[1]) == READY | {"pid": 1}
    assert "--follow" in (journal / "asked").read_text().split()
    assert main(["log", "-n", "99999999999"]) == exits.OK
    assert "1000000000" in (journal / "asked").read_text().split()


def test_an_empty_journal_says_why_it_may_be(journal, capsys):
    assert main(["log"]) == exits.NOT_FOUND
    assert "memctl start" in capsys.readouterr().err


def test_a_journalctl_that_fails_is_quoted(journal, capsys):
    (journal / "trouble").write_text("Failed to open the journal\n")
    (journal / "status").write_text("1")
    assert main(["log"]) == exits.UNREACHABLE
    err = capsys.readouterr().err
    assert "Failed to open the journal" in err
    assert "systemd-journal" in err


def test_a_journalctl_that_follows_ends_with_its_reader(journal):
    program = journal / "bin/journalctl"
    program.write_text(f"#!/bin/sh\necho $$ > {journal}/pid\necho '{{}}'\nexec sleep 60\n")
    following = subprocess.Popen([*AS_IN_A_TERMINAL, "log", "-f"], stdout=subprocess.PIPE)
    with following.stdout:
        assert following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert following.wait(10 * PATIENCE) == exits.INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.kill(int((journal / "pid").read_text()), 0)
