"""Output of the long loop: a line a seed, and of a flaw the few steps that are enough for it."""

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from patience import PATIENCE

from live.crowd import crowd
from live.game import flaw, game
from live.planted import BUGS, launched
from live.shrinking import shrunk
from live.steps import Step, steps
from live.storms import knows, overrun, storm

# A flaw that depends on the moment does not show each time: what is left out must fail within so many tries.
TRIES = 3
STORM_S = 60.0
PATIENCE_S = 60.0 * PATIENCE


def main() -> int:
    """Play seed after seed; return 1 if there was a flaw."""
    parser = argparse.ArgumentParser(prog="python -m tests.live", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first one")
    parser.add_argument("--operations", type=int, default=1_000, help="steps of each seed")
    parser.add_argument("--shrink", type=float, default=600, metavar="S", help="seconds to shorten a flaw in")
    parser.add_argument("--bug", choices=BUGS, help="a mistake that the daemon makes, which must be found")
    parser.add_argument("--figures", action="store_true", help="also: storms, and a crowd of files; timed")
    asked = parser.parse_args()
    options = {"under": launched(asked.bug)} if asked.bug else {}
    flaws = 0
    for seed in range(asked.first, asked.first + asked.seeds):
        flaws += not _play(seed, asked.operations, asked.shrink, options)
    print(f"{asked.seeds} seeds of {asked.operations} operations, {flaws} with a flaw")
    if asked.figures:
        flaws += not _figures()
    return 1 if flaws else 0


def _figures() -> bool:
    with game() as played:
        files = overrun(played)
        began = time.monotonic()
        known = knows(played, files, patience_s=PATIENCE_S)
        print(
            f"{files} files made while it stood still: known={known} {time.monotonic() - began:.1f} s later"
        )
    found = storm(STORM_S)
    ends = ", ".join(f"{end:.0f}" for end in found.scans_s)
    print(
        f"overflow for {STORM_S:.0f} s: scans ended at {ends} s, {found.cpu_share:.0%} of a core; "
        f"{len(found.answers_ms)} searches, the slowest {max(found.answers_ms):.0f} ms"
    )
    met = crowd(files=10_000, saves=50)
    median_ms, slowest_ms = statistics.median(met.synced_ms or [0]), max(met.synced_ms, default=0)
    print(
        f"50 saves among 10,000 files: {len(met.synced_ms)} synced, half of them in {median_ms:.0f} ms, "
        f"the slowest in {slowest_ms:.0f} ms; {met.given_up} given up, {len(met.late_ms)} late; "
        f"{len(met.lies)} said to be synced and not found; {met.pending} vectors pending at the end"
    )
    return known and met.true


def _play(seed: int, operations: int, budget_s: float, options: dict[str, Any]) -> bool:
    played = steps(seed, operations, plain="under" in options)
    options = options | {"provider": provider(seed)}
    began = time.monotonic()
    wrong = flaw(played, **options)
    took_s = time.monotonic() - began
    kinds = Counter(step.kind for step in played)
    print(
        f"seed {seed}: {operations} operations, {kinds['check']} checks, {took_s:.0f} s: {wrong or 'true'}",
        flush=True,
    )
    if wrong:
        least = minimal(played, budget_s=budget_s, **options)
        print(f"  the shortest that fails ({flaw(least, **options) or 'not each time'}):")
        print("".join(f"    {step}\n" for step in least), flush=True)
    return not wrong


def provider(seed: int) -> str:
    """Return what gives the vectors: in every fourth game the model that is shipped."""
    return "none" if seed % 4 else "onnx"


def minimal(played: Sequence[Step], *, budget_s: float, **options: Any) -> list[Step]:
    """Return a short part of *played* that still has a flaw."""

    def fails(some: list[Step]) -> bool:
        ended = [*some, Step(-1, "check", (), 0)]
        return any(flaw(ended, **options) for _ in range(TRIES))

    return [*shrunk(played, fails, budget_s=budget_s), Step(-1, "check", (), 0)]
