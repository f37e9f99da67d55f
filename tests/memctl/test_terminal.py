"""What a person at a terminal sees. Run under a real one (a pty)."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from patience import PATIENCE
from sample_answers import READY, found, hit, known, status
from screen import drawn_on
from scripted_peer import Peer

from memctl import exits


@pytest.fixture
def answers(tmp_path):
    """What the peer answers by method; it listens at the socket that `seen` uses."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "config.toml").write_text("")
    answers = {}
    peer = Peer(tmp_path / "s", answers)
    yield answers
    peer.close()


@pytest.fixture
def seen(tmp_path, answers):
    """Return a function that runs memctl on a terminal and returns exit code and what was drawn."""

    def run(*argv, typed=b"", **environment):
        controller, terminal = pty.openpty()
        os.write(controller, typed)
        process = forked.popen(
            [sys.executable, "-m", "memctl", *argv],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "80",
                "PYTHONPATH": str(Path(exits.__file__).parent.parent), "MEMD_SOCKET": str(tmp_path / "s"),
                "XDG_STATE_HOME": str(tmp_path), "PYTHONUTF8": "1", **environment,
            },
        )  # fmt: skip
        os.close(terminal)
        drawn = drawn_on(controller).decode().replace("\r\n", "\n")
        return process.wait(10 * PATIENCE), drawn

    return run


def test_hits_are_coloured_and_linked(answers, seen):
    answers["search"] = lambda _: found(hit())
    status_code, drawn = seen("search", "brca1")
    assert status_code == exits.OK
    assert "\x1b[1;31mBRCA1\x1b[0m" in drawn
    assert "\x1b]8;;file:///home/ada/work/notes/genetics.md\x1b\\" in drawn


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}])
def test_colours_can_be_refused(answers, seen, environment):
    answers["search"] = lambda _: found(hit())
    answers["status"] = lambda _: status(known())
    for argv in (("search", "brca1"), ("status",)):
        assert "\x1b" not in seen(*argv, **environment)[1]


def test_a_page_is_as_wide_as_columns_says(answers, seen):
    answers["search"] = lambda _: found(hit(snippet="a heron at the weir " * 9))
    for columns in (40, 120):
        drawn = seen("search", "brca1", COLUMNS=str(columns), NO_COLOR="1", MEMCTL_HYPERLINK_FORMAT="none")[1]
        assert columns - 20 < max(map(len, drawn.splitlines())) <= columns


def test_color_always_wins_over_no_color(answers, seen):
    """What was typed is stronger than the environment."""
    answers["search"] = lambda _: found(hit())
    assert "\x1b[1;31m" in seen("search", "--color", "always", "brca1", NO_COLOR="1")[1]


def test_a_notes_escapes_reach_no_terminal(answers, seen):
    hostile = "\x1b]52;c;cm0gLXJm\x07\x1b[2J"
    answers["search"] = lambda _: found(hit(snippet=hostile, heading=hostile, path=f"{hostile}.md"))
    answers["get"] = lambda _: {"path": "a.md", "text": hostile, "start_line": 1, "end_line": 1}
    answers["recall"] = lambda _: {
        "text": hostile, "sources": [{"score": 0.5}], "omitted": [], "index": {}, "workspace": "/",
    }  # fmt: skip
    for argv in (("search", "x"), ("get", "a.md"), ("recall", "x")):
        status_code, drawn = seen(*argv)
        assert status_code == exits.OK
        assert "\x1b]52" not in drawn
        assert "\x1b[2J" not in drawn
        assert "␛[2J" in drawn


def test_status_health_and_workspaces_are_tables(answers, seen):
    answers["status"] = lambda _: status(known(), known(root="/b"))
    answers["health"] = lambda _: {"ok": True, "checks": [{"name": "search", "ok": True, "detail": "1 hit"}]}
    listed = {"workspaces": [{"root": "/a", "state": "ready", "sources": 1, "chunks": 2}]}
    answers["workspace.list"] = lambda _: listed
    for argv, word in (
        (("status",), "1,864   9,001    9,000        0"),
        (("health",), "healthy"),
        (("workspaces",), "/a"),
    ):
        status_code, drawn = seen(*argv)
        assert (status_code, word in drawn) == (exits.OK, True)
        assert all(len(re.sub("\x1b\\[[0-9;]*m", "", line)) <= 80 for line in drawn.splitlines())


def test_waiting_for_an_index_draws_a_bar_and_takes_it_away(answers, seen):
    answers["index"] = lambda _: READY
    status_code, drawn = seen("index")
    assert status_code == exits.OK
    assert "indexing" in drawn
    assert "━" in drawn
    assert drawn.endswith("3 sources, 9 chunks, 9 vectors, 0 skipped, 1.5 s\n")


@pytest.mark.parametrize(("typed", "removed"), [(b"y\n", True), (b"\n", False)])
def test_who_removes_a_workspace_at_a_terminal_is_asked(answers, seen, typed, removed):
    asked = []
    answers["index"] = lambda _: {"workspace": "/a", "sources": 3}
    answers["workspace.remove"] = lambda params: (asked.append(params), {"root": "/a", "removed": True})[1]
    status_code, drawn = seen("workspaces", "remove", "/a", typed=typed)
    assert "Forget /a and delete its index of 3 sources? Its notes stay. [y/N]" in drawn
    assert (status_code, bool(asked)) == ((exits.OK, True) if removed else (exits.NONE, False))
    status_code, drawn = seen("workspaces", "remove", "--json", "/a")
    assert (status_code, "[y/N]" in drawn) == (exits.OK, False)


def test_uninstall_does_nothing_where_nobody_can_say_yes(tmp_path):
    """From a script --yes is needed; nothing is stopped or deleted without it."""
    (tmp_path / "memd").mkdir(mode=0o700)
    environment = {"PYTHONPATH": str(Path(exits.__file__).parent.parent), "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "memctl", "uninstall", "--purge"], stdin=subprocess.DEVNULL,
        capture_output=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == exits.USAGE
    assert b"--yes" in done.stderr
    assert (tmp_path / "memd").is_dir()
