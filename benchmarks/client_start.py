"""The time of memctl as a process, compared with Python alone and the imports that it needs.

On the sample notes, or with `--chunks` on that many generated chunks. Wall time is what users experience; CPU
time is less affected by other load on the machine.
"""

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks import report
from benchmarks.freshness import LONG_NOTE, fill
from benchmarks.home import Home, home
from benchmarks.made_notes import notes, write

SAMPLE = Path(__file__).resolve().parent.parent / "tests" / "sample"
FLOOR = "imports it needs"
CHUNKS_A_NOTE = 10  # of LONG_NOTE words
QUERY = "breast cancer gene"
MOST_BEYOND = 1.6  # of the floor, for all that the client does itself
ADD_TIMEOUT_S = 600.0  # a large folder's first scan

Times = dict[str, list[float]]


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="starts of each command (default: 30)")
    parser.add_argument("--chunks", type=int, help="so many made chunks with vectors beside the sample notes")
    options = parser.parse_args()
    with home() as place:
        chunks = _prepare(place, options.chunks)
        where = ["--workspace", str(place.notes)]
        memctl = [sys.executable, "-m", "memctl"]
        commands = {
            "python, bare": [sys.executable, "-c", ""],
            FLOOR: [sys.executable, "-c", "import argparse, socket, msgpack"],
            "memctl --version": [*memctl, "--version"],
            "memctl ping": [*memctl, "ping"],
            "memctl search": [*memctl, "search", *where, QUERY],
            "memctl search --json": [*memctl, "search", *where, "--json", QUERY],
        }
        wall, cpu = rounds(commands, options.rounds, place.environment)
        whole = _over_the_socket(place, options.rounds)
    rows = [_row(name, wall, cpu) for name in commands]
    print(f"{chunks:,} chunks; milliseconds")
    took, asked, floor = (report.quantile(one, 0.5) for one in (wall["memctl search"], whole, wall[FLOOR]))
    print(
        f"the same search over an open connection: {asked:.1f}; what memctl search takes beyond that: "
        f"{(took - asked) / floor:.2f} times the {FLOOR} (at most {MOST_BEYOND} is asked)"
    )
    report.show("client_start", rows, options, chunks=chunks, ms=wall, cpu_ms=cpu, whole_ms=whole)


def rounds(commands: dict[str, list[str]], count: int, environment: dict[str, str]) -> tuple[Times, Times]:
    """Run all commands in turn, *count* times: a slow minute of the machine then hits each of them.

    Returns:
        Milliseconds from start to end, and of the processor.
    """
    wall: Times = {name: [] for name in commands}
    cpu: Times = {name: [] for name in commands}
    for number in range(count + 1):
        for name, command in commands.items():
            started = perf_counter()
            # Not a pipe: reading it would wait for the process in another way.
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            _, status, used = os.wait4(process.pid, 0)
            took = 1000 * (perf_counter() - started)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{name} failed with exit code {process.returncode}")
            if number:  # the first round fills caches
                wall[name].append(took)
                cpu[name].append(1000 * (used.ru_utime + used.ru_stime))
    return wall, cpu


def _over_the_socket(place: Home, count: int) -> list[float]:
    """Ask the same question over an open connection; return the milliseconds of each answer."""
    times = []
    with place.client() as client:
        for number in range(count + 1):
            started = perf_counter()
            client.call("search", {"workspace": str(place.notes), "query": QUERY})
            if number:
                times.append(1000 * (perf_counter() - started))
    return times


def _prepare(place: Home, chunks: int | None) -> int:
    """Fill the workspace; return how many chunks it has."""
    for note in SAMPLE.rglob("*.md"):
        target = place.notes / note.relative_to(SAMPLE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(note.read_bytes())
    if chunks:
        write(place.notes, notes(chunks // CHUNKS_A_NOTE, words=LONG_NOTE))
        with place.client() as client:
            client.call("workspace.add", {"path": str(place.notes)}, timeout_s=ADD_TIMEOUT_S)
        place.stop()
        fill(place)
        place.start()
    with place.client() as client:
        place.index(client)
        found: int = client.call("status", {})["workspaces"][0]["chunks"]
    return found


def _row(name: str, wall: Times, cpu: Times) -> dict[str, object]:
    def of(times: Times, share: float) -> float:
        return report.quantile(times[name], share)

    def of_floor(times: Times) -> str:
        return f"{of(times, 0.5) / report.quantile(times[FLOOR], 0.5):.2f}"

    return {
        "command": name,
        "p50 ms": f"{of(wall, 0.5):.1f}",
        "p95 ms": f"{of(wall, 0.95):.1f}",
        "of the floor": of_floor(wall),
        "CPU p50 ms": f"{of(cpu, 0.5):.1f}",
        "CPU of the floor": of_floor(cpu),
    }


if __name__ == "__main__":
    main()
