"""A query's hits by day, from a real daemon."""

import json

import pytest
from daemon_process import folder_of

pytestmark = pytest.mark.usefixtures("shared_daemon")

DAYS = ("2026-03-01", "2026-01-10", "2025-05-05")


@pytest.fixture
def diary(workspace):
    daemon, root = workspace
    days = {f"memory/{day}.md": f"# Log\n\nThe heron came on {day}.\n" for day in DAYS}
    folder_of(root, days | {"memory/2026-03-01-two.md": "# Two\n\nA heron, a heron again.\n"})
    daemon.call("sync", workspace=str(root))
    return daemon, root


def test_each_day_has_its_best_hit_and_the_earliest_is_first(diary):
    daemon, root = diary
    days = daemon.call("timeline", query="heron", workspace=str(root), mode="keyword", glob="memory/**")[
        "days"
    ]
    assert [(one["date"], one["hits"]) for one in days] == [
        ("2025-05-05", 1), ("2026-01-10", 1), ("2026-03-01", 2),
    ]  # fmt: skip
    ranked = daemon.call("search", query="heron", workspace=str(root), mode="keyword", path="memory/**")[
        "hits"
    ]
    assert days[-1]["best"]["path"] == next(hit["path"] for hit in ranked if hit["date"] == "2026-03-01")


def test_the_command_prints_them_and_search_does_by_date(diary):
    daemon, root = diary
    shown = daemon.memctl("timeline", "heron", "--path", "memory", cwd=root)
    assert shown.returncode == 0, shown.stderr
    rows = shown.stdout.splitlines()
    assert [row[:10] for row in rows if row[:1] == "2"] == ["2025-05-05", "2026-01-10", "2026-03-01"]
    assert "… 250 days" in rows[1]
    asked = json.loads(daemon.memctl("timeline", "--json", "heron", cwd=root).stdout)
    assert asked["days"][0]["date"] == "2025-05-05"
    listed = daemon.memctl(
        "search", "--by-date", "--files", "--path", "memory", "heron", cwd=root
    ).stdout.split()
    assert [path[7:17] for path in listed] == ["2025-05-05", "2026-01-10", "2026-03-01", "2026-03-01"]
    page = daemon.memctl("search", "--by-date", "--path", "memory", "heron", cwd=root).stdout
    assert page.index("2025-05-05") < page.index("\n    … 250 days\n") < page.index("2026-01-10")
    assert "days" not in daemon.memctl("search", "--path", "memory", "heron", cwd=root).stdout


def test_a_plot_is_drawn_only_to_an_svg_file(diary):
    daemon, root = diary
    assert daemon.memctl("timeline", "heron", "--plot", "days.svg", cwd=root).stderr.endswith(
        "drawn: days.svg\n"
    )
    assert "<svg" in (root / "days.svg").read_text()
    wrong = daemon.memctl("timeline", "heron", "--plot", "days.png", cwd=root)
    assert wrong.returncode
    assert "days.svg" in wrong.stderr


def test_nothing_found_is_said(diary):
    daemon, root = diary
    none = daemon.memctl("timeline", "zzzqqq", cwd=root)
    assert (none.returncode, none.stdout) == (1, "")
    assert "memctl timeline WORD" in daemon.memctl("timeline", cwd=root).stderr


def test_a_weak_match_is_told_off_a_terminal(diary):
    daemon, root = diary
    weak = daemon.memctl("timeline", "--mode", "keyword", "heron kettle umbrella violin", cwd=root)
    assert (weak.returncode, weak.stderr) == (0, "memctl: weak match\n")
