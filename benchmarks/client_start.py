"""How long does memctl take as a process, against Python itself and the imports it can't do without?"""

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks import report
from benchmarks.home import home

SAMPLE = Path(__file__).resolve().parent.parent / "tests" / "sample"
FLOOR = "imports it needs"


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="starts of each command (default: 30)")
    options = parser.parse_args()
    with home() as place:
        for note in SAMPLE.rglob("*.md"):
            target = place.notes / note.relative_to(SAMPLE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(note.read_bytes())
        with place.client() as client:
            place.index(client)
        where = ["--workspace", str(place.notes)]
        memctl = [sys.executable, "-m", "memctl"]
        commands = {
            "python, bare": [sys.executable, "-c", ""],
            FLOOR: [sys.executable, "-c", "import argparse, socket, msgpack"],
            "memctl --version": [*memctl, "--version"],
            "memctl ping": [*memctl, "ping"],
            "memctl search": [*memctl, "search", *where, "breast cancer gene"],
            "memctl search --json": [*memctl, "search", *where, "--json", "breast cancer gene"],
        }
        times = rounds(commands, options.rounds, place.environment)
    floor = report.quantile(times[FLOOR], 0.5)
    rows = [
        {
            "command": name,
            "p50 ms": f"{report.quantile(values, 0.5):.1f}",
            "p95 ms": f"{report.quantile(values, 0.95):.1f}",
            "of the floor": f"{report.quantile(values, 0.5) / floor:.2f}",
        }
        for name, values in times.items()
    ]
    report.show("client_start", rows, options, ms=times)


def rounds(commands: dict[str, list[str]], count: int, environment: dict[str, str]) -> dict[str, list[float]]:
    """Run all commands in turn, *count* times: a slow minute of the machine then hits each of them."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(count + 1):
        for name, command in commands.items():
            started = perf_counter()
            done = subprocess.run(
                command, env={**os.environ, **environment}, capture_output=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{name} failed: {done.stderr.decode()}")
            if number:  # the first round fills caches
                times[name].append(1000 * (perf_counter() - started))
    return times


if __name__ == "__main__":
    main()
