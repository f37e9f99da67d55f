"""Days as people say them narrow a search, typed in the query or given as a parameter."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from daemon_process import Daemon

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

REPOSITORY = str(Path(exits.__file__).parents[1])


@pytest.fixture
def diary(daemon: Daemon, tmp_path: Path) -> tuple[Daemon, Path]:
    """A daemon with a note of today, of three days ago and of a year ago."""
    root = tmp_path / "diary"
    root.mkdir()
    for days in (0, 3, 366):
        (root / f"{date.today() - timedelta(days=days)}.md").write_text("The heron was at the weir.\n")  # noqa: DTZ011 - as the user's calendar
    daemon.add(root)
    return daemon, root


def test_a_search_is_narrowed_by_relative_days(diary):
    daemon, root = diary

    def found(*argv):
        argv = ("search", "--jsonl", "--mode", "keyword", *argv)
        lines = daemon.memctl(*argv, cwd=root, env={"PYTHONPATH": REPOSITORY}).stdout.splitlines()
        places = [one for line in lines for one in [json.loads(line), *json.loads(line)["folded"]]]
        return sorted((date.today() - date.fromisoformat(one["path"][:10])).days for one in places)  # noqa: DTZ011

    assert found("heron") == [0, 3, 366]
    assert found("--since", "yesterday", "heron") == found("heron since:yesterday") == [0]
    assert found("--since", "7d", "heron") == found("heron", "since:7d") == [0, 3]
    assert found("--until", "last year", "heron") == found("heron until:last-year") == [366]
    assert found("heron before:2d") == [3, 366]
    assert found("--since", "tomorrow", "heron") == []


def test_a_parameter_that_is_no_day_is_refused(diary):
    daemon, root = diary
    path = next(root.glob("*.md")).name
    for method, params in (
        ("search", {"query": "x"}),
        ("recall", {"query": "x"}),
        ("why", {"query": "x", "path": path}),
        ("similar", {"path": path}),
    ):
        with pytest.raises(
            RpcError, match=r"^\$\.until: 'whenever' is not a day: expected one like 2026-05-01"
        ):
            daemon.call(method, workspace=str(root), until="whenever", **params)
