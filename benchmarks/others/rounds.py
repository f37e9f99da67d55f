"""Rounds: engines are asked in turn, and their times compared as ratios. Knows no engine.

A round asks each engine some of the questions; each round begins with another engine. Ratios are computed
within a round, in which conditions are the same for all, and the result is their median over the rounds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from benchmarks import report
from benchmarks.others.corpora import Question
from benchmarks.others.engine import Timed
from benchmarks.others.remote import RemoteError

WARM_UP = 2  # questions asked again before those that count: another engine had the caches meanwhile
Ask = Callable[[Sequence[Question]], list[Timed]]
T = TypeVar("T")


@dataclass(slots=True)
class Times:
    """What one way of one engine answered."""

    rounds: list[list[float]] = field(default_factory=list)  # milliseconds
    answers: list[list[int]] = field(default_factory=list)  # of every question, in order
    failure: str = ""  # why it answered no more

    @property
    def all(self) -> list[float]:
        """The milliseconds of all rounds."""
        return [ms for one in self.rounds for ms in one]


def take_turns(engines: Mapping[str, Ask], questions: Sequence[Question], rounds: int) -> dict[str, Times]:
    """Ask every engine every question once, a part of them per round; drop failed engines."""
    found = {name: Times() for name in engines}
    size = max(1, -(-len(questions) // rounds))
    for number in range(0, len(questions), size):
        part = questions[number : number + size]
        for name in rotated(list(engines), number // size):
            times = found[name]
            if times.failure:
                continue
            try:
                answers = engines[name]([*part[-WARM_UP:], *part])[len(part[-WARM_UP:]) :]
            except RemoteError as error:
                times.failure = f"failed: {error}"
                continue
            times.rounds.append([answer.ms for answer in answers])
            times.answers += [answer.ids for answer in answers]
    return found


def rotated(items: list[T], by: int) -> list[T]:
    """Return the items, beginning with another one each time."""
    start = by % len(items) if items else 0
    return items[start:] + items[:start]


def ratio(theirs: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> float:
    """Return the median over rounds of (median of theirs) / (median of ours): above 1 they take longer.

    Rounds that only one of them has do not count; without a common one it is nan.
    """
    pairs = [(one, other) for one, other in zip(theirs, ours, strict=False) if one and other]
    return median(median(one) / median(other) for one, other in pairs) if pairs else float("nan")


def in_ms(times: Sequence[float]) -> dict[str, str]:
    """Return p50 and p95 as a table shows them."""
    if not times:
        return {"p50 ms": "-", "p95 ms": "-"}
    return {"p50 ms": f"{report.quantile(times, 0.5):.2f}", "p95 ms": f"{report.quantile(times, 0.95):.2f}"}
