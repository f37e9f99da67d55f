"""Power cuts: work is recorded, cut off at random moments, and what is left is checked.

A recording begins with what one of the cuts before it left, so that recovery is cut off as well.
"""

import random
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from faults import bugs, verdict
from faults.disk import loses_power
from faults.seam import Call, Witness, watched
from faults.site import SHORT_LOG_PAGES, Figures, Site
from faults.steps import NOTHING, Truth, next_step
from faults.verdict import Report

SHARED = "index.db-shm"  # SQLite's shared memory: anything may be left of it
SHARED_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """From here on a step counts as done."""

    truth: Truth
    kind: str
    figures: Figures


@dataclass(slots=True)
class Recording(Witness):
    """What was asked of the disk, and between it what was acknowledged."""

    start: Path  # the folder as it was before
    events: list[Call | Acknowledged] = field(default_factory=list)

    def after(self, call: Call) -> None:
        if call.kind not in ("read", "open"):
            self.events.append(call)


def loop(
    folder: Path, *, cuts: int, seed: int, a_recording: int = 20, steps: int = 25, bug: str = ""
) -> Report:
    """Cut the power so many times.

    Args:
        folder: empty; of this loop alone.
        cuts: how often.
        seed: of steps, moments and losses.
        a_recording: how many cuts of each recording.
        steps: that a recording has.
        bug: a mistake that is made while recording; the loop then ends with the first flaw.
    """
    chance = random.Random(seed)
    report = Report()
    work, truth, first = folder / "work", NOTHING, 1
    while report.rounds < cuts and not (bug and report.flaws):
        recording = _record(work, folder / "start", seed=seed, first=first, steps=steps, truth=truth, bug=bug)
        report.steps += steps
        first += steps
        for _ in range(min(a_recording, cuts - report.rounds)):
            shutil.rmtree(work / "state")
            truth = _cut(recording, work / "state", folder / "look", chance, report)
    return report


def _record(
    work: Path, start: Path, *, seed: int, first: int, steps: int, truth: Truth, bug: str
) -> Recording:
    shutil.rmtree(start, ignore_errors=True)
    if (work / "state").exists():
        shutil.copytree(work / "state", start)
    recording = Recording(start)
    with ExitStack() as within:
        within.enter_context(watched(recording))
        if bug:
            within.enter_context(bugs.planted(bug))
        site = Site(work, log_pages=SHORT_LOG_PAGES)
        recording.events.append(Acknowledged(truth, "", site.figures))
        for number in range(first, first + steps):
            step = next_step(seed, number, truth)
            site.do(step)
            truth = truth.after(step)
            recording.events.append(Acknowledged(truth, step.kind, site.figures))
        site.close()
    return recording


def _cut(recording: Recording, left: Path, look: Path, chance: random.Random, report: Report) -> Truth:
    """Cut the power once: what is left is in *left*; look at a copy, and return what it holds."""
    moment = chance.randrange(len(recording.events) + 1)
    done, later = recording.events[:moment], recording.events[moment:]
    calls = [(number, call) for number, call in enumerate(done) if isinstance(call, Call)]
    loses_power(recording.start, calls, left, chance)
    if chance.random() < 0.5:
        (left / SHARED).write_bytes(chance.randbytes(SHARED_BYTES))
    shutil.rmtree(look, ignore_errors=True)
    shutil.copytree(left, look / left.name)
    before, after = _acknowledged(done)[-1:], _acknowledged(later)[:1]
    found = verdict.of_folder(look, [one.truth for one in before + after])
    underway = after[0].kind if after else ""
    lost = verdict.lost(before[0].figures, found, underway) if before else ()
    report.add(f"cut at {moment} of {len(recording.events)} ({underway})", found, lost)
    return found.truth


def _acknowledged(events: Sequence[Call | Acknowledged]) -> list[Acknowledged]:
    return [event for event in events if isinstance(event, Acknowledged)]
