"""Pings, searches and saves while memd scans with a hostile ignore file.

One workspace with a hostile .gitignore above names of 250 characters; while it is scanned again and again, a
client sends pings and searches, and notes are saved. Then the daemon is stopped.
"""

import random
import time
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks import latency, report
from benchmarks.home import Home, home
from memctl.client import Client

NAMES = 300  # of 250 characters, below the hostile file
PATIENCE_S = 30.0
CHANCE = random.Random(20260101)

PATTERNS = {
    "none": "",
    "one line": "*a*a*a*b\n",
    "700 such lines": "*a*a*a*b\n" * 700,
    "700 different ones": "".join(f"*a*a*a*b{number}\n" for number in range(700)),
    "a/**/ four times": "**/a/**/a/**/a/**/b\n",
    "wildcards without end": "".join(f"*{char}{'?' * 20}z\n" for char in "ab" * 1000),
    "10,000 lines of stars": "".join(f"*a*b*{number}\n" for number in range(10_000)),
}


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each (default: 5)")
    options = parser.parse_args()
    rows, figures = [], {}
    for name, lines in PATTERNS.items():
        with home() as place:
            found = measured(place, lines, options.seconds)
        figures[name] = found
        rows += [latency.row(f"{name}: {what}, ms", times) for what, times in found.items()]
    report.show("hostile_patterns", rows, options, ms=figures)


def measured(place: Home, lines: str, seconds: float) -> dict[str, list[float]]:
    """Return milliseconds by kind of request."""
    deep = place.notes / "clone" / "/".join("a" * 40)
    deep.mkdir(parents=True)
    (place.notes / "memory").mkdir()
    (place.notes / "memory" / "config.toml").write_text('provider = "none"\n')
    (place.notes / "heron.md").write_text("A grey heron.\n")
    for number in range(NAMES):
        letters = "".join(CHANCE.choices("ab", k=240)) if number % 2 else "a" * 240
        (deep / f"{letters}{number}.md").write_text("x\n")
    (place.notes / "clone" / ".gitignore").write_text(lines)
    found: dict[str, list[float]] = {"ping": [], "search": [], "save": []}
    with place.client() as client:
        client.call("workspace.add", {"path": str(place.notes)}, timeout_s=PATIENCE_S)
        stop = perf_counter() + seconds
        while perf_counter() < stop:
            (place.notes / "clone" / ".gitignore").write_text(lines)  # all of it is compared again
            number = len(found["save"])
            for _ in range(10):
                found["ping"].append(took_ms(lambda: client.call("ping", {})))
                found["search"].append(took_ms(lambda: searched(client, "heron")))
                time.sleep(0.01)
            (place.notes / f"saved{number}.md").write_text(f"otter{number}\n")
            found["save"].append(took_ms(lambda n=number: until_found(client, f"otter{n}")))
    found["stop"] = [took_ms(place.stop)]
    return found


def searched(client: Client, query: str) -> list[dict[str, Any]]:
    return client.call("search", {"query": query, "mode": "keyword"}, timeout_s=PATIENCE_S)["hits"]


def until_found(client: Client, query: str) -> None:
    stop = perf_counter() + PATIENCE_S
    while not searched(client, query) and perf_counter() < stop:
        time.sleep(0.005)


def took_ms(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return 1000 * (perf_counter() - started)


if __name__ == "__main__":
    main()
