"""The long versions of the loops in tests/faults: what is lost after faults, with figures.

``python -m benchmarks.faults`` runs everything, which takes most of an hour; names of parts select some. A
flaw is anything lost, wrong or not recovered; with a flaw the run ends with exit code 1.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from benchmarks import report

sys.path.insert(0, str(report.RUNS.parent.parent / "tests"))

from faults import failing, flips, full, killing, migration, power, surgery
from faults.household import household

NOTES = 13_100  # some 20,000 chunks
STEP_BYTES = 8 * 1024  # of the space that is left on a full disk
MOST_BYTES = 400 * 1024  # more than a save takes

Row = dict[str, Any]
Outcome = tuple[Row, list[str]]  # figures, flaws


def kills(folder: Path, seed: int) -> Outcome:
    """Kill -9 at random moments of mixed work."""
    found = killing.loop(folder, kills=200, seed=seed)
    return _recovered(found, "kill -9")


def kills_of_many(folder: Path, seed: int) -> Outcome:
    """The same with 20,000 chunks, and the time that recovery takes."""
    found = killing.loop(folder, kills=40, seed=seed, notes=NOTES, most_steps=100)
    return _recovered(found, "kill -9, 20,000 chunks")


def cuts(folder: Path, seed: int) -> Outcome:
    """Power cuts that lose any part of the data that was not synced."""
    return _recovered(power.loop(folder, cuts=1000, seed=seed), "power cuts")


def refusals(folder: Path, _: int) -> Outcome:
    """Each call of the disk fails once, or from then on."""
    runs = [failing.sweep(folder, trouble) for trouble in failing.TROUBLES]
    flaws = [flaw for run in runs for flaw in run.flaws]
    return _row("each call refused", sum(run.runs for run in runs), f"{len(runs)} kinds of trouble"), flaws


def bits(folder: Path, seed: int) -> Outcome:
    """Single bits that flip under a stopped daemon."""
    with household(folder) as house:
        found = flips.loop(house, flips=200, seed=seed)
    told = "; ".join(f"{count} {outcome}" for outcome, count in sorted(found.outcomes.items()))
    return _row("bits flipped", found.outcomes.total(), told), found.flaws


def operations(folder: Path, _: int) -> Outcome:
    """Files cut, lost and exchanged under a stopped and a running daemon."""
    with surgery.surgery(folder) as table:
        cases = [(table.stopped, case) for case in surgery.STOPPED]
        cases += [(table.running, case) for case in surgery.RUNNING]
        flaws = [f"{work.__name__}, {case}: {flaw}" for work, case in cases for flaw in work(*case)]
    return _row("file surgery", len(cases), f"{len(surgery.RUNNING)} of them under a running daemon"), flaws


def spaces(folder: Path, _: int) -> Outcome:
    """A save with every amount of space left."""
    found = full.loop(folder, frees=range(0, MOST_BYTES, STEP_BYTES))
    return _row("saves on a full disk", found.rounds, f"{found.refused} refused"), found.flaws


def models(folder: Path, seed: int) -> Outcome:
    """Kill -9 while vectors of another model are made."""
    found = migration.models(folder, kills=50, seed=seed)
    return _row(
        "kill -9, model changes", found.kills, f"{found.halfway} starts found it half done"
    ), found.flaws


def tables(folder: Path, seed: int) -> Outcome:
    """Kill -9 while an index of another release is rebuilt."""
    found = migration.tables(folder, kills=50, seed=seed)
    return _row(
        "kill -9, tables change", found.kills, f"{found.halfway} starts found it half done"
    ), found.flaws


PARTS: dict[str, Callable[[Path, int], Outcome]] = {
    part.__name__: part
    for part in (kills, kills_of_many, cuts, refusals, bits, operations, spaces, models, tables)
}


def main() -> None:
    """Do what the command line asks for."""
    parser = report.arguments(__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="by default all: " + ", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=1, help="of moments and losses")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    rows, flaws = _done(options)
    report.show("faults", rows, options, flaws=flaws)
    for flaw in flaws:
        print(flaw)
    sys.exit(1 if flaws else 0)


def _done(options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    rows, flaws = [], []
    for name in options.parts or PARTS:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="memd-faults-") as folder:
            row, found = PARTS[name](Path(folder).resolve(), options.seed)
        rows.append(row | {"flaws": len(found), "seconds": round(time.perf_counter() - started)})
        flaws += [f"{name}: {flaw}" for flaw in found]
        print(
            f"{name}: {len(found)} flaws in {row['rounds']} rounds, {rows[-1]['seconds']} s", file=sys.stderr
        )
    return rows, flaws


def _recovered(found: Any, name: str) -> Outcome:
    opened_ms = sorted(1000 * seconds for seconds in found.opened_s)
    told = f"{found.steps} steps acknowledged; recovery p50 {report.quantile(opened_ms, 0.5):.0f} ms"
    return _row(name, found.rounds, f"{told}, most {opened_ms[-1]:.0f} ms"), found.flaws


def _row(name: str, rounds: int, told: str) -> Row:
    return {"fault": name, "rounds": rounds, "figures": told}


if __name__ == "__main__":
    main()
