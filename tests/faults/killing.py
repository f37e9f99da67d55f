"""kill -9 at random moments, again and again, and what it leaves behind.

The index that is looked at is a copy: the next process begins with what the killed one left, so that the
recovery itself is killed now and then.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from faults import verdict
from faults.site import Figures, Site, put, put_back
from faults.steps import NOTHING, Truth, base, next_step
from faults.verdict import Report, Verdict

TESTS = Path(__file__).resolve().parent.parent
OPENING_SHARE = 0.1  # of the children, killed while they open the index
OPENS_S = 0.05  # what that takes, more or less
LOOK_S = 0.002


class Nursery:
    """Children that can be killed."""

    def __init__(self, log: Path) -> None:
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "faults.worker"],
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip

    def start(self, job: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._number()

    def kill(self, child: int) -> int:
        with suppress(ProcessLookupError):  # it has ended by itself, which its exit code says
            os.kill(child, signal.SIGKILL)
        return self._number()

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@contextmanager
def nursery(log: Path) -> Iterator[Nursery]:
    """Have children for a while; what they say of errors is in *log*."""
    made = Nursery(log)
    try:
        yield made
    finally:
        made.close()


def loop(
    folder: Path, *, kills: int, seed: int, notes: int = 0, most_steps: int = 30, bug: str = ""
) -> Report:
    """Kill a process that works on an index, again and again.

    Args:
        folder: empty; of the loop alone.
        kills: how often.
        seed: of the steps and of the moments.
        notes: what the index holds before the first kill.
        most_steps: a child is killed after up to so many acknowledged steps, however long these take, or
            while it opens the index.
        bug: a mistake that the killed process makes; the loop then ends with the first flaw.
    """
    chance = random.Random(seed)
    report = Report()
    truth = _prepare(folder / "work", notes)
    number = 1
    errors = folder / "errors"
    with nursery(errors) as children:
        while report.rounds < kills and not (bug and report.flaws):
            log = folder / f"log{report.rounds}"
            job = {
                "folder": str(folder / "work"), "seed": seed, "first": number, "log": str(log), "bug": bug,
                "live": dict(truth.live), "gone": dict(truth.gone),
            }  # fmt: skip
            child = children.start(job)
            _live(child, log, chance, most_steps)
            if (code := children.kill(child)) != -signal.SIGKILL:
                report.flaws.append(f"the child ended by itself with {code}: {errors.read_text()[-2000:]}")
            truth, number = _looked_after(folder, log, seed=seed, first=number, truth=truth, report=report)
    return report


def _live(child: int, log: Path, chance: random.Random, most_steps: int) -> None:
    """Wait until *child* has done some steps, and then for some moment of the next one."""
    began = time.monotonic()
    if chance.random() < OPENING_SHARE:
        time.sleep(chance.uniform(0.0, OPENS_S))
        return
    steps = chance.randint(0, most_steps)
    while (done := log.read_bytes().count(b"\n") if log.exists() else 0) <= steps and _is_alive(child):
        time.sleep(LOOK_S)
    time.sleep(chance.uniform(0.0, 2 * (time.monotonic() - began) / max(done, 1)))


def _is_alive(child: int) -> bool:
    try:
        os.kill(child, 0)
    except ProcessLookupError:
        return False
    return True


def _prepare(folder: Path, notes: int) -> Truth:
    """Make an index to begin with."""
    truth = base(notes) if notes else NOTHING
    site = Site(folder)
    for path, recipe in truth.live.items():
        put(site.root / path, recipe)
    paths = list(truth.live)
    for start in range(0, len(paths), 500):
        site.indexer.apply(paths[start : start + 500], budget_s=600)
    while site.embed(5000):
        pass
    site.close()
    return truth


def _looked_after(
    folder: Path, log: Path, *, seed: int, first: int, truth: Truth, report: Report
) -> tuple[Truth, int]:
    """Compare what is left with what was acknowledged; return what is there, and the next step's number."""
    acknowledged = [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []
    number = first
    for line in acknowledged[1:]:  # the first says that the index was opened
        truth = truth.after(next_step(seed, number, truth))
        assert line["number"] == number
        number += 1
    report.steps += max(len(acknowledged) - 1, 0)
    underway = next_step(seed, number, truth)
    found = _look(folder, [truth, truth.after(underway)])
    lost = verdict.lost(_figures(acknowledged[-1]), found, underway.kind) if acknowledged else ()
    report.add(f"killed at step {number} ({underway.kind})", found, lost)
    put_back(folder / "work" / "notes", underway, found.truth)
    return found.truth, number + 1


def _look(folder: Path, candidates: Sequence[Truth]) -> Verdict:
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "work" / "state", copy / "state")
    return verdict.of_folder(copy, candidates)


def _figures(line: dict[str, Any]) -> Figures:
    return Figures(**{key: value for key, value in line.items() if key != "number"})
