"""A query's hits by day, from a real daemon."""

import json

import pytest
from daemon_process import folder_of

pytestmark = pytest.mark.usefixtures("shared_daemon")

DAYS = ("2026-03-01", "2026-01-10", "2025-05-05")


@pytest.fixture
def diary(workspace):
    days = {f"memory/{day}.md": f"# Log\n\nThe heron came on {day}.\n" for day in DAYS}
    folder_of(workspace.root, days | {"memory/2026-03-01-two.md": "# Two\n\nA heron, a heron again.\n"})
    workspace.call("sync")
    return workspace


def test_each_day_has_its_best_hit_and_the_earliest_is_first(diary):
    days = diary.call("timeline", query="heron", mode="keyword", glob="memory/**")["days"]
    assert [(one["date"], one["hits"]) for one in days] == [
        ("2025-05-05", 1), ("2026-01-10", 1), ("2026-03-01", 2),
    ]  # fmt: skip
    ranked = diary.call("search", query="heron", mode="keyword", path="memory/**")["hits"]
    assert days[-1]["best"]["path"] == next(hit["path"] for hit in ranked if hit["date"] == "2026-03-01")


def test_the_command_prints_them_and_search_does_by_date(diary):
    shown = diary.memctl("timeline", "heron", "--path", "memory")
    assert shown.returncode == 0, shown.stderr
    rows = shown.stdout.splitlines()
    assert [row[:10] for row in rows if row[:1] == "2"] == ["2025-05-05", "2026-01-10", "2026-03-01"]
    assert "… 250 days" in rows[1]
    asked = json.loads(diary.memctl("timeline", "--json", "heron").stdout)
    assert asked["days"][0]["date"] == "2025-05-05"
    listed = diary.memctl("search", "--by-date", "--files", "--path", "memory", "heron").stdout.split()
    assert [path[7:17] for path in listed] == ["2025-05-05", "2026-01-10", "2026-03-01", "2026-03-01"]
    page = diary.memctl("search", "--by-date", "--path", "memory", "heron").stdout
    assert page.index("2025-05-05") < page.index("\n    … 250 days\n") < page.index("2026-01-10")
    assert "days" not in diary.memctl("search", "--path", "memory", "heron").stdout


def test_a_plot_is_drawn_only_to_an_svg_file(diary):
    assert diary.memctl("timeline", "heron", "--plot", "days.svg").stderr.endswith("drawn: days.svg\n")
    assert "<svg" in (diary.root / "days.svg").read_text()
    wrong = diary.memctl("timeline", "heron", "--plot", "days.png")
    assert wrong.returncode
    assert "days.svg" in wrong.stderr


def test_nothing_found_is_said(diary):
    none = diary.memctl("timeline", "--mode", "keyword", "zzzqqq")
    assert (none.returncode, none.stdout) == (1, "")
    assert "memctl timeline WORD" in diary.memctl("timeline").stderr


def test_a_weak_match_is_told_off_a_terminal(diary):
    weak = diary.memctl("timeline", "--mode", "keyword", "heron kettle umbrella violin")
    assert (weak.returncode, weak.stderr) == (0, "memctl: weak match\n")
