"""The text of `memctl import`: what was written, what was left alone, and what was skipped and why. Pure."""

from collections.abc import Iterator
from typing import Any

from memctl.output.status import counted
from memctl.output.text import one_line

SHOWN = 20  # of a list on a screen; --json has all of it


def people(report: dict[str, Any]) -> str:
    """Return the page: a line a file that was written, and one that sums up."""
    would = "would be " if report["dry_run"] else ""
    lines = [
        *_some([f"{would}{what}: {one_line(path)}" for what in ("new", "grown") for path in report[what]]),
        _sum(report, would),
    ]
    return "".join(f"{line}\n" for line in lines)


def _sum(report: dict[str, Any], would: str) -> str:
    return (
        f"{counted(report['conversations'], 'conversation')} of {report['client']} in {report['folder']}: "
        f"{len(report['new'])} {would}new, {len(report['grown'])} {would}grown, "
        f"{report['unchanged']} unchanged, {len(report['left_alone'])} left alone"
    )


def notes(report: dict[str, Any]) -> Iterator[str]:
    """Yield what should be known beside: what was left alone, and what was skipped."""
    yield from _some([f"left alone: {one_line(one['path'])} {one['why']}" for one in report["left_alone"]])
    yield from _some([_skipped(one) for one in report["skipped"]])


def _skipped(row: dict[str, Any]) -> str:
    """Return the line of what was not read: a whole file, or a part of one that was imported."""
    unit = row["why"].partition(" ")[0]  # that is counted: a line, a conversation, a message
    others = " and others" if row["count"] > 1 else ""
    where = f" ({unit} {row['first_line']}{others})" if row["first_line"] else ""
    many = f"{row['count']:,} times: " if row["count"] > 1 else ""
    what = "skipped" if row["whole"] else "not all of"
    return f"{what}: {one_line(row['source'])}: {many}{row['why']}{where}"


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - SHOWN
    return lines if more <= 0 else [*lines[:SHOWN], f"… and {more:,} more (--json lists all)"]
