"""memctl lists the newest notes where only filters are asked for, and names its options as they are typed."""

import json
import os
from pathlib import Path

import pytest
from daemon_process import Daemon, until

from memctl import exits

pytestmark = pytest.mark.usefixtures("shared_daemon")

REPOSITORY = str(Path(exits.__file__).parents[1])


@pytest.fixture
def asked(daemon: Daemon, tmp_path: Path):
    """Return a function that runs memctl in one of two diaries."""
    for name, days in (("one", ("2026-05-01", "2026-05-03")), ("two", ("2026-05-02",))):
        (tmp_path / name).mkdir()
        for day in days:
            text = f"---\ntags: [alpha]\n---\nWhat happened on {day}.\n"
            (tmp_path / name / f"{day}.md").write_text(text)
        daemon.add(tmp_path / name)

    def run(*argv, cwd="one"):
        return daemon.memctl(*argv, cwd=tmp_path / cwd, env={"PYTHONPATH": REPOSITORY})

    return run


def test_filters_alone_list_the_newest(asked):
    for argv in (["tag:alpha"], ["--tag", "alpha"], ["--path", "."], ["--since", "2026-05-01"]):
        done = asked("search", "--files", *argv)
        wanted = "" if argv == ["--path", "."] else "2026-05-03.md\n2026-05-01.md\n"
        assert (done.stdout, done.stderr if wanted else "") == (wanted, ""), argv
    every = asked("search", "--all", "--jsonl", "tag:alpha").stdout.splitlines()
    assert [json.loads(line)["date"][-1] for line in every] == ["3", "2", "1"]
    told = asked("recall", "--tag", "alpha").stdout
    assert told.index("on 2026-05-03") < told.index("on 2026-05-01")
    explained = json.loads(asked("search", "--explain", "--json", "tag:alpha").stdout)
    assert [hit["score"] for hit in explained["hits"]] == [1.0, 1.0]
    assert asked("search", "--explain", "tag:alpha").returncode == exits.OK
    assert asked("search", "--tag", "none").returncode == exits.NONE
    assert asked("search").returncode == exits.USAGE


def test_of_one_day_what_was_written_last_comes_first(daemon, tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    for minutes, name in ((0, "older"), (20, "younger"), (10, "between")):
        (root / f"{name}.md").write_text(f"This is the {name} one.\n")
        os.utime(root / f"{name}.md", (1_000_000_000 + 60 * minutes,) * 2)
    daemon.add(root)

    def listed():
        daemon.call("index", workspace=str(root))  # looks again at what was too new to be sure of
        return daemon.found("path:*.md", workspace=str(root))

    until(lambda: listed() == ["younger.md", "between.md", "older.md"])


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["search", "--limit", "5000", "x"], "memctl: --limit: expected int <= 1000, got 5000\n"),
        (
            ["search", "--limit", "500", "--explain", "x"],
            "memctl: --limit: at most 100 hits can be explained",
        ),
        (["search", "--since", "whenever", "x"], "memctl: --since: 'whenever' is not a day"),
        (["recall", "--budget", "9999999", "x"], "memctl: --budget: expected int <= 65536, got 9999999\n"),
        (["get", "a" * 5000], "memctl: PATH: expected str of length <= 4096\n"),
        (["why", "--until", "whenever", "a.md", "x"], "memctl: --until: 'whenever' is not a day"),
    ],
)
def test_a_refused_value_is_named_by_its_option(asked, argv, told):
    done = asked(*argv)
    assert (done.returncode, done.stdout) == (exits.USAGE, "")
    assert done.stderr.startswith(told), done.stderr
