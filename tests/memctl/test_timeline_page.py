"""The lines of a timeline: a day each, with gaps."""

from memctl.commands.timeline import lines
from memctl.output import plot


def day(date, hits, path="notes/a.md", heading="Heron"):
    best = {"path": path, "heading": heading, "title": "", "start_line": 3, "match_line": 4}
    return {"date": date, "hits": hits, "best": best}


def test_a_line_a_day_and_long_gaps_between_them():
    days = [day("2025-01-01", 1), day("2025-02-01", 12), day("2026-02-02", 2, "b.md", "")]
    assert lines(days, "/home/ada", "/home/ada/notes") == [
        "2025-01-01   1  Heron  a.md:4", "2025-02-01  12  Heron  a.md:4", "                … 366 days",
        "2026-02-02   2  /home/ada/b.md:4",
    ]  # fmt: skip
    assert lines([], "/home/ada", "/") == []


def test_the_plot_has_a_bar_for_each_day_and_days_below_it(tmp_path):
    plot.write_days({"2025-01-01": 1, "2025-12-31": 3}, tmp_path / "days.svg")
    drawn = (tmp_path / "days.svg").read_text()
    assert drawn.count(f"fill: {plot.OURS}") == 2
    assert ">hits<" in drawn
    assert ">2025-" in drawn
